"""Keep a Pulsar source's data until it has been read: place, move and drop a pin subscription."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.pulsar import hold as holds
from airflow_provider_streams.systems.pulsar.hold import Placement
from airflow_provider_streams.systems.pulsar.questions import ask
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.timetables import run_facts
from airflow_provider_streams.windows.of_run import resolve_window
from airflow_provider_streams.windows.progress import covered_end

if TYPE_CHECKING:
    from airflow.sdk import Context


_SLACK = timedelta(seconds=60)


class PinOperator(BaseOperator):
    """What the operators on a pin share.

    Args:
        source: the topics.
        reader: whom the pin serves: the `reader` of `ReadWindowOperator`, by default `dag_id.task_id` of that task
            (templated).
        name: the pin's name (templated); default: the reader's. One pin serves windows that are read in order; runs
            side by side take a name each, like `orders-{{ run_id }}`.
    """

    template_fields: Sequence[str] = ("reader", "name")
    ui_color = "#e9e3f5"

    def __init__(self, *, source: PulsarSource, reader: str, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(source, PulsarSource):
            raise InvalidRequest(f"a pin is placed on a PulsarSource, got {type(source).__name__}")
        self.source = source
        self.reader = reader
        self.name = name

    @property
    def pin(self) -> str:
        """The pin's name."""
        return self.name or self.reader

    @abstractmethod
    def change(self, hook: PulsarHook, context: Context) -> dict[str, Any]:
        """Do it once more, or for the first time."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Change it, and return what was done.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        with terminal_errors(), closing(PulsarHook(self.source.conn_id)) as hook:
            done = self.change(hook, context)
        self.log.info("%s: %s", type(self).__name__, done)
        return done


class PinBacklogOperator(PinOperator):
    """Places a pin: from its place on, nothing is removed by retention until the pin is moved or dropped.

    Use it as a setup task, with `DropPinOperator` as its teardown, around the tasks that read one window; or once, and
    move it with `MovePinOperator` after each window. A pin that holds its place already stays where it stands.

    **What a pin cannot do**: a TTL and a backlog quota of the policy `consumer_backlog_eviction` remove data in spite
    of it, and the quota's other policies stop producers when a forgotten pin has grown to the limit.
    `CheckRetentionOperator` tells of both; `airflow streams pins` shows all pins with their age.

    Args:
        at: from when on data is kept: `earliest`, everything still stored; or a time (ISO 8601, templated). Default:
            the start of the run's window, less the slack.
        window: an explicit window, as the read's.
        window_length: the length of the run's partition, as the read's.
        slack: as the read's.

    Returns (XCom):
        `pin, placed, cut`.

    Raises:
        StartTrimmed: data vanished while the pin was placed.
    """

    template_fields: Sequence[str] = ("reader", "name", "at", "window")

    def __init__(
        self,
        *,
        at: str | None = None,
        window: Window | str | None = None,
        window_length: timedelta | str | None = None,
        slack: timedelta = _SLACK,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.at = at
        self.window = window
        self.window_length = window_length
        self.slack = slack

    def change(self, hook: PulsarHook, context: Context) -> dict[str, Any]:
        """See `PinOperator`."""
        since = self._since(context)
        question = holds.cut_at_head(self.source) if since is None else holds.cut_at(self.source, since, self.slack)
        cut = ask(hook.admin, question)
        return ask(hook.admin, holds.place(Placement(self.pin, self.reader, cut, since)))

    def _since(self, context: Context) -> datetime | None:
        if self.at == "earliest":
            return None
        if self.at:
            return _moment(self.at)
        return resolve_window(self.window, self.window_length, run_facts(context)).window.start


class MovePinOperator(PinOperator):
    """Moves a pin up to the first window that is not covered yet; what lies before it may be removed.

    Run it after a read. It asks the journal, so it may run twice, late, or beside others: a window that failed or was
    never read keeps its data.

    Args:
        slack: as the read's.

    Returns (XCom):
        `pin, moved, cut`, and `since`, the start of the first window that is kept.
    """

    def __init__(self, *, slack: timedelta = _SLACK, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.slack = slack

    def change(self, hook: PulsarHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all pin operators' shape
        """See `PinOperator`."""
        found = [pin for pin in ask(hook.admin, holds.pins_of(self.source)) if pin.name == self.pin]
        starts = [pin.mark.since for pin in found if pin.mark.since]
        with open_journal() as journal:
            done = covered_end(journal, self.source.key, self.reader, max(starts, default=None))
        if not found or done is None:
            why = "there is no such pin" if not found else "the first window it holds is not covered"
            return {"pin": self.pin, "moved": [], "reason": why}
        cut = done.cut or ask(hook.admin, holds.cut_at(self.source, done.time, self.slack))
        placement = Placement(self.pin, self.reader, cut, done.time, done.plan)
        moved = ask(hook.admin, holds.move(placement))
        return {**moved, "since": done.time.isoformat()}


class DropPinOperator(PinOperator):
    """Removes a pin; succeeds if there is none. As a teardown task it runs whatever became of the read."""

    def change(self, hook: PulsarHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all pin operators' shape
        """See `PinOperator`."""
        return ask(hook.admin, holds.drop(self.source, self.pin))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(f"at must be 'earliest' or a time in ISO 8601, got {text!r}") from None
    if moment.tzinfo is None:
        raise InvalidRequest(f"at needs a time zone, like 2026-11-20T10:00:00Z, got {text!r}")
    return moment
