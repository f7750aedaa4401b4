"""What Airflow discovers about this package; imports nothing."""

from __future__ import annotations

from typing import Any

INTEGRATION = "Apache Pulsar"
PRAVEGA = "Pravega"
_FOLDERS = "in a folder of [streams] credential_folders"


def get_provider_info() -> dict[str, Any]:
    """Airflow's provider dictionary."""
    return {
        "package-name": "airflow-provider-streams",
        "name": "Streams",
        "description": "Exact, retryable windows of Apache Pulsar and Pravega, read with PySpark.",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://pulsar.apache.org/", "tags": ["apache"]},
            {"integration-name": PRAVEGA, "external-doc-url": "https://cncf.pravega.io/", "tags": ["service"]},
        ],
        "hooks": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_provider_streams.hooks.pulsar"]},
            {"integration-name": PRAVEGA, "python-modules": ["airflow_provider_streams.hooks.pravega"]},
        ],
        "operators": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_provider_streams.operators.read",
                    "airflow_provider_streams.operators.backfill",
                    "airflow_provider_streams.operators.announce",
                    "airflow_provider_streams.operators.retention",
                    "airflow_provider_streams.operators.holds",
                    "airflow_provider_streams.operators.pulsar",
                ],
            },
            {
                "integration-name": PRAVEGA,
                "python-modules": [
                    "airflow_provider_streams.operators.cuts",
                    "airflow_provider_streams.operators.epoch",
                    "airflow_provider_streams.operators.pravega",
                ],
            },
        ],
        "sensors": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_provider_streams.sensors.window",
                    "airflow_provider_streams.sensors.cuts",
                    "airflow_provider_streams.sensors.pulsar",
                    "airflow_provider_streams.sensors.retention",
                ],
            },
            {"integration-name": PRAVEGA, "python-modules": ["airflow_provider_streams.sensors.pravega"]},
        ],
        "triggers": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_provider_streams.triggers.window",
                    "airflow_provider_streams.triggers.condition",
                    "airflow_provider_streams.triggers.pulsar_messages",
                    "airflow_provider_streams.triggers.new_windows",
                    "airflow_provider_streams.triggers.retention",
                ],
            },
            {
                "integration-name": PRAVEGA,
                "python-modules": [
                    "airflow_provider_streams.triggers.cuts",
                    "airflow_provider_streams.triggers.pravega_unread",
                ],
            },
        ],
        "connection-types": [_pulsar_connection(), _pravega_connection()],
        "asset-uris": [
            {
                "schemes": ["pulsar", "pravega"],
                "handler": "airflow_provider_streams.asset_uris.sanitize_stream_uri",
                "to_openlineage_converter": "airflow_provider_streams.operators.lineage.dataset_of_asset",
            },
        ],
        "queues": [
            "airflow_provider_streams.queues.pulsar.PulsarMessageQueueProvider",
            "airflow_provider_streams.queues.pravega.PravegaMessageQueueProvider",
        ],
        "cli": ["airflow_provider_streams.cli.commands.get_streams_cli_commands"],
        "config": {"streams": _config()},
    }


def _pulsar_connection() -> dict[str, Any]:
    return {
        "connection-type": "pulsar",
        "hook-class-name": "airflow_provider_streams.hooks.pulsar.PulsarHook",
        "hook-name": "Apache Pulsar",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "login"],
            "relabeling": {"host": "Broker host", "port": "Broker port", "password": "Token (JWT)"},
            "placeholders": {
                "host": "broker.example.com",
                "port": "6650",
                "password": "empty without authentication",
                "service_url": "pulsar+ssl://broker-1:6651,broker-2:6651",
                "admin_url": "https://broker.example.com:8443",
                "token_file": "/run/secrets/pulsar-token",
                "tls_ca_file": "/etc/ssl/pulsar-ca.pem",
            },
        },
        "conn-fields": {
            "service_url": _text(
                "Service URL", "Brokers, pulsar:// or pulsar+ssl://, several hosts between commas; wins over the host"
            ),
            "admin_url": _text("Admin URL", "REST service, http:// or https://: planning and sensors ask it"),
            "token_file": _text("Token file", f"A file that holds the token, {_FOLDERS}"),
            "token_env": _text(
                "Token variable", "The variable that holds it, if [streams] credential_variables has it"
            ),
            "tls_ca_file": _text("CA file", "Certificates (PEM) to trust instead of the system's"),
            "tls_verify_hostname": _flag("Verify host names", default=True),
            "tls_cert_file": _text("Client certificate", f"PEM file, for mutual TLS, {_FOLDERS}"),
            "tls_key_file": _text("Client key", f"PEM file, for mutual TLS, {_FOLDERS}"),
            "allowed_hosts": _text("Allowed hosts", "Hosts that brokers may send us to, between commas; *.example.com"),
            "rewrite_redirects": _flag("Rewrite redirects", default=False),
            "listener_name": _text("Listener name", "The brokers' advertised listener to ask for"),
            "request_timeout_seconds": _number("Request timeout", "Seconds that one request may take", 30),
            "stall_seconds": _number("Stall limit", "Seconds that a read may make no progress", 60),
            "max_entry_bytes": _number("Largest entry", "Bytes of an entry that is read, decompressed", 268_435_456),
            "max_entry_rows": _number("Most messages", "Messages of an entry that is read", 1_000_000),
            "max_entry_ratio": _number("Highest compression", "Times an entry that is read may grow", 1_000),
        },
    }


def _pravega_connection() -> dict[str, Any]:
    return {
        "connection-type": "pravega",
        "hook-class-name": "airflow_provider_streams.hooks.pravega.PravegaHook",
        "hook-name": "Pravega",
        "ui-field-behaviour": {
            "hidden-fields": [],
            "relabeling": {"host": "Controller host", "port": "Controller port", "schema": "Scope", "login": "User"},
            "placeholders": {
                "host": "controller.example.com",
                "port": "9090",
                "schema": "of streams that are named without one",
                "login": "empty without authentication",
                "controller": "tls://controller-1:9090,controller-2:9090",
                "rest_url": "https://controller.example.com:9091",
                "schema_registry": "https://registry.example.com:9092",
                "keycloak_file": "/run/secrets/keycloak.json",
                "tls_ca_file": "/etc/ssl/pravega-ca.pem",
            },
        },
        "conn-fields": {
            "controller": _text(
                "Controller", "tcp:// or tls://, several hosts between commas; wins over host and port"
            ),
            "rest_url": _text("REST URL", "The controllers' REST API: only health is asked there"),
            "schema_registry": _text("Schema Registry", "http:// or https://"),
            "auth_method": {
                "label": "Authentication",
                "description": "Default: what the given credentials need",
                "schema": {
                    "type": ["string", "null"],
                    "enum": [None, "none", "basic", "bearer", "keycloak"],
                },
            },
            "token": {
                "label": "Bearer token",
                "description": "A token of your identity provider (bearer)",
                "schema": {"type": ["string", "null"], "format": "password"},
            },
            "keycloak_file": _text("Keycloak file", f"The client's adapter configuration (JSON), {_FOLDERS}"),
            "allowed_hosts": _text(
                "Allowed hosts", "Hosts that segment stores may have, between commas; *.example.com"
            ),
            "tls_ca_file": _text("CA file", "Certificates (PEM) to trust instead of the system's"),
            "tls_verify_hostname": _flag("Verify host names", default=True),
            "request_timeout_seconds": _number("Request timeout", "Seconds that one request may take", 30),
            "stall_seconds": _number("Stall limit", "Seconds that a read may make no progress", 60),
            "read_ahead": _number("Read ahead", "Requests of 2 MiB that a read keeps on their way", 2),
            "max_event_bytes": _number("Largest event", "Bytes; a read holds about twice as many", 134217728),
        },
    }


def _text(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}


def _flag(label: str, *, default: bool) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["boolean", "null"], "default": default}}


def _number(label: str, description: str, default: int) -> dict[str, Any]:
    return {
        "label": label,
        "description": description,
        "schema": {"type": ["number", "null"], "default": default, "minimum": 1},
    }


def _config() -> dict[str, Any]:
    return {
        "description": "Settings of airflow-provider-streams.",
        "options": {
            "journal_conn_id": {
                "description": (
                    "The connection (sqlite, postgres or mysql) of the journal, which keeps pinned plans and window "
                    "runs. While it does not exist, the journal is streams_journal.db in AIRFLOW_HOME."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "my_postgres",
                "default": "streams_journal",
            },
            "poll_interval": {
                "description": "Seconds between two polls of a sensor that does not say otherwise.",
                "version_added": "0.1.0",
                "type": "float",
                "example": "10",
                "default": "60",
            },
            "credential_folders": {
                "description": (
                    "Folders, between commas, in which connections may name files with credentials (token_file, "
                    "keycloak_file, tls_cert_file, tls_key_file). Empty: connections may name none."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "/run/secrets/streams",
                "default": "",
            },
            "credential_variables": {
                "description": (
                    "Environment variables, between commas, that connections may name as the place of a token "
                    "(token_env). Empty: none."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "PULSAR_TOKEN",
                "default": "",
            },
            "small_plan_bytes": {
                "description": "Plans up to this size are read in Spark's driver, larger ones by its executors.",
                "version_added": "0.1.0",
                "type": "integer",
                "example": "0",
                "default": "33554432",
            },
        },
    }
