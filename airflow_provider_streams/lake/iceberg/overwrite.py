"""pyiceberg's overwrite of single files, made safe: it looks for the files in several threads at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Transaction


def overwrite_of(change: Transaction, facts: Mapping[str, str]) -> Any:
    """A new snapshot that removes and adds files: `delete_data_file`, `append_data_file`, then the end of its block.

    pyiceberg asks of each manifest whether it may hold the removed files. Its threads share one evaluator, which keeps
    the manifest that it is asked about (`_ManifestEvalVisitor.partition_fields`, pyiceberg 0.12). On a busy machine it
    would answer for another thread's manifest, and the commit would fail with "Missing required files to delete". Here,
    each question has an evaluator of its own.
    """
    made = change.update_snapshot(snapshot_properties={**facts}).overwrite()
    build = made._build_manifest_evaluator  # noqa: SLF001 - pyiceberg has no public name for it

    def build_each(spec_id: int) -> Callable[[ManifestFile], bool]:
        def may_match(manifest: ManifestFile) -> bool:
            return build(spec_id)(manifest)

        return may_match

    made._build_manifest_evaluator = build_each  # type: ignore[method-assign]  # noqa: SLF001
    return made
