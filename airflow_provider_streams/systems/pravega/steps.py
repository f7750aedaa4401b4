"""Rules of several questions: generators, which `systems.rules` drives on each edge of `client.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from airflow_provider_streams.systems.backoff import Pause
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.read_bytes import BytesQuery
from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo, SegmentQuery
from airflow_provider_streams.systems.rules import Rule

T = TypeVar("T")


Question: TypeAlias = Call[Any] | SegmentQuery | BytesQuery | Pause
Steps = Rule[Question, T]
"""A rule that asks questions, gets their answers, and returns a value."""


def ask(call: Call[T]) -> Steps[T]:
    """A call as a step of a rule, with its answer's type."""
    answer: T = yield call
    return answer


def infos(stream: str, segment_ids: Sequence[int]) -> Steps[Mapping[int, SegmentInfo]]:
    """A segment query as a step of a rule."""
    answer: Mapping[int, SegmentInfo] = yield SegmentQuery(stream, tuple(segment_ids))
    return answer
