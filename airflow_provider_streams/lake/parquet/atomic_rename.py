"""Puts one folder in another's place, so that a reader, or a crash at any moment, finds the old one or the new one.

Linux and macOS exchange two names in one step. File systems that cannot (some network mounts) get two renames: between
them the target is absent, and `recover` brings the old folder back if the process died there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

ASIDE_SUFFIX = ".old"
"""What a replaced folder is called while two renames are under way."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = _RENAME_SWAP = 2
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def replace_folder(new: Path, target: Path) -> None:
    """`target` becomes `new`; what `target` was is removed. Both lie on one file system.

    Raises:
        OSError: nothing was replaced; `target` is what it was.
    """
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
        shutil.rmtree(new, ignore_errors=True)
    else:
        flush_folder(new.parent)
        flush_folder(target.parent)


def recover(target: Path, aside_folder: Path, prefix: str) -> None:
    """After a crash between the two renames: bring the old folder back, if the target is absent."""
    for aside in sorted(aside_folder.glob(f"{prefix}*{ASIDE_SUFFIX}")):
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            aside.rename(target)


def flush(folder: Path) -> None:
    """Hand a folder's files, and the folders themselves, to the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            _fsync(Path(parent) / name, os.O_RDONLY)
        flush_folder(Path(parent))


def flush_folder(folder: Path) -> None:
    """Hand a folder's list of names to the disk."""
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
    """Whether the system could exchange both names in one step.

    Raises:
        OSError: it can in general, and failed here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        if not hasattr(libc, "renamex_np"):
            return False
        failed = libc.renamex_np(first, second, ctypes.c_uint(_RENAME_SWAP))
    else:
        if not hasattr(libc, "renameat2"):
            return False
        failed = libc.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, ctypes.c_uint(_RENAME_EXCHANGE))
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
