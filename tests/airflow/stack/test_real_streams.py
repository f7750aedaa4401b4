"""A real topic and a real stream through Airflow: its schedule, its own backfill and ours, and kills in between.

The truth is what the producers know: which events the servers acknowledged, where, and when.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, dropwhile
from typing import Any

import duckdb
import psutil
import pytest

from airflow_provider_streams import PravegaSource, PulsarSource, Window
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.coverage import Coverage
from airflow_provider_streams.model.window.window import moment_label
from airflow_provider_streams.model.window.window_schedule import Every
from tests.airflow.browser import headless_chromium
from tests.airflow.stack.acts import Dag, cancel_backfills, connect, events_of, gone
from tests.airflow.stack.producers import Ack, PravegaProducer, Producer, PulsarProducer
from tests.airflow.ui.server import PATIENCE
from tests.airflow_versions import RUN_RULE

pytestmark = [pytest.mark.stack, pytest.mark.pulsar, pytest.mark.pravega, pytest.mark.timeout(3600)]

LENGTH = timedelta(seconds=5)
GRID = Every(LENGTH)
SLACK = timedelta(seconds=1)

Row = tuple[int, tuple[int, ...]]
"""Number and place of an event."""


@dataclass
class Reading:
    """A task that was stopped in the middle of a read: the run is at work, its window is not in the table."""

    process: psutil.Process
    run_id: str
    window: Window


@dataclass
class Lane:
    """One system: its source, the DAGs that read it, their table, and the producer of its events."""

    stack: Any
    name: str
    source: Any
    row: str
    """DuckDB's expressions of a row's number and place."""
    producer: Producer
    start: datetime
    """Of the first window: no event was sent before."""

    @property
    def every(self) -> Dag:
        """What reads each window once it is complete."""
        return Dag(self.stack, f"every_{self.name}")

    @property
    def reader(self) -> str:
        return f"{self.every.name}.read"

    def coverage(self, end: datetime) -> Coverage:
        with Journal.open(f"sqlite:///{self.stack.home}/streams_journal.db") as journal:
            return journal.coverage(self.source.key, self.reader, self.start, end, LENGTH)

    def complete(self) -> datetime:
        """The end of the newest window that can be read by now."""
        return GRID.before(datetime.now(UTC) - 2 * SLACK)

    def skipped(self) -> list[Window]:
        """The complete windows after the first read that nothing has read: those the page calls missing."""
        seen = dropwhile(lambda item: item.state == "missing", self.coverage(self.complete()).windows)
        return [item.window for item in seen if item.state == "missing"]

    def landed(self, end: datetime) -> dict[Window, list[Row]]:
        """What DuckDB finds in the folder of each window that is in the table."""
        found = {}
        for window in GRID.cells(self.start, end):
            start, stop = moment_label(window.start), moment_label(window.end)
            folder = self.stack.home / f"lake-every-{self.name}" / f"window_start={start}" / f"window_end={stop}"
            if folder.exists():
                files = [str(file) for file in folder.glob("*.parquet")]
                rows = duckdb.read_parquet(files).project(self.row).fetchall() if files else []
                found[window] = [(number, tuple(place)) for number, *place in rows]
        return found

    def runs(self, window: Window) -> list[tuple[str, str]]:
        """State and error of each of the journal's runs of a window."""
        with Journal.open(f"sqlite:///{self.stack.home}/streams_journal.db") as journal:
            return [(run.state, run.error_type) for run in journal.runs(self.source.key, self.reader, window)]

    # a read in its middle

    def stopped(self) -> Reading:
        """Stop a scheduled read in the middle: of many, one whose process could be stopped in time."""
        reading = self.every.until("no read was caught in the middle", self._catch)
        # the schedule goes on from when its DAG was parsed, which may be earlier
        self.start = min(self.start, *(window_of(run).start for run in self.every.runs("scheduled")))
        return reading

    def _catch(self) -> Reading | None:
        for run in self.every.runs("scheduled"):
            if run["state"] == "running":
                task = self.every.task(run["dag_run_id"], "read")
                if task["state"] == "running" and task["pid"]:
                    return self._stop(psutil.Process(task["pid"]), run["dag_run_id"])
        return None

    def _stop(self, process: psutil.Process, run_id: str) -> Reading | None:
        """Wait until the journal says that the read has begun, and stop it there; None: it was over before that."""
        run = (self.every.name, run_id)
        file = f"{self.stack.home}/streams_journal.db"
        with closing(sqlite3.connect(file, timeout=30)) as journal:
            while not (begun := _states(journal, run)):
                if gone(process):
                    return None
                time.sleep(0.002)
            process.suspend()
            at_work = _states(journal, run) == begun and begun[-1][0] == "running" and _is_free(file)
        window = Window(*(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=edge) for edge in begun[-1][1:]))
        if at_work and window not in self.landed(window.end):
            return Reading(process, run_id, window)
        process.resume()
        return None


def _states(journal: sqlite3.Connection, run: tuple[str, str]) -> list[tuple[str, int, int]]:
    sql = "SELECT state, window_start, window_end FROM streams_runs WHERE dag_id = ? AND run_id = ? ORDER BY id"
    return journal.execute(sql, run).fetchall()


def _is_free(file: str) -> bool:
    """Whether others can read and write: a process that was stopped while it wrote would keep them from it.

    If it was stopped while it closed a connection, only new connections wait for it.
    """
    with closing(sqlite3.connect(file, timeout=0.5)) as journal:
        try:
            journal.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        journal.rollback()
    return True


@pytest.fixture
def lanes(airflow_stack: Any, pulsar_server: Any, pravega_server: Any, canary: str) -> Iterator[tuple[Lane, Lane]]:
    """Pulsar's, whose token is the canary, and Pravega's; a recorder of Pravega's cuts is at work."""
    stack = airflow_stack
    pulsar_server.create_namespace("public/stack")
    topic = PulsarProducer(pulsar_server, pulsar_server.create_topic("public/stack/orders", 3))
    pravega_server.create_scope("stack")
    stream = PravegaProducer(pravega_server, pravega_server.create_stream("stack", "orders"), split_after=2_000)
    addresses = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    connect(stack, "pulsar_stack", "pulsar", token=canary, **addresses)
    connect(stack, "pravega_stack", "pravega", controller=pravega_server.controller_uri)
    pulsar = PulsarSource("public/stack/orders", conn_id="pulsar_stack")
    pravega = PravegaSource("stack/orders", conn_id="pravega_stack")
    with Dag(stack, "record_orders", watches="stack_orders_cuts").unpaused():
        stack.until("no cut was recorded", lambda: cuts_of(stack, pravega))
        start = GRID.before(cuts_of(stack, pravega)[0][0])
        value, event = "value::VARCHAR::BIGINT, partition, ledger, entry, batch_index", "event::VARCHAR::BIGINT"
        made = Lane(stack, "pulsar", pulsar, value, topic, start), Lane(stack, "pravega", pravega, event, stream, start)
        try:
            yield made
        finally:
            for lane in made:
                lane.producer.stop()
    pulsar_server.delete_namespace("public/stack")


def cuts_of(stack: Any, source: PravegaSource) -> list[tuple[datetime, datetime]]:
    """Between which moments each recorded cut was taken, in order."""
    with Journal.open(f"sqlite:///{stack.home}/streams_journal.db") as journal:
        return [(entry.sampled_from, entry.sampled_to) for entry in journal.recorded_cuts(source.key, 10_000)]


@pytest.mark.slow
def test_every_acknowledged_event_is_in_its_window_once_after_kills_and_through_both_backfills(
    airflow_stack, lanes, canary
):
    for lane in lanes:
        lane.producer.start()
    with ExitStack() as scheduled:
        for lane in lanes:
            scheduled.enter_context(lane.every.unpaused())
        lose_scheduler_and_workers(airflow_stack, lanes)
        with page_of(airflow_stack) as page:
            for lane in lanes:
                fill_by_page(page, lane)

    pulsar, pravega = lanes
    taken, stored = (lane.producer.end() for lane in lanes)
    end = GRID.after(max(ack.taken for ack in chain(taken.values(), stored.values())))
    for lane in lanes:
        lane.every.until("the last window is not over", lambda lane=lane: lane.complete() >= end)
        fill_by_operator(lane, end)
        coverage_is_the_table(lane, end)
        assert lane.coverage(end).is_complete
    each_message_is_in_its_window(pulsar.landed(end), taken)
    each_event_is_in_its_window(pravega.landed(end), stored, cuts_of(airflow_stack, pravega.source))
    for lane in lanes:
        airflow_is_told(lane)
    assert events_of(airflow_stack, "stack_orders_cuts") == [], "a recorder announces nothing"
    nothing_shows(airflow_stack, canary)


def lose_scheduler_and_workers(stack: Any, lanes: tuple[Lane, Lane]) -> None:
    """Kill the scheduler, its workers and their tasks in the middle of a read of each system."""
    readings = [lane.stopped() for lane in lanes]
    stack.kill("scheduler")
    for lane, reading in zip(lanes, readings, strict=True):
        stack.until("the task lives", lambda reading=reading: gone(reading.process))
        assert lane.runs(reading.window) == [("running", "")], "it could not note how it ended"
        assert reading.window not in lane.landed(reading.window.end)
    stack.start("scheduler")
    for lane, reading in zip(lanes, readings, strict=True):
        lane.every.succeed(reading.run_id)
        first, *_, last = lane.runs(reading.window)
        assert (first, last) == (("failed", "Superseded"), ("covered", ""))


def airflow_is_told(lane: Lane) -> None:
    """What the newest scheduled run says of its window: in its result, in the table's asset event, and in its logs."""
    *_, run = (one for one in lane.every.runs("scheduled") if one["state"] == "success")
    got, window = lane.every.xcom(run["dag_run_id"], "read"), window_of(run)
    assert (got["window_rule"], got["window"]) == (RUN_RULE, window.to_json())
    assert got["rows"] == len(lane.landed(window.end)[window])
    told = lane.stack.call("GET", f"/api/v2/assets/events?source_dag_id={lane.every.name}&limit=100")["asset_events"]
    (event,) = [one for one in told if one["source_run_id"] == run["dag_run_id"]]
    assert event["extra"]["fingerprint"] == got["fingerprint"]
    assert event.get("partition_key") == run.get("partition_key")
    assert got["fingerprint"][:12] in lane.every.log(run["dag_run_id"], "read"), "the plan's table is logged"
    assert any(".trigger." in log.name for log in lane.every.log_files(run["dag_run_id"], "ready")), "it was deferred"


def window_of(run: dict[str, Any]) -> Window:
    start = datetime.fromisoformat(run.get("partition_key") or run["data_interval_start"]).replace(tzinfo=UTC)
    return Window(start, start + LENGTH)


def nothing_shows(stack: Any, secret: str) -> None:
    """A connection's secret is in no log, and in no database."""
    assert secret not in stack.task_logs()
    assert secret not in stack.tail()
    for name in ("airflow.db", "streams_journal.db"):
        with closing(sqlite3.connect(stack.home / name)) as database:
            assert secret not in "\n".join(database.iterdump())


@contextmanager
def page_of(stack: Any) -> Iterator[Any]:
    """The coverage page of the running Airflow, in a browser."""
    address = f"http://localhost:{stack.port}"
    with headless_chromium() as browser:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": "_token", "value": stack.token, "url": address}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/plugin/streams", wait_until="domcontentloaded")
        yield page


def fill_by_page(page: Any, lane: Lane) -> None:
    """Drag over two windows that are missing, and press the button: Airflow's own backfill reads them."""
    windows = lane.skipped()[:2]
    assert windows, "while a read was held, none of the same DAG was begun"
    one = start_on_page(page, lane, Window(windows[0].start, windows[-1].end))
    lane.every.until(
        "the backfill did not end", lambda: lane.stack.call("GET", f"/api/v2/backfills/{one['id']}")["completed_at"]
    )
    assert {window_of(run) for run in lane.every.runs("backfill")} & {*windows}
    assert not {*windows} & {*lane.skipped()}
    select_span(page, lane, Window(windows[0].start, windows[-1].end))
    page.wait_for_selector(".st-panel >> text=Nothing to do")


def start_on_page(page: Any, lane: Lane, span: Window) -> dict[str, Any]:
    """Press the button until it starts a backfill, which Airflow's SQLite may refuse, see `start_backfill`."""
    while True:
        select_span(page, lane, span)
        page.get_by_role("button", name="Fill in Airflow").click()
        said = lane.stack.api_server_said()
        with page.expect_response(lambda answer: answer.url.endswith("/api/v2/backfills")) as posted:
            page.get_by_role("button", name=re.compile(r"Yes, start \d+ runs?")).click()
        answer = posted.value
        if not lane.stack.was_locked(answer.status, answer.text(), said):
            assert answer.ok, answer.text()
            page.wait_for_selector(".st-panel >> text=Started.")
            return answer.json()
        page.wait_for_selector(".st-panel [role='alert']")
        cancel_backfills(lane.stack, lane.every.name)


def select_span(page: Any, lane: Lane, span: Window) -> None:
    """Look at the minutes around a span, and drag over it."""
    minute = Every(timedelta(minutes=1))
    first, last = minute.before(span.start), minute.after(span.end)
    page.reload(wait_until="domcontentloaded")
    page.wait_for_selector(f".st-lane[aria-label*='{lane.reader}']")
    page.get_by_role("radio", name="Custom").click()
    for label, edge in (("end", last), ("start", first)):
        field = page.get_by_label(f"{label} of the range")
        field.fill(f"{edge:%Y-%m-%d %H:%M}")
        with page.expect_response(lambda answer: "/timeline/" in answer.url):
            field.press("Enter")
    # an answer may be another lane's: over a lane without windows, the mouse selects nothing
    page.wait_for_selector(f".st-lane[aria-label*='{lane.reader}']:not([data-windows=''])")
    drawn = page.locator(f".st-lane[aria-label*='{lane.reader}']")
    drawn.scroll_into_view_if_needed()  # below the lanes of other tests' readers
    lane_box = drawn.bounding_box()
    middle = lane_box["y"] + lane_box["height"] / 2
    inside = (span.start + SLACK, span.end - SLACK)
    begin, end = (lane_box["x"] + lane_box["width"] * ((at - first) / (last - first)) for at in inside)
    page.mouse.move(begin, middle)
    page.mouse.down()
    page.mouse.move((begin + end) / 2, middle, steps=3)
    page.mouse.move(end, middle, steps=3)
    page.mouse.up()
    page.wait_for_selector(".st-panel >> text=Backfill preview")


def fill_by_operator(lane: Lane, end: datetime) -> None:
    """What is still missing, by `BackfillWindowsOperator` in one job."""
    dag, seen = Dag(lane.stack, f"fill_{lane.name}"), lane.coverage(end).windows
    missing = {str(item.window) for item in seen if item.state != "covered"}
    with dag.unpaused():
        run = dag.start({"start": lane.start.isoformat(), "end": end.isoformat()})
        dag.succeed(run)
    done = dag.xcom(run, "fill")
    assert {*done["covered"]} <= missing, "a read that was under way may have covered one meanwhile"
    assert (done["jobs"], done["failures"]) == (1, {})


def coverage_is_the_table(lane: Lane, end: datetime) -> None:
    """The windows that the journal covers are those in the table, with as many rows."""
    known = {item.window: item.rows for item in lane.coverage(end).windows if item.state == "covered"}
    assert {window: len(rows) for window, rows in lane.landed(end).items()} == known


def each_message_is_in_its_window(landed: dict[Window, list[Row]], acks: dict[int, Ack]) -> None:
    """Every acknowledged message is in the table once, with its id, in the window in which it was published."""
    rows = list(chain.from_iterable(landed.values()))
    assert sorted(rows) == sorted((number, ack.place) for number, ack in acks.items())
    entries: dict[tuple[int, ...], list[Ack]] = {}
    for ack in acks.values():  # a batch has one publish time, its first message's
        entries.setdefault(ack.place[:3], []).append(ack)
    for window, found in landed.items():
        for number, place in found:
            first = min(ack.sent for ack in entries[place[:3]])
            assert first < window.end, number
            assert acks[number].taken >= window.start, number


def each_event_is_in_its_window(
    landed: dict[Window, list[Row]], acks: dict[int, Ack], cuts: list[tuple[datetime, datetime]]
) -> None:
    """Every acknowledged event is in the table once, between the cuts that were recorded at its window's edges."""
    assert sorted(number for rows in landed.values() for number, _ in rows) == sorted(acks)
    for window, rows in landed.items():
        began = next(sampled for sampled, _ in cuts if sampled >= window.start)
        ended = next(until for sampled, until in cuts if sampled >= window.end)
        for number, _ in rows:
            assert acks[number].taken >= began, number
            assert acks[number].sent <= ended, number
