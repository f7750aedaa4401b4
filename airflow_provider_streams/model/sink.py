"""A sink: the table a window lands in. Values only; `spark/sinks.py` writes."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable
from urllib.parse import unquote, urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.source import in_uri


@runtime_checkable
class Sink(Protocol):
    """What every sink offers."""

    kind: ClassVar[str]
    """Which row of `spark.sinks.WRITERS` writes it; of a sink of your own `package.module:Writer`, imported where the
    Spark driver program runs."""

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset, which also says whether two sinks are one table."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, `kind` among them; no secret."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A folder of Parquet files, one folder `window_start=<label>/window_end=<label>` per window, replaced as a whole.

    It has one owner: a reader of a source, written into `_table.json`.

    Args:
        path: an absolute path on a file system that the Spark driver and its executors all mount.
        compression: Parquet codec of Spark, `zstd` by default.

    Raises:
        InvalidRequest: a path that is not absolute, or a URL of another file system.
    """

    kind: ClassVar[str] = "parquet"

    path: str
    compression: str = "zstd"

    def __post_init__(self) -> None:
        plain = _path_of(self.path)
        if plain is None or not Path(plain).is_absolute():
            raise InvalidRequest(
                f"ParquetSink writes to an absolute path of a mounted file system, got {_shown(self.path)!r}: "
                "only there can one window be replaced atomically"
            )
        # two spellings of a folder are one table
        object.__setattr__(self, "path", "/" + posixpath.normpath(plain).lstrip("/"))

    def __str__(self) -> str:
        return self.path

    @property
    def asset_uri(self) -> str:
        """`file://<path>`."""
        return f"file://{in_uri(self.path)}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "path", "compression"}`."""
        return {"kind": self.kind, "path": self.path, "compression": self.compression}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["path"], data["compression"])


def _shown(text: str) -> str:
    """A path; of an address, which may hold a key, its scheme."""
    scheme, mark, _ = text.partition("://")
    return f"{scheme}://.." if mark else text


def _path_of(text: str) -> str | None:
    """A path, or that of a `file://` URL; None: another machine's, or another file system's."""
    if not text.startswith("file://"):
        return None if "://" in text else text
    url = urlsplit(text)
    return None if url.netloc or url.query or url.fragment else unquote(url.path)
