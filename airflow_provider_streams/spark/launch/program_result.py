"""The file by which a program of ours that runs with Spark answers the process that started it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow_provider_streams.errors import PreflightFailed, StreamsError
from airflow_provider_streams.model.sinks.untouched_table import mark_untouched


def write_result(file: Path, result: dict[str, Any]) -> None:
    """Write the answer, so that it is there as a whole or not at all."""
    draft = file.with_name(file.name + ".draft")
    draft.write_text(json.dumps(result))
    draft.rename(file)


def error_result(error: StreamsError, *, untouched: bool) -> dict[str, Any]:
    """The answer of a program that failed as a whole.

    Args:
        error: what it failed with.
        untouched: whether no table was changed.
    """
    told = {"type": type(error).__name__, "message": str(error), "untouched": untouched}
    return {"error": {**told, "foreseeable": error.foreseeable}}


def explains_failure(file: Path) -> bool:
    """Whether a program wrote why it failed, or why each of its windows did."""
    if not file.exists():
        return False
    result = json.loads(file.read_text())
    return "error" in result or all("failure" in one for one in result.get("results", ()))


def read_result(file: Path, program: str) -> dict[str, Any]:
    """The answer that a program wrote.

    Args:
        file: its answer.
        program: what ran it, for the message.

    Raises:
        PreflightFailed: it wrote none.
        StreamsError: that it failed as a whole.
    """
    from airflow_provider_streams.spark.error_transport import rebuild  # noqa: PLC0415 - what runs on the cluster, when used

    if not file.exists():
        raise PreflightFailed(f"{program} ended without a result: see its output above")
    result: dict[str, Any] = json.loads(file.read_text())
    if error := result.get("error"):
        failure = rebuild(error["type"], error["message"], foreseeable=error.get("foreseeable", False))
        if error["untouched"]:
            mark_untouched(failure)
        raise failure
    return result
