"""Refusals: an HTTP answer that is no success becomes one of our errors, in clean words."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.systems.rest.answer import Answer, reason
from airflow_provider_streams.systems.rest.request import AnyRequest, Refusal

_PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a service's refusals mean, beside their status."""

    passing: tuple[Refusal, ...] = ()
    """They may pass."""
    lasting: tuple[Refusal, ...] = ()
    """They do not, although their status says so."""
    not_granted: tuple[str, ...] = ()
    """With 401, in the reason: we are known, but may not do this."""


def meets(status: int, why: str, conditions: tuple[Refusal, ...]) -> bool:
    """Whether a refusal is one of these."""
    return any(status == wanted and part in why.lower() for wanted, part in conditions)


def is_passing(request: AnyRequest, answer: Answer, dialect: Dialect) -> bool:
    """Whether the same call may succeed a moment later."""
    why = reason(answer)
    if meets(answer.status, why, dialect.lasting):
        return False
    return answer.status in _PASSING_STATUSES or meets(answer.status, why, dialect.passing + request.passing)


def failure(request: AnyRequest, answer: Answer, where: str, dialect: Dialect) -> StreamsError:
    """The error of a refusal."""
    why = reason(answer)
    is_known = any(words in why.lower() for words in dialect.not_granted)
    if answer.status == 401 and not is_known:  # noqa: PLR2004
        return AuthenticationFailed(where, why)
    if answer.status in {401, 403}:
        return NotAuthorized(where, request.action, why)
    if answer.status == 404 and request.subject and not _is_page(answer):  # noqa: PLR2004
        return SourceNotFound(request.subject, where)
    if is_passing(request, answer, dialect):
        return SystemUnavailable(where, f"could not {request.action}: HTTP {answer.status}{_colon(why)}")
    return ProtocolError(f"{where}: could not {request.action}: HTTP {answer.status}{_colon(why)}")


def _is_page(answer: Answer) -> bool:
    return "html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<"


def _colon(why: str) -> str:
    return f": {why}" if why else ""
