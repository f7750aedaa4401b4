"""Rules of several questions: generators, which `systems.sansio` drives on each edge of `stream_client.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.stored_bytes import BytesQuery
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo, SegmentQuery

T = TypeVar("T")

Question: TypeAlias = Call[Any] | SegmentQuery | BytesQuery | Pause
Steps = Rule[Question, T]
"""A rule that asks questions, gets their answers, and returns a value."""


def infos(stream: str, segment_ids: Sequence[int]) -> Steps[Mapping[int, SegmentInfo]]:
    """A segment query as a step of a rule."""
    answer: Mapping[int, SegmentInfo] = yield SegmentQuery(stream, tuple(segment_ids))
    return answer


def chosen(items: Iterable[T], choose: Callable[[T], Steps[bool] | Call[bool]]) -> Steps[list[T]]:
    """The items that a rule chooses, asked one after the other."""
    found = []
    for item in items:
        if (yield from choose(item)):
            found.append(item)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    return found
