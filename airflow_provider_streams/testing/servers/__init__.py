"""Real servers on loopback, without containers: for demos, tests and your own DAG tests.

    with PulsarServer() as pulsar:
        pulsar.create_topic("public/default/orders", partitions=2)
        print(pulsar.service_url, pulsar.admin_url)

Each server is a context manager with one life cycle (`base.Server`): `start`, `stop`, `restart`, `kill`,
`pause`, `resume`. What it needs is fetched once into a user cache (`fetch`); it listens on free ports of
127.0.0.1 and dies with the process that started it, however that one ends.
"""

from __future__ import annotations

from airflow_provider_streams.testing.servers.base import Server, ServerFailed
from airflow_provider_streams.testing.servers.fetch import FetchFailed
from airflow_provider_streams.testing.servers.java import QUICK_START, JavaFailed, JavaMissing
from airflow_provider_streams.testing.servers.postgres import PostgresMissing, PostgresServer
from airflow_provider_streams.testing.servers.pravega import PravegaServer
from airflow_provider_streams.testing.servers.pulsar import PulsarServer
from airflow_provider_streams.testing.servers.pulsar_broker import PulsarBroker, PulsarStorage
from airflow_provider_streams.testing.servers.schema_registry import SchemaRegistryServer
from airflow_provider_streams.testing.servers.seaweed import SeaweedMissing, SeaweedServer
from airflow_provider_streams.testing.servers.waiting import wait_until

__all__ = [
    "QUICK_START",
    "FetchFailed",
    "JavaFailed",
    "JavaMissing",
    "PostgresMissing",
    "PostgresServer",
    "PravegaServer",
    "PulsarBroker",
    "PulsarServer",
    "PulsarStorage",
    "SchemaRegistryServer",
    "SeaweedMissing",
    "SeaweedServer",
    "Server",
    "ServerFailed",
    "wait_until",
]
