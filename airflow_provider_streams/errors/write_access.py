"""Why this user cannot write a file or a folder, and how much space is free, found out without writing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def why_not_writable(place: Path) -> str:
    """Why this user cannot write a place that exists; empty: it can."""
    if os.access(place, os.W_OK):
        return ""
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"the file system of {place} is read-only"
    return f"this user may not write {'to ' if place.is_dir() else ''}{place}"


def why_no_folder(folder: Path) -> str:
    """Why this user cannot write files in a folder, which may have to be made first; empty: it can."""
    try:
        there = folder if folder.exists() else nearest_folder(folder)
        return why_not_writable(there) if there.is_dir() else f"{there} is no folder"
    except PermissionError as error:  # a folder above that this user may not enter
        return f"this user may not look at {error.filename or folder}"


def nearest_folder(place: Path) -> Path:
    """The folder of a file, or the nearest one above it that exists."""
    return next(one for one in place.absolute().parents if one.exists())


def free_bytes(place: Path) -> int:
    """The free bytes on the file system of a place, or of the nearest folder above it that exists."""
    return shutil.disk_usage(place if place.exists() else nearest_folder(place)).free
