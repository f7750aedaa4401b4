"""Stands between a client and an HTTP store or catalog on loopback, and spoils the answers that a test names."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, Self
from urllib.parse import urlsplit

Fault = Literal["refused", "forbidden", "spoiled", "lost", "late"]
"""What becomes of a request.

`refused`: 503, and the server never hears of it; `forbidden`: 403. `spoiled`: the server does it, the answer is 503.
`lost`: the server does it, the connection breaks. `late`: the connection breaks, and the server does it when the test
says so.
"""


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


class FaultProxy:
    """Used as a context; `fault` decides what becomes of each request, None: it passes, and `rewrite` of its answer."""

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url).netloc
        self.seen: list[Request] = []
        self.spoilt: list[Request] = []
        self.fault: Callable[[Request], Fault | None] = lambda _: None
        self.rewrite: Callable[[Request, bytes], bytes] = lambda _, body: body
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with suppress(ConnectionError, TimeoutError):
                    super().handle_one_request()

            def log_message(self, *_: object) -> None:
                pass

            def __getattr__(self, name: str) -> Callable[[], None]:
                if not name.startswith("do_"):
                    raise AttributeError(name)
                return lambda: proxy._handle(self)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=[0.05], daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def once(self, fault: Fault, matches: Callable[[Request], bool], *, times: int = 1) -> None:
        """Spoil the first requests of a kind."""

        def decide(request: Request) -> Fault | None:
            return fault if matches(request) and len(self.spoilt) < times else None

        self.spoilt.clear()
        self.fault = decide

    def send_late_ones(self) -> list[int]:
        """Let the server have what came `late`; its answers' codes."""
        return [self._forward(one)[0] for one in self.spoilt]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handle(self, client: BaseHTTPRequestHandler) -> None:
        request = Request(client.command, client.path, list(client.headers.items()), _body_of(client))
        with self._lock:
            self.seen.append(request)
            fault = self.fault(request)
            if fault is not None:
                self.spoilt.append(request)
        if fault in _UNHEARD:
            return _answer(client, _UNHEARD[fault], [], b"")
        if fault == "late":
            return _break(client)
        status, headers, body = self._forward(request)
        if fault == "lost":
            return _break(client)
        body = self.rewrite(request, body)
        _answer(client, *((503, [], b"") if fault == "spoiled" else (status, headers, body)))
        return None

    def _forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self._server, timeout=30)
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers:  # the host among them: it is signed
                if name.lower() not in _HOP:
                    connection.putheader(name, value)
            if request.body or request.method in {"PUT", "POST"}:
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


_UNHEARD: dict[Fault | None, int] = {"refused": 503, "forbidden": 403}
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


def _body_of(client: BaseHTTPRequestHandler) -> bytes:
    if "chunked" not in client.headers.get("Transfer-Encoding", ""):
        return client.rfile.read(int(client.headers.get("Content-Length") or 0))
    chunks = []
    while size := int(client.rfile.readline().partition(b";")[0], 16):
        chunks.append(client.rfile.read(size))
        client.rfile.readline()
    while client.rfile.readline().strip():
        pass
    return b"".join(chunks)


def _answer(client: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    client.send_response_only(status)
    length = str(len(body))
    for name, value in headers:
        if name.lower() == "content-length":
            length = value if client.command == "HEAD" else length
        elif name.lower() not in _HOP:
            client.send_header(name, value)
    client.send_header("Content-Length", length)
    client.end_headers()
    client.wfile.write(b"" if client.command == "HEAD" else body)


def _break(client: BaseHTTPRequestHandler) -> None:
    client.close_connection = True
    client.connection.close()
