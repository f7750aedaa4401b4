"""The set-up that is examined. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule

if TYPE_CHECKING:
    from airflow_provider_streams.model.sinks.sink import Sink

HOURLY: Final = Every(timedelta(hours=1))
OUTAGE: Final = timedelta(days=7)
DEFAULT_READER: Final = "cli"
"""The reader of `airflow streams read` without `--reader`."""


@dataclass(frozen=True)
class Setup:
    """What is examined.

    Args:
        system: the name of the stream system.
        conn_id: the Airflow connection.
        source: what is read; None: only the connection is examined.
        reader: whose windows and holds count; None: any reader's.
        window_schedule: how windows tile time.
        outage: how long readers may be down without losing events.
        slack: how far publish times may be out of order.
        sink: where rows land; None: it is not examined.
        write: whether a file may be written to the sink's store, read back and removed.
        spark_conn_id: a Spark connection, whose Spark runs the small job; None: one as inside a task.
        spark: Spark's settings; may hold secrets.
        transform: what changes the rows on their way to the sink; None: nothing.
        columns: which columns are read; None: the system's default ones.
        decoding_unknown: whether the caller did not say how payloads are decoded, and no reader's windows do.

    Raises:
        InvalidRequest: `write` without a sink, or an outage or a slack that is negative.
    """

    system: str
    conn_id: str
    source: Source | None = None
    reader: str | None = None
    window_schedule: WindowSchedule = HOURLY
    outage: timedelta = OUTAGE
    slack: timedelta = SLACK
    sink: Sink | None = None
    write: bool = False
    spark_conn_id: str | None = None
    spark: Mapping[str, Any] | None = field(default=None, repr=False)
    transform: str | None = None
    columns: tuple[str, ...] | None = None
    decoding_unknown: bool = False

    def __post_init__(self) -> None:
        if self.write and self.sink is None:
            raise InvalidRequest("write=True writes to the store of a sink: name the sink")
        if self.outage < timedelta(0):
            raise InvalidRequest(f"an outage cannot last {self.outage}")
        if self.slack < timedelta(0):
            raise InvalidRequest(f"slack cannot be negative, got {self.slack}")

    def __str__(self) -> str:
        about = f"{self.source} on " if self.source is not None else ""
        return f"{about}{self.system} connection {self.conn_id}"
