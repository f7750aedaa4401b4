"""What the sensors share: they wait for state, in the triggerer or in a worker, and never consume."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, conf
from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.retry import error_from_event, terminal_errors
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.triggers.condition import ConditionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.window.readiness import Readiness
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.triggers.base import QuestionTrigger


class StateSensor(RendersValues, BaseSensorOperator):
    """Waits until an answer satisfies.

    A passing failure of the server only postpones the answer; `timeout` bounds the wait. A terminal error fails the
    task without retries (or skips it with `soft_fail`).

    Args:
        deferrable: wait in the triggerer, without a worker; default `[operators] default_deferrable`.
        poke_interval: seconds between two polls; default `[streams] poll_interval`.
    """

    _asked: QuestionTrigger | None = None

    def __init__(
        self, *, deferrable: bool | None = None, poke_interval: timedelta | float | None = None, **kwargs: Any
    ) -> None:
        if poke_interval is None:
            poke_interval = conf.getfloat("streams", "poll_interval", fallback=60.0)
        super().__init__(poke_interval=poke_interval, **kwargs)
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable

    @abstractmethod
    def trigger(self, context: Context) -> QuestionTrigger:
        """The question that it waits for, with every template rendered.

        Raises:
            InvalidRequest: that cannot be waited for.
        """

    def ask(self, context: Context) -> Readiness:
        """Poll once, in a worker: the same question at all polls of a process.

        Raises:
            StreamsError: a retryable one is waited out.
        """
        return self._question(context).ask_blocking()

    def _question(self, context: Context) -> QuestionTrigger:
        self._asked = self._asked or self.trigger(context)
        return self._asked

    def poke(self, context: Context) -> PokeReturnValue:
        """Poll once, in a worker."""
        with terminal_errors():
            try:
                answer = self.ask(context)
            except StreamsError as error:
                if not error.retryable:
                    raise
                self.log.warning("Asking again in a while: %s", error)
                return PokeReturnValue(is_done=False)
        if not answer.ready:
            self.log.info("Waiting: %s", answer.because)
        return PokeReturnValue(is_done=answer.ready, xcom_value=answer.facts)

    def execute(self, context: Context) -> dict[str, Any]:
        """Wait; returns what was found."""
        if not self.deferrable:
            facts: dict[str, Any] = super().execute(context)
            return facts
        first = self._first_poke(context)
        if first:
            found: dict[str, Any] = first.xcom_value or {}
            return found
        with terminal_errors():
            trigger = self._question(context)
        self.defer(
            trigger=trigger,
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )
        raise AssertionError("defer does not return")

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Resume with what the trigger found.

        Raises:
            StreamsError: the typed error that the trigger met; never retried.
        """
        if not event or event.get("status") == "error":
            raise error_from_event(event or {"error_type": "StreamsError", "message": "the trigger fired no event"})
        facts = {name: value for name, value in event.items() if name != "status"}
        self.log.info("Found %s", facts)
        return facts

    def _first_poke(self, context: Context) -> PokeReturnValue:
        """A worker is here already: where the answer is known now, nothing is deferred."""
        try:
            return self.poke(context)
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"Skipping, as soft_fail or never_fail is set: {error}") from error
            raise


class ConditionSensor(StateSensor):
    """Waits until a condition on a source is met; a subclass says which."""

    ui_color = "#e3f1d8"

    @abstractmethod
    def condition(self) -> Condition:
        """What to wait for, with every template rendered.

        Raises:
            InvalidRequest: that cannot be waited for.
        """

    @abstractmethod
    def target(self) -> Source:
        """Which source to ask, with every template rendered."""

    def trigger(self, context: Context) -> ConditionTrigger:  # noqa: ARG002 - all sensors' shape
        """As `StateSensor`."""
        return ConditionTrigger(source_to_json(self.target()), condition_to_json(self.condition()), self.poke_interval)
