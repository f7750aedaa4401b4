"""The examined connection while it is open, or why it cannot be opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_streams.doctor import clock, connection, grants
from airflow_provider_streams.doctor.finding import Area, Finding, Notes
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import StreamHook, hook_for, hook_of
from airflow_provider_streams.hooks.testable_connection import TestableConnection
from airflow_provider_streams.systems.registry import declaration_of, load

if TYPE_CHECKING:
    from airflow_provider_streams.systems.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class Stream:
    """What can be asked of the connection."""

    setup: Setup
    hook: StreamHook | None = None
    diagnosis: Diagnosis | None = None
    problem: StreamsError | None = None
    """Why there is no hook."""

    def connection(self) -> list[Finding]:
        """Settings and services."""
        notes = Notes("connection")
        if self.hook is None:
            why = f"{self.problem}"
            notes.error("settings", why, "Add or correct the connection: `airflow connections`, or Admin, Connections")
            return notes.findings
        notes.ok("settings", f"the settings of connection {self.setup.conn_id} can be used")
        if self.diagnosis is not None:
            return [*notes.findings, *connection.check_services(self.diagnosis, self.setup.source)]
        self._test(notes, self.hook)
        return notes.findings

    def open_hook(self) -> StreamHook:
        """The hook; raises why there is none."""
        if self.hook is None:
            raise self.problem or AssertionError("a connection has a hook, or a problem")
        return self.hook

    def _test(self, notes: Notes, hook: StreamHook) -> None:
        """A system that declares no diagnosis may still test its connection."""
        check = f"{self.setup.system}: {connection.SIGN_IN}"
        if not isinstance(hook, TestableConnection):
            notes.skipped(check, f"the hook of {self.setup.system} tests no connections", "Read a window as a dry run")
            return
        works, says = hook.test_connection()
        if works:
            notes.ok(check, says)
        else:
            notes.error(check, says, "Follow the message")

    def grants(self) -> list[Finding]:
        """What the user may do."""
        if self.diagnosis is None or self.setup.source is None:
            return _not_offered("grants", "permissions", self.setup)
        return grants.check_grants(self.diagnosis, self.setup.source)

    def clock(self) -> list[Finding]:
        """How far the clocks are apart."""
        if self.diagnosis is None:
            return _not_offered("clock", "difference", self.setup)
        return clock.check_clock(self.diagnosis, self.setup.source, self.setup.slack)


def _not_offered(area: Area, check: str, setup: Setup) -> list[Finding]:
    notes = Notes(area)
    notes.skipped(check, f"{setup.system} does not offer it")
    return notes.findings


@contextmanager
def opened(setup: Setup) -> Iterator[Stream]:
    """The connection of a set-up; clients connect when they are used."""
    try:
        hook = hook_of(setup.system, setup.conn_id) if setup.source is None else hook_for(setup.source)
        path = declaration_of(setup.system).diagnosis
        options = hook.planning_options()
        diagnosis: Diagnosis | None = None if path is None else load(path).from_options(options)
    except StreamsError as error:
        yield Stream(setup, problem=error)
        return
    with closing(hook):
        try:
            yield Stream(setup, hook, diagnosis)
        finally:
            if diagnosis is not None:
                diagnosis.close()
