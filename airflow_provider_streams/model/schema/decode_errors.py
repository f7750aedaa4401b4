"""What becomes of events whose payloads cannot be decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from airflow_provider_streams.errors import InvalidRequest, TooManyDecodeErrors
from airflow_provider_streams.model.flat_json import FlatJson
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import Receipt

OnDecodeError = Literal["fail", "quarantine", "drop"]


@dataclass(frozen=True, slots=True)
class DecodeErrorPolicy(FlatJson):
    """What becomes of them.

    Args:
        then: `fail`: nothing of the window lands; `quarantine`: they land in a table of their own, with position, cause
            and bytes; `drop`: they are counted and left out.
        most: which share of a window's events may be quarantined or dropped; more fail the window. None: all.

    Raises:
        InvalidRequest: the word is not known, or the share is none.
    """

    then: OnDecodeError = "fail"
    most: float | None = None

    def __post_init__(self) -> None:
        if self.then not in get_args(OnDecodeError):
            raise InvalidRequest(f"on_decode_error must be 'fail', 'quarantine' or 'drop', got {self.then!r}")
        if self.most is None:
            return
        if isinstance(self.most, bool) or not isinstance(self.most, int | float) or not 0 <= self.most <= 1:
            raise InvalidRequest(f"max_decode_error_rate is a share of a window's events, 0 to 1, got {self.most!r}")
        if self.then == "fail":
            raise InvalidRequest(
                "max_decode_error_rate says nothing with on_decode_error='fail': one event is too many"
            )

    def check(self, plan: Plan, receipt: Receipt) -> None:
        """Check a window's events.

        Raises:
            TooManyDecodeErrors: too many of them are undecodable.
        """
        bad, all_ = receipt.undecodable, receipt.undecodable + receipt.rows
        if self.most is not None and bad > self.most * all_:
            raise TooManyDecodeErrors(", ".join(plan.source.names), plan.window, bad, all_, self.most)
