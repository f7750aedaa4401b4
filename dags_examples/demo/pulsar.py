"""Pulsar: producers of every batch size at a steady rate; each event lands in the window of its publish time.

The topic has an Avro schema, and its fields are the table's columns.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from demo.lake import CONN_ID, Lake, lake
from demo.orders import SCHEMA, order
from demo.steps import (
    WINDOW,
    Written,
    airflow_home,
    load_dag,
    passed,
    read_windows,
    rows_by_window,
    run_threads,
    say,
    step,
    wait_until,
)

if TYPE_CHECKING:
    import pulsar

    from stream_servers.pulsar import PulsarServer

TOPIC = "persistent://public/demo/orders"
PARTITIONS = 3
PART = timedelta(seconds=7)
"""How long each of two parts of the events is published; a silent window is between them."""
BATCH_SIZES = (1, 7, 100, 1000)
"""One producer for each; 1 is an unbatched one. Its share of the events is small, as single entries are slow."""
SHARES = (2, 13, 35, 50)


def demo_pulsar(folder: Path, events: int) -> None:
    """The whole story on Pulsar."""
    from airflow_provider_streams import PulsarSource
    from stream_servers.pulsar import PulsarServer

    with step("a real Pulsar broker on loopback"):
        server = PulsarServer()
        server.start()
    try:
        with lake() as table:
            with step(f"{events:,} keyed Avro events into {PARTITIONS} partitions, in batches of {BATCH_SIZES}"):
                create_topic(server)
                written = publish(server, events)
            extra = {"service_url": server.service_url, "admin_url": server.admin_url}
            broker = {"conn_type": "pulsar", "extra": extra}
            airflow_home(folder, {"pulsar_demo": broker, CONN_ID: table.connection})
            with step("a fresh Airflow"):
                dag = load_dag("pulsar_demo")
            read_windows(dag, PulsarSource(TOPIC, value="auto", conn_id="pulsar_demo"), written)
            prove(table, written)
    finally:
        server.stop()


def create_topic(server: PulsarServer) -> None:
    """A namespace that keeps everything, and a topic of three partitions in it."""
    import httpx

    admin = httpx.Client(base_url=server.admin_url + "/admin/v2", timeout=30)
    admin.put("/namespaces/public/demo").raise_for_status()
    forever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    admin.post("/namespaces/public/demo/retention", json=forever).raise_for_status()
    admin.put("/persistent/public/demo/orders/partitions", json=PARTITIONS).raise_for_status()


def publish(server: PulsarServer, events: int) -> Written:
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
    return Written(events, start, passed(start) + 1, empty)


def publish_part(client: pulsar.Client, numbers: range, start: datetime) -> None:
    """Some of the events, spread over `PART` from `start` on, by producers of different batch sizes at once."""
    failures: list[object] = []
    borders = [numbers.start + len(numbers) * percent // 100 for percent in accumulate(SHARES, initial=0)]
    parts = [(size, range(*borders[n : n + 2]), start, failures) for n, size in enumerate(BATCH_SIZES)]
    threads = [threading.Thread(target=send, args=(client, *part)) for part in parts]
    run_threads(threads, start, PART)
    if failures:
        sys.exit(f"{len(failures)} events were not accepted: {failures[0]}")


def send(client: pulsar.Client, batch_size: int, numbers: range, start: datetime, failures: list[object]) -> None:
    """One producer's events, each when it is due; a slow machine sends them later."""
    import pulsar
    from pulsar.schema import AvroSchema

    producer = client.create_producer(
        TOPIC,
        schema=AvroSchema(None, schema_definition=SCHEMA),
        batching_enabled=batch_size > 1,
        batching_max_messages=max(batch_size, 2),
        batching_max_publish_delay_ms=20,
        max_pending_messages=20_000,
        block_if_queue_full=True,
    )
    for done, number in enumerate(numbers):
        wait_until(start + PART * done / len(numbers))
        producer.send_async(
            (event := order(number)),
            callback=lambda result, _: result == pulsar.Result.Ok or failures.append(result),
            partition_key=event["customer"],
        )
    producer.flush()
    producer.close()


def prove(table: Lake, written: Written) -> None:
    """Every order exactly once, in the window of its publish time.

    Raises:
        SystemExit: one is missing, doubled, changed, or in a wrong window.
    """
    import pyarrow.compute as pc

    say("\n== proof, by DuckDB from the catalog alone")
    for number, rows in rows_by_window(table.read(written.events), written):
        times = pc.min_max(rows["_publish_time"]).as_py()
        say(f"   window {number}  {rows.num_rows:>8,} rows  published {_span(times)}")
        start, end = written.window(number)
        if rows.num_rows and not start <= times["min"] <= times["max"] < end:
            sys.exit(f"PROOF FAILED: a row of window {number} was published outside of it")
    say(f"   PROVEN: {written.events:,} orders, each exactly once, each in its window")
    say("\n== a question to the table")
    table.show_sales(written.events)


def _span(times: dict[str, datetime | None]) -> str:
    if not times["min"]:
        return "-"
    return f"{times['min']:%H:%M:%S.%f} .. {times['max']:%H:%M:%S.%f}"
