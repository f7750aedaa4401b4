"""REST catalogs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit

from pyiceberg.catalog import URI
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter

from airflow_provider_streams.errors import RedirectRefused
from airflow_provider_streams.lake.iceberg.catalogs import timeouts
from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import accepted, forget_code
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import CORRECT, NO_ADDRESS, check_answer, is_address
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO
from airflow_provider_streams.redaction import redact, remember

_TOKENS_AT = "oauth2-server-uri"


class BoundedRestCatalog(SharedSnapshots, VendedCredentialsFileIO, RestCatalog):
    """Has a timeout, and leads no secret out of TLS. pyiceberg's own waits for ever, and has no setting for it.

    What the user wrote of the catalog decides on authentication alone: neither its answers nor a netrc file do.
    """

    def __init__(self, name: str, **properties: str) -> None:
        if "credential" in properties:  # pyiceberg's default, which it would warn about
            properties.setdefault(_TOKENS_AT, f"{properties[URI].rstrip('/')}/v1/oauth/tokens")
        self._written = properties
        super().__init__(name, **properties)

    @property
    def written(self) -> Mapping[str, Any]:
        """See `VendedCredentialsFileIO`."""
        return self._written

    def _fetch_config(self) -> None:
        """Take of the catalog's configuration what an answer may set.

        Raises:
            RedirectRefused: it leads secrets out of TLS, or to another host.
            SinkError: one of its properties cannot be used.
        """
        super()._fetch_config()
        answered = {name: value for name, value in self.properties.items() if value != self._written.get(name)}
        self.properties = {**self._written, **accepted(f"catalog {self.name!r}", answered)}
        check_answer(self._written, self.properties)
        self.uri = self.properties[URI]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """See `Catalog`. Another writer's code is not among the properties that the answer gives."""
        response: CommitTableResponse = super().commit_table(table, requirements, updates)
        forget_code(response.metadata.properties)
        return response

    def _create_session(self) -> Session:
        return _bounded(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        return super()._create_legacy_oauth2_auth_manager(_bounded(session))  # it sends the client's secret at once


def _bounded(session: Session) -> Session:
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

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """See `BaseAdapter`."""
        if named.get("timeout") is None:
            named["timeout"] = timeouts.ANSWER_SECONDS
        _, _, sent = str(request.headers.get("Authorization") or "").partition(" ")
        if sent != str(None):  # what pyiceberg sends without a token
            remember(sent)
        known = [named.get(name) for name in ("stream", "verify", "cert")]
        named |= _ENVIRONMENT.merge_environment_settings(str(request.url), {**(named.get("proxies") or {})}, *known)
        response = self._adapter.send(request, *arguments, **named)
        if response.status_code >= HTTPStatus.BAD_REQUEST:  # pyiceberg's errors quote it
            response.raw = _read(response, redact)
        elif request.headers.get("Content-type") == _FORM:  # it asks for a token
            response.raw = _read(response, _with_tokens_remembered)
        return response

    def close(self) -> None:
        """See `BaseAdapter`."""
        self._adapter.close()


_ENVIRONMENT = Session()
"""Reads what the environment says of proxies and certificate authorities, and sends nothing."""
_FORM = "application/x-www-form-urlencoded"
_TOKEN = re.compile(r'"\w*token"\s*:\s*"([^"]+)"')
"""A token in an answer, also in one that is no JSON."""


def _read(response: Response, change: Callable[[str], str]) -> io.BytesIO:
    """The body of an answer, read and changed."""
    return io.BytesIO(change(response.raw.read(decode_content=True).decode(errors="replace")).encode())


def _with_tokens_remembered(text: str) -> str:
    for token in _TOKEN.findall(text):
        remember(token)
    return text
