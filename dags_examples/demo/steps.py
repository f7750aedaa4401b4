"""What the demos of all systems share: steps with their time, a fresh Airflow, runs of windows, what they show."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.model.stream.source import Source

HERE = Path(__file__).parent.parent
"""Where the example DAGs are."""
WINDOW = timedelta(seconds=4)
READER = "demo"


def say(text: str = "") -> None:
    """One line, at once."""
    print(text, flush=True)


@contextmanager
def quiet_stderr(log: Path) -> Iterator[None]:
    """Spark's and Airflow's own remarks go to a file, which is shown only when the demo fails."""
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except BaseException:
        say(f"\n-- the end of {log.name}:\n" + log.read_text(errors="replace")[-4000:])
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def step(title: str) -> Iterator[None]:
    """A phase of the demo with its time."""
    say(f"\n== {title}")
    began = time.perf_counter()
    yield
    say(f"   done in {time.perf_counter() - began:.1f} s")


@dataclass(frozen=True)
class Written:
    """What the writers say they wrote, and when."""

    events: int
    start: datetime
    windows: int
    empty: int
    """The window in which nothing was written."""

    def window(self, number: int) -> tuple[datetime, datetime]:
        """Start and end of the window with this number."""
        return self.start + number * WINDOW, self.start + (number + 1) * WINDOW


def wait_until(moment: datetime) -> None:
    """Sleep while it is earlier than that."""
    while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(seconds)


def run_threads(threads: Sequence[threading.Thread], start: datetime, length: timedelta) -> None:
    """Start threads and wait for their end; says how far they are."""
    for thread in threads:
        thread.start()
    while alive := [thread for thread in threads if thread.is_alive()]:
        alive[0].join(timeout=2)
        say(f"   writing, {min((datetime.now(UTC) - start) / length, 1):.0%} of this part")


def passed(start: datetime) -> int:
    """The number of the window that is now."""
    return (datetime.now(UTC) - start) // WINDOW


def airflow_home(folder: Path, connections: Mapping[str, Mapping[str, Any]]) -> None:
    """A fresh Airflow with these connections; must run before Airflow is imported."""
    os.environ |= {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore",
    }
    os.environ |= {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections.items()}
    (folder / "dags").mkdir()


def load_dag(name: str) -> Any:
    """An example DAG, stored where Airflow's task runner looks for it; its file has its name."""
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    from airflow_provider_streams.airflow_features import dag_bags

    initdb()
    with create_session() as session:
        session.merge(DagBundleModel(name="demo"))
    bag = dag_bags().DagBag(dag_folder=str(HERE / f"{name}.py"), bundle_name="demo")
    if bag.import_errors:
        sys.exit(str(bag.import_errors))
    dag_bags().sync_bag_to_db(bag, "demo", None)
    return bag.dags[name]


def read_windows(dag: Any, source: Source, written: Written) -> list[dict[str, Any]]:
    """Every window through Airflow, then the first one again: it must read the same. Their receipts in short."""
    seconds = f"{WINDOW.total_seconds():.0f} s"
    with step(f"{written.windows} adjacent windows of {seconds} through Airflow, one of them empty"):
        receipts = [run_window(dag, source, *written.window(number)) for number in range(written.windows)]
    with step("window 0 once more: the same plan, the same rows"):
        again = run_window(dag, source, *written.window(0))
        same = {name: again[name] for name in ("fingerprint", "rows", "bytes", "start_cut", "end_cut")}
        if same != {name: receipts[0][name] for name in same}:
            sys.exit("PROOF FAILED: the re-run differs")
    say("\n== receipts")
    for number, receipt in enumerate(receipts):
        show_receipt(number, receipt)
    show_receipt(0, again)
    say("\n== coverage")
    show_coverage(source, written)
    return receipts


def run_window(dag: Any, source: Source, start: datetime, end: datetime) -> dict[str, Any]:
    """One DAG run; prints the plan that it pinned, returns its receipt in short, as Airflow's XCom has it."""
    from airflow.utils.state import DagRunState

    run = dag.test(logical_date=datetime.now(UTC), run_conf={"window": f"{start.isoformat()}/{end.isoformat()}"})
    if run.state != DagRunState.SUCCESS:
        sys.exit(f"the run of window {start:%H:%M:%S} ended as {run.state}")
    show_plan(source, start, end)
    return run.get_task_instance("read").xcom_pull(task_ids="read")


def show_plan(source: Source, start: datetime, end: datetime) -> None:
    """The pinned plan as a person checks it."""
    from airflow_provider_streams import Window
    from airflow_provider_streams.connections.journal import open_journal
    from airflow_provider_streams.model.plan.plan_summary import plan_table

    with open_journal() as journal:
        plan = journal.pinned(source.key, READER, Window(start, end))
    if plan is None:
        sys.exit("the plan was not pinned")
    say(plan_table(plan) + "\n")


def show_receipt(number: int, receipt: dict[str, Any]) -> None:
    """One line of what a window's read says."""
    say(
        f"   window {number}  {receipt['window']['start'][11:19]}..{receipt['window']['end'][11:19]}"
        f"  rows {receipt['rows']:>8,}  bytes {receipt['bytes']:>11,}  splits {receipt['splits']:>2}"
        f"  fingerprint {receipt['fingerprint'][:8]}  {receipt['verdict']}"
    )


def show_coverage(source: Source, written: Written) -> None:
    """What the journal knows now."""
    from airflow_provider_streams.connections.journal import open_journal
    from airflow_provider_streams.model.window.coverage_timeline import draw

    with open_journal() as journal:
        start, end = written.start, written.window(written.windows - 1)[1]
        say(draw(journal.coverage(source.key, READER, start, end)))


def rows_by_window(table: pa.Table, written: Written) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each window, by its number; the silent one is empty, and on a slow machine others may be as well.

    Raises:
        SystemExit: it is not.
    """
    import pyarrow.compute as pc

    for number in range(written.windows):
        rows = table.filter(pc.equal(table["window_start"], written.window(number)[0]))
        if rows.num_rows and number == written.empty:
            sys.exit(f"PROOF FAILED: window {number} should be empty")
        yield number, rows
