"""Run a server until Ctrl-C, only fetch what the servers need, or write the lock files that say what that is.

python -m stream_servers fetch [pulsar pravega ..]
python -m stream_servers pulsar [--env FILE]
python -m stream_servers lock (needs Maven)
"""

from __future__ import annotations

import argparse
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stream_servers import (
    MariaDBServer,
    PostgresServer,
    PravegaServer,
    PulsarServer,
    SchemaRegistryServer,
    SeaweedServer,
    Server,
)
from stream_servers.bundles import ALL, PRAVEGA, PULSAR, SCHEMA_REGISTRY, Bundle
from stream_servers.bundles import SERVERS as BUNDLES
from stream_servers.fetch import FetchFailed, fetch_all
from stream_servers.locks import resolve

SERVERS: dict[str, Callable[[], Server]] = {
    "pulsar": PulsarServer,
    "pravega": PravegaServer,
    "schema-registry": SchemaRegistryServer,
    "postgres": PostgresServer,
    "mariadb": MariaDBServer,
    "seaweed": SeaweedServer,
}

_BUNDLES = {"pulsar": PULSAR, "pravega": PRAVEGA, "schema-registry": SCHEMA_REGISTRY}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m stream_servers", description=__doc__)
    parser.add_argument("what", choices=["fetch", "lock", *SERVERS])
    parser.add_argument("only", nargs="*", metavar="SERVER", help="fetch: for these servers; default: for all")
    parser.add_argument("--env", type=Path, metavar="FILE", help="when the server is ready, write its addresses there")
    given = parser.parse_args(arguments)
    what = given.what
    if unknown := [name for name in given.only if what != "fetch" or name not in _BUNDLES]:
        parser.error(f"{unknown[0]!r}: only fetch takes names, and knows {', '.join(_BUNDLES)}")
    if what == "fetch":
        fetch_for_people([_BUNDLES[name] for name in given.only] or BUNDLES)
        return
    if what == "lock":
        for bundle in ALL:
            lock = resolve(bundle)
            lock.write()
            print(f"{bundle.title}: {len(lock.files)} files, {lock.size / 1e6:.0f} MB")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SERVERS[what]() as server, environment_file(server, given.env):
            print(f"{server.title} is ready: {addresses(server)}. Ctrl-C ends it.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("ended")


@contextmanager
def environment_file(server: Server, file: Path | None) -> Iterator[None]:
    """While the server runs, a file that a shell can `source`: the variables by which clients find the server."""
    if file is None:
        yield
        return
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in server.variables.items()]
    unfinished = file.with_name(f".{file.name}.part")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600, exist_ok=False)
    unfinished.write_text("".join(lines))
    unfinished.replace(file)  # whole, or not there: a shell may be waiting for it
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def fetch_for_people(bundles: Sequence[Bundle] = BUNDLES) -> None:
    """Fetch what servers need, by default all; an error ends the process with its words alone."""
    try:
        folders = fetch_all(bundles)
    except FetchFailed as error:
        raise SystemExit(str(error)) from None
    for bundle, folder in zip(bundles, folders, strict=True):
        print(f"{bundle.title}: {folder}")


def addresses(server: Server) -> str:
    """Where a server listens, for people."""
    names = ("service_url", "admin_url", "controller_uri", "rest_url", "url", "catalog_url")
    return ", ".join(f"{name}={getattr(server, name)}" for name in names if hasattr(server, name))


if __name__ == "__main__":
    main()
