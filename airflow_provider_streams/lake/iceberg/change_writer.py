"""An Iceberg table that changes are applied to; see `lake.changes.change_writer` and `change_applier`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from airflow_provider_streams.lake.changes import expiry
from airflow_provider_streams.lake.changes.change_writer import ChangeWriter, change_columns, rules_of
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.lake.snapshot_expiry import Expired
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import unowned
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import IcebergSink, Sink

if TYPE_CHECKING:
    from airflow_provider_streams.lake.iceberg.change_applier import IcebergChangeApplier


class IcebergChangeWriter(ChangeWriter):
    """One attempt to apply a window's changes to an Iceberg table; see `TableWriter`."""

    sink_type: ClassVar[type[Sink]] = IcebergSink
    keeps_columns: ClassVar[bool] = True

    @classmethod
    def applier(cls, sink: IcebergSink, terms: TableTerms) -> IcebergChangeApplier:
        """See `ChangeWriter`."""
        return _engine().IcebergChangeApplier(sink, terms, rules_of(sink.apply or AutoCdc(), terms))  # type: ignore[no-any-return]

    @classmethod
    def read_state(cls, sink: IcebergSink) -> TableState | None:
        """See `SinkWriter`."""
        engine = _engine()
        table = engine.IcebergTable(sink).load()
        if table is None:
            return None
        if (mark := engine.mark_of(table)) is None:
            with engine.errors_of(sink):
                if engine.files_of(table):
                    raise unowned(str(sink))
            return None
        return TableState(mark, engine.list_of(table).windows)

    @classmethod
    def storage(cls, sink: IcebergSink) -> Storage | None:
        """See `SinkWriter`: the catalog knows the place of a table that exists."""
        return IcebergWriter.storage(sink)

    @classmethod
    def why_catalog_is_read_only(cls, sink: IcebergSink) -> str:
        """See `SinkWriter`."""
        return IcebergWriter.why_catalog_is_read_only(sink)

    @classmethod
    def check_rows(cls, sink: IcebergSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `SinkWriter`. A table keeps its columns whatever is set aside."""
        if terms is None:
            return
        applier = cls.applier(sink, terms)
        columns = change_columns(str(sink), schema, applier.rules, terms)
        table = _engine().IcebergTable(sink).load()
        if table is not None:
            applier.check(table, columns)

    @classmethod
    def expire(cls, sink: IcebergSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter`."""
        found = IcebergWriter.expire(sink, mark, before, dry_run=dry_run)
        engine = _engine()
        table = engine.IcebergTable(sink).loaded(mark)
        hidden = expiry.expire(engine.storage_of(table), engine.number_of(table), mark.id, before, dry_run=dry_run)
        return Expired((*found.files, *hidden), found.snapshots)


def _engine() -> Any:
    with importing("iceberg"):
        from airflow_provider_streams.lake.iceberg import change_applier  # noqa: PLC0415 - optional
    return change_applier
