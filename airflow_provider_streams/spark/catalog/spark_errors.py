"""What Spark's errors about a table in a catalog mean. They are Java's, and have only names and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from airflow_provider_streams.errors import CommitStateUnknown, SinkError, StreamsError, TableUnavailable
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.spark.settings.configured_classes import ADD_JAR
from airflow_provider_streams.spark.settings.configured_files import missing_files

_PASSING: Final = re.compile(
    r"Timeout|timed out|Connection(?: is)? (?:refused|reset|closed)|ConnectException|SocketException|UnknownHost|"
    r"NoHttpResponse|ServiceUnavailable|ServiceFailure|SlowDown|TooManyRequests|InternalServerError|"
    r"Service: \w+, Status Code: 5\d\d|OperationalError|ExecutorLost|BlockMissing"
)
"""Catalog or store did not answer, or failed."""
_UNCHANGED: Final = re.compile(
    r"CommitFailedException|Concurrent\w+Exception|CommitConflict|MetadataChangedException|Checkpoint block"
)
"""Other commits came first, more often than the table's format retries; or rows were lost before they were written."""
_REFUSED: Final = re.compile(
    r"NotAuthorized|Forbidden|AccessDenied|AccessControlException|InvalidAccessKeyId|ExpiredToken|"
    r"Status Code: 40[13]|ValidationException|UnsupportedOperationException|CANNOT_|not support"
)
"""Another try would fail again, and nothing was written."""
_OTHER_SPARK: Final = re.compile(r"IncompatibleClassChangeError|NoSuchMethodError|NoClassDefFoundError|RelationCatalog")
"""A catalog's jar was built for another Spark."""
_NO_CLASS: Final = re.compile(
    r"(?:ClassNotFoundException:|Cannot find catalog plugin class for catalog '\w+':) ([\w.$]+)"
)
"""The jar of a catalog or of its store is missing."""
_STACK: Final = re.compile(r"at |\.\.\. \d+ more|JVM stack")
_LONGEST_WORDS: Final = 600


@contextmanager
def errors_of(sink: TableSink) -> Iterator[None]:
    """Raise errors as `TableUnavailable` if they may pass, else as `SinkError`. No window is replaced inside."""
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        passes = _PASSING.search(text) or _UNCHANGED.search(text)
        if lacking := _NO_CLASS.search(text):
            raise SinkError(str(sink), _without_class(lacking[1])) from error
        hint = ". Its catalog's jar is made for another Spark than this" if _OTHER_SPARK.search(text) else ""
        raise (TableUnavailable if passes else SinkError)(str(sink), words_of(error) + hint) from error


def _without_class(name: str) -> str:
    """What is wrong if Spark has no class of this name, and which jars of its settings are missing."""
    spark = SparkSession.getActiveSession()
    gone = [] if spark is None else [file for _, file in missing_files(lambda one: spark.conf.get(one, None))]
    files = f" There is no {' and no '.join(gone)} here, which its settings name." if gone else ""
    return f"Spark has no class {name}, which its settings or the table's name.{files} {ADD_JAR}"


@contextmanager
def commit_errors_of(sink: TableSink) -> Iterator[None]:
    """Turn errors while a window is replaced into ours.

    Raises:
        TableUnavailable, SinkError: nothing was changed.
        CommitStateUnknown: the commit may have come through.
    """
    try:
        yield
    except AnalysisException as error:
        raise SinkError(str(sink), words_of(error)) from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        is_unknown = "CommitStateUnknown" in text
        if not is_unknown and _UNCHANGED.search(text):
            raise TableUnavailable(str(sink), f"nothing was changed: {words_of(error)}") from error
        if not is_unknown and _REFUSED.search(text):
            raise SinkError(str(sink), f"the window cannot be replaced: {words_of(error)}") from error
        raise CommitStateUnknown(str(sink), words_of(error)) from error


def words_of(error: BaseException) -> str:
    """An error's name and words, without Java's stack traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not _STACK.match(line)]
    causes = [line for line in said if line.startswith("Caused by")]
    return f"{type(error).__name__}: {' '.join([*said[:2], *causes[-1:]])[:_LONGEST_WORDS]}"
