"""How a time becomes a cut: what users write as `basis=`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from airflow_provider_streams.errors import InvalidRequest

CutText = str | Mapping[str, str]
"""`earliest`, `latest`, or per shard a position in one of the system's notations."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The basis `cuts`: the user's own positions, start inclusive, end exclusive.

    Args:
        start: where reading starts; None: the first event still held.
        end: where reading ends; None: the tail at plan time.
    """

    start: CutText | None = None
    end: CutText | None = None


BasisLike = Literal["publish", "append", "event", "chained"] | Cuts
"""A basis as users write it; `Cuts` carries its positions."""

BASES: dict[str, tuple[Literal["publish", "append", "event", "chained"], ...]] = {
    "pravega": ("append", "event", "chained"),
    "pulsar": ("publish", "append", "chained"),
    "fake": ("publish", "append", "event", "chained"),
}
"""System to the bases it can serve, its default first. Pravega's events carry no time that could be looked up."""

MAX_SKEW = timedelta(minutes=5)
"""How much later than a window's edge a cut may be recorded and still stand for it, unless the user says otherwise."""


def default_basis(system: str) -> BasisLike:
    """How a time becomes a cut where the user does not say it: `publish` for Pulsar, `append` for Pravega."""
    return BASES[system][0] if system in BASES else "publish"


def check_basis(system: str, basis: object) -> None:
    """Refuse a basis that a system cannot serve.

    Raises:
        InvalidRequest: naming those it can.
    """
    known = BASES.get(system, ("publish", "append", "chained"))
    if not isinstance(basis, Cuts) and basis not in known:
        names = ", ".join(f"'{name}'" for name in known)
        raise InvalidRequest(f"basis of a {system} source must be one of {names} or Cuts(start, end), got {basis!r}")
