"""A folder that is really read-only: a mount, for root ignores modes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[str]:
    """Make a folder with its files read-only meanwhile; what is said of it, before a path.

    Root needs a mount for this, and the test is skipped where it may not make one.
    """
    if os.getuid():
        yield from _by_modes(folder)
        return
    bound = subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True)
    if bound.returncode:
        pytest.skip("this root may not mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield "the file system of"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _by_modes(folder: Path) -> Iterator[str]:
    known = {one: one.stat().st_mode for one in (*folder.rglob("*"), folder)}
    for one, mode in known.items():
        one.chmod(mode & ~0o222)
    try:
        yield "this user may not write"
    finally:
        for one, mode in reversed(known.items()):
            one.chmod(mode)
