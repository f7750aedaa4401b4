"""Fixtures for pytest: real servers on loopback, started once per session on first use.

A project enables them in the `conftest.py` of its root; without this line, they do not exist:

    pytest_plugins = ["airflow_provider_streams.testing.plugin"]

Importing this module imports no client and no server.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from airflow_provider_streams.systems.registry import register

if TYPE_CHECKING:
    from stream_servers import (
        PravegaServer,
        PulsarServer,
        SchemaRegistryServer,
        SeaweedServer,
    )

# Small enough that ordinary tests cross ledgers, large enough that their topics have only a few.
LEDGER_ENTRIES = 50


def pytest_configure() -> None:
    """Tests may read the fake system."""
    register("fake", "airflow_provider_streams.testing.fake.declaration:Fake")


@pytest.fixture(scope="session")
def pulsar_server() -> Iterator[PulsarServer]:
    """A Pulsar broker with small ledgers, transactions and infinite retention; topics must be created."""
    from stream_servers import QUICK_START, PulsarServer

    with PulsarServer(ledger_entries=LEDGER_ENTRIES, jvm=QUICK_START, transactions=True) as server:
        yield server


@pytest.fixture(scope="session")
def pulsar_auth_server() -> Iterator[PulsarServer]:
    """A Pulsar broker with TLS that demands tokens (`server.token(role)`) and permissions (`server.grant`)."""
    from stream_servers import QUICK_START, PulsarServer

    with PulsarServer(ledger_entries=LEDGER_ENTRIES, jvm=QUICK_START, token_auth=True, tls=True) as server:
        yield server


@pytest.fixture
def pulsar_namespace(pulsar_server: PulsarServer) -> Iterator[str]:
    """A fresh namespace, `public/test-<hex>`, deleted with its topics afterwards."""
    import httpx

    namespace = f"public/test-{secrets.token_hex(4)}"
    pulsar_server.create_namespace(namespace)
    yield namespace
    try:
        pulsar_server.delete_namespace(namespace)
    except httpx.TimeoutException:
        pass  # as below: the first deletion waits, and further ones are refused
    except httpx.HTTPStatusError as refused:
        # Rarely, a broker with transactions cannot finish the deletion of a topic, as it waits for its own topic of
        # snapshots (apache/pulsar#26431 has one cause), and refuses all further ones until it is restarted. That is
        # no fault of the test, and no other test uses this name.
        if "Topic is already fenced" not in str(refused):
            raise


@pytest.fixture
def pulsar_unchanged(pulsar_server: PulsarServer) -> Iterator[None]:
    """Fails the test if it leaves another set of topics and subscriptions than it found."""
    before = pulsar_server.inventory()
    yield
    if (after := pulsar_server.inventory()) != before:
        pytest.fail(f"the test changed the broker's topics or subscriptions: {before} became {after}")


@pytest.fixture(scope="session")
def pravega_server() -> Iterator[PravegaServer]:
    """A Pravega server without authentication; scopes and streams must be created."""
    from stream_servers import QUICK_START, PravegaServer

    with PravegaServer(jvm=QUICK_START) as server:
        yield server


@pytest.fixture
def pravega_scope(pravega_server: PravegaServer) -> str:
    """The name of a fresh scope, `test-<hex>`."""
    scope = f"test-{secrets.token_hex(4)}"
    pravega_server.create_scope(scope)
    return scope


@pytest.fixture(scope="session")
def schema_registry_server() -> Iterator[SchemaRegistryServer]:
    """A Pravega Schema Registry that keeps its groups in memory."""
    from stream_servers import SchemaRegistryServer

    with SchemaRegistryServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """SQLAlchemy's address of an empty database in a fresh Postgres cluster."""
    from stream_servers import PostgresServer

    with PostgresServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """SQLAlchemy's address of an empty database in a fresh MariaDB, which stands for MySQL."""
    from stream_servers import MariaDBServer

    with MariaDBServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def seaweed_server() -> Iterator[SeaweedServer]:
    """An S3 store and an Iceberg REST catalog, with one account; see its `catalog_properties`, `storage_options`."""
    from stream_servers import SeaweedServer

    with SeaweedServer() as server:
        yield server


@pytest.fixture
def lake_folder(seaweed_server: SeaweedServer) -> str:
    """A fresh folder of the store's plain bucket, `s3://lake/test-<hex>`."""
    return f"{seaweed_server.bucket_url}/test-{secrets.token_hex(4)}"
