"""How a typed error survives Spark, which hands on only text.

An executor's exception reaches the driver as a Python traceback in a `PythonException`, an `AnalysisException` or an
error of Java. The traceback ends with `airflow_provider_streams.errors.<Class>: <message>`. If the message is one line,
that line is enough to raise the same class again.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable

from airflow_provider_streams.errors import SparkUnavailable, StreamsError, TaskCancelled, error_class
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark.launch import cancellation

_ERROR_LINE = re.compile(
    r"^(?:\S*\.)?airflow_provider_streams\.errors\.(?P<name>\w+): (?P<message>.+?)\s*$", re.MULTILINE
)


def one_line(error: StreamsError) -> StreamsError:
    """The same error, its message free of line breaks."""
    return rebuild(type(error).__name__, " ".join(str(error).split()), foreseeable=error.foreseeable)


def rebuild(name: str, message: str, *, foreseeable: bool = False) -> StreamsError:
    """An error of this class with this message, without its facts, but with its `retryable`.

    Args:
        name: of the class.
        message: all of it.
        foreseeable: whether doctor can find the cause, though not those of all of its class.
    """
    cls = error_class(name)
    error = cls.__new__(cls)
    StreamsError.__init__(error, message)
    return error.mark_foreseeable() if foreseeable else error


def typed(error: BaseException, secrets: Iterable[str]) -> BaseException:
    """The typed error whose words are in `error`; else `error` itself, or a redacted error if it holds secrets."""
    hidden = list(secrets)
    if cancellation.is_ended():
        return TaskCancelled()  # Spark was cancelled or ended with the task: its errors are no cause
    if isinstance(error, StreamsError):
        safe = redact(str(error), hidden)
        if safe == str(error):
            return error
        return rebuild(type(error).__name__, safe, foreseeable=error.foreseeable)
    text = f"{type(error).__name__}: {error}"
    if spoken := list(_ERROR_LINE.finditer(text)):
        return rebuild(spoken[-1]["name"], redact(spoken[-1]["message"], hidden))
    if _is_lost_connection(error):
        return SparkUnavailable(
            "Spark's JVM", f"the connection to it broke ({type(error).__name__}): see its log above"
        )
    safe = redact(text, hidden)
    return error if safe == text else StreamsError(safe)


def _is_lost_connection(error: BaseException) -> bool:
    """Whether this process's JVM was killed or ran out of memory. Py4J then names no error of Java's."""
    if isinstance(error, ConnectionError):
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        return any(str(frame.f_globals.get("__name__")).startswith("py4j.") for frame in frames)
    name = type(error).__name__
    return name == "Py4JNetworkError" or (name == "Py4JError" and "Trace:" not in str(error))
