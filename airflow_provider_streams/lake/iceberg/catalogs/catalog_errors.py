"""What errors of pyiceberg and of catalogs' clients mean, and what helps."""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

from pydantic import ValidationError
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)

from airflow_provider_streams.errors import SinkError, StreamsError, TableUnavailable, as_clause
from airflow_provider_streams.errors.databases import Meaning, meaning_of
from airflow_provider_streams.lake.storage_errors import failure_of, plain
from airflow_provider_streams.model.sinks.sink import IcebergSink

_PASSING_ANSWERS = (ServerError, ServiceUnavailableError, CommitStateUnknownException, TooManyRequestsError)
"""Of REST catalogs, as pyiceberg names them."""
_PASSING = {
    "sqlalchemy": ("OperationalError", "InterfaceError", "TimeoutError"),
    "thrift": ("TTransportException",),
    "botocore": ("ConnectionError", "HTTPClientError"),
}
"""Errors of catalogs' clients after which waiting may help."""
_THROTTLED = re.compile(r"Throttl|OperationTimeout|RequestLimitExceeded|ResourceNotReady|RetryableException")
_HELP = (
    (
        re.compile("NoCredentials|PartialCredentials"),
        "give glue.access-key-id and glue.secret-access-key (DynamoDB: dynamodb.*) in the extra, or the machine a role",
    ),
    (
        re.compile("ProfileNotFound"),
        "give keys, or correct the environment variable AWS_PROFILE or the extra glue.profile-name (dynamodb.*)",
    ),
    (re.compile("NoRegion"), "give glue.region (DynamoDB: dynamodb.region) in the connection's extra field"),
    (
        re.compile("AccessDenied|UnrecognizedClient|InvalidSignature|InvalidClientTokenId|ExpiredToken"),
        "see that the keys are right, have not expired, and may read, create and update databases and tables there",
    ),
)
_OTHER = ("SSLError", "ProxyError")
"""Kinds of `requests.ConnectionError` whose own words say more."""
_REASON = re.compile(r"\[Errno -?\d+\] ([^)\"']+)")
"""What the operating system says, in the words of urllib3."""
_MOST_FAULTS = 3
_REST = "pyiceberg.catalog.rest"
_WRONG_PROPERTIES = re.compile("Could not parse table property|Unsupported metrics mode")
"""What pyiceberg says of values in a table's properties."""


@contextmanager
def errors_of(sink: IcebergSink, *, uses_vended_credentials: bool = False) -> Iterator[None]:
    """Raise errors as `TableUnavailable` if catalog or store may work again, else as `SinkError`.

    `uses_vended_credentials`: whether the catalog vended the credentials for the files.
    """
    try:
        yield
    except StreamsError:
        raise
    except OSError as error:
        words = _unanswered(error) or words_of(error)
        raise failure_of(str(sink), words, error, uses_vended_credentials=uses_vended_credentials) from error
    except Exception as error:
        kind = TableUnavailable if _is_passing(error) else SinkError
        words = _misread(error) if isinstance(error, ValidationError) else words_of(error)
        raise kind(str(sink), words + _help_for(error)) from error


def _unanswered(error: OSError) -> str:
    """A REST catalog that was not reached, as a sentence: which, why, and what to check; empty: it is something else.

    The client's own words are of its pool of connections, and name the address only in parts.
    """
    if not _is_one_of(error, "requests", ("ConnectionError", "Timeout")) or _is_one_of(error, "requests", _OTHER):
        return ""
    url = urlsplit(str(getattr(getattr(error, "request", None), "url", None) or ""))
    reason = str(getattr(next(iter(error.args), None), "reason", None) or error)
    known = _REASON.search(reason)
    why = known[1] if known else as_clause(plain(reason.rpartition(": ")[2]))
    where = f" at {url.scheme}://{url.netloc.rpartition('@')[2]}" if url.netloc else ""
    return (
        f"the catalog{where} does not answer: {why}. Check host, port and TLS of the sink's connection, that the "
        "catalog runs, and firewalls in between"
    )


def _misread(error: ValidationError) -> str:
    """An answer or a file that pyiceberg cannot read, as a sentence: pydantic's own words quote it."""
    found = [
        ": ".join([*filter(None, [".".join(map(str, one["loc"]))]), as_clause(plain(one["msg"]))])
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    faults = "; ".join(found[:_MOST_FAULTS])
    if _REST in _modules_of(error):
        return (
            f"an answer is not as Iceberg's REST protocol has it ({faults}): see that the connection's address is the "
            "catalog's, and that no proxy and no login page answers in its place"
        )
    return (
        f"what the catalog or a metadata file says is not as pyiceberg reads Iceberg's format ({faults}): see which "
        "program wrote the table, and whether a newer pyiceberg reads it"
    )


def _is_passing(error: Exception) -> bool:
    """Whether the same call may succeed later: the server failed, or has too much to do."""
    if isinstance(error, _PASSING_ANSWERS):
        return True
    if _is_one_of(error, "botocore", ("ClientError",)):
        status = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return int(status) >= HTTPStatus.INTERNAL_SERVER_ERROR or bool(_THROTTLED.search(str(error)))
    if meaning := _meaning_of(error):
        return meaning.passes
    return any(_is_one_of(error, package, names) for package, names in _PASSING.items())


def _meaning_of(error: Exception) -> Meaning | None:
    """What an error of a catalog in a SQL database means, if that is known."""
    driver_error = getattr(error, "orig", None)  # SQLAlchemy's errors have it
    return meaning_of(driver_error) if isinstance(driver_error, Exception) else None


def _help_for(error: Exception) -> str:
    """What to do about an error whose text does not say where to correct it."""
    if meaning := _meaning_of(error):
        return f": {meaning.advice}"
    if _WRONG_PROPERTIES.search(str(error)):
        return ": correct the properties of the table (commit.manifest.*, write.metadata.metrics.*)"
    if isinstance(error, KeyError) and _modules_of(error)[-1:] == ["pyiceberg.catalog.glue"]:
        return ": Glue's answer lacks it: see that its address (glue.endpoint, AWS_ENDPOINT_URL) is one of Glue"
    if not type(error).__module__.startswith("botocore."):
        return ""
    return next((f": {text}" for known, text in _HELP if known.search(words_of(error))), "")


def _modules_of(error: Exception) -> list[str]:
    """The names of the modules that an error went through; the last one raised it."""
    return [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]


def _is_one_of(error: Exception, package: str, names: Collection[str]) -> bool:
    """Compares names, for the client may not be installed."""
    return any(one.__module__.startswith(f"{package}.") and one.__name__ in names for one in type(error).__mro__)


def words_of(error: BaseException) -> str:
    """An error as one line."""
    return f"{type(error).__name__}: {plain(str(error))}"
