"""Every kind of table: what it can do, and the class that does it. Loads no client, so DAG files may ask it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.writer import DataFrameSinkWriter, TableWriter, Unseen, Writer
from airflow_provider_streams.model.sinks.placeholders import is_fan_out

if TYPE_CHECKING:
    from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
    from airflow_provider_streams.model.sinks.landing import TableState
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.window.window import Window


TARGET_FILE_BYTES: Final = 512 * 1024 * 1024
"""The size of a file, as landings write them."""

LEAST_KEEP: Final = timedelta(hours=1)
"""How long a read of a table, or an attempt to change it, may take."""

MOST_KEEP: Final = timedelta(days=36500)
"""No table is older, and dates reach as far back."""


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What a DAG file may know of a kind of table without loading its class."""

    path: str
    """Of its class, a `SinkWriter`: `package.module:Class`, imported when used."""
    applies: str = ""
    """The same of the class for sinks that apply changes; empty: changes are not applied to such tables."""
    compacts: bool = False
    """Whether the files of its windows can be rewritten: `SinkWriter.compactable`."""
    expires: bool = False
    """Whether it can remove what was replaced: `SinkWriter.expire`."""
    keeps_undecodable: bool = False
    """Whether it keeps events that cannot be decoded: `SinkWriter.open_quarantine`."""


FORMATS: dict[str, TableFormat] = {
    "delta": TableFormat(
        "airflow_provider_streams.lake.delta.writer:DeltaWriter",
        "airflow_provider_streams.lake.delta.change_writer:DeltaChangeWriter",
        compacts=True,
        expires=True,
    ),
    "iceberg": TableFormat(
        "airflow_provider_streams.lake.iceberg.writer:IcebergWriter",
        "airflow_provider_streams.lake.iceberg.change_writer:IcebergChangeWriter",
        compacts=True,
        expires=True,
    ),
    "parquet": TableFormat(
        "airflow_provider_streams.lake.parquet.writer:ParquetWriter", expires=True, keeps_undecodable=True
    ),
    "table": TableFormat("airflow_provider_streams.spark.catalog.writer:SparkTableWriter"),
}
"""By `Sink.kind`. The kind of a `CustomSink` is the path of its class, which has no row here."""


def writer_type(kind: str) -> type[Writer]:
    """The class of a kind of sink. `InvalidRequest`: there is none, or it is no such writer."""
    return _imported(FORMATS[kind].path if kind in FORMATS else kind)


def writer_of(sink: Sink) -> type[Writer]:
    """The class that writes to a sink's table; raises as `writer_type`."""
    return writer_type(sink.kind) if sink.apply is None else _imported(FORMATS[sink.kind].applies)


def _imported(path: str) -> type[Writer]:
    module, colon, name = path.partition(":")
    if not colon:
        raise InvalidRequest(
            f"no sink of kind {path!r}; known: {', '.join(sorted(FORMATS))}, and 'package.module:Writer' of your own"
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(f"the writer {path!r} of a sink cannot be imported here: {error}") from error
    if not (isinstance(found, type) and issubclass(found, TableWriter | DataFrameSinkWriter)):
        raise InvalidRequest(f"the writer {path!r} of a sink must inherit from TableWriter or DataFrameSinkWriter")
    return found


def sink_from_json(data: dict[str, Any]) -> Sink:
    """The reverse of `Sink.to_json`. `InvalidRequest`: an unknown kind."""
    return writer_type(data["kind"]).sink_type.from_json(data)


def table_state(sink: Sink | None, near: Window | None = None) -> TableState | Unseen | None:
    """`SinkWriter.read_state` of a sink's table, or `read_state_near` a window; without a sink, "unseen"."""
    if sink is None:
        return "unseen"
    writer = writer_of(sink)
    return writer.read_state(sink) if near is None else writer.read_state_near(sink, near)


def writes_files(sink: Sink | None) -> bool:
    """Whether a sink's writer commits files that tasks wrote."""
    return sink is not None and issubclass(writer_of(sink), TableWriter)


def may_keep_undecodable(sink: Sink) -> bool:
    """Whether a sink's table keeps events that cannot be decoded. Only a job knows it of a user's own class."""
    return ":" in sink.kind or FORMATS[sink.kind].keeps_undecodable


def check_undecodable(sink: Sink | None, undecodable: DecodeErrorPolicy) -> None:
    """Raise `InvalidRequest` if a policy keeps undecodable events, and the table cannot."""
    if sink is not None and undecodable.then == "quarantine" and not may_keep_undecodable(sink):
        raise InvalidRequest(
            f"{sink.asset_uri}: a table of kind {sink.kind!r} keeps no undecodable events with its rows: use "
            "on_decode_error='fail' or 'drop', or land in a ParquetSink"
        )


def check_compaction(sink: Sink, file_bytes: int = TARGET_FILE_BYTES) -> None:
    """Raise `InvalidRequest` if a sink's table cannot be compacted into files of a size."""
    if type(file_bytes) is not int or file_bytes < 1:
        raise InvalidRequest(f"target_file_bytes is a number of bytes, not {file_bytes!r}")
    _check_kind(sink, [kind for kind, one in FORMATS.items() if one.compacts], "is not compacted here")
    if sink.apply is not None:
        raise InvalidRequest(
            f"{sink.asset_uri}: a table that changes are applied to is not compacted: each window writes the files of "
            "its keys again. Expire what was replaced"
        )


def check_expiry(sink: Sink, keep: object) -> None:
    """Raise `InvalidRequest` if what was replaced in a sink's table this long ago may not be removed."""
    _check_kind(sink, [kind for kind, one in FORMATS.items() if one.expires], "does not expire here")
    if not isinstance(keep, timedelta):
        raise InvalidRequest(f"keep is a time like timedelta(days=7), not {keep!r}")
    if keep > MOST_KEEP:
        raise InvalidRequest(f"keep={keep} is longer than any table has been there: {MOST_KEEP.days} days at most")
    if keep < LEAST_KEEP:
        raise InvalidRequest(
            f"keep={keep} is too short: a read of the table, or an attempt to change it, may need what was there when "
            f"it began, for {LEAST_KEEP} at least"
        )


def _check_kind(sink: Sink, kinds: list[str], refusal: str) -> None:
    if is_fan_out(sink):
        raise InvalidRequest(
            f"{sink.asset_uri} is a table for each topic or stream: give each table a task of its own, and name the "
            "table there"
        )
    if sink.kind not in kinds:
        raise InvalidRequest(
            f"{sink.asset_uri}: a table of kind {sink.kind!r} {refusal}: use the engine that writes its files; "
            f"known: {', '.join(sorted(kinds))}"
        )
