"""Cuts of topics that were deleted and made anew since: what a window holds of them. Pure.

A position of another life of a topic means nothing in the one of today, even where a ledger of its number is there
again: of a broker that was wiped, ledgers are numbered from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Loss, PlanRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin.answers import InternalInfo
from airflow_provider_streams.systems.pulsar.beginning import Doubt
from airflow_provider_streams.systems.pulsar.identity import ended, identity_of
from airflow_provider_streams.systems.pulsar.layout import EARLIEST


@dataclass(frozen=True, slots=True)
class Lives:
    """The shards of which a window's cuts are of another life than the one of today, and when that was made."""

    asked: PlanRequest
    starts: Mapping[str, str]
    ends: Mapping[str, str]
    now: Mapping[str, InternalInfo]

    @classmethod
    def of(cls, asked: PlanRequest, infos: Mapping[str, InternalInfo]) -> Lives:
        """By what is known of the shards now."""
        return cls(asked, ended(asked.start_identity, infos), ended(asked.end_identity, infos), infos)

    def request(self) -> PlanRequest:
        """The request with places of today: of a shard whose end is gone nothing, else what there is from its first."""
        start, end = self.asked.start_cut, self.asked.end_cut
        return replace(
            self.asked,
            start_cut=None if start is None else _moved(start, {*self.starts, *self.ends}),
            end_cut=None if end is None else _moved(end, set(self.ends)),
        )

    def doubt(self, shard: str) -> Doubt | None:
        """Why what a window should hold of a shard is lost; None: its cuts are of the life of today, or not known."""
        made = self.ends.get(shard) or self.starts.get(shard)
        if made is None:
            return None
        cause = f"the topic was deleted, and made anew at {identity_of(self.now[shard])}"
        return Doubt(f"{cause}: the cut is of one made at {made}", is_lost=True)

    def loss(self, shard: str, doubt: Doubt) -> Loss | None:
        """Where the window lay in a life that is gone; None: it ends in the one of today."""
        if shard not in self.ends or self.asked.end_cut is None:
            return None
        start = (self.asked.start_cut or Cut({})).get(shard, EARLIEST)
        return Loss(shard, start, self.asked.end_cut[shard], doubt.cause)


def _moved(cut: Cut, shards: set[str]) -> Cut:
    positions: dict[str, Position] = {shard: EARLIEST if shard in shards else at for shard, at in cut.items()}
    return Cut(positions)
