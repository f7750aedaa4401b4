"""A sink: the table a window lands in. Values only; `lake.registry` knows what writes them."""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable
from urllib.parse import unquote, urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.asset_uri_length import short_uri
from airflow_provider_streams.model.booleans import check_booleans
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.flat_json import FlatJson
from airflow_provider_streams.model.name_suggestion import hint_for
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.sinks.table_name import as_one, example
from airflow_provider_streams.model.sinks.templates import is_template
from airflow_provider_streams.model.stream.source import in_uri
from airflow_provider_streams.model.text_arguments import check_names, check_optional_names, path_text


@runtime_checkable
class Sink(Protocol):
    """What every sink offers; inherit from it."""

    @property
    def kind(self) -> str:
        """Its row of `lake.registry.FORMATS`; for a sink of your own, `package.module:Writer`.

        The Spark driver program imports such a writer.
        """

    @property
    def named_by(self) -> str | None:
        """The field of its JSON that names its table, and may have placeholders: see `model.sinks.placeholders`."""
        return None

    @property
    def conn_id(self) -> str | None:
        """The Airflow connection of its table; None: it needs none."""
        return None

    @property
    def widen(self) -> bool | None:
        """Whether its table may get wider numbers; None: such tables have no such option."""
        return None

    @property
    def apply(self) -> AutoCdc | None:
        """How rows are applied to its table as changes; None: they are its rows."""
        return None

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset, which also says whether two sinks are one table: see `model.asset_uri.short_uri`."""

    @property
    def location(self) -> str:
        """Its table, of which `asset_uri` may be a short form."""
        return self.asset_uri

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, `kind` among them; no secret."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""


class FormatSink(ParseTimeValue, FlatJson, ABC):
    """A sink of a table format: its JSON has the format's `kind`."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    @abstractmethod
    def location(self) -> str:
        """Its table, of which `asset_uri` may be a short form."""

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset: its location, shortened if it has more than 1,500 letters."""
        return short_uri(self.location)

    @property
    def conn_id(self) -> str | None:
        """The Airflow connection of its table; None: it needs none."""
        return None

    @property
    def apply(self) -> AutoCdc | None:
        """How rows are applied to its table as changes; None: they are its rows."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The fields, and `kind`. Without `apply`, there is no such field."""
        fields = {name: value for name, value in super().to_json().items() if name != "apply"}
        return {"kind": self.kind, **fields, **({"apply": self.apply.to_json()} if self.apply else {})}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        given = {name: value for name, value in data.items() if name != "kind"}
        return cls(**given | ({"apply": AutoCdc.from_json(given["apply"])} if "apply" in given else {}))


def check_apply(sink: str, given: object) -> None:
    """Refuse what is no declaration of how changes are applied.

    Raises:
        InvalidRequest: it is something else.
    """
    if given is not None and not isinstance(given, AutoCdc):
        raise InvalidRequest(f"{sink}: apply is AutoCdc(keys=[..]), not {given!r:.100}")


def refuse_apply(sink: str, given: object) -> None:
    """Refuse to apply changes to a table whose rows cannot be replaced by key.

    Raises:
        InvalidRequest: `apply` is given.
    """
    if given is not None:
        raise InvalidRequest(
            f"{sink} holds windows of rows, and no changes are applied to it: use IcebergSink(.., apply=..) or "
            "DeltaSink(.., apply=..), or leave out apply= to keep all changes as rows"
        )


@dataclass(frozen=True, slots=True)
class ParquetSink(FormatSink):
    """A folder of Parquet files, one folder `window_start=<label>/window_end=<label>` per window, replaced as a whole.

    It has one owner: a reader of a source, written into `_table.json`.

    Args:
        path: an absolute path on a file system that the Spark driver and its executors all mount; with placeholders,
            like `/lake/{topic}`, a table for each topic or stream of the source.
        compression: Parquet codec of Spark: `zstd`, `snappy`, `gzip`, `brotli`, `lz4`, `lz4_raw` or `none`.
        widen: whether the table's numbers may become as wide as the numbers of new rows (`int` to `long`). The files of
            its other windows are rewritten for that. New columns come in any case.
        apply: None: changes are not applied to such a table.

    Raises:
        InvalidRequest: the path is not absolute, the URL is of another file system, the codec is unknown, or `apply` is
            given.
    """

    kind: ClassVar[str] = "parquet"
    named_by: ClassVar[str] = "path"

    path: str
    compression: str = "zstd"
    widen: bool = True
    apply: None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", path_text(self.path))
        check_names("ParquetSink", path=self.path, compression=self.compression)
        check_booleans("ParquetSink", widen=self.widen)
        refuse_apply("ParquetSink", self.apply)
        codec = self.compression
        if codec not in _CODECS and not is_template(codec):
            raise InvalidRequest(f"ParquetSink: there is no Parquet codec {codec!r:.100}; {hint_for(codec, _CODECS)}")
        if is_template(self.path):
            return
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
    def location(self) -> str:
        """`file://<path>`."""
        return f"file://{in_uri(as_one(self.path))}"


@dataclass(frozen=True, slots=True)
class DeltaSink(FormatSink):
    """A Delta table, partitioned by the columns `window_start` and `window_end`; each window is replaced by one commit.

    It has one owner: a reader of a source, written into the table's properties. It is made when it does not exist.

    Args:
        path: its folder: `s3://bucket/orders`, `abfss://container@account.dfs.core.windows.net/orders`, or an absolute
            path that the Spark driver and its executors all mount; with placeholders, like `s3://bucket/{topic}`, a
            table for each topic or stream of the source.
        conn_id: the Airflow connection that says how to reach it; None: the environment of the processes says it.
        widen: whether the table gets new columns, fields and wider numbers of its rows; otherwise they are refused.
        apply: how rows are applied to the table as changes, by key; None: they are its rows. With it, the table has no
            columns and partitions of windows.

    Raises:
        InvalidRequest: the path is not absolute, the URL is of another kind of file system, or `apply` is no `AutoCdc`.
    """

    kind: ClassVar[str] = "delta"
    named_by: ClassVar[str] = "path"

    path: str
    conn_id: str | None = None
    widen: bool = False
    apply: AutoCdc | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", path_text(self.path))
        check_names("DeltaSink", path=self.path)
        check_optional_names("DeltaSink", conn_id=self.conn_id)
        check_booleans("DeltaSink", widen=self.widen)
        check_apply("DeltaSink", self.apply)
        if is_template(self.path):
            return
        plain = _path_of(self.path)
        if plain is not None and Path(plain).is_absolute() and not _MISREAD.search(plain):
            object.__setattr__(self, "path", "/" + posixpath.normpath(plain).lstrip("/"))
        else:
            object.__setattr__(self, "path", _bucket_url(self.path))

    def __str__(self) -> str:
        return self.path

    @property
    def location(self) -> str:
        """`s3://<bucket>/<folder>`, `abfss://<container>@<host>/<folder>` or `file://<path>`."""
        scheme, mark, rest = as_one(self.path).partition("://")
        return f"{scheme}://{in_uri(rest)}" if mark else f"file://{in_uri(scheme)}"


PartitionBy = Literal["window", "hour", "day"]

DEFAULT_CATALOG = "default"
"""What pyiceberg calls a catalog without a name."""


def check_partition_by(table: str, given: object) -> None:
    """Refuse an unknown partitioning of a table.

    Raises:
        InvalidRequest: it is not known.
    """
    if given not in (None, *get_args(PartitionBy)):
        raise InvalidRequest(f"table {table}: partition_by is 'window', 'hour', 'day' or None, not {given!r}")


@dataclass(frozen=True, slots=True)
class IcebergSink(FormatSink):
    """An Iceberg table with the columns `window_start` and `window_end`; each window is replaced by one commit.

    It has one owner: a reader of a source, written into the table's properties. It is made when it does not exist.

    Args:
        table: its name in the catalog, namespace first: `shop.orders`; with placeholders, like `lake.{topic}`, a table
            for each topic or stream of the source.
        conn_id: the Airflow connection of type `iceberg` that says where its catalog is.
        catalog: the catalog's name, by default the connection's name, or `default`. SQL catalogs separate the tables of
            each name. Without a connection, `~/.pyiceberg.yaml` or `PYICEBERG_CATALOG__..` say where it is, on the
            machine where the Spark driver program runs.
        partition_by: how a new table is partitioned: by `window_start` itself, or its hour or day; None: not.
        widen: whether the table gets new columns, fields and wider numbers of its rows; otherwise they are refused.
        apply: how rows are applied to the table as changes, by key; None: they are its rows. With it, the table has no
            columns of windows, and is not partitioned.

    Raises:
        InvalidRequest: there can be no table or catalog of this name, or `apply` is no `AutoCdc`.
    """

    kind: ClassVar[str] = "iceberg"
    named_by: ClassVar[str] = "table"

    table: str
    conn_id: str | None = None
    catalog: str | None = None
    partition_by: PartitionBy | None = "window"
    widen: bool = False
    apply: AutoCdc | None = None

    def __post_init__(self) -> None:
        check_names("IcebergSink", table=self.table)
        check_optional_names("IcebergSink", conn_id=self.conn_id, catalog=self.catalog)
        check_booleans("IcebergSink", widen=self.widen)
        check_apply("IcebergSink", self.apply)
        if not is_template(self.table) and not _TABLE.fullmatch(example(self.table)):
            raise InvalidRequest(
                f"an Iceberg table is named with its namespace, like 'shop.orders', not {self.table!r}; "
                "names have letters, digits, - and _, and stand between points"
            )
        if not is_template(self.where) and not _CATALOG.fullmatch(self.where):
            raise InvalidRequest(
                f"table {self.table}: {self.where!r} is no name of a catalog: letters, digits, . _ - only"
            )
        check_partition_by(self.table, self.partition_by)

    def __str__(self) -> str:
        return f"{self.where}:{self.table}"

    @property
    def where(self) -> str:
        """The catalog's name."""
        return self.catalog or self.conn_id or DEFAULT_CATALOG

    @property
    def location(self) -> str:
        """`iceberg://<catalog>/<namespace>/<table>`."""
        return f"iceberg://{self.where}/{as_one(self.table).replace('.', '/')}"


_CODECS = ("zstd", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "none", "uncompressed", "lzo")


def _shown(text: str) -> str:
    """A path, or the scheme of an address, which may hold a key."""
    scheme, mark, _ = text.partition("://")
    return f"{scheme}://.." if mark else text


def _path_of(text: str) -> str | None:
    """A path, or the path of a `file://` URL; None: of another machine or file system."""
    if not text.startswith("file://"):
        return None if "://" in text else text
    url = urlsplit(text)
    return None if url.netloc or url.query or url.fragment else unquote(url.path)


def _bucket_url(text: str) -> str:
    """`s3://bucket/folder` or Azure's like, in one spelling: plain text, no escapes."""
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
"""delta-rs refuses these characters in a path, or misreads them."""

_FOLDER = r"(/[\w.=+-]+)+"
_S3 = re.compile(r"[\w.-]+" + _FOLDER, re.ASCII)
_AZURE = re.compile(r"[a-z0-9-]+@[a-z0-9]+\.dfs\.core\.windows\.net" + _FOLDER, re.ASCII)
_BUCKETS = {"s3": ("s3", _S3), "s3a": ("s3", _S3), "abfss": ("abfss", _AZURE), "abfs": ("abfss", _AZURE)}
"""s3a is Spark's name of s3; abfs is abfss without TLS, which no one means."""
