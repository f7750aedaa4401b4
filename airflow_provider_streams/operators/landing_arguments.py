"""What a read is asked to land: refused at DAG parse where it cannot work, templates when they are rendered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.landing import Landing, columns_of
from airflow_provider_streams.model.sinks.placeholders import is_fan_out
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import payloads_of
from airflow_provider_streams.template_rendering import is_late, is_late_value
from airflow_provider_streams.windows.plan.fan_out_sources import expand_named

UNSAID: Final = cast("Sink", object())
"""The sink of a task that names none."""

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def check_landing(
    *, source: Source, sink: object, transform: object, columns: object, dry_run: bool, spark: object = None
) -> Sink | None:
    """The sink, if everything that is said about the rows can work.

    Raises:
        InvalidRequest: no sink was named; or something is of a wrong kind, or unknown; or named topics or streams would
            share a table.
    """
    landed = _sink(sink, dry_run=dry_run)
    if landed is not None and is_fan_out(landed) and not is_late_value(source) and not is_late_value(landed):
        named = expand_named(source, landed)
        if named is not None and named.meetings:
            raise named.meetings[0].error()
    if transform is not None and not is_late(transform):
        _check_transform(transform)
    if transform is not None and landed is None and not dry_run:
        raise InvalidRequest(
            "a transform shapes the rows of a sink, but sink is None: name a sink, or leave out the transform"
        )
    if columns is not None and not is_late(columns):
        _check_columns(source, columns_of(columns))
    if spark is not None and not is_late(spark):
        SparkSettings.of(cast("Mapping[str, Any]", spark))
    return landed


class LandingTask(Protocol):
    """A task that was asked to land rows."""

    source: Source
    sink: Sink | None
    transform: str | None
    columns: Sequence[str] | None
    spark: Mapping[str, Any] | None
    dry_run_only: bool


def rendered_landing(task: LandingTask) -> Landing:
    """What a task lands, now that its templates are rendered; of many tables, what they have in common.

    Raises:
        InvalidRequest: as `check_landing`.
    """
    asked = {name: getattr(task, name) for name in ("source", "sink", "transform", "columns")}
    sink = check_landing(**asked, dry_run=task.dry_run_only)
    return Landing(None if is_fan_out(sink) else sink, task.transform, columns_of(task.columns))


def _sink(sink: object, *, dry_run: bool) -> Sink | None:
    if sink is UNSAID and not dry_run:
        raise InvalidRequest(
            "say where the rows go, like sink=ParquetSink('/lake/orders'); sink=None reads and proves only"
        )
    if sink is None or sink is UNSAID:
        return None
    if isinstance(sink, type) or not isinstance(sink, Sink):
        raise InvalidRequest(f"sink must be one like ParquetSink('/lake/orders'), got {type(sink).__name__}")
    return sink


def _check_transform(transform: object) -> None:
    if not isinstance(transform, str) or not _FUNCTION.fullmatch(transform):
        what = repr(transform) if isinstance(transform, str) else f"a {type(transform).__name__}"
        raise InvalidRequest(
            "transform is the name of a function, 'package.module:function', which Spark's driver program imports; "
            f"got {what}"
        )


def _check_columns(source: Source, columns: tuple[str, ...] | None) -> None:
    declared = declaration_of(source.system)
    decoded = any(payloads_of(source).values())
    own = map(declared.metadata_name, declared.columns) if decoded else declared.columns
    known = [*own, *declared.peer_columns]
    for name in columns or ():
        # which fields there are, the schema says when a window is planned
        if name not in known and (not decoded or name.startswith("_")):
            raise declared.no_column(name, known)
    if columns and len(set(columns)) < len(columns):
        raise InvalidRequest(f"a column is asked for twice: {', '.join(columns)}")
