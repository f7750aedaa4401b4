"""One call to a REST service as data: what to send, and how its answer becomes a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from airflow_provider_streams.systems.rest.response import Answer

T_co = TypeVar("T_co", covariant=True)

Refusal = tuple[int, str]
"""A status, and a part of its reason in lower case ("": any reason)."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T_co]):
    """One admin call."""

    action: str
    """What it does, to follow "not allowed to"; names what it is about."""
    path: str
    """Below the service's root, already percent-encoded."""
    parse: Callable[[Answer], T_co]
    params: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes | None = None
    headers_only: bool = False
    """Its answer is in the headers; the body may be anything, of any size."""
    idempotent: bool = True
    """It may be sent again when it is not known whether it arrived."""
    seconds: float | None = None
    """An answer that takes longer never comes, and is not asked for again; None: as the endpoint has it."""
    subject: str = ""
    """What a 404 is about."""
    absent: tuple[Refusal, ...] = ()
    """Refusals that are an answer here: the result is None."""
    passing: tuple[Refusal, ...] = ()
    """Refusals that come at random, besides those every call repeats."""
    told: tuple[Refusal, ...] = ()
    """Refusals that are an answer here, which `parse` reads."""


AnyRequest = Request[Any]
