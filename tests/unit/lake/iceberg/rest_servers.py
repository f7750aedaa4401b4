"""Servers on loopback that take the part of a REST catalog."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table

from stream_servers.certificates import Certificates


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], certificates: Certificates | None = None, **state: Any
) -> Iterator[Any]:
    """A server, with TLS if there are certificates. It has `asked`, for what it was asked, and `state`."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    vars(server).update(state, asked=[])
    if certificates:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificates.server.certificate, certificates.server.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    running.start()
    try:
        yield server
    finally:
        server.shutdown()
        running.join()
        server.server_close()


class Catalog(BaseHTTPRequestHandler):
    """A catalog with tables of its own. Its server has `tables`, and the `connection` that leads to it.

    `commits` are the statuses of its next answers to commits, without making them. `config` and `of_table` are what it
    says of itself and of each table, `properties` are of new tables, and `bend` changes each answer about a table.
    """

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """A namespace, a table or a commit."""
        asked = self._asked()
        *_, kind = (place := self._place())
        if kind == "namespaces":
            self.server.tables.create_namespace(tuple(asked["namespace"]))
            self.answer(asked)
        elif kind == "tables":
            request = CreateTableRequest.model_validate({"location": None, "write-order": None, **asked})
            spec = request.partition_spec or UNPARTITIONED_PARTITION_SPEC
            told = {**request.properties, **self.server.properties}
            name = f"{place[-2]}.{request.name}"
            made = self.server.tables.create_table(name, request.table_schema, partition_spec=spec, properties=told)
            self.answer(self._of(made))
        elif self.server.commits:
            self.fail(self.server.commits.pop(0))
        else:
            self._commit(CommitTableRequest.model_validate(asked))

    def _commit(self, request: CommitTableRequest) -> None:
        tables = self.server.tables
        table = tables.load_table((*request.identifier.namespace.root, request.identifier.name))
        self.answer(self._of(tables.commit_table(table, request.requirements, request.updates)))

    def do_GET(self) -> None:
        """The configuration, or what is of a name."""
        self._asked()
        *_, kind, name = (place := self._place())
        if name == "config":
            self.answer({"defaults": {}, "overrides": {}, **self.server.config})
        elif kind == "namespaces":
            self._if_there(lambda: {"namespace": [name], "properties": {}} if self._has(name) else None)
        else:
            self._if_there(lambda: self._of(self.server.tables.load_table(f"{place[-3]}.{name}")))

    def do_HEAD(self) -> None:
        """As GET, without a body."""
        self.do_GET()

    def _if_there(self, found: Callable[[], Any]) -> None:
        try:
            value = found()
        except NoSuchTableError:
            value = None
        self.answer(value) if value else self.fail(404)

    def _has(self, namespace: str) -> bool:
        return bool(self.server.tables.namespace_exists(namespace))

    def _place(self) -> list[str]:
        return self.path.partition("?")[0].split("/")

    def _asked(self) -> Any:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.asked.append((self.command, self.path))
        return json.loads(body) if body else {}

    def _of(self, made: Table | CommitTableResponse) -> dict[str, Any]:
        metadata = json.loads(made.metadata.model_dump_json())
        answer = {"metadata-location": made.metadata_location, "metadata": metadata, "config": self.server.of_table}
        self.server.bend(answer)
        return answer

    def fail(self, status: int) -> None:
        """An error, as catalogs give it."""
        self.answer({"error": {"message": f"answer {status}", "type": "Refused", "code": status}}, status)

    def answer(self, value: Any, status: int = 200) -> None:
        """Any answer."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def catalog_serving(folder: Path, **state: Any) -> Iterator[Any]:
    """A catalog on loopback with its tables in a folder, see `Catalog`."""
    tables = SqlCatalog("server", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    known = {"commits": [], "config": {}, "of_table": {}, "properties": {}, "bend": lambda _: None, **state}
    try:
        with serving(Catalog, tables=tables, **known) as server:
            server.connection = {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}"}
            yield server
    finally:
        tables.engine.dispose()
