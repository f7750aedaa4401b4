"""What nobody does by accident: each is said by the user, for one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Overlap = Literal["refuse", "replace"]


@dataclass(frozen=True, slots=True)
class Acts:
    """Explicit acts; without them the safe way is taken, or the run is refused."""

    replan: bool = False
    """Make a new plan, although one is pinned."""
    reland: bool = False
    """Land something else than so far, on another grid, or rows that the table cannot take: that is set aside, and all
    is missing again."""
    accept_fewer: bool = False
    """Replace a window of the table by one that holds fewer rows."""
    overlap: Overlap = "refuse"
    """`replace`: covered windows that share time with a new one are taken out of the table as a whole."""
