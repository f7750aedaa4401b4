"""A sink: the table a window lands in. Values only; `spark/sinks.py` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from airflow_provider_streams.errors import InvalidRequest


@runtime_checkable
class Sink(Protocol):
    """What every sink offers."""

    kind: ClassVar[str]
    """Which row of `spark.sinks.WRITERS` writes it."""

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; no secret."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A folder of Parquet files, one sub-folder `window_start=<label>` per window, replaced as a whole.

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
        plain = self.path.removeprefix("file://")
        if "://" in plain or not Path(plain).is_absolute():
            raise InvalidRequest(
                f"ParquetSink writes to an absolute path of a mounted file system, got {self.path!r}: "
                "only there can one window be replaced atomically"
            )
        object.__setattr__(self, "path", plain.rstrip("/") or "/")

    @property
    def asset_uri(self) -> str:
        """`file://<path>`."""
        return f"file://{self.path}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "path", "compression"}`."""
        return {"kind": self.kind, "path": self.path, "compression": self.compression}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["path"], data["compression"])
