"""Copies of the repository's tracked files, in which a mutant is the package that tests import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_streams"


@contextmanager
def clean_copy(root: Path = ROOT) -> Iterator[Path]:
    """The working tree's tracked files in a folder of their own, until the block ends."""
    with TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "tree")
        for name in _tracked(root):
            _copy(root / name, copy / name)
        Path(folder, "tmp").mkdir()
        yield copy


def _tracked(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def apply(patch: Path, tree: Path, *options: str) -> str:
    """Apply a patch to a tree; why that is not possible, or nothing."""
    # the tree is no checkout: git must not find one around it
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", *options, str(patch)]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def environment_of(tree: Path) -> dict[str, str]:
    """For processes that import the package of a tree, and for those that they start in other folders.

    The package is installed as a link to a checkout, so a process elsewhere needs the path to this one.
    What they leave in the folder of temporary files goes with the copy.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(tree), "TMPDIR": str(tree.parent / "tmp")}


def check_import(tree: Path) -> None:
    """Check that the package of a tree is imported there, and by a process in another folder.

    Raises:
        ImportError: another one is.
    """
    for folder in (tree, tree.parent):
        code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=environment_of(tree), capture_output=True, text=True, check=True)
        if not Path(done.stdout.strip()).is_relative_to(tree):
            raise ImportError(f"in {folder}, {PACKAGE} is {done.stdout.strip()}, and not the one of {tree}")
