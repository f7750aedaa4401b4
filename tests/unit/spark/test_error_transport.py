"""A typed error comes back from Spark's text as the class it was."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import (
    EventsLost,
    InvalidRequest,
    SparkUnavailable,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.spark.error_transport import one_line, rebuild, typed

TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "source.py", line 1, in read
airflow_provider_streams.errors.SystemUnavailable: it = {message}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_an_error_in_a_traceback_keeps_its_class_and_message() -> None:
    found = typed(RuntimeError(TRACEBACK.format(message="broker-1 is away")), [])
    assert type(found) is SystemUnavailable
    assert found.retryable
    assert str(found) == "it = broker-1 is away"


def test_an_error_first_in_the_text_is_found_too() -> None:
    spoken = RuntimeError("Job aborted: airflow_provider_streams.errors.EventsLost: gone")
    assert typed(spoken, []) is spoken, "only at the begin of a line, or a user's words would be taken for ours"
    assert type(typed(RuntimeError("\nairflow_provider_streams.errors.EventsLost: gone"), [])) is EventsLost


def test_other_errors_are_left_alone() -> None:
    error = ValueError("a user's mistake")
    assert typed(error, ["hunter2-hunter2"]) is error


@pytest.mark.parametrize("error", [ValueError("token hunter2-hunter2"), InvalidRequest("token hunter2-hunter2")])
def test_secrets_never_stay_in_an_error(error: Exception) -> None:
    found = typed(error, ["hunter2-hunter2", ""])
    assert isinstance(found, StreamsError)
    assert "hunter2" not in f"{found}{found!r}"
    assert isinstance(found, InvalidRequest) == isinstance(error, InvalidRequest)


def test_nor_in_one_that_a_traceback_tells() -> None:
    found = typed(RuntimeError(TRACEBACK.format(message="token hunter2-hunter2 is refused")), ["hunter2-hunter2"])
    assert (type(found), str(found)) == (SystemUnavailable, "it = token *** is refused")


def test_a_message_becomes_one_line() -> None:
    assert str(one_line(InvalidRequest("two\n  lines"))) == "two lines"


@pytest.mark.parametrize("name", ["NoSuchError", "annotations", "__name__"])
def test_an_unknown_class_becomes_the_root(name: str) -> None:
    assert type(rebuild(name, "x")) is StreamsError


def test_a_jvm_that_is_gone_passes_and_others_connections_are_their_own() -> None:
    from py4j.protocol import Py4JError, Py4JNetworkError

    library = {"__name__": "py4j.clientserver"}
    exec("def connect(): raise ConnectionRefusedError(111, 'Connection refused')", library)  # noqa: S102 - py4j's frame
    with pytest.raises(ConnectionRefusedError) as refused:
        library["connect"]()  # type: ignore[operator]
    for gone in (refused.value, Py4JNetworkError("empty"), Py4JError("An error occurred while calling o1.save")):
        found = typed(gone, [])
        assert isinstance(found, SparkUnavailable)
        assert str(found).startswith("Spark's JVM is not available: the connection to it broke")
    for mine in (ConnectionRefusedError("a service that a transform asks"), Py4JError("no such method. Trace:\n at x")):
        assert typed(mine, []) is mine
