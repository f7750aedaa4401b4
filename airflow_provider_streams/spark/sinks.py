"""Which writer lands a sink's windows: from files that tasks wrote (`lake.writer`), or from a DataFrame."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.own_sink import OwnSink
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from airflow_provider_streams.spark.spec import JobSpec

WRITERS: dict[str, str] = {
    "delta": "airflow_provider_streams.lake.delta.writer:DeltaWriter",
    "iceberg": "airflow_provider_streams.lake.iceberg.writer:IcebergWriter",
    "parquet": "airflow_provider_streams.lake.parquet.writer:ParquetWriter",
    "table": "airflow_provider_streams.spark.tables.writer:SparkTableWriter",
}
"""A sink's kind to the dotted path of its writer, imported when used."""


class FrameWriter(Protocol):
    """Writes one window of one sink, once, from a DataFrame: staged where nobody looks, committed after the proof.

    A sink of your own is a class like this one, or like `TableWriter`, and a line that names it: an `OwnSink`. A class
    of your own for the sink's values, like `model.sink.Sink`, is named by an attribute `sink_type`.
    """

    def __init__(self, sink: Any, window: Window, terms: TableTerms) -> None:
        """Nothing is touched yet."""

    def stage(self, df: DataFrame) -> None:
        """Write the rows where no reader sees them; exactly one Spark action.

        Raises:
            SinkError: they cannot be written.
        """

    def commit(self, receipt: Receipt, rows: int | None) -> int | None:
        """Replace the window by what was staged; a receipt exists only for a read that agrees with its plan.

        Args:
            receipt: of the rows before the transform.
            rows: how many rows there must be; None: nobody knows, because a transform changed them and Spark did not
                count.

        Returns:
            How many rows of the window the table holds now; None: not counted.

        Raises:
            SinkError: the table holds what it held before.
            WindowsOverlap: other windows of the table share time with it, and shall stay.
        """

    def discard(self) -> None:
        """Called last, whatever happened: remove what was staged and is not committed; never raises."""


Writer = FrameWriter | TableWriter


def with_quarantine(spec: JobSpec, writer: Writer | None) -> JobSpec:
    """A job's spec with the folder where its tasks keep events that cannot be decoded; made if they may have to.

    Raises:
        InvalidRequest: the sink keeps no such events.
        SinkError: the folder cannot be made.
    """
    if spec.undecodable.then != "quarantine" or spec.plan.decoding is None or writer is None:
        return replace(spec, quarantine=None)
    prepare = getattr(writer, "open_quarantine", None)
    if prepare is None:
        raise InvalidRequest(
            f"a sink of kind {spec.sink.kind if spec.sink else None!r} keeps no undecodable events: "
            "use on_undecodable='fail' or 'drop', or give its writer a method open_quarantine"
        )
    return replace(spec, quarantine=str(prepare()))


def writer_of(sink: Sink, window: Window, terms: TableTerms) -> Writer:
    """The writer of a sink's kind."""
    return writer_type(sink.kind)(sink, window, terms)


def table_state(sink: Sink) -> TableState | None:
    """What a sink's table says of itself; None: there is no table yet, or its kind cannot tell.

    Raises:
        ForeignTable: it holds data, and does not say whose.
        SinkError: it cannot be looked at.
    """
    look = getattr(writer_type(sink.kind), "look", None)
    state: TableState | None = look(sink) if look is not None else None
    return state


def can_look(sink: Sink) -> bool:
    """Whether a sink's table can say of itself which windows it holds."""
    return hasattr(writer_type(sink.kind), "look")


def keeps_columns(sink: Sink) -> bool:
    """Whether a sink's table is known to keep its columns, whatever is set aside."""
    return hasattr(writer_type(sink.kind), "check_columns")


def check_columns(sink: Sink, schema: pa.Schema) -> None:
    """See that rows of a schema may take the place of all that a sink's table holds, where its kind can tell.

    Raises:
        SinkError: they may not, or it cannot be looked at.
    """
    check = getattr(writer_type(sink.kind), "check_columns", None)
    if check is not None:
        check(sink, schema)


def check_rows(sink: Sink, schema: pa.Schema, terms: TableTerms | None) -> None:
    """See that rows of a schema may land in a sink's table, where its kind can tell. See `ForeseeingWriter`.

    Raises:
        SinkError: they may not, or it cannot be looked at.
    """
    check = getattr(writer_type(sink.kind), "check_rows", None)
    if check is not None:
        check(sink, schema, terms)


def sink_from_json(data: dict[str, Any]) -> Sink:
    """The reverse of `Sink.to_json`.

    Raises:
        InvalidRequest: an unknown kind.
    """
    sink_type: type[Sink] = getattr(writer_type(data["kind"]), "sink_type", OwnSink)
    return sink_type.from_json(data)


def writer_type(kind: str) -> type[Writer]:
    """The class that writes a kind of sink.

    Raises:
        InvalidRequest: an unknown kind.
    """
    path = WRITERS.get(kind, kind)
    module, colon, name = path.partition(":")
    if not colon:
        raise InvalidRequest(
            f"no sink of kind {kind!r}; known: {', '.join(sorted(WRITERS))}, and 'package.module:Writer' of your own"
        )
    try:
        writer: type[Writer] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(f"the writer {path!r} of a sink cannot be imported here: {error}") from error
    return writer


def writes_files(sink: Sink | None) -> bool:
    """Whether a sink's writer commits files that tasks wrote."""
    return sink is not None and hasattr(writer_type(sink.kind), "open")


def connected(sink: Sink | None, properties: connections.Properties) -> AbstractContextManager[None]:
    """While a sink's writers may ask what the connection of its table says."""
    return connections.given(_connection(sink), properties)


def connection_properties(sink: Sink | None) -> connections.Properties:
    """What the connection of a sink's table says, where it can be asked.

    Raises:
        InvalidRequest: nobody here knows it.
    """
    return connections.properties_of(_connection(sink))


def _connection(sink: Sink | None) -> str | None:
    conn_id: str | None = getattr(sink, "conn_id", None)
    return conn_id
