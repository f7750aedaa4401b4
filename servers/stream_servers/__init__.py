"""Real servers on loopback, without containers: for demos, tests and your own DAG tests.

    with PulsarServer() as pulsar:
        pulsar.create_topic("public/default/orders", partitions=2)
        print(pulsar.service_url, pulsar.admin_url)

Each server is a context manager with one life cycle (`base.Server`): `start`, `stop`, `restart`, `kill`,
`pause`, `resume`. What it needs is fetched once into a user cache (`fetch`); it listens on free ports of
127.0.0.1 and dies with the process that started it, however that one ends.
"""

from __future__ import annotations

from airflow_provider_streams.spark.launch.java_search import JavaMissing
from stream_servers.base import Server, ServerFailed
from stream_servers.debezium import DebeziumServer
from stream_servers.debian import PackageMissing
from stream_servers.fetch import FetchFailed
from stream_servers.java import QUICK_START, JavaFailed
from stream_servers.mariadb import MariaDBServer
from stream_servers.postgres import PostgresServer
from stream_servers.pravega import PravegaServer
from stream_servers.pulsar import PulsarServer
from stream_servers.pulsar_broker import PulsarBroker, PulsarStorage
from stream_servers.schema_registry import SchemaRegistryServer
from stream_servers.seaweed import SeaweedMissing, SeaweedServer
from stream_servers.waiting import wait_until

__all__ = [
    "QUICK_START",
    "DebeziumServer",
    "FetchFailed",
    "JavaFailed",
    "JavaMissing",
    "MariaDBServer",
    "PackageMissing",
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
