"""Every setting of a connection to Pravega, and what names a stream in `spark.read.format("pravega")`."""

from __future__ import annotations

from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.pravega.registry.options import OF_PRAVEGA

METHODS = ("none", "basic", "bearer", "keycloak")
"""The ways to show who we are."""

OPTIONS: tuple[Option, ...] = (
    Option(
        "controller",
        "Controllers: tcp://host:9090 or tls://host:9090, several hosts between commas; wins over a connection's host "
        "and port",
        aliases=("controllerUri", "controller_uri"),
        variables=("PRAVEGA_CONTROLLER_URI",),
        is_address=True,
        placeholder="tls://controller-1:9090,controller-2:9090",
    ),
    Option("scope", "The scope of streams that are named without one", variables=("PRAVEGA_SCOPE",)),
    Option(
        "rest_url",
        "The controllers' REST API, http://host:9091 or https://..: only health is asked there",
        aliases=("restUrl",),
        is_address=True,
        label="REST URL",
        placeholder="https://controller.example.com:9091",
    ),
    *OF_PRAVEGA,
    Option(
        "auth_method",
        "none, basic, bearer or keycloak; default: what the given credentials need",
        kind="word",
        choices=METHODS,
        label="Authentication",
    ),
    Option("username", "The user's name (basic)"),
    Option("password", "The user's password (basic)", secret=True),
    Option("token", "A token of your identity provider (bearer)", secret=True, label="Bearer token"),
    Option(
        "keycloak_file",
        "The client's adapter configuration from Keycloak, a JSON file (keycloak)",
        reads="file",
        placeholder="/run/secrets/keycloak.json",
    ),
    Option(
        "allowed_hosts",
        "Hosts besides the given ones that segment stores may have, between commas; *.example.com is all below it",
        kind="names",
    ),
    Option(
        "tls_ca_file",
        "Certificates (PEM) to trust instead of the system's",
        label="CA file",
        placeholder="/etc/ssl/pravega-ca.pem",
    ),
    Option(
        "tls_verify_hostname",
        "Whether a certificate must name the host we call",
        "true",
        kind="flag",
        label="Verify host names",
    ),
    Option("request_timeout_seconds", "How long one request may take", "30", kind="seconds", label="Request timeout"),
    Option(
        "stall_seconds",
        "How long a read may make no progress while there is more to come",
        "60",
        kind="seconds",
        label="Stall limit",
    ),
    Option(
        "read_ahead",
        "How many requests of 2 MiB a read keeps on their way; more help over long distances",
        "2",
        kind="count",
    ),
    Option(
        "max_event_bytes",
        "The largest event that is read; a read holds about twice as much",
        str(128 << 20),
        kind="count",
        label="Largest event",
    ),
)

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
"""What other connectors ask about creating and writing."""
