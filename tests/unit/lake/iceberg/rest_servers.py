"""Servers on loopback that take the part of a REST catalog."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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
