"""Every setting of a connection to a Schema Registry."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_streams.systems.option import Option

URL = Option(
    "url",
    "Schema Registry: http://host:9092 or https://..; wins over a connection's host and port",
    variables=("PRAVEGA_SCHEMA_REGISTRY_URI",),
    is_address=True,
    label="URL",
    placeholder="https://registry.example.com:9092",
)
USERNAME = Option("username", "The user's name (basic)")
PASSWORD = Option("password", "The user's password (basic)", secret=True)
TOKEN = Option("token", "A token of your identity provider (bearer)", secret=True, label="Bearer token")
CA_FILE = Option(
    "tls_ca_file",
    "Certificates (PEM) to trust instead of the system's",
    label="CA file",
    placeholder="/etc/ssl/registry-ca.pem",
)
VERIFY = Option(
    "tls_verify_hostname",
    "Whether a certificate must name the host we call",
    "true",
    kind="flag",
    label="Verify host names",
)
OPTIONS: tuple[Option, ...] = (
    URL,
    Option("namespace", "The namespace of groups that are named without one"),
    USERNAME,
    PASSWORD,
    TOKEN,
    CA_FILE,
    VERIFY,
    Option("request_timeout_seconds", "How long one request may take", "30", kind="seconds", label="Request timeout"),
)

PREFIX = "registry_"
"""Of the same settings among those of a connection to Pravega."""

OF_PRAVEGA: tuple[Option, ...] = (
    replace(
        URL,
        name="registry_url",
        help="Schema Registry of events with value=Registry(..): http://host:9092 or https://..; only planning asks it",
        aliases=("schema_registry", "schemaRegistry", "schema_registry_uri", "schemaRegistryUri"),
        label="Schema Registry",
    ),
    *(
        replace(one, name=f"{PREFIX}{one.name}", help=f"Schema Registry: {one.help}", variables=(), label="")
        for one in (USERNAME, PASSWORD, TOKEN, CA_FILE, VERIFY)
    ),
)
"""Where streams are planned, the registry's settings lie among Pravega's own."""
