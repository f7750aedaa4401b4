"""The changes of each key in the source's order, with the moment from which on each of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import PARTIAL
from airflow_provider_streams.lake.changes.key_groups import Numbers, groups
from airflow_provider_streams.lake.changes.states.events import START, VERSION, Events, parts
from airflow_provider_streams.lake.changes.states.partial_rows import partial_entries


@dataclass(frozen=True, slots=True)
class Timelines:
    """The changes of all keys, key by key, in the source's order."""

    changes: pa.Table
    """With the columns filled that they leave open."""
    group: Numbers
    starts: Numbers
    """Ranks of the moments from which the changes count."""
    is_moved: Numbers
    """Whether that is earlier than the change itself says."""
    moments: Any
    """The moments by rank."""
    exact: pa.Table
    """The changes as they came."""


def timelines(changes: pa.Table, events: Events) -> Timelines:
    """Changes in order. They are those of `events`, and perhaps more."""
    changes = changes.combine_chunks()
    group = groups(changes, events.keys)
    kind, head, tail = parts(changes[VERSION])
    is_change = pc.equal(kind, "c").to_numpy(zero_copy_only=False).astype(bool)
    sequence = _ranks(head)
    place = _ranks(pc.if_else(pc.equal(kind, "c"), tail, head)) if len(changes) else sequence
    bound = place.copy()  # the original of a change is not after the originals of those that follow in the log
    by_sequence = np.lexsort((sequence, group))
    by_sequence = by_sequence[is_change[by_sequence]]
    bound[by_sequence] = _least_from_here(place[by_sequence], group[by_sequence])
    order = np.lexsort((np.where(is_change, sequence, 0), ~is_change, bound, group))
    exact = changes.take(array(order))
    moments = exact[START].combine_chunks()
    starts, by_rank = _moments(moments)
    since = _least_from_here(starts, group[order])
    return Timelines(_filled(exact, group[order], events), group[order], since, since != starts, by_rank, exact)


def _least_from_here(numbers: Numbers, group: Numbers) -> Numbers:
    """The least number of each row and of those that follow in its group. Groups are in order."""
    if not len(numbers):
        return numbers
    offset = group * (int(numbers.max()) + 1)
    return np.asarray(np.minimum.accumulate((numbers + offset)[::-1])[::-1] - offset)


def _moments(values: Any) -> tuple[Numbers, Any]:
    """Ranks of moments, and the moments by rank. Of structs, the first field counts most."""
    fields = [values]
    if pa.types.is_struct(values.type):
        fields = [values.field(number) for number in range(values.type.num_fields)]
    ranks = np.zeros(len(values), np.int64)
    for one in fields:
        own = _ranks(one)
        ranks = np.unique(ranks * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return ranks, values.take(array(np.unique(ranks, return_index=True)[1]))


def _ranks(values: Any) -> Numbers:
    if not len(values):
        return np.zeros(0, np.int64)
    found: Numbers = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    return found


def _filled(changes: pa.Table, group: Numbers, events: Events) -> pa.Table:
    """With the value of the change before in the columns that a change leaves open."""
    partial: Any = changes[PARTIAL].combine_chunks()
    if partial.null_count == len(partial):
        return changes
    parents, names, _ = partial_entries(partial)
    starts = np.append(True, group[1:] != group[:-1])
    for name in events.names:
        at = parents[pc.equal(names, name).to_numpy(zero_copy_only=False)]
        if len(at):
            is_set = np.ones(len(group), bool)
            is_set[at] = False
            source = np.maximum.accumulate(np.where(is_set | starts, np.arange(len(group)), 0))
            column = changes[name].take(array(source))
            changes = changes.set_column(changes.column_names.index(name), changes.field(name), column)
    return changes
