"""What Airflow discovers about this package; imports what systems say of themselves, and nothing heavy."""

from __future__ import annotations

import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.systems.connection.catalog_properties import FORM_OPTIONS
from airflow_provider_streams.systems.declaration import ConnectionForm, ConnectionType
from airflow_provider_streams.systems.registry import declaration_of, known

if TYPE_CHECKING:
    from airflow_provider_streams.systems.connection.option import Option

INTEGRATION = "Apache Pulsar"
PRAVEGA = "Pravega"
ICEBERG = "Apache Iceberg"
COMMANDS = "airflow_provider_streams.cli.parser.get_streams_cli_commands"
APACHES_ICEBERG = "apache-airflow-providers-apache-iceberg"
"""The package whose own form and hook serve connections to Iceberg, where it is installed."""
_ICEBERG_CONNECTION = ConnectionType(
    "iceberg",
    "Apache Iceberg",
    "airflow_provider_streams.hooks.iceberg:IcebergHook",
    FORM_OPTIONS,
    ConnectionForm(
        labels={"host": "Catalog URI", "login": "Client ID", "password": "Client Secret"},
        placeholders={"host": "https://catalog.example.com:8181", "login": "empty without authentication"},
        hidden=("schema", "port"),
    ),
)
_MAY_NAME = {
    "file": ", in a folder of [streams] credential_folders",
    "variable": ", if [streams] credential_variables has it",
}
"""What a connection may name of the machine that uses it."""
_TYPES: dict[str, str] = {"flag": "boolean", "count": "number", "seconds": "number"}


def get_provider_info() -> dict[str, Any]:
    """Airflow's provider dictionary."""
    declared = [declaration_of(name) for name in known()]
    connections = [one for system in declared for one in system.connections]
    if not _is_installed(APACHES_ICEBERG):
        connections.append(_ICEBERG_CONNECTION)
    return {
        "package-name": "airflow-provider-streams",
        "name": "Streams",
        "description": "Exact, retryable windows of Apache Pulsar and Pravega, read with PySpark.",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://pulsar.apache.org/", "tags": ["apache"]},
            {"integration-name": PRAVEGA, "external-doc-url": "https://cncf.pravega.io/", "tags": ["service"]},
            {"integration-name": ICEBERG, "external-doc-url": "https://iceberg.apache.org/", "tags": ["apache"]},
        ],
        "hooks": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_provider_streams.hooks.pulsar"]},
            {
                "integration-name": PRAVEGA,
                "python-modules": [
                    "airflow_provider_streams.hooks.pravega",
                    "airflow_provider_streams.hooks.schema_registry",
                ],
            },
            {"integration-name": ICEBERG, "python-modules": ["airflow_provider_streams.hooks.iceberg"]},
        ],
        "operators": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_provider_streams.operators.read",
                    "airflow_provider_streams.operators.backfill",
                    "airflow_provider_streams.operators.announcement",
                    "airflow_provider_streams.operators.retention",
                    "airflow_provider_streams.operators.holds",
                    "airflow_provider_streams.operators.schemas",
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
                    "airflow_provider_streams.sensors.schemas",
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
        "connection-types": [_connection(one) for one in connections],
        "asset-uris": [
            {
                "schemes": [*(one.name for one in declared), "iceberg", "spark-table"],
                "handler": "airflow_provider_streams.asset_uris.sanitize_stream_uri",
                "to_openlineage_converter": "airflow_provider_streams.airflow_runtime.openlineage.dataset_of_asset",
            },
        ],
        "queues": [
            "airflow_provider_streams.queues.message_queues.PulsarMessageQueueProvider",
            "airflow_provider_streams.queues.message_queues.PravegaMessageQueueProvider",
        ],
        # older versions refuse what they do not know
        **(
            {"cli": ["airflow_provider_streams.cli.parser.get_streams_cli_commands"]}
            if has(Feature.PROVIDER_COMMANDS)
            else {}
        ),
        "config": {"streams": _config()},
    }


def _commands() -> dict[str, list[str]]:
    """Older versions of Airflow refuse what they do not know."""
    return {"cli": [COMMANDS]} if has(Feature.PROVIDER_COMMANDS) else {}


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _connection(one: ConnectionType) -> dict[str, Any]:
    """A connection's form: Airflow's own fields, and one for every other option."""
    shown = [option for option in one.options if option.name not in one.form.holds]
    placeholders = {option.name: option.placeholder for option in shown if option.placeholder}
    return {
        "connection-type": one.name,
        "hook-class-name": one.hook.replace(":", "."),
        "hook-name": one.title,
        "ui-field-behaviour": {
            "hidden-fields": [*one.form.hidden, *one.form.unused],
            "relabeling": dict(one.form.labels),
            "placeholders": {**one.form.placeholders, **placeholders},
        },
        "conn-fields": {option.name: _field(option) for option in shown},
    }


def _field(option: Option) -> dict[str, Any]:
    return {
        "label": option.label or option.name.replace("_", " ").capitalize(),
        "description": option.help + _MAY_NAME.get(option.reads, ""),
        "schema": _schema(option),
    }


def _schema(option: Option) -> dict[str, Any]:
    if option.choices:
        return {"type": ["string", "null"], "enum": [None, *option.choices]}
    if option.secret:
        return {"type": ["string", "null"], "format": "password"}
    if option.kind not in _TYPES:
        return {"type": ["string", "null"]}
    limits = {"minimum": 1} if _TYPES[option.kind] == "number" else {}
    default = {"default": json.loads(option.default)} if option.default else {}
    return {"type": [_TYPES[option.kind], "null"], **default, **limits}


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
            "journal_keep": {
                "description": (
                    "How long the journal keeps tries and plans that decide nothing any more, like 90d; a day at "
                    "least. Once a day, the next window that a reader covers prunes what is older. Empty: for ever."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "90d",
                "default": "",
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
                "description": (
                    "Plans up to this size are read in Spark's driver (without spark_conn_id: in the task), larger "
                    "ones by its executors."
                ),
                "version_added": "0.1.0",
                "type": "integer",
                "example": "0",
                "default": "33554432",
            },
        },
    }
