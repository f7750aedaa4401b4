from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FilesSource:
    """A folder below the connection's root."""

    system: ClassVar[str] = "files"

    folder: str
    conn_id: str = "files_default"

    def __str__(self) -> str:
        return self.folder

    @property
    def key(self) -> str:
        return f"files:{self.conn_id}:{self.folder}"

    @property
    def asset_uri(self) -> str:
        return f"files://{self.conn_id}/{self.folder}"
