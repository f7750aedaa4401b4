"""Run a server until Ctrl-C, or only fetch what the servers need.

python -m airflow_provider_streams.testing.servers fetch
python -m airflow_provider_streams.testing.servers pulsar
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Sequence

from airflow_provider_streams.testing.servers import (
    PostgresServer,
    PravegaServer,
    PulsarServer,
    SchemaRegistryServer,
    SeaweedServer,
    Server,
    pravega,
    pulsar,
    schema_registry,
)
from airflow_provider_streams.testing.servers.fetch import fetch

SERVERS: dict[str, Callable[[], Server]] = {
    "pulsar": PulsarServer,
    "pravega": PravegaServer,
    "schema-registry": SchemaRegistryServer,
    "postgres": PostgresServer,
    "seaweed": SeaweedServer,
}
BUNDLES = (pulsar.BUNDLE, pravega.BUNDLE, schema_registry.BUNDLE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_streams.testing.servers", description=__doc__)
    parser.add_argument("what", choices=["fetch", *SERVERS])
    what = parser.parse_args(arguments).what
    if what == "fetch":
        for bundle in BUNDLES:
            print(f"{bundle.title}: {fetch(bundle)}")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SERVERS[what]() as server:
            print(f"{server.title} is ready: {addresses(server)}. Ctrl-C ends it.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("ended")


def addresses(server: Server) -> str:
    """Where a server listens, for people."""
    names = ("service_url", "admin_url", "controller_uri", "rest_url", "url", "catalog_url")
    return ", ".join(f"{name}={getattr(server, name)}" for name in names if hasattr(server, name))


if __name__ == "__main__":
    main()
