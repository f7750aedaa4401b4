"""One call from start to end without doing I/O: where to send, when to try again, whom to trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from airflow_provider_streams.errors import NotFollowed, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.backoff import Backoff, Pause
from airflow_provider_streams.systems.reach import Reach
from airflow_provider_streams.systems.rest.answer import Answer, reason
from airflow_provider_streams.systems.rest.failures import Dialect, failure, is_passing, meets
from airflow_provider_streams.systems.rest.request import Request
from airflow_provider_streams.systems.rules import Rule

T = TypeVar("T")

MAX_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class Send:
    """Send this now, and come back with its `Answer` or `Unreachable`. Its headers are secret."""

    method: str
    url: str
    params: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None
    headers_only: bool = False
    """Of an answer without a failure, leave out the body."""
    seconds: float | None = None
    """Wait no longer for the answer; None: as usual."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing came back."""

    detail: str
    sent: bool = True
    """The request may have arrived."""


Step = Send | Pause
Outcome = Answer | Unreachable | None


@dataclass(frozen=True, slots=True)
class Route:
    """The service we call, and where it may send us: to the same question at another host."""

    base: str
    """`http(s)://host:port`, perhaps with a path."""
    reach: Reach
    rewrite: bool = False
    """Follow a redirect on the base host (behind address translation)."""
    dialect: Dialect = field(default_factory=Dialect)

    @property
    def where(self) -> str:
        """The base without anything secret, for messages."""
        split = urlsplit(self.base)
        return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path, "", "")).rstrip("/")

    def url(self, path: str) -> str:
        """The address of a path below the base."""
        return f"{self.base.rstrip('/')}/{path}"

    def redirected(self, current: str, location: str, path: str, *, secret: bool) -> str:
        """Where a redirect leads.

        Args:
            current: what was asked.
            location: the answer.
            path: the request's, below the base.
            secret: whether the request shows who we are.

        Raises:
            NotFollowed: not to a host that may be asked this, or not with TLS any more.
            ProtocolError: to nowhere, or to another question.
        """
        try:
            target = urlsplit(urljoin(current, location))
            host = target.hostname or ""
        except ValueError:
            host = ""
        if not host or "@" in target.netloc:
            raise ProtocolError(f"{self.where} redirects to what is no address")
        if unquote(target.path) not in {unquote(urlsplit(current).path), f"/{unquote(path)}"}:
            raise ProtocolError(f"{self.where} redirects to another question than it was asked")
        base = urlsplit(self.base)
        if self.rewrite:
            return urlunsplit((base.scheme, base.netloc, urlsplit(self.url(path)).path, target.query, ""))
        self._check(target.scheme, host, secret=secret)
        return urlunsplit((target.scheme, target.netloc, target.path, target.query, ""))

    def _check(self, scheme: str, host: str, *, secret: bool) -> None:
        shown = f"{scheme}://{host}"
        if scheme not in {"http", "https"}:
            raise NotFollowed(self.where, shown, "which is no web address", _REWRITE)
        if urlsplit(self.base).scheme == "https" and scheme != "https":
            raise NotFollowed(self.where, shown, "over plain HTTP, although the connection asks for TLS", _REWRITE)
        if secret and not self.reach.names(host):
            raise NotFollowed(self.where, shown, "which may not see our credentials", f"{_ALLOW} {_REWRITE}")
        self.reach.check(self.where, host)


_ALLOW = "If the host is one of the cluster's, add it to allowed_hosts."
_REWRITE = "To stay on the given host, set rewrite_redirects=true."


def exchange(request: Request[T], route: Route, headers: Mapping[str, str], backoff: Backoff) -> Rule[Step, T]:
    """The rule of one call; its value is the call's result. `headers` are those that show who we are.

    Raises:
        AccessError: refused.
        SystemUnavailable: no answer, or only passing failures, in all attempts.
        ProtocolError: an answer that makes no sense.
    """
    for attempt in range(backoff.attempts):
        outcome = yield from _attempt(request, route, headers)
        final = attempt == backoff.attempts - 1
        if isinstance(outcome, Unreachable):
            if final or (outcome.sent and (not request.idempotent or request.seconds is not None)):
                raise SystemUnavailable(route.where, f"could not {request.action}: {outcome.detail}")
        elif outcome.status in _SUCCESS or meets(outcome.status, reason(outcome), request.told):
            return _parsed(request, outcome, route)
        elif meets(outcome.status, reason(outcome), request.absent):
            # a request with `absent` conditions has None among its results
            return cast("T", None)
        elif final or not request.idempotent or not is_passing(request, outcome, route.dialect):
            raise failure(request, outcome, route.where, route.dialect)
        yield Pause(backoff.seconds(attempt))
    raise AssertionError("the last attempt returns or raises")


def _attempt(request: Request[T], route: Route, headers: Mapping[str, str]) -> Rule[Step, Answer | Unreachable]:
    url, params = route.url(request.path), request.params
    secret = "Authorization" in headers
    for _ in range(MAX_HOPS + 1):
        outcome: Outcome = yield Send(
            request.method,
            url,
            params,
            _headers(request, headers),
            request.body,
            headers_only=request.headers_only,
            seconds=request.seconds,
        )
        assert outcome is not None  # noqa: S101 - the protocol between a generator and its driver
        if isinstance(outcome, Unreachable) or outcome.status not in _REDIRECTS:
            return outcome
        location = outcome.headers.get("location")
        if not location:
            raise ProtocolError(f"{route.where}: a redirect without a target, on the way to {request.action}")
        # the target carries the whole query
        url, params = route.redirected(url, location, request.path, secret=secret), {}
    raise ProtocolError(f"{route.where}: more than {MAX_HOPS} redirects on the way to {request.action}")


def _headers(request: Request[T], headers: Mapping[str, str]) -> dict[str, str]:
    content = {"Content-Type": "application/json"} if request.body is not None else {}
    return {"Accept": "application/json, */*;q=0.5", **content, **headers}


def _parsed(request: Request[T], answer: Answer, route: Route) -> T:
    try:
        return request.parse(answer)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ProtocolError(
            f"{route.where}: the answer to '{request.action}' is not understood: {type(error).__name__}: {error}"
        ) from error
