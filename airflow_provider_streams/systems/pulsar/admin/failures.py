"""Refusals: an HTTP answer that is no success becomes one of our errors, in clean words."""

from __future__ import annotations

import html
import json
import re

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.pulsar.admin.answers import Answer
from airflow_provider_streams.systems.pulsar.admin.requests import AnyRequest, Refusal

_LONGEST = 300
_PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})
_PASSING: tuple[Refusal, ...] = ((412, "find owner"), (412, "owner broker"), (404, "no owner"))
# a question about an entry that is not there: asking again does not bring it
_LASTING: tuple[Refusal, ...] = ((500, "lastconfirmedentry"),)
_NOT_GRANTED = "unauthorized to"


def reason(answer: Answer) -> str:
    """Why, in one line: the JSON reason or an HTML page's text, without stack traces."""
    text = answer.text()
    try:
        data = json.loads(text)
    except ValueError:
        return _clean(re.sub(r"<(style|script|head)\b.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL | re.IGNORECASE))
    return _clean(str(data.get("reason", "")) if isinstance(data, dict) else "")


def _clean(text: str) -> str:
    text = html.unescape(text).partition("Stacktrace:")[0]
    text = re.sub(r"---.*?---\s*Message:", "", text, flags=re.DOTALL)
    # Jetty's error pages repeat the request's own address, and the servlet
    text = re.sub(r"\b(URI|SERVLET|CAUSED BY):.*", "", text, flags=re.DOTALL)
    # before it is cut: half a token is none that anybody would find later
    text = redact(" ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."


def meets(status: int, why: str, conditions: tuple[Refusal, ...]) -> bool:
    """Whether a refusal is one of these."""
    return any(status == wanted and part in why.lower() for wanted, part in conditions)


def is_passing(request: AnyRequest, answer: Answer) -> bool:
    """Whether the same call may succeed a moment later."""
    why = reason(answer)
    if meets(answer.status, why, _LASTING):
        return False
    return answer.status in _PASSING_STATUSES or meets(answer.status, why, _PASSING + request.passing)


def failure(request: AnyRequest, answer: Answer, where: str) -> StreamsError:
    """The error of a refusal.

    A broker uses 401 twice: as an HTML page for an unknown or expired token, and with a JSON reason for a known
    user without the permission.
    """
    why = reason(answer)
    if answer.status == 401 and _NOT_GRANTED not in why.lower():  # noqa: PLR2004
        return AuthenticationFailed(where, why)
    if answer.status in {401, 403}:
        return NotAuthorized(where, request.action, why)
    if answer.status == 404 and request.subject and not _is_page(answer):  # noqa: PLR2004
        return SourceNotFound(request.subject, where)
    if is_passing(request, answer):
        return SystemUnavailable(where, f"could not {request.action}: HTTP {answer.status}{_colon(why)}")
    return ProtocolError(f"{where}: could not {request.action}: HTTP {answer.status}{_colon(why)}")


def _is_page(answer: Answer) -> bool:
    return "html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<"


def _colon(why: str) -> str:
    return f": {why}" if why else ""
