"""Keep a source's unread data from its retention: place, move and release a hold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.basis import SLACK, BasisLike, EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.timetables.run_facts import run_facts
from airflow_provider_streams.windows.after_landing.covered_end import covered_end
from airflow_provider_streams.windows.plan.airflow_run_window import resolve_window

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.window.basis import CutText


class _HoldOperator(RendersValues, BaseOperator):
    """What the operators on a hold share.

    Args:
        source: the topics, or the stream; its texts are templated.
        reader: whom the hold serves: the `reader` of `ReadWindowOperator`, by default `dag_id.task_id` of that task
            (templated).
        name: the hold's name (templated); default: the reader's. One hold serves windows that are read in order; runs
            side by side take a name each, like `orders-{{ run_id }}`.
    """

    template_fields: Sequence[str] = ("source", "reader", "name")
    ui_color = "#e9e3f5"

    def __init__(self, *, source: Source, reader: str, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = check_source(source)
        self.reader = reader
        self.name = name

    @property
    def hold(self) -> str:
        """The hold's name."""
        return self.name or self.reader

    @abstractmethod
    def change(self, hook: StreamHook, context: Context) -> dict[str, Any]:
        """Change the hold; repeating it does no harm."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Change it, and return what was done.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        with terminal_errors(), closing(hook_for(self.source)) as hook:
            done = self.change(hook, context)
        self.log.info("%s: %s", type(self).__name__, done)
        return done


class HoldRetentionOperator(_HoldOperator):
    """Places a hold: from its place on, retention removes nothing until the hold is moved or released.

    Use it as a setup task, with `ReleaseHoldOperator` as its teardown, around the tasks that read one window; or as the
    first task of every run, with `MoveHoldOperator` after the read. A hold that is there already stays where it stands.

    **What a hold cannot do**: in Pulsar, a TTL and a backlog quota of the policy `consumer_backlog_eviction` remove
    data in spite of it. The quota's other policies stop producers when a forgotten hold has grown to the limit. In
    Pravega, a policy with a maximum may truncate beyond it. `CheckRetentionOperator` reports this; `airflow streams
    holds` shows all holds.

    Args:
        source: the topics, or the stream; its texts are templated.
        reader: whom the hold serves: the `reader` of `ReadWindowOperator`, by default `dag_id.task_id` of that task
            (templated).
        name: the hold's name (templated); default: the reader's.
        at: from where on data is kept (templated): `earliest`, everything still stored; a cut in one of the system's
            notations; for Pulsar also a time (ISO 8601). A hold without a time keeps no window: the journal does not
            know windows before the first that the reader planned, so a move passes them. Default for Pulsar: the start
            of the run's window, less the slack; for Pravega, whose events carry no time: `earliest`.
        window: an explicit window, as the read's (templated).
        window_length: the length of the run's partition, as the read's.
        basis: as the read's: its slack counts where a time is looked up.

    Returns (XCom):
        `hold, placed, cut`: `placed` names the topics or the stream where it was not there yet; `cut` is null for
        Pravega where no cut was given, or the hold was there already.

    Raises:
        StartTrimmed: data vanished before or while the hold was placed.
    """

    template_fields: Sequence[str] = ("source", "reader", "name", "at", "window")

    def __init__(
        self,
        *,
        at: CutText | None = None,
        window: Window | str | None = None,
        window_length: timedelta | str | None = None,
        basis: BasisLike | None = None,
        source: Source,
        reader: str,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(source=source, reader=reader, name=name, **kwargs)
        self.at = at
        self.window = window
        self.window_length = window_length
        self.slack = _slack(self.source, basis)

    def change(self, hook: StreamHook, context: Context) -> dict[str, Any]:
        """As `_HoldOperator`."""
        request = HoldRequest(self.source, self.hold, self.reader, **self._place(hook, context), slack=self.slack)
        return hook.place_hold(request)

    def _place(self, hook: StreamHook, context: Context) -> dict[str, Any]:
        if self.at:
            return _place_at(hook, self.source, self.at)
        if not hook.holds_by_time:
            return {}
        return {"since": resolve_window(self.window, self.window_length, run_facts(context)).window.start}


class MoveHoldOperator(_HoldOperator):
    """Moves a hold up to the first window that is not covered yet; the stream may remove what is before it.

    Run it after a read. It asks the journal, so it may run twice, late, or at the same time as others: a window that
    failed or was never read keeps its data, whatever was covered later. A hold never moves back. One without a time
    (`earliest`, a cut) knows no first window: it passes windows before the first that the reader planned.

    Args:
        source: the topics, or the stream; its texts are templated.
        reader: whose windows the hold is for (templated).
        name: the hold's name (templated); default: the reader's.
        at: move it here instead (templated), as `HoldRetentionOperator` takes it.
        basis: as the read's: its slack counts where a time is looked up.

    Returns (XCom):
        `hold, moved`, the topics or the stream where it moved, `cut`, and `since`, the start of the first window that
        is kept; or `hold, moved`, which is empty, and `reason`.

    Raises:
        SourceNotFound: a window is covered, and there is no such hold to move.
        InvalidRequest: the hold of this name belongs to another reader or source (Pravega does not keep whose it is).
    """

    template_fields: Sequence[str] = ("source", "reader", "name", "at")

    def __init__(
        self,
        *,
        at: CutText | None = None,
        basis: BasisLike | None = None,
        source: Source,
        reader: str,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(source=source, reader=reader, name=name, **kwargs)
        self.at = at
        self.slack = _slack(self.source, basis)

    def change(self, hook: StreamHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all hold operators' shape
        """As `_HoldOperator`."""
        place = _place_at(hook, self.source, self.at) if self.at else self._covered(hook)
        if place is None:
            return {"hold": self.hold, "moved": [], "reason": "the first window it holds is not covered"}
        moved = hook.move_hold(HoldRequest(self.source, self.hold, self.reader, **place, slack=self.slack))
        return {**moved, "since": place["since"].isoformat()} if "since" in place else moved

    def _covered(self, hook: StreamHook) -> dict[str, Any] | None:
        """Where the covered windows end, from the first that the hold keeps; None: that one is not covered."""
        since = min((one.since for one in hook.holds(self.source) if one.name == self.hold and one.since), default=None)
        with open_journal() as journal:
            done = covered_end(journal, self.source.key, self.reader, since)
        return None if done is None else {"cut": done.cut, "since": done.time, "plan": done.plan}


class ReleaseHoldOperator(_HoldOperator):
    """Removes a hold; succeeds if there is none. As a teardown task it runs whatever became of the read.

    Returns (XCom):
        `hold, released`: the topics or the stream where it was.
    """

    def change(self, hook: StreamHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all hold operators' shape
        """As `_HoldOperator`."""
        return hook.release_hold(self.source, self.hold, self.reader)


def _slack(source: Source, basis: BasisLike | None) -> timedelta:
    """How much earlier than a window's start its first event may have been stored."""
    asked = declaration_of(source.system).basis(basis)
    slack: timedelta = getattr(asked, "slack", SLACK)
    # an event time may be ahead of the clock by it, and a publish time out of order
    return 2 * slack if isinstance(asked, EventTime) else slack


def _place_at(hook: StreamHook, source: Source, at: CutText) -> dict[str, Any]:
    """Where a user wants a hold: the head, a time, or a cut."""
    if at == "earliest":
        return {}
    moment = _moment(at) if isinstance(at, str) else None
    if moment is not None:
        return {"since": moment}
    with closing(hook.system()) as system:
        return {"cut": system.parse_cut(source, at)}


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        raise InvalidRequest(f"at needs a time zone, like 2026-11-20T10:00:00Z, got {text!r}")
    return moment
