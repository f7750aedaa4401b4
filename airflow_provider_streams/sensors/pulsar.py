"""Wait until a subscription's backlog has formed, or has drained."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.backlog import BacklogLimit, Direction
from airflow_provider_streams.hooks.base import hook_for, source_to_json
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.triggers.pulsar import PulsarBacklogTrigger, backlog_answer

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.hooks.pulsar import PulsarHook
    from airflow_provider_streams.triggers.state import Answer


class PulsarBacklogSensor(StateSensor):
    """Waits until the backlog of a durable subscription meets a limit. Nothing is consumed or acknowledged.

    **Entries are not messages**: a batch of 1,000 messages is one entry, and Pulsar counts backlogs in entries. The
    age is that of the oldest unacknowledged entry, by its producer's clock and ours.

    Args:
        topic: the topic, named as in `PulsarSource`; or give `source`.
        source: instead of `topic`, several topics or a pattern; their backlogs are summed.
        subscription: its name (templated).
        entries: a limit in entries.
        bytes: a limit in stored bytes.
        age: a limit for the oldest entry's age.
        direction: `at_least` waits for a backlog to form: one reached limit suffices. `at_most` waits for it to
            drain: no limit may be exceeded.
        conn_id: the Airflow connection, with `topic`.

    Returns (XCom):
        `entries, bytes, oldest, age_seconds`.
    """

    template_fields: Sequence[str] = ("subscription",)
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | None = None,
        subscription: str,
        entries: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit is the name
        age: timedelta | None = None,
        direction: Direction = "at_least",
        conn_id: str = "pulsar_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (topic is None) == (source is None):
            raise InvalidRequest("PulsarBacklogSensor takes a topic or a source, one of them")
        self.source = source or PulsarSource(topic or (), conn_id=conn_id)
        self.subscription = subscription
        self.limit = BacklogLimit(entries, bytes, age, direction)

    def ask(self, context: Context) -> Answer:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        with closing(cast("PulsarHook", hook_for(self.source))) as hook:
            backlog = hook.backlog_of(self.source, self.subscription)
        return backlog_answer(backlog, self.limit, self.subscription)

    def trigger(self, context: Context) -> PulsarBacklogTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        return PulsarBacklogTrigger(
            source_to_json(self.source), self.subscription, self.limit.to_json(), self.poke_interval
        )
