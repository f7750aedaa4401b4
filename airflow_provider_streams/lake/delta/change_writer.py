"""A Delta table that changes are applied to; see `lake.changes.change_writer` and `change_applier`."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import pyarrow as pa

from airflow_provider_streams.lake.changes import expiry
from airflow_provider_streams.lake.changes.change_writer import ChangeWriter, change_columns, rules_of
from airflow_provider_streams.lake.delta import vacuum
from airflow_provider_streams.lake.delta.change_applier import MARKERS, DeltaChangeApplier, list_of
from airflow_provider_streams.lake.delta.storage import storage_of
from airflow_provider_streams.lake.delta.table_state import read_state
from airflow_provider_streams.lake.delta.transaction_log import load, refuse_unreadable
from airflow_provider_streams.lake.snapshot_expiry import Expired
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import DeltaSink, Sink


class DeltaChangeWriter(ChangeWriter):
    """One attempt to apply a window's changes to a Delta table; see `TableWriter`."""

    sink_type: ClassVar[type[Sink]] = DeltaSink

    @classmethod
    def applier(cls, sink: DeltaSink, terms: TableTerms) -> DeltaChangeApplier:
        """See `ChangeWriter`."""
        return DeltaChangeApplier(sink, terms, rules_of(sink.apply or AutoCdc(), terms))

    @classmethod
    def read_state(cls, sink: DeltaSink) -> TableState | None:
        """See `SinkWriter`."""
        storage = storage_of(sink)
        # of a table that others restored, nothing is sure: its windows are missing until a full refresh
        return read_state(sink, lambda one: () if one.is_restored else list_of(storage, one).windows)

    @classmethod
    def storage(cls, sink: DeltaSink) -> Storage:
        """See `SinkWriter`."""
        return storage_of(sink)

    @classmethod
    def check_rows(cls, sink: DeltaSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `SinkWriter`. What is to be set aside takes its columns with it."""
        if terms is None:
            refuse_unreadable(storage_of(sink))
            return
        applier = cls.applier(sink, terms)
        columns = change_columns(sink.path, schema, applier.rules, terms)
        version = load(storage_of(sink))
        if version is not None and version.mark in (None, terms.mark):
            applier.check(version, columns)

    @classmethod
    def expire(cls, sink: DeltaSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter`."""
        found = vacuum.expire(sink, mark, before, dry_run=dry_run)
        storage, version = storage_of(sink), load(storage_of(sink))
        number = None if version is None else version.application_version(MARKERS)
        hidden = expiry.expire(storage, number, mark.id, before, dry_run=dry_run)
        return Expired((*found.files, *hidden), found.snapshots)
