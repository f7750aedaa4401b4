"""How requests reach a REST catalog: each answer ends, none leads secrets elsewhere, and errors show none."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import BaseAdapter

from airflow_provider_streams.errors import RedirectRefused, SinkError
from airflow_provider_streams.lake.iceberg.catalogs import timeouts
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import CORRECT, NO_ADDRESS, is_address
from airflow_provider_streams.redaction import redact, remember


def bounded(session: Session) -> Session:
    """The session, whose requests and answers end and show no secret."""
    session.trust_env = False  # requests would send the machine's netrc login; see `_Bounded` for the rest of it
    for prefix, adapter in [*session.adapters.items()]:
        if not isinstance(adapter, _Bounded):
            session.mount(prefix, _Bounded(adapter))
    session.hooks["response"] = [_keep_to_host]
    return session


def _keep_to_host(response: Response, *_: object, **_named: object) -> None:
    """Follow no redirect out of TLS or to another host: it would send the same headers and the same body.

    Raises:
        RedirectRefused: the catalog asks for that.
    """
    if not response.is_redirect:
        return
    here, there = response.url, _led_to(response)
    if not is_address(there, needs_scheme=True):
        response.close()
        raise RedirectRefused(_host_of(here), NO_ADDRESS, "clients would see different hosts in it", CORRECT)
    if urlsplit(here).scheme == "https" and urlsplit(there).scheme != "https":
        response.close()
        fix = "The catalog must lead to https://; with a proxy in front of it, correct the catalog's own address."
        raise RedirectRefused(_host_of(here), _host_of(there), "without TLS, although the connection uses TLS", fix)
    if urlsplit(here).hostname != urlsplit(there).hostname:
        response.close()
        fix = "If that is right, give that address: the connection's host, or its extra oauth2-server-uri."
        raise RedirectRefused(_host_of(here), _host_of(there), "another host, which would get our secrets", fix)


def _led_to(response: Response) -> str:
    try:
        return urljoin(response.url, response.headers.get("Location", ""))
    except ValueError:
        return ""


def _host_of(url: str) -> str:
    """An address as errors show it."""
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc.rpartition('@')[2]}"


class _Bounded(BaseAdapter):
    """Has a timeout, and keeps the secrets of requests and answers out of errors.

    Of the environment, it takes proxies and certificate authorities, as requests does.
    """

    def __init__(self, adapter: BaseAdapter) -> None:
        super().__init__()
        self._adapter = adapter
        self._pages = _Pages()

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """See `BaseAdapter`.

        Raises:
            SinkError: a list of the catalog leads round in a circle.
        """
        self._pages.check(request)
        if named.get("timeout") is None:
            named["timeout"] = timeouts.ANSWER_SECONDS
        _, _, sent = str(request.headers.get("Authorization") or "").partition(" ")
        if sent != str(None):  # what pyiceberg sends without a token
            remember(sent)
        known = [named.get(name) for name in ("stream", "verify", "cert")]
        named |= _ENVIRONMENT.merge_environment_settings(str(request.url), {**(named.get("proxies") or {})}, *known)
        response = self._adapter.send(request, *arguments, **named)
        change: Callable[[str], str] | None = None
        if response.status_code >= HTTPStatus.BAD_REQUEST:  # pyiceberg's errors quote it
            change = redact
        elif request.headers.get("Content-type") == _FORM:  # it asks for a token
            change = _with_tokens_remembered
        elif urlsplit(str(request.url)).path.endswith("/v1/config"):
            change = _without_nulls
        response.raw = _BoundedBody(response.raw, change)
        return response

    def close(self) -> None:
        """See `BaseAdapter`."""
        self._adapter.close()


class _BoundedBody:
    """The body of an answer as requests reads it: it ends in time, has a largest size, and may be changed as a text."""

    def __init__(self, raw: Any, change: Callable[[str], str] | None) -> None:
        self._raw, self._change = raw, change
        self._end = monotonic() + timeouts.BODY_SECONDS

    def stream(self, amount: int, decode_content: bool | None = None) -> Iterator[bytes]:  # noqa: FBT001 - urllib3's
        """Its parts, as urllib3 gives them.

        Raises:
            RequestException: it does not end, or is too large.
        """
        parts = self._parts(max(amount, _PART_BYTES), decode_content)
        if self._change is None:
            yield from parts
        else:
            yield self._change(b"".join(parts).decode(errors="replace")).encode()

    def _parts(self, amount: int, decode_content: Any) -> Iterator[bytes]:
        size = 0
        # urllib3 before 2.2 has only the method that waits for as many bytes as it is asked for
        read = getattr(self._raw, "read1", self._raw.read)
        while part := read(amount, decode_content=decode_content):
            size += len(part)
            if size > timeouts.MOST_BYTES:
                raise self._ended(f"is larger than {timeouts.MOST_BYTES:,} bytes")
            if monotonic() > self._end:
                raise self._ended(f"did not end in {timeouts.BODY_SECONDS:.0f} seconds")
            yield part

    def _ended(self, why: str) -> RequestException:
        self._raw.close()
        return RequestException(f"the answer of the catalog {why}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class _Pages:
    """The pages of the list that a thread reads."""

    def __init__(self) -> None:
        self._of = threading.local()

    def check(self, request: PreparedRequest) -> None:
        """Raise `SinkError` if a page comes once more."""
        url = urlsplit(str(request.url))
        (token,) = parse_qs(url.query).get("pageToken", [""])[:1]
        if request.method != "GET":
            return
        seen = self._of.seen = getattr(self._of, "seen", set()) if token else set()
        if token and (url.path, token) in seen:
            raise SinkError(
                _host_of(str(request.url)),
                "a list of the catalog never ends, for its next-page-token is one that it gave before: correct the "
                "catalog, or ask it for larger pages (rest-page-size in the connection)",
            )
        seen.add((url.path, token))


_ENVIRONMENT = Session()
"""Reads what the environment says of proxies and certificate authorities, and sends nothing."""
_PART_BYTES = 64 * 1024
_FORM = "application/x-www-form-urlencoded"
_TOKEN = re.compile(r'"\w*token"\s*:\s*"([^"]+)"')
"""A token in an answer, also in one that is no JSON."""


def _with_tokens_remembered(text: str) -> str:
    for token in _TOKEN.findall(text):
        remember(token)
    return text


def _without_nulls(text: str) -> str:
    """A catalog's configuration in which null means nothing, as it does in Iceberg for Java; pyiceberg fails at it."""
    try:
        told = json.loads(text)
    except ValueError:
        return text
    return json.dumps({name: one for name, one in told.items() if one is not None}) if isinstance(told, dict) else text
