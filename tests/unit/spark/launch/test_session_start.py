"""What errors mean that Spark raises as a session starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_provider_streams.errors import PreflightFailed, SparkUnavailable
from airflow_provider_streams.spark.launch.session_start import session_start

MEMORY = "[INVALID_EXECUTOR_MEMORY] Executor memory 99 must be at least 471859200.\nPlease increase executor memory"
BIND = "bind(..) failed with error(-99): Cannot assign requested address: Service 'sparkDriver' failed"
AWAITED, REFUSED = "Exception thrown in awaitResult: ", "Failed to connect to /10.0.0.1:7077"
STOPPED = "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:"


class JavaError:
    """An error of Java, as Py4J shows it."""

    def __init__(self, name, words, cause=None):
        self.name, self.words, self.cause = name, words, cause

    def getClass(self):  # noqa: N802 - of Java
        return self

    def getName(self):  # noqa: N802
        return self.name

    def getMessage(self):  # noqa: N802
        return self.words

    def getCause(self):  # noqa: N802
        return self.cause


class Py4JJavaError(Exception):
    def __init__(self, java):
        super().__init__("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n" * 50)
        self.java_exception = java


def raised(error, given=""):
    with pytest.raises(Exception) as found, session_start("Spark here", given):  # noqa: PT011 - its type is tested
        raise error
    return found.value


@pytest.mark.parametrize(
    ("java", "says"),
    [
        (JavaError("org.apache.spark.SparkIllegalArgumentException", MEMORY), "Executor memory 99 must be at least"),
        (JavaError("java.lang.ClassNotFoundException", "com.nope.X"), "ClassNotFoundException: com.nope.X"),
        (JavaError("java.net.BindException", BIND), "Cannot assign requested address"),
        (JavaError("java.lang.NullPointerException", None), "NullPointerException"),
        (
            JavaError("a.SparkException", "Exception when registering", JavaError("x.ClassNotFoundException", "y.Z")),
            "Exception when registering: ClassNotFoundException: y.Z",
        ),
    ],
)
def test_settings_with_which_spark_cannot_start_are_said_in_one_line(java, says):
    error = raised(Py4JJavaError(java), "spark.plugins of the operator's spark=")
    assert isinstance(error, PreflightFailed)
    assert str(error).startswith("Spark here does not start: ")
    assert says in str(error)
    assert "\n" not in str(error)
    assert str(error).endswith("It was given spark.plugins of the operator's spark=")


@pytest.mark.parametrize(
    "java",
    [
        JavaError("java.lang.IllegalStateException", STOPPED),
        JavaError("a.SparkException", AWAITED, JavaError("java.io.IOException", REFUSED)),
        JavaError("java.net.UnknownHostException", "spark-master"),
        JavaError("java.net.BindException", "Address already in use: Service 'SparkUI' failed after 16 retries"),
    ],
)
def test_a_cluster_that_does_not_answer_may_answer_later(java):
    error = raised(Py4JJavaError(java))
    assert isinstance(error, SparkUnavailable)
    assert error.retryable


def test_a_jvm_that_ends_meanwhile_may_start_the_next_time():
    error = raised(ConnectionRefusedError(111, "Connection refused"))
    assert isinstance(error, SparkUnavailable)
    assert error.retryable
    assert "its JVM ended" in str(error)


REFUSES = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from pyspark.sql import SparkSession
from airflow_provider_streams.spark.launch.session_start import await_answer

class Refusing(grpc.GenericRpcHandler):
    def service(self, _):
        def refuse(_, context):
            context.abort(grpc.StatusCode[sys.argv[1]], "the token expired")
        return grpc.unary_unary_rpc_method_handler(refuse)

server = grpc.server(ThreadPoolExecutor(1), handlers=[Refusing()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
try:
    await_answer(session, "the Spark Connect server")
except Exception as error:
    print(type(error).__name__, error)
server.stop(None)  # PySpark's own end would ask it for 10 minutes
"""


@pytest.mark.slow
@pytest.mark.parametrize("status", ["UNAUTHENTICATED", "PERMISSION_DENIED"])
def test_a_spark_connect_server_that_refuses_the_token_is_not_asked_again(status):
    """In a process of its own: a session of Spark Connect leaves variables there."""
    program = [sys.executable, "-c", REFUSES, status]
    said = subprocess.run(program, capture_output=True, text=True, check=True, timeout=300).stdout
    assert said.startswith("AuthenticationFailed the Spark Connect server does not accept our credentials")
    assert "the token expired" in said


@pytest.mark.parametrize("error", [PreflightFailed("typed already"), ValueError("of Python")])
def test_other_errors_stay(error):
    assert raised(error) is error
