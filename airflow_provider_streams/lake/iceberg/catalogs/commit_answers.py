"""What a REST catalog's answer to a commit means, by its HTTP status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

from requests import HTTPError

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import words_of
from airflow_provider_streams.model.sinks.sink import IcebergSink


class _Refusal(NamedTuple):
    """The commit is not made."""

    is_passing: bool = False
    """Whether the next try may be taken."""
    help: str = ""
    """What to do, where the catalog's own words may not say it."""


_LOGIN: Final = _Refusal(help=": see that the connection's token or credential is right and has not expired")
_LATER: Final = _Refusal(is_passing=True)
_OTHER: Final = _Refusal()
_UNKNOWN: Final = None

_MEANINGS: Final = {
    401: _LOGIN,  # pyiceberg has renewed the token and tried again
    403: _Refusal(help=": let the connection's user change the table, not only read it and write its files"),
    404: _Refusal(help=": the table was dropped or renamed meanwhile, or the connection's user no longer sees it"),
    408: _UNKNOWN,  # some gateways say so of a catalog that takes long
    419: _LOGIN,
    425: _LATER,
    429: _LATER,
    499: _UNKNOWN,  # as 408
}
"""The other 4xx are refusals as well. 409 is a conflict, pyiceberg's `CommitFailedException`.

After 5xx, a connection that broke, or an answer that cannot be read, the commit may have been made.
"""


def refusal_of(sink: IcebergSink, error: BaseException) -> SinkError | None:
    """The error to raise if a catalog refused a commit, which changed nothing; None: the commit may have been made.

    Args:
        sink: of the table.
        error: what pyiceberg made of the answer.
    """
    answer = error.__cause__.response if isinstance(error.__cause__, HTTPError) else None
    if answer is None or not HTTPStatus.BAD_REQUEST <= answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    meaning = _MEANINGS.get(answer.status_code, _OTHER)
    if meaning is _UNKNOWN:
        return None
    kind = TableUnavailable if meaning.is_passing else SinkError
    return kind(str(sink), f"the catalog refused the commit, and nothing was changed: {words_of(error)}{meaning.help}")
