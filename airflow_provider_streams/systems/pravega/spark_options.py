"""The options of `spark.read.format("pravega")` that name streams."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection.list_options import words
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.pravega.source import PravegaSource

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option("scope", "a Pravega scope; alone: all of its streams"),
    Option("stream", "a Pravega stream"),
    Option("streams", "Pravega streams, comma separated"),
    Option("streamsPattern", "a pattern of Pravega streams", aliases=("streams_pattern",)),
    Option(
        "routing_keys",
        "only Pravega segments that may hold events of these routing keys, comma separated",
        aliases=("routingKeys",),
    ),
    Option("tags", "with a scope or a pattern: only the Pravega streams that have all of these tags, comma separated"),
    Option("event_time_unit", "basis event: the unit of the times that a Pravega stream's writers note", "ms"),
)

PASSED_OVER = frozenset(
    {
        "allow_create_scope",
        "allow_create_stream",
        "default_num_segments",
        "default_retention_duration_milliseconds",
        "default_retention_size_bytes",
        "default_scale_factor",
        "default_segment_target_rate_bytes_per_sec",
        "default_segment_target_rate_events_per_sec",
        "exactly_once",
        "read_after_write_consistency",
        "transaction_status_poll_interval_ms",
        "transaction_timeout_ms",
    }
)
"""Options of other connectors, about creating and writing."""


def source_from_options(options: Mapping[str, str], scope_of_connection: str) -> PravegaSource:
    """From `stream`, `streams` (between commas), `streamsPattern`, or `scope` alone; the last two may have `tags`.

    Names and patterns without a scope are in the scope of the option `scope`, else in the connection's.

    Raises:
        InvalidRequest: none, or more than one of them; or two scopes.
    """
    folded = {name.lower(): value.strip() for name, value in options.items()}
    scope, stream, pattern = (folded.get(name, "") for name in ("scope", "stream", "streamspattern"))
    streams, tags = (words(name, folded.get(name)) for name in ("streams", "tags"))
    given = [bool(stream), bool(streams), bool(pattern)].count(True)
    if given > 1 or (not given and not scope):
        raise InvalidRequest(
            "name what to read by one of the options stream, streams and streamsPattern ('scope/stream', or a name "
            "with the option scope), or by scope alone: all of its streams"
        )
    names = [_scoped(name, scope, scope_of_connection) for name in [stream or pattern, *streams] if name]
    return PravegaSource(
        () if pattern else names,
        event_time_unit=folded.get("event_time_unit") or "ms",  # type: ignore[arg-type]  # it checks
        scope=None if names else scope,
        pattern=names[0] if pattern else None,
        tags=tags,
        routing_keys=words("routing keys", folded.get("routing_keys")),
    )


def _scoped(name: str, scope: str, scope_of_connection: str) -> str:
    if "/" in name:
        if scope and name.partition("/")[0] != scope:
            raise InvalidRequest(f"the options name two scopes: {scope!r} and the one in {name!r}")
        return name
    if not (scope or scope_of_connection):
        raise InvalidRequest(f"the scope of stream {name!r} is missing: give the option scope")
    return f"{scope or scope_of_connection}/{name}"
