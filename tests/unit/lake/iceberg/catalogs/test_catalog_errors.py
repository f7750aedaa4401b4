"""Errors of catalogs' clients say whether waiting helps, and what does."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest
import requests
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
)
from pydantic import ValidationError
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.exceptions import CommitStateUnknownException, TooManyRequestsError
from thrift.transport.TTransport import TTransportException

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from tests.unit.lake.iceberg.rest_servers import serving

SINK = IcebergSink("shop.orders", conn_id="lake")


def answer(code: str, status: int = 400) -> ClientError:
    told = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, "GetTable")


def no_table() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        TableResponse.model_validate_json("<html>Log in</html>")
    return raised.value


def no_answer() -> ValidationError:
    """As `no_table`, raised by pyiceberg's client of REST catalogs."""
    program = compile("error = make()\nraise error", "rest", "exec")
    with pytest.raises(ValidationError) as raised:
        exec(program, {"__name__": "pyiceberg.catalog.rest", "make": no_table})  # noqa: S102 - the program above
    return raised.value


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (TTransportException(message="TSocket read 0 bytes"), TableUnavailable, "TSocket read 0 bytes"),
        (EndpointConnectionError(endpoint_url="http://glue"), TableUnavailable, "Could not connect"),
        (ReadTimeoutError(endpoint_url="http://glue"), TableUnavailable, "Read timeout"),
        (ConnectionClosedError(endpoint_url="http://glue"), TableUnavailable, "Connection was closed"),
        (answer("InternalServiceException", 500), TableUnavailable, "InternalServiceException"),
        (answer("ThrottlingException"), TableUnavailable, "ThrottlingException"),
        (answer("AccessDeniedException"), SinkError, "AccessDeniedException.*: see that the keys are right"),
        (answer("ExpiredTokenException"), SinkError, "have not expired"),
        (NoCredentialsError(), SinkError, "give glue.access-key-id and glue.secret-access-key"),
        (NoRegionError(), SinkError, "give glue.region"),
        (ProfileNotFound(profile="prod"), SinkError, "variable AWS_PROFILE or the extra glue.profile-name"),
        (TooManyRequestsError("later"), TableUnavailable, "TooManyRequestsError: later"),
        (CommitStateUnknownException("502"), TableUnavailable, "CommitStateUnknownException: 502"),
        (no_table(), SinkError, r"a metadata file says is not as pyiceberg reads.*\(Invalid JSON: .*a newer pyiceberg"),
        (no_answer(), SinkError, r"an answer is not as Iceberg's REST protocol has it \(Invalid JSON: .*no login page"),
        (KeyError("DatabaseList"), SinkError, "KeyError: 'DatabaseList'$"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Exception) else "",
)
def test_what_catalogs_and_their_clients_say_is_passing_or_says_what_helps(error, kind, said):
    with pytest.raises(SinkError, match=said) as raised, errors_of(SINK):
        raise error
    assert type(raised.value) is kind


def test_a_rest_catalog_that_is_down_is_named_with_the_cause_and_what_to_check():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with (
            given("lake", {"type": "rest", "uri": where, "credential": "u:hunter2secret"}),
            pytest.raises(TableUnavailable) as found,
        ):
            catalog_of(SINK)
    said = str(found.value)
    assert said.startswith(f"{SINK}: the catalog at {where} does not answer: Connection refused. Check host, port")
    assert "Pool" not in said


def test_a_host_that_no_one_knows_and_an_answer_that_does_not_come():
    unknown = requests.ConnectionError(
        SimpleNamespace(reason="Failed to resolve 'nowhere' ([Errno -2] Name or service not known)"),
        request=requests.Request("GET", "https://u:p@nowhere:8181/v1/config").prepare(),
    )
    said = r"catalog at https://nowhere:8181 does not answer: Name or service not known\. Check"
    with pytest.raises(TableUnavailable, match=said), errors_of(SINK):
        raise unknown
    late = requests.ReadTimeout("HTTPConnectionPool(host='x', port=1): Read timed out. (read timeout=3)")
    with pytest.raises(TableUnavailable, match=r"the catalog does not answer: Read timed out"), errors_of(SINK):
        raise late


class Empty(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Nothing."""


def test_an_answer_that_is_not_glues_says_where_the_address_is_corrected():
    keys = {"glue.access-key-id": "k", "glue.secret-access-key": "s", "glue.region": "eu-west-1"}
    with serving(Empty) as other:
        where = {"type": "glue", "glue.endpoint": f"http://127.0.0.1:{other.server_port}", "warehouse": "s3://lake"}
        with given("lake", {**where, **keys}):
            catalog = catalog_of(SINK)
            with pytest.raises(SinkError, match=r"List': Glue's answer lacks it.*glue\.endpoint"), errors_of(SINK):
                catalog.list_namespaces()
