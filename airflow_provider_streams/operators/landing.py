"""What a read is asked to land: refused at DAG parse where it cannot work, templates when they are rendered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.landing import Landing, columns_of
from airflow_provider_streams.model.placeholders import is_fan_out
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.spark.settings import SparkSettings
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.sources import payloads_of
from airflow_provider_streams.windows.expansion import expand_named

UNSAID: Final = cast("Sink", object())
"""The sink of a task that names none."""

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TEMPLATE = re.compile(r"\{[{%]")


def check_landing(
    *, source: Source, sink: object, transform: object, columns: object, spark: object, dry_run: bool
) -> Sink | None:
    """The sink, if everything that is said about the rows can work.

    Raises:
        InvalidRequest: no sink was named; or something is of a wrong kind, or unknown; or named topics or streams would
            share a table.
    """
    landed = _sink(sink, dry_run=dry_run)
    if landed is not None and is_fan_out(landed):
        named = expand_named(source, landed)
        if named is not None and named.meetings:
            raise named.meetings[0].error()
    if transform is not None and not is_late(transform):
        _check_transform(transform)
    if transform is not None and landed is None and not dry_run:
        raise InvalidRequest("a transform shapes the rows that a sink lands, but sink is None: name a sink, or drop it")
    if columns is not None and not is_late(columns):
        _check_columns(source, columns_of(columns))
    if spark is not None and not is_late(spark):
        check_spark(spark)
    return landed


def check_undecodable(sink: Sink | None, undecodable: Undecodable) -> None:
    """Refuse a table that cannot keep what shall be kept aside. What a class of a user's own can, only a job knows.

    Raises:
        InvalidRequest: it cannot.
    """
    if sink is None or undecodable.then != "quarantine" or ":" in sink.kind:
        return
    if not getattr(sink, "keeps_undecodable", False):
        raise InvalidRequest(
            f"{sink.asset_uri}: a table of kind {sink.kind!r} keeps no undecodable events beside its rows: use "
            "on_undecodable='fail' or 'drop', or land in a ParquetSink"
        )


class Asking(Protocol):
    """A task that was asked to land rows."""

    source: Source
    sink: Sink | None
    transform: str | None
    columns: Sequence[str] | None
    spark: Mapping[str, Any] | None
    dry_run_only: bool


def rendered_landing(task: Asking) -> Landing:
    """What a task lands, now that its templates are rendered; of many tables, what they have in common.

    Raises:
        InvalidRequest: as `check_landing`.
    """
    asked = {name: getattr(task, name) for name in ("source", "sink", "transform", "columns", "spark")}
    sink = check_landing(**asked, dry_run=task.dry_run_only)
    return Landing(None if is_fan_out(sink) else sink, task.transform, columns_of(task.columns))


def check_spark(spark: object) -> None:
    """Refuse settings that are none.

    Raises:
        InvalidRequest: an unknown name, with the nearest known one.
    """
    if not isinstance(spark, Mapping):
        raise InvalidRequest(f"spark is a mapping like {{'driver_memory': '4g'}}, not a {type(spark).__name__}")
    SparkSettings.of(spark)


def is_late(value: Any) -> bool:
    """Whether a value is known only when the task runs: a template, or another task's output."""
    if isinstance(value, str):
        return bool(_TEMPLATE.search(value))
    if isinstance(value, Mapping):
        return False
    if isinstance(value, Sequence):
        return any(is_late(part) for part in value)
    return hasattr(value, "resolve")


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
