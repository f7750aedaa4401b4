"""Which streams a source is now."""

from __future__ import annotations

import re

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.systems.pravega import questions
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.steps import Steps


def streams_of(source: PravegaSource) -> Steps[tuple[str, ...]]:
    """The streams of a source, sorted; those that are named need not exist.

    Raises:
        SourceNotFound: no such scope, or none of its streams is chosen.
    """
    if source.streams:
        return tuple(sorted(source.streams))
    found = yield from _chosen(source)
    if not found:
        raise SourceNotFound(f"a stream of {source}")
    return found


def _chosen(source: PravegaSource) -> Steps[tuple[str, ...]]:
    first, *others = source.tags or ("",)
    found = yield from questions.streams(source.chosen_scope, first)
    for tag in others:
        tagged = yield from questions.streams(source.chosen_scope, tag)
        found = tuple(name for name in found if name in tagged)
    return tuple(name for name in found if not source.pattern or re.fullmatch(source.pattern, name))
