"""Recorders on threads, and a recorder that dies between sampling and storing: what both systems' tests share."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

_KILLED = """
import json, os, signal, sys
from airflow_provider_streams.systems.source_json import source_from_json
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.systems.registry import load_system

url, source, options = sys.argv[1], source_from_json(json.loads(sys.argv[2])), json.loads(sys.argv[3])
Journal.record_cut = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
record(Journal(url), {source.conn_id: load_system(source.system).from_options(options)}, [source], "killed")
"""


class Recorders:
    """Recorders of one source, each with a system and a journal of its own, as separate processes have."""

    def __init__(self, url: str, source: Source, options: dict[str, str]) -> None:
        self.url, self.source, self.options = url, source, options
        self.errors: list[Any] = []

    def once(self, name: str) -> int | None:
        """One tick; the number of its entry."""
        with self._recorder(name) as tick:
            return tick()

    @contextmanager
    def running(self, *names: str) -> Iterator[None]:
        """They sample as fast as they can, and so overlap all the time; each has stored an entry at the end."""
        stop = threading.Event()
        threads = [threading.Thread(target=self._run, args=(name, stop)) for name in names]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(600)
        assert self.errors == []

    def killed(self) -> None:
        """A process that dies between sampling and storing."""
        arguments = [self.url, json.dumps(source_to_json(self.source)), json.dumps(self.options)]
        done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == -9, done.stderr

    def _run(self, name: str, stop: threading.Event) -> None:
        with self._recorder(name) as tick:
            stored = False
            while not (stop.is_set() and (stored or self.errors)):
                stored = tick() is not None or stored

    @contextmanager
    def _recorder(self, name: str) -> Iterator[Callable[[], int | None]]:
        system = load_system(self.source.system).from_options(self.options)
        journal = Journal(self.url)

        def tick() -> int | None:
            (result,) = record(journal, {self.source.conn_id: system}, [self.source], name)
            if result.error is not None:
                self.errors.append(result.error)
            return result.sequence

        try:
            yield tick
        finally:
            system.close()


class AppendWindows:
    """Plans of basis `append`, as the operator makes them."""

    def __init__(self, url: str, system: Any, source: Source) -> None:
        self.journal, self.system, self.source = Journal(url), system, source

    def plan(self, start: datetime, end: datetime, max_skew: timedelta = timedelta(hours=1)) -> Plan:
        question = WindowQuestion(self.source, Window(start, end), RecordedCuts(max_skew))
        return fresh_plan(self.journal, self.system, WindowRead(question, "tests"))


def now() -> datetime:
    """The recorders' clock."""
    return datetime.now(UTC)
