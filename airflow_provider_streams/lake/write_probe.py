"""Whether a table's store can be written, read and cleaned: with one file under a name of ours, which is removed."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow.fs as pafs

from airflow_provider_streams.errors import SinkError, write_access
from airflow_provider_streams.errors.write_access import why_no_folder
from airflow_provider_streams.lake.storage import Storage

PREFIX: Final = "_streams-doctor-"
"""How the file's name begins: engines read no names with an underscore, and no table format lists it."""
PROBE_BYTES: Final = 1024 * 1024


def write_probe(storage: Storage) -> str:
    """Write a file to a table's folder, read it back and remove it; its name.

    A folder that is missing is made, and removed with the file.

    Raises:
        StorageFull: there is no space for it.
        SinkError: it cannot be written, read or removed.
    """
    system, root = storage.open()
    name = f"{PREFIX}{uuid.uuid4().hex}.probe"
    made = _first_missing(Path(root)) if storage.is_local else None
    path, content = f"{root}/{name}", name.encode() * (PROBE_BYTES // len(name))
    try:
        with storage.errors("a file cannot be written"):
            storage.make_folder("")
            with system.open_output_stream(path) as file:
                file.write(content)
        with storage.errors("a file that was just written cannot be read"), system.open_input_stream(path) as file:
            is_same = file.read() == content
        if not is_same:
            raise SinkError(storage.root, f"the file {name} does not hold what was just written")
        with storage.errors(f"the file {name} cannot be removed: remove it yourself"):
            system.delete_file(path)
    finally:
        _clean(system, path, made)
    return name


def free_bytes(storage: Storage) -> int | None:
    """The free bytes on the file system of a folder, or of the nearest one that exists; None: it has no such limit."""
    if not storage.is_local:
        return None
    return write_access.free_bytes(Path(storage.open()[1]))


def why_read_only(storage: Storage) -> str:
    """Why this user cannot write a table's folder, as far as that is known without writing; empty: nothing is known."""
    if not storage.is_local:
        return ""
    return why_no_folder(Path(storage.open()[1]))


def _first_missing(folder: Path) -> Path | None:
    """The uppermost folder that would be made; None: it exists."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    return missing[-1] if missing else None


def _clean(system: pafs.FileSystem, path: str, made: Path | None) -> None:
    """Whatever is left after a failure, and the folders that were made, if nothing else is in them by now."""
    with suppress(OSError):
        if system.get_file_info(path).type is not pafs.FileType.NotFound:
            system.delete_file(path)
    if made is None:
        return
    folder = Path(path).parent
    with suppress(OSError):
        while folder.is_relative_to(made):
            folder.rmdir()
            folder = folder.parent
