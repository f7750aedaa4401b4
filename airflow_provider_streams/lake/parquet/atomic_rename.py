"""Replaces one folder by another, so that a reader, or a crash at any moment, finds the old one or the new one.

Linux and macOS exchange two names in one step. Some network mounts need two renames. Between them, the target does not
exist, and `recover` brings the old folder back if the process died there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

ASIDE_SUFFIX = ".old"
"""Ends the name of a replaced folder between two renames."""

_AT_FDCWD = -100
_EXCHANGE = 2
"""`RENAME_EXCHANGE` of Linux, `RENAME_SWAP` of macOS."""
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def replace_folder(new: Path, target: Path) -> None:
    """`new` replaces `target`, which is removed; both are on one file system. `OSError`: nothing changed."""
    flush(new)
    try:
        new.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not _exchange(new, target):
            _rename_twice(new, target)
    flush_folder(new.parent)
    flush_folder(target.parent)
    shutil.rmtree(new, ignore_errors=True)  # the old one, if there was one


def recover(target: Path, aside_folder: Path, prefix: str) -> None:
    """After a crash between the two renames, bring the old folder back if the target is absent."""
    for aside in sorted(aside_folder.glob(f"{prefix}*{ASIDE_SUFFIX}")):
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            aside.rename(target)


def flush(folder: Path) -> None:
    """Flush a folder with all its files and folders to the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            _fsync(Path(parent) / name, os.O_RDONLY)
        flush_folder(Path(parent))


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of names to the disk."""
    _fsync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_twice(new: Path, target: Path) -> None:
    aside = new.with_name(new.name + ASIDE_SUFFIX)
    target.rename(aside)
    try:
        new.rename(target)
    except OSError:
        aside.rename(target)
        raise
    aside.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False: the system cannot. `OSError`: it can, and failed here."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    is_mac = sys.platform == "darwin"
    places = (first, second) if is_mac else (_AT_FDCWD, first, _AT_FDCWD, second)
    exchange = getattr(libc, "renamex_np" if is_mac else "renameat2", None)
    if exchange is None:
        return False
    if not exchange(*places, ctypes.c_uint(_EXCHANGE)):
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
