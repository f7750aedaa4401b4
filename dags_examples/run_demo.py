"""The main job from nothing: a real broker, 200,000 events, adjacent windows through Airflow, and the proof.

    python dags_examples/run_demo.py pulsar [--events 200000]

Everything it starts listens on loopback, lives in a temporary folder and is gone at its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pulsar

    from airflow_provider_streams.testing.servers.pulsar import PulsarServer

HERE = Path(__file__).parent
TOPIC = "persistent://public/demo/orders"
PARTITIONS = 3
WINDOW = timedelta(seconds=4)
PART = timedelta(seconds=7)
"""How long each of two parts of the events is published; a silent window lies between them."""
BATCH_SIZES = (1, 7, 100, 1000)
"""One producer for each; 1 is an unbatched one. Its share of the events is small, as single entries are slow."""
SHARES = (2, 13, 35, 50)


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
class Published:
    """What the producers say they sent, and when."""

    events: int
    start: datetime
    windows: int
    empty: int
    """The window in which nothing was published."""

    def window(self, number: int) -> tuple[datetime, datetime]:
        """Start and end of the window with this number."""
        return self.start + number * WINDOW, self.start + (number + 1) * WINDOW


def create_topic(server: PulsarServer) -> None:
    """A namespace that keeps everything, and a topic of three partitions in it."""
    import httpx

    admin = httpx.Client(base_url=server.admin_url + "/admin/v2", timeout=30)
    admin.put("/namespaces/public/demo").raise_for_status()
    forever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    admin.post("/namespaces/public/demo/retention", json=forever).raise_for_status()
    admin.put("/persistent/public/demo/orders/partitions", json=PARTITIONS).raise_for_status()


def publish(server: PulsarServer, events: int) -> Published:
    """Publish numbered, keyed events at a steady rate across window borders, with a silent window in the middle."""
    import pulsar

    client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        start = datetime.fromtimestamp(int(time.time()) + 1, UTC)
        publish_part(client, range(events // 2), start)
        empty = passed(start) + 1
        resume = start + (empty + 1) * WINDOW
        say(f"   a pause over window {empty}")
        wait_until(resume)
        publish_part(client, range(events // 2, events), resume)
    finally:
        client.close()
    return Published(events, start, passed(start) + 1, empty)


def publish_part(client: pulsar.Client, numbers: range, start: datetime) -> None:
    """Some of the events, spread over `PART` from `start` on, by producers of different batch sizes at once."""
    failures: list[object] = []
    borders = [numbers.start + len(numbers) * percent // 100 for percent in accumulate(SHARES, initial=0)]
    parts = [(size, range(*borders[n : n + 2]), start, failures) for n, size in enumerate(BATCH_SIZES)]
    threads = [threading.Thread(target=send, args=(client, *part)) for part in parts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        threads[-1].join(timeout=2)
        say(f"   publishing, {min((datetime.now(UTC) - start) / PART, 1):.0%} of this part")
    if failures:
        sys.exit(f"{len(failures)} events were not accepted: {failures[0]}")


def send(client: pulsar.Client, batch_size: int, numbers: range, start: datetime, failures: list[object]) -> None:
    """One producer's events, each when it is due; a slow machine sends them later."""
    import pulsar

    producer = client.create_producer(
        TOPIC,
        batching_enabled=batch_size > 1,
        batching_max_messages=max(batch_size, 2),
        batching_max_publish_delay_ms=20,
        max_pending_messages=20_000,
        block_if_queue_full=True,
    )
    dice = random.Random(batch_size)  # noqa: S311 - payload sizes
    for done, number in enumerate(numbers):
        wait_until(start + PART * done / len(numbers))
        producer.send_async(
            b"%d " % number + b"x" * dice.randrange(20, 180),
            callback=lambda result, _: result == pulsar.Result.Ok or failures.append(result),
            partition_key=f"customer-{number % 997}",
        )
    producer.flush()
    producer.close()


def wait_until(moment: datetime) -> None:
    """Sleep while it is earlier than that."""
    while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(seconds)


def passed(start: datetime) -> int:
    """The number of the window that is now."""
    return (datetime.now(UTC) - start) // WINDOW


def airflow_home(folder: Path, server: PulsarServer) -> None:
    """A fresh Airflow whose connection `pulsar_demo` is the broker; must run before Airflow is imported."""
    connection = {"conn_type": "pulsar", "extra": {"service_url": server.service_url, "admin_url": server.admin_url}}
    os.environ |= {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore",
        "AIRFLOW_CONN_PULSAR_DEMO": json.dumps(connection),
        "DEMO_LAKE": str(folder / "lake"),
    }
    (folder / "dags").mkdir()


def load_dag() -> Any:
    """The example DAG, stored where Airflow's task runner looks for it."""
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    initdb()
    with create_session() as session:
        session.merge(DagBundleModel(name="demo"))
    bag = DagBag(dag_folder=str(HERE / "pulsar_demo.py"), bundle_name="demo")
    if bag.import_errors:
        sys.exit(str(bag.import_errors))
    sync_bag_to_db(bag, "demo", None)
    return bag.dags["pulsar_demo"]


def run_window(dag: Any, start: datetime, end: datetime) -> dict[str, Any]:
    """One DAG run; prints the plan that it pinned, returns its receipt in short, as Airflow's XCom has it."""
    from airflow.utils.state import DagRunState

    run = dag.test(logical_date=datetime.now(UTC), run_conf={"window": f"{start.isoformat()}/{end.isoformat()}"})
    if run.state != DagRunState.SUCCESS:
        sys.exit(f"the run of window {start:%H:%M:%S} ended as {run.state}")
    show_plan(start, end)
    return run.get_task_instance("read").xcom_pull(task_ids="read")


def show_plan(start: datetime, end: datetime) -> None:
    """The pinned plan as a person checks it."""
    from airflow_provider_streams import PulsarSource, Window
    from airflow_provider_streams.hooks.journal import open_journal
    from airflow_provider_streams.model.plan_table import plan_table

    source = PulsarSource(TOPIC, conn_id="pulsar_demo")
    with open_journal() as journal:
        plan = journal.pinned(source.key, "demo", Window(start, end))
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


def show_coverage(published: Published) -> None:
    """What the journal knows now."""
    from airflow_provider_streams.hooks.journal import open_journal

    with open_journal() as journal:
        (source_key, reader), *_ = journal.sources()
        start, end = published.start, published.window(published.windows - 1)[1]
        say(journal.coverage(source_key, reader, start, end).as_text())


def prove(lake: Path, published: Published) -> None:
    """From the landed files alone: every number exactly once, in the window of its publish time.

    Raises:
        SystemExit: a number is missing, doubled or in a wrong window.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from airflow_provider_streams import Window

    table = ds.dataset(lake / "orders", partitioning="hive").to_table()
    numbers = pc.cast(pc.list_element(pc.split_pattern(pc.cast(table["value"], "string"), " "), 0), "int64")
    distinct = pc.count_distinct(numbers).as_py()
    low, high = pc.min_max(numbers).as_py().values()
    say(f"   landed rows {table.num_rows:,}, distinct numbers {distinct:,}, from {low} to {high:,}")
    complete = table.num_rows == distinct == published.events
    if not complete or (low, high) != (0, published.events - 1):
        sys.exit("PROOF FAILED: not every number landed exactly once")
    for number in range(published.windows):
        start, end = published.window(number)
        rows = table.filter(pc.equal(pc.cast(table["window_start"], "string"), Window(start, end).label))
        times = pc.min_max(rows["publish_time"]).as_py()
        say(f"   window {number}  {rows.num_rows:>8,} rows  published {_span(times)}")
        if bool(rows.num_rows) == (number == published.empty):
            sys.exit(f"PROOF FAILED: window {number} should {'not ' if rows.num_rows else ''}be empty")
        if rows.num_rows and not start <= times["min"] <= times["max"] < end:
            sys.exit(f"PROOF FAILED: a row of window {number} was published outside of it")
    say(f"   PROVEN: {published.events:,} numbers, each exactly once, each in its window")


def _span(times: dict[str, datetime | None]) -> str:
    if not times["min"]:
        return "-"
    return f"{times['min']:%H:%M:%S.%f} .. {times['max']:%H:%M:%S.%f}"


def demo_pulsar(folder: Path, events: int) -> None:
    """The whole story on Pulsar."""
    from airflow_provider_streams.testing.servers.pulsar import PulsarServer

    with step("a real Pulsar broker on loopback"):
        server = PulsarServer()
        server.start()
    try:
        with step(f"{events:,} keyed events into {PARTITIONS} partitions, in batches of {BATCH_SIZES}"):
            create_topic(server)
            published = publish(server, events)
        airflow_home(folder, server)
        with step("a fresh Airflow"):
            dag = load_dag()
        length = f"{WINDOW.total_seconds():.0f} s"
        with step(f"{published.windows} adjacent windows of {length} through Airflow, one of them empty"):
            receipts = [run_window(dag, *published.window(number)) for number in range(published.windows)]
        with step("window 0 once more: the same plan, the same rows"):
            again = run_window(dag, *published.window(0))
            same = {name: again[name] for name in ("fingerprint", "rows", "bytes", "start_cut", "end_cut")}
            if same != {name: receipts[0][name] for name in same}:
                sys.exit("PROOF FAILED: the re-run differs")
        say("\n== receipts")
        for number, receipt in enumerate(receipts):
            show_receipt(number, receipt)
        show_receipt(0, again)
        say("\n== coverage")
        show_coverage(published)
        say("\n== proof, from the landed files alone")
        prove(folder / "lake", published)
    finally:
        server.stop()


DEMOS = {"pulsar": demo_pulsar}


def main() -> None:
    """Run the demos that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="*", default=sorted(DEMOS), help=f"one of {', '.join(DEMOS)}; default all")
    parser.add_argument("--events", type=int, default=200_000)
    arguments = parser.parse_args()
    for system in arguments.system:
        with tempfile.TemporaryDirectory(prefix="streams-demo-") as folder, quiet_stderr(Path(folder) / "demo.log"):
            DEMOS[system](Path(folder), arguments.events)


if __name__ == "__main__":
    main()
