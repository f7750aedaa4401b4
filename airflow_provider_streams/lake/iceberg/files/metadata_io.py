"""Reads each manifest and each list of manifests of a table once: they never change, and pyiceberg opens them often."""

from __future__ import annotations

import io
from threading import Lock

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

_MOST_BYTES = 64 * 1024 * 1024
"""What is kept at once; files beyond are read again."""


class MetadataIO(FileIO):
    """A table's file IO, which keeps what it read of manifests and their lists."""

    def __init__(self, files: FileIO, kept: KeptFiles | None = None) -> None:
        super().__init__(files.properties)
        self._files, self.kept = files, kept or KeptFiles()

    def new_input(self, location: str) -> InputFile:
        """See `FileIO`."""
        return _Input(location, self) if location.endswith(".avro") else self._files.new_input(location)

    def content(self, location: str) -> bytes:
        """What is in a file that never changes."""
        return self.kept.content(location, self._files)

    def exists(self, location: str) -> bool:
        """Whether there is such a file."""
        return self._files.new_input(location).exists()

    def size(self, location: str) -> int:
        """Of a file in bytes."""
        return len(self._files.new_input(location))

    def new_output(self, location: str) -> OutputFile:
        """See `FileIO`."""
        return self._files.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """See `FileIO`."""
        self._files.delete(location)


class KeptFiles:
    """The content of files by their location, up to so many bytes."""

    def __init__(self) -> None:
        self._by_location: dict[str, bytes] = {}
        self._bytes, self._lock = 0, Lock()

    def content(self, location: str, files: FileIO) -> bytes:
        """What is in a file, read by `files` unless it is known."""
        if (held := self._by_location.get(location)) is not None:
            return held
        with files.new_input(location).open(seekable=False) as stream:
            read = stream.read()
        with self._lock:
            if location not in self._by_location and self._bytes + len(read) <= _MOST_BYTES:
                self._by_location[location] = read
                self._bytes += len(read)
        return read


class _Input(InputFile):
    def __init__(self, location: str, files: MetadataIO) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return self._files.size(self.location)

    def exists(self) -> bool:
        """Whether it can be read."""
        return self._files.exists(self.location)

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - as pyiceberg calls it
        """Its content."""
        return io.BytesIO(self._files.content(self.location))
