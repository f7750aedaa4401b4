"""What becomes of events whose payloads cannot be decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from airflow_provider_streams.errors import InvalidRequest, TooManyUndecodable
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt

OnUndecodable = Literal["fail", "quarantine", "drop"]


@dataclass(frozen=True, slots=True)
class Undecodable:
    """What becomes of them.

    Args:
        then: `fail`: nothing of the window lands; `quarantine`: they land beside its rows, with position, cause and
            bytes; `drop`: they are counted and left out.
        most: of `quarantine` and `drop`, which share of a window's events they may be; more of them fail it. None: all.

    Raises:
        InvalidRequest: none of these words, or no share.
    """

    then: OnUndecodable = "fail"
    most: float | None = None

    def __post_init__(self) -> None:
        if self.then not in get_args(OnUndecodable):
            raise InvalidRequest(f"on_undecodable must be 'fail', 'quarantine' or 'drop', got {self.then!r}")
        if self.most is None:
            return
        if isinstance(self.most, bool) or not isinstance(self.most, int | float) or not 0 <= self.most <= 1:
            raise InvalidRequest(f"max_undecodable is a share of a window's events, 0 to 1, got {self.most!r}")
        if self.then == "fail":
            raise InvalidRequest("max_undecodable says nothing with on_undecodable='fail': one event is too many")

    def check(self, plan: Plan, receipt: Receipt) -> None:
        """Whether a window's events are good enough.

        Raises:
            TooManyUndecodable: they are not.
        """
        bad, all_ = receipt.undecodable, receipt.undecodable + receipt.rows
        if self.most is not None and bad > self.most * all_:
            raise TooManyUndecodable(", ".join(plan.source.names), plan.window, bad, all_, self.most)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"then": self.then, "most": self.most}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["then"], data["most"])
