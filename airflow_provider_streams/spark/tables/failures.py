"""What Spark's errors mean of a table in a catalog: they are Java's, and have nothing but names and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException

from airflow_provider_streams.errors import CommitUnknown, SinkError, StreamsError, TableUnavailable
from airflow_provider_streams.model.table_sink import TableSink

_PASSING: Final = re.compile(
    r"Timeout|timed out|Connection(?: is)? (?:refused|reset|closed)|ConnectException|SocketException|UnknownHost|"
    r"NoHttpResponse|ServiceUnavailable|ServiceFailure|SlowDown|TooManyRequests|InternalServerError|"
    r"Service: \w+, Status Code: 5\d\d|OperationalError|ExecutorLost|BlockMissing"
)
"""Where nobody answered, or a server failed."""
_UNCHANGED: Final = re.compile(
    r"CommitFailedException|Concurrent\w+Exception|CommitConflict|MetadataChangedException|Checkpoint block"
)
"""Others came first, more often than the table's format tries by itself; or rows were lost before they were written."""
_REFUSED: Final = re.compile(
    r"NotAuthorized|Forbidden|AccessDenied|AccessControlException|InvalidAccessKeyId|ExpiredToken|"
    r"Status Code: 40[13]|ValidationException|UnsupportedOperationException|CANNOT_|not support"
)
"""Where another try ends alike, and nothing was written."""
_OTHER_SPARK: Final = re.compile(r"IncompatibleClassChangeError|NoSuchMethodError|NoClassDefFoundError|RelationCatalog")
"""Where a catalog's jar was built for another Spark."""
_STACK: Final = re.compile(r"at |\.\.\. \d+ more|JVM stack")
_LONGEST_WORDS: Final = 600


@contextmanager
def errors_of(sink: TableSink) -> Iterator[None]:
    """What goes wrong inside is the table's; no window is replaced there.

    Raises:
        TableUnavailable: catalog or store do not answer, or other commits were first.
        SinkError: anything else.
    """
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        passes = _PASSING.search(text) or _UNCHANGED.search(text)
        hint = ". Its catalog's jar is made for another Spark than this" if _OTHER_SPARK.search(text) else ""
        raise (TableUnavailable if passes else SinkError)(str(sink), words_of(error) + hint) from error


@contextmanager
def commit_errors_of(sink: TableSink) -> Iterator[None]:
    """What goes wrong while a window is replaced.

    Raises:
        TableUnavailable: other commits were first, or rows were lost: nothing was changed.
        SinkError: it was refused: nothing was changed.
        CommitUnknown: anything else: nobody knows how far it came.
    """
    try:
        yield
    except AnalysisException as error:
        raise SinkError(str(sink), words_of(error)) from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if "CommitStateUnknown" in text:
            raise CommitUnknown(str(sink), words_of(error)) from error
        if _UNCHANGED.search(text):
            raise TableUnavailable(str(sink), f"nothing was changed: {words_of(error)}") from error
        if _REFUSED.search(text):
            raise SinkError(str(sink), f"the window cannot be replaced: {words_of(error)}") from error
        raise CommitUnknown(str(sink), words_of(error)) from error


def words_of(error: BaseException) -> str:
    """What it says, without Java's stack traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not _STACK.match(line)]
    causes = [line for line in said if line.startswith("Caused by")]
    return f"{type(error).__name__}: {' '.join([*said[:2], *causes[-1:]])[:_LONGEST_WORDS]}"
