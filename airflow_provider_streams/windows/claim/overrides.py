"""Overrides: the user asks for each explicitly, for one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.booleans import check_booleans

Overlap = Literal["refuse", "replace"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """Overrides; without them, a run takes the safe way or is refused.

    Raises:
        InvalidRequest: an unknown value.
    """

    replan: bool = False
    """Make a new plan, even if one is pinned."""
    full_refresh: bool = False
    """Change what the reader lands, or its window schedule, or land rows that its table cannot take.

    The table's rows are set aside, and every window is missing again."""
    allow_fewer_rows: bool = False
    """Replace a window of the table by one that holds fewer rows."""
    overlap: Overlap = "refuse"
    """`replace`: covered windows that share time with a new one are removed from the table as a whole."""

    def __post_init__(self) -> None:
        check_booleans(
            "overrides", replan=self.replan, full_refresh=self.full_refresh, allow_fewer_rows=self.allow_fewer_rows
        )
        if self.overlap not in get_args(Overlap):
            raise InvalidRequest(f"overlap is 'refuse' or 'replace', not {self.overlap!r:.100}")
