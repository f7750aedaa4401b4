"""How a typed error survives Spark, which hands on nothing but text.

An executor's exception reaches the driver as a Python traceback inside a `PythonException`, an `AnalysisException` or
a Java one. The traceback ends with `airflow_provider_streams.errors.<Class>: <message>`; when the message is one line,
that line is enough to raise the same class again.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable

from airflow_provider_streams.errors import StreamsError, SystemUnavailable, TaskEnded, error_class
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark import ending

_SPOKEN = re.compile(r"^(?:\S*\.)?airflow_provider_streams\.errors\.(?P<name>\w+): (?P<message>.+?)\s*$", re.MULTILINE)


def one_line(error: StreamsError) -> StreamsError:
    """The same error, its message free of line breaks."""
    return rebuild(type(error).__name__, " ".join(str(error).split()))


def rebuild(name: str, message: str) -> StreamsError:
    """An error of this class with this message; its facts stay behind, `retryable` does not."""
    cls = error_class(name)
    error = cls.__new__(cls)
    StreamsError.__init__(error, message)
    return error


def typed(error: BaseException, secrets: Iterable[str]) -> BaseException:
    """The typed error whose words are in `error`, else `error` itself if it holds no secret, else a redacted one."""
    hidden = list(secrets)
    if ending.is_ended():
        return TaskEnded()  # Spark was cancelled or ended with the task: what it says of that is no cause
    if isinstance(error, StreamsError):
        return (
            error
            if redact(str(error), hidden) == str(error)
            else rebuild(type(error).__name__, redact(str(error), hidden))
        )
    text = f"{type(error).__name__}: {error}"
    spoken = list(_SPOKEN.finditer(text))
    if spoken:
        last = spoken[-1]
        return rebuild(last["name"], redact(last["message"], hidden))
    if _is_lost_connection(error):
        return SystemUnavailable(
            "Spark's JVM", f"the connection to it broke ({type(error).__name__}): see its log above"
        )
    safe = redact(text, hidden)
    return error if safe == text else StreamsError(safe)


def _is_lost_connection(error: BaseException) -> bool:
    """Whether the JVM beside this process went away: killed, or out of memory. Py4J then names no failure of Java's."""
    if isinstance(error, ConnectionError):
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        return any(str(frame.f_globals.get("__name__")).startswith("py4j.") for frame in frames)
    name = type(error).__name__
    return name == "Py4JNetworkError" or (name == "Py4JError" and "Trace:" not in str(error))
