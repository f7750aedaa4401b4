"""Keep unread windows of a Pravega stream from being truncated by its retention policy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.windows.progress import covered_end

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.basis import CutText
    from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
    from airflow_provider_streams.systems.pravega.system import PravegaSystem


class _HoldOperator(BaseOperator):
    """What the operators of a hold share: the stream, and the reader it is for."""

    template_fields: Sequence[str] = ("reader", "cut")
    ui_color = "#f5ecd9"

    def __init__(self, *, source: PravegaSource, reader: str, cut: CutText | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(source, PravegaSource):
            raise InvalidRequest(f"source must be a PravegaSource, got {type(source).__name__}")
        self.source, self.reader, self.cut = source, reader, cut

    def _system(self) -> PravegaSystem:
        return cast("PravegaSystem", hook_for(self.source).system())

    def _given(self, system: PravegaSystem) -> StreamCut | None:
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415

        if not self.cut:
            return None
        return StreamCut.from_model(self.source.stream, system.parse_cut(self.source, self.cut))


class PravegaHoldOperator(_HoldOperator):
    """Holds a stream for a reader: its retention policy truncates nothing behind the hold's cut.

    A subscriber without readers is made on the server. A hold that is there already stays where it is, so this may be
    the first task of every run. A policy with a maximum may truncate beyond a hold: keep an eye on the room left.

    Args:
        source: the stream.
        reader: whose windows the hold is for, `dag_id.task_id` of the reading task (templated).
        cut: where a new hold starts (templated): `earliest`, `latest`, or a cut; default `earliest`.

    Returns (XCom):
        `hold, created`.
    """

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all operators' shape
        """Make the hold, unless it is there."""
        from airflow_provider_streams.systems.pravega import hold  # noqa: PLC0415 - gRPC when used

        name = hold.name_for(self.reader, self.source.stream)
        with terminal_errors(), closing(self._system()) as system:
            created = system.client.run(hold.place(self.source.stream, name, self._given(system)))
        self.log.info("Hold %s on %s %s", name, self.source, "is made" if created else "is there already")
        return {"hold": name, "created": created}


class PravegaMoveHoldOperator(_HoldOperator):
    """Moves a reader's hold to the end of what it has covered without a gap; put it behind the reading task.

    A window that failed or is missing keeps the hold before it, whatever was covered later. A hold never moves back.

    Args:
        source: the stream.
        reader: whose windows the hold is for, `dag_id.task_id` of the reading task (templated).
        cut: move it here instead (templated).

    Returns (XCom):
        `hold, moved, cut, window`; `cut` is null while nothing is covered. The hold stays then (`moved` is false), and
        where it stands further already.
    """

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all operators' shape
        """Move the hold.

        Raises:
            SourceNotFound: there is no such hold.
        """
        from airflow_provider_streams.systems.pravega import hold  # noqa: PLC0415 - gRPC when used
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415

        name = hold.name_for(self.reader, self.source.stream)
        with terminal_errors(), open_journal() as journal, closing(self._system()) as system:
            cut, window = self._given(system), None
            done = None if cut else covered_end(journal, self.source.key, self.reader, None)
            if done is not None and done.cut is not None:
                cut, window = StreamCut.from_model(self.source.stream, done.cut), done.window.to_json()
            moved = cut is not None and system.client.run(hold.move(self.source.stream, name, cut))
        stays = "stays: it stands further already" if cut else "stays: nothing is covered"
        self.log.info("Hold %s on %s %s", name, self.source, f"moved to {cut}" if moved else stays)
        return {"hold": name, "moved": moved, "cut": cut.to_text() if cut else None, "window": window}


class PravegaReleaseHoldOperator(_HoldOperator):
    """Removes a reader's hold; a teardown (`.as_teardown(setups=hold)`) where it lives as long as a run.

    Args:
        source: the stream.
        reader: whose windows the hold was for (templated).

    Returns (XCom):
        `hold, released`; releasing twice does no harm.
    """

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - all operators' shape
        """Remove the hold, if it is there."""
        from airflow_provider_streams.systems.pravega import hold  # noqa: PLC0415 - gRPC when used

        name = hold.name_for(self.reader, self.source.stream)
        with terminal_errors(), closing(self._system()) as system:
            released = system.client.run(hold.release(self.source.stream, name))
        return {"hold": name, "released": released}
