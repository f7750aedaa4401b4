"""What the sensors share: they wait for state, in the triggerer or in a worker, and never consume."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.retry import error_from_event, terminal_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.readiness import Readiness
    from airflow_provider_streams.triggers.state import StateTrigger


class StateSensor(BaseSensorOperator):
    """Waits until an answer satisfies.

    A passing failure of the server only postpones the answer; `timeout` bounds the wait. A terminal error fails the
    task without retries (or skips it with `soft_fail`).

    Args:
        deferrable: wait in the triggerer, without a worker; default `[operators] default_deferrable`.
        poke_interval: seconds between two polls; default `[streams] poll_interval`.
    """

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
    def ask(self, context: Context) -> Readiness:
        """Poll once.

        Raises:
            StreamsError: a retryable one is waited out.
        """

    @abstractmethod
    def trigger(self, context: Context) -> StateTrigger:
        """The trigger that goes on asking the same."""

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
        self.defer(
            trigger=self.trigger(context),
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
