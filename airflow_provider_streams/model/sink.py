"""A sink: the table a window lands in. Values only; `spark/sinks.py` writes."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable
from urllib.parse import unquote, urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.source import in_uri
from airflow_provider_streams.model.target import as_one, example


@runtime_checkable
class Sink(Protocol):
    """What every sink offers."""

    @property
    def kind(self) -> str:
        """Which row of `spark.sinks.WRITERS` writes it; of a sink of your own `package.module:Writer`.

        That is imported where the Spark driver program runs. A sink that has a class variable `named_by`, the name of a
        field of its JSON, may have placeholders in that one, see `model.placeholders`; one that has `keeps_undecodable`
        keeps events that cannot be decoded.
        """

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
        path: an absolute path on a file system that the Spark driver and its executors all mount; with placeholders,
            like `/lake/{topic}`, a table for each topic or stream of the source.
        compression: Parquet codec of Spark, `zstd` by default.

    Raises:
        InvalidRequest: a path that is not absolute, or a URL of another file system.
    """

    kind: ClassVar[str] = "parquet"
    named_by: ClassVar[str] = "path"
    keeps_undecodable: ClassVar[bool] = True

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
        return f"file://{in_uri(as_one(self.path))}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "path", "compression"}`."""
        return {"kind": self.kind, "path": self.path, "compression": self.compression}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["path"], data["compression"])


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """A Delta table, partitioned by the columns `window_start` and `window_end`; each window is replaced by one commit.

    It has one owner: a reader of a source, written into the table's properties. It is made when it does not exist.

    Args:
        path: its folder: `s3://bucket/orders`, `abfss://container@account.dfs.core.windows.net/orders`, or an absolute
            path that the Spark driver and its executors all mount; with placeholders, like `s3://bucket/{topic}`, a
            table for each topic or stream of the source.
        conn_id: the Airflow connection that says how to reach it; None: as the environment of the processes says.
        widen: whether the table gets the columns that its rows have and it has not; otherwise they are refused.

    Raises:
        InvalidRequest: no absolute path, or a URL of another kind of file system.
    """

    kind: ClassVar[str] = "delta"
    named_by: ClassVar[str] = "path"

    path: str
    conn_id: str | None = None
    widen: bool = False

    def __post_init__(self) -> None:
        plain = _path_of(self.path)
        if plain is not None and Path(plain).is_absolute() and not _MISREAD.search(plain):
            object.__setattr__(self, "path", "/" + posixpath.normpath(plain).lstrip("/"))
        else:
            object.__setattr__(self, "path", _bucket_url(self.path))

    def __str__(self) -> str:
        return self.path

    @property
    def asset_uri(self) -> str:
        """`s3://<bucket>/<folder>`, `abfss://<container>@<host>/<folder>` or `file://<path>`."""
        scheme, mark, rest = as_one(self.path).partition("://")
        return f"{scheme}://{in_uri(rest)}" if mark else f"file://{in_uri(scheme)}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "path", "conn_id", "widen"}`."""
        return {"kind": self.kind, "path": self.path, "conn_id": self.conn_id, "widen": self.widen}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["path"], data["conn_id"], data["widen"])


PartitionBy = Literal["window", "hour", "day"]

DEFAULT_CATALOG = "default"
"""What pyiceberg calls the catalog that nobody names."""


@dataclass(frozen=True, slots=True)
class IcebergSink:
    """An Iceberg table with the columns `window_start` and `window_end`; each window is replaced by one commit.

    It has one owner: a reader of a source, written into the table's properties. It is made when it does not exist.

    Args:
        table: its name in the catalog, namespace first: `shop.orders`; with placeholders, like `lake.{topic}`, a table
            for each topic or stream of the source.
        conn_id: the Airflow connection of type `iceberg` that says where its catalog is.
        catalog: the catalog's name. Without a connection, `~/.pyiceberg.yaml` or `PYICEBERG_CATALOG__..` say where it
            is, on the machine where the Spark driver program runs. By default the connection's name, or else `default`;
            SQL catalogs keep apart the tables of each name.
        partition_by: how a table that is made is partitioned: by `window_start` itself, or its hour or day; None: not.
        widen: whether the table gets the columns that its rows have and it has not; otherwise they are refused.

    Raises:
        InvalidRequest: no such name.
    """

    kind: ClassVar[str] = "iceberg"
    named_by: ClassVar[str] = "table"

    table: str
    conn_id: str | None = None
    catalog: str | None = None
    partition_by: PartitionBy | None = "window"
    widen: bool = False

    def __post_init__(self) -> None:
        if not _TABLE.fullmatch(example(self.table)):
            raise InvalidRequest(
                f"an Iceberg table is named with its namespace, like 'shop.orders', not {self.table!r}; "
                "names have letters, digits, - and _, and stand between points"
            )
        if not _CATALOG.fullmatch(self.where):
            raise InvalidRequest(
                f"table {self.table}: {self.where!r} is no name of a catalog: letters, digits, . _ - only"
            )
        if self.partition_by not in (None, *get_args(PartitionBy)):
            raise InvalidRequest(
                f"table {self.table}: partition_by is 'window', 'hour', 'day' or None, not {self.partition_by!r}"
            )

    def __str__(self) -> str:
        return f"{self.where}:{self.table}"

    @property
    def where(self) -> str:
        """The catalog's name."""
        return self.catalog or self.conn_id or DEFAULT_CATALOG

    @property
    def asset_uri(self) -> str:
        """`iceberg://<catalog>/<namespace>/<table>`."""
        return f"iceberg://{self.where}/{as_one(self.table).replace('.', '/')}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "table", "conn_id", "catalog", "partition_by", "widen"}`."""
        names = ("table", "conn_id", "catalog", "partition_by", "widen")
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["table"], data["conn_id"], data["catalog"], data["partition_by"], data["widen"])


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


def _bucket_url(text: str) -> str:
    """`s3://bucket/folder` or Azure's like, in the one spelling of it: plain text, no escapes."""
    scheme, _, rest = text.partition("://")
    folder = rest.rstrip("/")
    known = _BUCKETS.get(scheme)
    if known is None or not known[1].fullmatch(example(folder)) or {".", ".."} & set(folder.split("/")):
        raise InvalidRequest(
            "a Delta table is a folder in a bucket, like s3://lake/orders or "
            f"abfss://lake@account.dfs.core.windows.net/orders, or an absolute path, not {_shown(text)!r}. In a "
            "bucket, its name has letters, digits and the characters - _ . = + only; in a path, anything but %, \\ "
            "and control characters. Keys go into a connection"
        )
    return f"{known[0]}://{folder}"


_TABLE = re.compile(r"[\w-]+(\.[\w-]+)+", re.ASCII)
_CATALOG = re.compile(r"[\w.-]+", re.ASCII)

_MISREAD = re.compile(r"[%\\\x00-\x1f\x7f]")
"""In a path, delta-rs refuses these, or takes them for something else at times."""

_FOLDER = r"(/[\w.=+-]+)+"
_S3 = re.compile(r"[\w.-]+" + _FOLDER, re.ASCII)
_AZURE = re.compile(r"[a-z0-9-]+@[a-z0-9]+\.dfs\.core\.windows\.net" + _FOLDER, re.ASCII)
_BUCKETS = {"s3": ("s3", _S3), "s3a": ("s3", _S3), "abfss": ("abfss", _AZURE), "abfs": ("abfss", _AZURE)}
"""Spark calls s3a what all others call s3; abfs is abfss without TLS, which nobody means."""
