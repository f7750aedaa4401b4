"""Looks at a few messages of a plan, since often nothing else tells the columns of database changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from airflow_provider_streams.formats.change_data.sampling import (
    Sample,
    is_silent,
    planned_format,
    with_columns,
    without_pair,
)
from airflow_provider_streams.formats.change_data.typed_planning import typed_format
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, Span, Split
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema, newest_of
from airflow_provider_streams.model.schema.types import StructOf
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import payloads_of

if TYPE_CHECKING:
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.declaration import Declaration


def with_changes(system: StreamSystem, plan: Plan, request: PlanRequest) -> Plan:
    """The plan, with the columns of its changes; unchanged if its values are no changes of a database.

    A window without a change has the columns that the whole source shows.

    Args:
        system: reads the messages.
        plan: what is read; its decoding is how payloads become columns before they are changes; None: they are JSON.
        request: what the plan was made for.

    Raises:
        InvalidSchema: nothing tells the columns, or messages have one column as different types.
        StreamsError: as `SplitReader`.
    """
    payload = payloads_of(request.source).get("value")
    if not (isinstance(payload, ChangePayload) and request.with_schemas):
        return plan
    within, former = plan.decoding, request.changes_before
    writer = _writer_of(within)
    value = writer.parts[1] if writer and writer.parts else writer
    if within is not None and value is not None and value.format == "avro":
        keys = within.key.fields if isinstance(within.key, StructOf) else None
        samples = list(_samples(system, plan)) if keys is None else []
        names = None if keys is None else [one.name for one in keys]
        typed = typed_format(payload, value.schema, names, samples, former)
        return replace(plan, decoding=Decoding(typed.type, changes=typed, within=within))
    has_pairs = bool(writer and writer.parts and writer.inline)
    samples = list(_samples(system, plan, has_pairs=has_pairs))
    if is_silent(payload, samples, former):
        samples = list(_samples(system, _whole(system, request), has_pairs=has_pairs))
    found = replace(planned_format(payload, samples, former), has_pairs=has_pairs)
    return replace(plan, decoding=Decoding(found.type, changes=found))


def plan_with_columns(plan: Plan, columns: StructOf) -> Plan:
    """A plan of database changes with columns that a read has met.

    Raises:
        InvalidSchema: a column has values without a common type.
    """
    decoding = plan.decoding
    if decoding is None or decoding.changes is None:
        return plan
    changes = with_columns(decoding.changes, columns)
    if changes.row == decoding.changes.row:
        return plan
    return replace(plan, decoding=replace(decoding, value=changes.type, changes=changes))


def _writer_of(within: Decoding | None) -> WriterSchema | None:
    """The newest schema of the first name; all names have the same kind."""
    return newest_of(next(iter(within.schemas.values()))) if within and within.schemas else None


def _whole(system: StreamSystem, request: PlanRequest) -> Plan:
    """All that the source holds."""
    source = request.source
    start, end = system.parse_cut(source, "earliest"), system.tail(source)
    return system.plan(
        PlanRequest(
            source,
            request.window,
            request.reader,
            basis="cuts",
            start_cut=start,
            end_cut=end,
            on_loss="record",
            with_schemas=False,
        )
    )


def _samples(system: StreamSystem, plan: Plan, *, has_pairs: bool = False) -> Iterator[Sample]:
    """Messages of each shard's first and last split."""
    declared = declaration_of(plan.source.system)
    for split in sampled_splits(plan, declared):
        for sample in _of_split(system, plan, split, declared):
            yield without_pair(sample) if has_pairs else sample


def sampled_splits(plan: Plan, declared: Declaration) -> list[Split]:
    """The splits to look at: the first and the last one of each shard, and of the last one its end, if it is known."""
    of_shard: dict[str, list[Split]] = {}
    for split in plan.splits:
        of_shard.setdefault(split.shard, []).append(split)
    shards = list(of_shard.values())
    step = max(1, len(shards) // MOST_SHARDS)
    return [one for splits in shards[::step] for one in (splits[0], _end_of(splits[-1], declared))]


def _end_of(split: Split, declared: Declaration) -> Split:
    """The last stored unit of a split, if reading may start there; else the split."""
    if not declared.starts_at_units or not split.spans:
        return split
    last = split.spans[-1]
    start = declared.position_of(last.run, last.end - 1)
    if not split.start < start < split.end:
        return split
    return replace(split, start=start, spans=(Span(last.run, last.end - 1, last.end),))


def _of_split(system: StreamSystem, plan: Plan, split: Split, declared: Declaration) -> Iterator[Sample]:
    """The first and last messages of a split's first batch."""
    payload = declared.payload_columns
    if payload is None:
        raise AssertionError(f"{declared.name} decodes nothing")
    columns = (payload.value, *([payload.key] if payload.key else []))
    with closing(system.read(plan, split, columns, on_loss="record")) as reader:
        for batch in reader:
            count = batch.num_rows
            for row in dict.fromkeys((*range(min(count, MOST_ROWS)), *range(max(0, count - MOST_ROWS), count))):
                key = batch.column(payload.key)[row].as_py() if payload.key else None
                yield Sample(cast("bytes | None", batch.column(payload.value)[row].as_py()), key)
            if count:
                return


MOST_SHARDS: Final = 16
"""Shards that are looked at; of more, some are."""
MOST_ROWS: Final = 5
"""Messages at each end of a batch."""
MOST_ROUNDS: Final = 16
"""How often a window is read again: a read tells the columns of one batch."""
