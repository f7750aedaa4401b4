"""How a time becomes a cut: what users write as `basis=`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


BasisLike = Literal["publish", "chained"] | Cuts
"""A basis as users write it; `Cuts` carries its positions."""
