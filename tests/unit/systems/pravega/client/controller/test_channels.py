"""The edges against a gRPC server that answers as Pravega's does."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import grpc
import pytest

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    SystemUnavailable,
    UnknownServerError,
)
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, transaction_calls
from airflow_provider_streams.systems.pravega.client.controller.channels import AsyncController, Controller
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from stream_servers.process import free_ports

CODE = grpc.StatusCode
STREAM = "scope/stream"


class Server(grpc.GenericRpcHandler):
    """Answers each call with the next of `script`: bytes, or a status and its details."""

    def __init__(self) -> None:
        self.script: list[object] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.hang = Event()

    def service(self, details):
        self.seen.append((details.method.rpartition("/")[2], dict(details.invocation_metadata)))
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def answer(self, _request, context):
        step = self.script.pop(0)
        if step == "hang":
            self.hang.wait(20)
            return b""
        if isinstance(step, tuple):
            context.abort(*step)
        return step


@pytest.fixture
def server():
    handler = Server()
    grpc_server = grpc.server(ThreadPoolExecutor(4), handlers=[handler])
    handler.port = grpc_server.add_insecure_port("127.0.0.1:0")
    grpc_server.start()
    yield handler
    handler.hang.set()
    grpc_server.stop(None).wait()


def blocking(endpoint, call):
    controller = Controller(endpoint)
    try:
        return controller.call(call)
    finally:
        controller.close()


def asynchronous(endpoint, call):
    async def ask():
        controller = AsyncController(endpoint)
        try:
            return await controller.call(call)
        finally:
            await controller.close()

    return asyncio.run(ask())


@pytest.fixture(params=[blocking, asynchronous])
def ask(request):
    return request.param


def endpoint(server, **more):
    return Endpoint(f"tcp://127.0.0.1:{server.port}", **{"request_timeout_seconds": 10, **more})


MISSING = "get entry: key: {} table: _system/_tables/{}"
FAILURES = [
    (CODE.NOT_FOUND, MISSING.format("stream", "scope/streamsInScope.#.1-2"), SourceNotFound, "^scope/stream does not"),
    (CODE.NOT_FOUND, MISSING.format("scope", "scopes"), SourceNotFound, "^scope scope does not exist"),
    (CODE.UNAUTHENTICATED, "", AuthenticationFailed, "password or token"),
    (CODE.PERMISSION_DENIED, "Authorization failed", NotAuthorized, "getSegments of scope/stream"),
    (CODE.NOT_FOUND, MISSING.format("epochRecord-99", "a/b/metadata.#.1"), InvalidRequest, "has no epoch 99 at"),
    (CODE.UNIMPLEMENTED, "Method not found", ProtocolError, "knows no getSegments"),
    (CODE.UNKNOWN, "lease value too large, max value is 600000", InvalidRequest, "lease value too large"),
    (CODE.INTERNAL, "Stream: s State: SEALED", InvalidRequest, "SEALED"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: f"{failure[0].name} {failure[2].__name__}")
def test_failures_are_typed_and_hide_the_server_s_tables(server, ask, failure):
    code, details, error, message = failure
    server.script = [(code, details)]
    with pytest.raises(error, match=message) as raised:
        ask(endpoint(server), segment_calls.head(STREAM))
    assert "_tables" not in str(raised.value)
    assert not raised.value.retryable
    assert len(server.seen) == 1, "an answer that says no is not asked for twice"


@pytest.mark.parametrize(
    ("code", "details", "message"),
    [
        (CODE.UNKNOWN, "", "getSegments of scope/stream failed: UNKNOWN no reason given"),
        (CODE.INTERNAL, "Internal exception occurred\n at io.pravega.X", "INTERNAL Internal exception occurred. It"),
        (CODE.RESOURCE_EXHAUSTED, "busy", "RESOURCE_EXHAUSTED busy"),
    ],
)
def test_a_failure_without_a_cause_may_pass_and_another_controller_is_asked(server, ask, code, details, message):
    server.script = [(code, details)]
    with pytest.raises(UnknownServerError, match=message) as raised:
        ask(endpoint(server), segment_calls.head(STREAM))
    assert raised.value.retryable
    server.script = [(code, details), b""]
    twice = Endpoint(f"tcp://127.0.0.1:{server.port},localhost:{server.port}", request_timeout_seconds=10)
    assert ask(twice, segment_calls.head(STREAM)) == {}


def test_an_answer_that_is_no_message_is_an_error(server, ask):
    server.script = [b"\xff\xff\xff"]
    with pytest.raises(ProtocolError, match="getSegments of scope/stream with bytes that mean nothing"):
        ask(endpoint(server), segment_calls.head(STREAM))


def test_tasks_that_ask_at_once_share_one_channel(server):
    async def ask():
        controller = AsyncController(endpoint(server))
        server.script = [b""] * 20
        answers = await asyncio.gather(*(controller.call(segment_calls.head(STREAM)) for _ in range(20)))
        channels = len(controller._channels)
        await controller.close()
        return answers, channels

    assert asyncio.run(ask()) == ([{}] * 20, 1)


def test_an_answer_becomes_a_value_and_the_header_shows_who_we_are(server, ask):
    server.script = [pb.HeadAnswer(positions=[pb.SegmentOffset(offset=5)]).SerializeToString()]
    found = ask(endpoint(server, username="u", password="p"), segment_calls.head(STREAM))
    assert found == {0: 5}
    assert server.seen[0][0] == "getSegments"
    assert server.seen[0][1]["authorization"].startswith("Basic ")


def test_a_silent_controller_is_unavailable_after_the_deadline(server, ask):
    server.script = ["hang"]
    with pytest.raises(SystemUnavailable, match="no answer in time") as raised:
        ask(endpoint(server, request_timeout_seconds=0.3), segment_calls.head(STREAM))
    assert raised.value.retryable


def test_the_next_controller_is_asked_when_one_is_down(server, ask):
    (dead,) = free_ports(1)
    server.script = [b""]
    two = Endpoint(f"tcp://127.0.0.1:{dead},127.0.0.1:{server.port}", request_timeout_seconds=10)
    assert ask(two, segment_calls.head(STREAM)) == {}


def test_what_must_not_be_repeated_is_sent_once(server, ask):
    server.script = [(CODE.UNAVAILABLE, "restarting"), b""]
    twice = Endpoint(f"tcp://127.0.0.1:{server.port},localhost:{server.port}", request_timeout_seconds=10)
    with pytest.raises(SystemUnavailable, match="restarting"):
        ask(twice, transaction_calls.begin_transaction(STREAM, 1000))
    assert len(server.seen) == 1


def test_no_controller_at_all_is_unavailable(ask):
    ports = free_ports(2)
    uri = ",".join(f"127.0.0.1:{port}" for port in ports)
    with pytest.raises(SystemUnavailable, match="not available"):
        ask(Endpoint(f"tcp://{uri}", request_timeout_seconds=5), segment_calls.head(STREAM))
