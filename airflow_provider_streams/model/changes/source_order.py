"""What orders the changes of one key. See `lake.changes.order` for the order itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from airflow_provider_streams.model.flat_json import FlatJson

Log = Literal["written", "committed"]


@dataclass(frozen=True, slots=True)
class SourceOrder(FlatJson):
    """How a source's coordinates relate to its order of publication.

    Args:
        log: `committed`: coordinates grow in the order in which transactions commit, as in binlogs. `written`: they
            grow in the order in which rows are written, as an LSN does, so the commit time (`_source_ts`) comes first.
            None: changes have no coordinates, and the stream's own order counts.
        exact_snapshots: whether the coordinate of a snapshot's row divides the log: all changes up to it are in the
            row, and none after it. Oracle reads its snapshots so. Otherwise the place in the stream counts.
    """

    log: Log | None = None
    exact_snapshots: bool = False


STREAM_ORDER: Final = SourceOrder()
"""Changes without coordinates."""

CONNECTORS: Final = {
    "postgresql": SourceOrder("written"),
    "mysql": SourceOrder("committed"),
    "mariadb": SourceOrder("committed"),
    "sqlserver": SourceOrder("committed"),
    "oracle": SourceOrder("committed", exact_snapshots=True),
}
"""By `source.connector` of Debezium."""


def order_of_life(life: str | None) -> SourceOrder:
    """The order of the source whose life `_source_life` names, connector first; None: changes name none."""
    return CONNECTORS.get((life or "").partition("/")[0], STREAM_ORDER)
