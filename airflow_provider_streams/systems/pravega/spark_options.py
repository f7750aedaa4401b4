"""Streams as the options of `spark.read.format("pravega")` name them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.written import words


def source_from_options(options: Mapping[str, str], scope_of_connection: str) -> PravegaSource:
    """From `stream`, `streams` (between commas), `streamsPattern`, or `scope` alone; the last two with `tags`, too.

    Names and patterns without a scope are of the option `scope`, else of the connection's.

    Raises:
        InvalidRequest: none, or more than one of them; or two scopes.
    """
    folded = {name.lower(): value.strip() for name, value in options.items()}
    scope, stream, pattern = (folded.get(name, "") for name in ("scope", "stream", "streamspattern"))
    streams, tags = words(folded.get("streams", "")), words(folded.get("tags", ""))
    given = [bool(stream), bool(streams), bool(pattern)].count(True)
    if given > 1 or (not given and not scope):
        raise InvalidRequest(
            "name what to read by one of the options stream, streams and streamsPattern ('scope/stream', or a name "
            "beside the option scope), or by scope alone: all of its streams"
        )
    names = [_scoped(name, scope, scope_of_connection) for name in [stream or pattern, *streams] if name]
    return PravegaSource(
        () if pattern else names,
        event_time_unit=folded.get("event_time_unit") or "ms",  # type: ignore[arg-type]  # it checks
        scope=None if names else scope,
        pattern=names[0] if pattern else None,
        tags=tags,
        routing_keys=words(folded.get("routing_keys", "")),
    )


def _scoped(name: str, scope: str, scope_of_connection: str) -> str:
    if "/" in name:
        if scope and name.partition("/")[0] != scope:
            raise InvalidRequest(f"the options name two scopes: {scope!r} and that of {name!r}")
        return name
    if not (scope or scope_of_connection):
        raise InvalidRequest(f"the scope of stream {name!r} is missing: give the option scope")
    return f"{scope or scope_of_connection}/{name}"
