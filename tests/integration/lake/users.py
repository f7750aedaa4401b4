"""Other users of this machine, as whom root may act: tests of files that two of them share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GROUP = 61200
FIRST, SECOND = 61201, 61202
"""Of one group."""

IS_ROOT = os.geteuid() == 0
MAY_READ = all(folder.stat().st_mode & 0o001 for folder in Path(__file__).parents)
"""Whether other users may read this checkout: what they do imports some of it."""


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """This process is a user of the group meanwhile."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(GROUP)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextmanager
def group_folder() -> Iterator[Path]:
    """A folder that the group shares; the folders above pytest's own are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="streams-test-group-"))
    try:
        if IS_ROOT:
            os.chown(folder, 0, GROUP)
        folder.chmod(0o2775)
        yield folder
    finally:
        shutil.rmtree(folder)
