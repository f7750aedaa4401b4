"""One call from start to end without doing I/O: where to send, when to try again, whom to trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    NotAuthorized,
    ProtocolError,
    RedirectRefused,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.systems.connection.backoff import Backoff, Pause
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.rest.request import AnyRequest, Refusal, Request
from airflow_provider_streams.systems.rest.response import Answer, reason

T = TypeVar("T")

MAX_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SUCCESS = range(200, 300)
_PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Send:
    """Send this now, and come back with its `Answer` or `Unreachable`. Its headers are secret."""

    method: str
    url: str
    params: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None
    headers_only: bool = False
    """Skip the body of an answer that is no failure."""
    seconds: float | None = None
    """Wait no longer for the answer; None: as the endpoint says."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing came back."""

    detail: str
    sent: bool = True
    """The request may have arrived."""


Step = Send | Pause
Outcome = Answer | Unreachable | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a service's refusals mean, in addition to their status."""

    passing: tuple[Refusal, ...] = ()
    """They may pass."""
    lasting: tuple[Refusal, ...] = ()
    """They do not pass, although their status says so."""
    not_granted: tuple[str, ...] = ()
    """With 401, in the reason: we are known, but may not do this."""


@dataclass(frozen=True, slots=True)
class Route:
    """The service we call, and where it may redirect us: to the same path at another host."""

    base: str
    """`http(s)://host:port`, perhaps with a path."""
    reach: RedirectPolicy
    rewrite: bool = False
    """Follow redirects on the base host, for clusters whose addresses are translated."""
    dialect: Dialect = field(default_factory=Dialect)
    allow: str = "If the host is one of the cluster's, add it to allowed_hosts."
    """What the user can do to let us follow a redirect to another host; empty: nothing."""
    stay: str = "If addresses are translated, and the given host leads to every server, set rewrite_redirects=true."
    """What the user can do otherwise."""

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
            RedirectRefused: the host may not be asked this, or the redirect drops TLS.
            ProtocolError: it is no address, or leads to another path.
        """
        try:
            target = urlsplit(urljoin(current, location))
            host, port = target.hostname or "", target.port
        except ValueError:
            host = ""
        if not host or "@" in target.netloc:
            raise ProtocolError(f"{self.where} redirects to something that is no address")
        if unquote(target.path) not in {unquote(urlsplit(current).path), f"/{unquote(path)}"}:
            raise ProtocolError(f"{self.where} redirects to another path than it was asked for")
        base = urlsplit(self.base)
        if self.rewrite:
            return urlunsplit((base.scheme, base.netloc, urlsplit(self.url(path)).path, target.query, ""))
        self._check(target.scheme, host, port, secret=secret)
        return urlunsplit((target.scheme, target.netloc, target.path, target.query, ""))

    def _check(self, scheme: str, host: str, port: int | None, *, secret: bool) -> None:
        written = f"[{host}]" if ":" in host else host
        shown = f"{scheme}://{written}" if port is None else f"{scheme}://{written}:{port}"
        if scheme not in {"http", "https"}:
            raise RedirectRefused(self.where, shown, "which is no web address", self.stay)
        if urlsplit(self.base).scheme == "https" and scheme != "https":
            raise RedirectRefused(self.where, shown, "over plain HTTP, although the connection asks for TLS", self.stay)
        if secret and not self.reach.names(host):
            raise RedirectRefused(
                self.where, shown, "which may not see our credentials", f"{self.allow} {self.stay}".strip()
            )
        self.reach.check(self.where, host, self.allow or self.stay, shown=shown)


def exchange(request: Request[T], route: Route, headers: Mapping[str, str], backoff: Backoff) -> Rule[Step, T]:
    """The rule of one call; its value is the call's result, and `headers` hold our credentials.

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
        elif outcome.status in _SUCCESS or _meets(outcome.status, reason(outcome), request.told):
            return _parsed(request, outcome, route)
        elif _meets(outcome.status, reason(outcome), request.absent):
            # the result of a request with `absent` conditions may be None
            return cast("T", None)
        elif final or not request.idempotent or not _is_passing(request, outcome, route.dialect):
            raise _failure(request, outcome, route.where, route.dialect)
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
    advice = (
        ". With rewrite_redirects, each one led to the given host again, which does not know the right server. Unset "
        "it, or give a host that does"
    )
    raise ProtocolError(
        f"{route.where}: more than {MAX_HOPS} redirects on the way to {request.action}{advice if route.rewrite else ''}"
    )


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


def _meets(status: int, why: str, conditions: tuple[Refusal, ...]) -> bool:
    """Whether a refusal is one of these."""
    return any(status == wanted and part in why.lower() for wanted, part in conditions)


def _is_passing(request: AnyRequest, answer: Answer, dialect: Dialect) -> bool:
    """Whether the same call may succeed a moment later."""
    why = reason(answer)
    if _meets(answer.status, why, dialect.lasting):
        return False
    return answer.status in _PASSING_STATUSES or _meets(answer.status, why, dialect.passing + request.passing)


def _failure(request: AnyRequest, answer: Answer, where: str, dialect: Dialect) -> StreamsError:
    """The error of a refusal."""
    why = reason(answer)
    is_known = any(words in why.lower() for words in dialect.not_granted)
    if answer.status == 401 and not is_known:  # noqa: PLR2004
        return AuthenticationFailed(where, why)
    if answer.status in {401, 403}:
        return NotAuthorized(where, request.action, why)
    if answer.status == 404 and request.subject and not _is_page(answer):  # noqa: PLR2004
        return SourceNotFound(request.subject, where)
    if _is_passing(request, answer, dialect):
        return SystemUnavailable(where, f"could not {request.action}: HTTP {answer.status}{_colon(why)}")
    return ProtocolError(f"{where}: could not {request.action}: HTTP {answer.status}{_colon(why)}")


def _is_page(answer: Answer) -> bool:
    return "html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<"


def _colon(why: str) -> str:
    return f": {why}" if why else ""
