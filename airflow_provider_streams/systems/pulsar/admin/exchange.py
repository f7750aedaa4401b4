"""One admin call from start to end without doing I/O: where to send, when to try again, whom to trust."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from airflow_provider_streams.errors import AccessError, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pulsar.admin.answers import Answer
from airflow_provider_streams.systems.pulsar.admin.failures import failure, is_passing, meets, reason
from airflow_provider_streams.systems.pulsar.admin.requests import Request

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
    seconds: float | None = None
    """Wait no longer for the answer; None: as usual."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing came back."""

    detail: str
    sent: bool = True
    """The request may have arrived."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so long, and come back with None."""

    seconds: float


Step = Send | Pause
Outcome = Answer | Unreachable | None


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how fast a call is repeated: exponential, with jitter so that many callers spread out."""

    attempts: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 5.0

    def pause(self, attempt: int) -> Pause:
        """Before the attempt after this one (counted from 0)."""
        longest = min(self.longest_seconds, self.first_seconds * 2**attempt)
        return Pause(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, slots=True)
class Route:
    """The service we call, and whom it may send us to."""

    base: str
    """`http(s)://host:port`, perhaps with a path."""
    allowed_hosts: tuple[str, ...] = ()
    rewrite: bool = False
    """Follow a redirect's path, but on the base host (behind address translation)."""

    @property
    def where(self) -> str:
        """The base without anything secret, for messages."""
        split = urlsplit(self.base)
        return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path, "", "")).rstrip("/")

    def url(self, path: str) -> str:
        """The address of a path below the base."""
        return f"{self.base.rstrip('/')}/{path}"

    def redirected(self, current: str, location: str, *, secret: bool) -> str:
        """Where a redirect leads.

        Raises:
            AccessError: to a host, or over plain HTTP, that must not see our credentials.
        """
        base, target = urlsplit(self.base), urlsplit(urljoin(current, location))
        if self.rewrite:
            return urlunsplit((base.scheme, base.netloc, target.path, target.query, ""))
        if secret:
            self._check_target(base, target)
        return urlunsplit(target)

    def _check_target(self, base: SplitResult, target: SplitResult) -> None:
        host = (target.hostname or "").lower()
        allowed = {(base.hostname or "").lower(), *(name.lower() for name in self.allowed_hosts)}
        downgraded = base.scheme == "https" and target.scheme != "https"
        if host not in allowed or downgraded or target.scheme not in {"http", "https"}:
            cause = "over plain HTTP" if downgraded and host in allowed else "which may not see our credentials"
            raise AccessError(
                f"{self.where} redirects to {target.scheme}://{host}, {cause}. "
                "Add the host to allowed_hosts, or set rewrite_redirects=true to stay on the given host."
            )


def exchange(
    request: Request[T], route: Route, headers: Mapping[str, str], patience: Patience
) -> Generator[Step, Outcome, T]:
    """Steps of one call; its value is the call's result. `headers` are those that show who we are.

    Raises:
        AccessError: refused.
        SystemUnavailable: no answer, or only passing failures, in all attempts.
        ProtocolError: an answer that makes no sense.
    """
    for attempt in range(patience.attempts):
        outcome = yield from _attempt(request, route, headers)
        final = attempt == patience.attempts - 1
        if isinstance(outcome, Unreachable):
            if final or (outcome.sent and (not request.idempotent or request.seconds is not None)):
                raise SystemUnavailable(route.where, f"could not {request.action}: {outcome.detail}")
        elif outcome.status in _SUCCESS:
            return _parsed(request, outcome, route)
        elif meets(outcome.status, reason(outcome), request.absent):
            # a request with `absent` conditions has None among its results
            return cast("T", None)
        elif final or not request.idempotent or not is_passing(request, outcome):
            raise failure(request, _redacted(outcome, headers), route.where)
        yield patience.pause(attempt)
    raise AssertionError("the last attempt returns or raises")


class Conversation(Generic[T]):
    """A call under way: give it the outcome of each step, until there is no further one; then it has a result."""

    result: T

    def __init__(self, steps: Generator[Step, Outcome, T]) -> None:
        self._steps = steps

    def step(self, outcome: Outcome) -> Step | None:
        """What to do next, after this outcome; the first step follows None.

        Raises:
            AccessError, SystemUnavailable, ProtocolError: see `exchange`.
        """
        try:
            return self._steps.send(outcome)
        except StopIteration as end:
            self.result = end.value
            return None


def _attempt(
    request: Request[T], route: Route, headers: Mapping[str, str]
) -> Generator[Step, Outcome, Answer | Unreachable]:
    url, params = route.url(request.path), request.params
    secret = "Authorization" in headers
    for _ in range(MAX_HOPS + 1):
        outcome = yield Send(request.method, url, params, _headers(request, headers), request.body, request.seconds)
        assert outcome is not None  # noqa: S101 - the protocol between a generator and its driver
        if isinstance(outcome, Unreachable) or outcome.status not in _REDIRECTS:
            return outcome
        location = outcome.headers.get("location")
        if not location:
            raise ProtocolError(f"{route.where}: a redirect without a target, on the way to {request.action}")
        # the target carries the whole query
        url, params = route.redirected(url, location, secret=secret), {}
    raise ProtocolError(f"{route.where}: more than {MAX_HOPS} redirects on the way to {request.action}")


def _headers(request: Request[T], headers: Mapping[str, str]) -> dict[str, str]:
    content = {"Content-Type": "application/json"} if request.body is not None else {}
    return {"Accept": "application/json, */*;q=0.5", **content, **headers}


def _redacted(answer: Answer, headers: Mapping[str, str]) -> Answer:
    """The answer without our token, should a server ever echo it."""
    token = headers.get("Authorization", "").rpartition(" ")[2].encode()
    return replace(answer, body=answer.body.replace(token, b"***")) if token else answer


def _parsed(request: Request[T], answer: Answer, route: Route) -> T:
    try:
        return request.parse(answer)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ProtocolError(
            f"{route.where}: the answer to '{request.action}' is not understood: {type(error).__name__}: {error}"
        ) from error
