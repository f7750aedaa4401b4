"""What errors mean that Spark raises as a session starts: one typed line instead of pages of a trace."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    PreflightFailed,
    SparkUnavailable,
    StreamsError,
    as_clause,
    as_sentence,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEE_MESSAGES: Final = "Spark's own messages above say why"
"""Of an error whose cause is only in the output of Spark's JVM."""
_MOST_LETTERS: Final = 500
_OF_THE_NETWORK: Final = (
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "java.util.concurrent.TimeoutException",
)
_OTHERS_ARE_AT_FAULT: Final = (
    "Address already in use",
    "Failed to connect",
    "masters are unresponsive",
    "stopped SparkContext",
)
"""Words of errors that have a class for many things."""
_DETAILS: Final = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
_TRIES, _LONGEST_PAUSE_MS = 8, 6_000
"""Half a minute in all; PySpark itself takes 10 minutes, and says nothing meanwhile."""


@contextmanager
def session_start(where: str, given: str = "") -> Iterator[None]:
    """Type the errors of a block that starts a session of Spark.

    Args:
        where: the Spark, for messages.
        given: the user's settings of it and where they are, for messages.

    Raises:
        SparkUnavailable: its cluster does not answer, or refuses the application; or its JVM ended.
        PreflightFailed: it cannot start with these settings.
    """
    try:
        yield
    except StreamsError:
        raise
    except ConnectionError as error:  # Py4J's, of this process to its JVM
        # also if the system killed it for its memory, which may not happen again
        raise SparkUnavailable(where, f"its JVM ended as it started. {SEE_MESSAGES}.{_settings(given)}") from error
    except Exception as error:
        causes = _java_causes(error)
        if not causes:
            raise
        said = as_clause(": ".join(dict.fromkeys(text for _, text in causes))[:_MOST_LETTERS])
        if _is_temporary(causes):
            raise SparkUnavailable(where, f"{said}. Spark's own messages above may say more") from None
        raise PreflightFailed(f"{where} does not start: {as_sentence(said)}{_settings(given)}") from None


def _settings(given: str) -> str:
    return f" It was given {given}" if given else ""


def _java_causes(error: BaseException) -> list[tuple[str, str]]:
    """Class and words of each of Java's errors, the outermost first; none: it is no error of Java.

    A class stands before words that do not explain themselves.
    """
    found = []
    cause: Any = getattr(error, "java_exception", None)  # of Py4J
    while cause is not None:
        name = str(cause.getClass().getName())
        words = " ".join(str(cause.getMessage() or "").split())
        short = name.rpartition(".")[2]
        found.append((name, words if " " in words else as_clause(f"{short}: {words}").removesuffix(":")))
        cause = cause.getCause()
    return found


def _is_temporary(causes: list[tuple[str, str]]) -> bool:
    return any(name in _OF_THE_NETWORK or any(words in text for words in _OTHERS_ARE_AT_FAULT) for name, text in causes)


def await_answer(spark: SparkSession, where: str) -> None:
    """Wait until a Spark Connect server answers a new session, for about half a minute at most.

    Args:
        spark: the session.
        where: the server, for messages.

    Raises:
        SparkUnavailable: it does not answer.
        AuthenticationFailed: it refuses the token.
    """
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException  # noqa: PLC0415 - optional
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

    patience = spark.client.get_retry_policies()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES, max_backoff=_LONGEST_PAUSE_MS)])
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # the error says more
            _ = spark.version
    except SparkConnectGrpcException as error:
        found = _DETAILS.search(str(error))
        said = as_clause(" ".join((found[1] if found else str(error)).split())[:_MOST_LETTERS])
        status = error.getGrpcStatusCode().name
        _abandon(spark)
        if status in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            raise AuthenticationFailed(where, said) from None
        raise SparkUnavailable(where, said) from None
    finally:
        spark.client.set_retry_policies(patience)


def _abandon(spark: Any) -> None:
    """Close a session without its server: at the process's end, PySpark would ask it for another 10 minutes."""
    spark.release_session_on_close = False
    spark.stop()
