"""A journal with a past: sources whose windows were covered, failed, lost or forgotten, written in bulk."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, insert, select

from airflow_provider_streams.journal import landings, row_ids
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import pins, readers, runs
from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range, SourceRef, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import source_to_json

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Chapter:
    """One reader of one source, and what became of its windows; indexes count back from the newest window, 1."""

    key: str
    reader: str
    count: int
    length: timedelta = HOUR
    rows: int = 40_000
    missing: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    running: frozenset[int] = frozenset()
    planned: frozenset[int] = frozenset()
    retried: frozenset[int] = frozenset()
    unproven: frozenset[int] = frozenset()
    torn: frozenset[int] = frozenset()
    """Of each, five events could not be decoded, and are kept aside."""
    shifted: frozenset[int] = frozenset()
    """Half a length too early: they share time with the ones before."""
    transform: str | None = None
    dag: str = ""
    """Who ran it, if not the DAG that the reader is named for."""

    @property
    def dag_id(self) -> str:
        return self.dag or self.reader.rpartition(".")[0]

    @property
    def table(self) -> str:
        """Where its rows lie."""
        return f"/lake/{self.key.rpartition(':')[2].strip('/')}"

    @property
    def task_id(self) -> str:
        return self.reader.rpartition(".")[2]


def the_shop() -> list[Chapter]:
    """What the pictures of the documentation show: a few sources, each with its own trouble."""

    def span(first: int, last: int) -> frozenset[int]:
        return frozenset(range(first, last + 1))

    pulsar, pravega = "pulsar:pulsar_default:persistent://", "pravega:pravega_default:"
    return [
        Chapter(
            f"{pulsar}shop/orders/events",
            "shop_orders.read",
            720,
            rows=81_197,
            running=span(1, 1),
            failed=span(8, 9),
            missing=span(15, 17),
            retried=span(3, 3) | span(30, 31),
            unproven=span(20, 21),
            transform="shop.orders:flatten",
            lost=span(700, 712),
        ),
        Chapter(
            f"{pulsar}shop/orders/returns",
            "shop_orders.read_returns",
            720,
            rows=3_204,
            failed=span(170, 171),
            missing=span(400, 419),
        ),
        Chapter(
            f"{pulsar}shop/payments/settled",
            "shop_payments.read",
            720,
            rows=22_410,
            planned=span(1, 2),
            missing=span(60, 61),
        ),
        Chapter(
            f"{pulsar}shop/stock/movements",
            "shop_stock.every_quarter",
            2880,
            timedelta(minutes=15),
            rows=9_130,
            missing=span(20, 23) | span(41, 41),
            failed=span(30, 30),
            running=span(1, 1),
        ),
        Chapter(
            f"{pulsar}web/clicks/raw", "web_clicks.read", 720, rows=1_204_000, lost=span(19, 24), missing=span(12, 13)
        ),
        Chapter(
            f"{pravega}factory/sensors", "factory.read_sensors", 720, rows=640_000, failed=span(5, 5) | span(90, 96)
        ),
        Chapter(f"{pravega}factory/alarms", "factory.read_alarms", 720, rows=212),
        Chapter(f"{pravega}fleet/positions", "fleet.daily", 30, timedelta(days=1), rows=18_400_000, missing=span(4, 4)),
    ]


def a_crowd(sources: int, windows: int, seed: int = 1) -> list[Chapter]:
    """Many sources with many hourly windows, one in twelve of which is not covered."""
    random_ = random.Random(seed)  # noqa: S311 - the same past each time

    def some() -> frozenset[int]:
        return frozenset(random_.sample(range(1, windows), windows // 48))

    return [
        Chapter(
            f"pulsar:pulsar_default:persistent://load/topics/t{number:03}",
            f"load.read_{number:03}",
            windows,
            missing=some(),
            failed=some(),
            lost=some(),
            planned=some(),
        )
        for number in range(sources)
    ]


def write(url: str, chapters: Iterable[Chapter], now: datetime, seed: int = 7) -> None:
    """Add the chapters to the journal; the newest window of each ends with the last whole length before `now`."""
    random_ = random.Random(seed)  # noqa: S311 - the same past each time
    database = Database(url)
    try:
        for chapter in chapters:
            reader_id = row_ids.ensure_reader(database, chapter.key, chapter.reader)
            row_ids.Readers(database).store_source(chapter.key, _source(chapter.key))
            with database.writing() as connection:
                connection.execute(row_ids.change(reader_id))
                landing_id = _landing(connection, chapter, reader_id)
                first = _next_id(connection.exec_driver_sql("SELECT max(id) FROM streams_pins").scalar())
                pinned, tries = _rows(chapter, reader_id, now, random_, first)
                connection.execute(insert(pins), pinned)
                connection.execute(insert(runs), [{**one, "landing_id": landing_id} for one in tries])
    finally:
        database.close()


def write_plain(url: str, chapter: Chapter, now: datetime) -> None:
    """As `write`, for windows that are covered or missing, in any number: their plans are not to be read."""
    database = Database(url)
    reader_id = row_ids.ensure_reader(database, chapter.key, chapter.reader)
    one = {"state": "covered", "dag_id": chapter.dag_id, "task_id": chapter.task_id, "map_index": -1, "try_number": 1}
    with database.writing() as connection:
        connection.execute(row_ids.change(reader_id))
        landing_id = _landing(connection, chapter, reader_id)
        first = _next_id(connection.exec_driver_sql("SELECT max(id) FROM streams_pins").scalar())
        windows = [window for index, window in _windows(chapter, now) if index not in chapter.missing]
        of_window = [
            {"reader_id": reader_id, "window_start": window.start, "window_end": window.end} for window in windows
        ]
        pinned = {"generation": 1, "fingerprint": "0" * 32, "pinned_at": now, "plan": "{}"}
        connection.execute(insert(pins), [{"id": first + n, **one_, **pinned} for n, one_ in enumerate(of_window)])
        done = {
            **one,
            "run_id": "r",
            "started_at": now,
            "finished_at": now,
            "rows": 5,
            "bytes": 50,
            "verdict": "complete",
        }
        tries = [{**one_, **done, "pin_id": first + n, "landing_id": landing_id} for n, one_ in enumerate(of_window)]
        connection.execute(insert(runs), tries)
    database.close()


def forget(url: str, reader: str) -> None:
    """Take a reader's windows out of the journal again."""
    database = Database(url)
    with database.writing() as connection:
        for number in connection.execute(select(readers.c.id).where(readers.c.reader == reader)).scalars().all():
            row_ids.forget_reader(connection, number)
    database.close()


def _source(key: str) -> dict[str, object]:
    """A source as its reader writes it down."""
    system, conn_id, name = key.split(":", 2)
    return source_to_json(declaration_of(system).source([name], conn_id))


def _landing(connection: Connection, chapter: Chapter, reader_id: int) -> int:
    """What the reader lands, on a window schedule of its windows' length; its number."""
    if (known := landings.current(connection, reader_id)) is None:
        landing = Landing(ParquetSink(chapter.table), chapter.transform).to_json()
        basis = "append" if chapter.key.startswith("pravega") else "publish"
        window_schedule = "1d" if chapter.length == timedelta(days=1) else str(Every(chapter.length))
        connection.execute(landings.insertion(reader_id, landings.NewLanding(landing, window_schedule, basis), 1))
        known = landings.current(connection, reader_id)
    assert known is not None
    return known.id


def _next_id(greatest: int | None) -> int:
    return (greatest or 0) + 1


def _rows(
    chapter: Chapter, reader_id: int, now: datetime, random_: random.Random, first: int
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    pinned: list[dict[str, object]] = []
    tries: list[dict[str, object]] = []
    for index, window in _windows(chapter, now):
        if index in chapter.missing:
            continue
        plan = make_plan(chapter, window, round(chapter.rows * random_.uniform(0.6, 1.3)), index)
        if index not in chapter.lost:
            pinned.append(_pin(first + len(pinned), reader_id, window, plan))
        if index not in chapter.planned:
            pin_id = None if index in chapter.lost else first + len(pinned) - 1
            common = _try(chapter, reader_id, window, pin_id, random_)
            tries += _tries(chapter, index, plan, common, random_)
    return pinned, tries


def _windows(chapter: Chapter, now: datetime) -> Iterator[tuple[int, Window]]:
    newest = now - (now - datetime(1970, 1, 1, tzinfo=UTC)) % chapter.length
    for index in range(chapter.count, 0, -1):
        end = newest - (index - 1) * chapter.length
        early = chapter.length / 2 if index in chapter.shifted else timedelta(0)
        yield index, Window(end - chapter.length - early, end - early)


def make_plan(chapter: Chapter, window: Window, rows: int, number: int) -> Plan:
    """A plan of one shard and one split that holds so many rows of 100 bytes."""
    system, _, rest = chapter.key.partition(":")
    shard = f"{rest.partition(':')[2]}-partition-0"
    start, end = Position((number, 0, -1)), Position((number, rows, -1))
    span = Span(number, 0, rows)
    return Plan(
        reader=chapter.reader,
        source=SourceRef(system, "main", (rest.partition(":")[2],)),
        window=window,
        basis="publish",
        filter=None,
        start_cut=Cut({shard: start}),
        end_cut=Cut({shard: end}),
        ranges=(Range(shard, start, end, rows * 100, rows),),
        splits=(Split(0, shard, start, end, rows * 100, (span,)),),
        estimate=Estimate(rows * 100, rows),
        observed_at=window.end + timedelta(minutes=2),
        head=Cut({shard: Position((0, 0, -1))}),
    )


def _pin(pin_id: int, reader_id: int, window: Window, plan: Plan) -> dict[str, object]:
    return {
        "id": pin_id,
        "reader_id": reader_id,
        "window_start": window.start,
        "window_end": window.end,
        "generation": 1,
        "fingerprint": plan.fingerprint,
        "pinned_at": plan.observed_at,
        "plan": json.dumps(plan.to_json()),
    }


def _try(
    chapter: Chapter, reader_id: int, window: Window, pin_id: int | None, random_: random.Random
) -> dict[str, object]:
    started = window.end + timedelta(minutes=2, seconds=random_.randrange(30))
    return {
        "reader_id": reader_id,
        "window_start": window.start,
        "window_end": window.end,
        "pin_id": pin_id,
        "dag_id": chapter.dag_id,
        "run_id": f"scheduled__{window.end:%Y-%m-%dT%H:%M:%S+00:00}",
        "task_id": chapter.task_id,
        "map_index": -1,
        "try_number": 1,
        "started_at": started,
        "finished_at": started + timedelta(seconds=random_.uniform(9, 45)),
        "rows": 0,
        "bytes": 0,
        "verdict": None,
        "error_type": None,
        "error_message": None,
        "receipt": None,
        "quarantined": 0,
    }


def _tries(
    chapter: Chapter, index: int, plan: Plan, one: dict[str, object], random_: random.Random
) -> list[dict[str, object]]:
    if index in chapter.running:
        return [{**one, "state": "running", "finished_at": None}]
    failed = {
        **one,
        "state": "failed",
        "error_type": "ReadStalled",
        "error_message": f"{plan.ranges[0].shard}: nothing came for 60 s at {index}:118. The broker may be overloaded; "
        "the task will try again from the same plan.",
    }
    if index in chapter.failed:
        return [failed, {**failed, "try_number": 2}]
    if index in chapter.lost:
        message = (
            f"{plan.ranges[0].shard}: window starts at {index}:0, first available is {index + 9}:0. "
            "Move the window, or accept the loss with on_loss='record'."
        )
        return [{**one, "state": "lost", "error_type": "StartTrimmed", "error_message": message}]
    split = plan.splits[0]
    entries = split.entries or 0
    receipt = compare(
        plan,
        [SplitReceipt(0, rows=entries, bytes=split.bytes, entries=entries, quarantined=5 * (index in chapter.torn))],
        seconds=random_.uniform(5, 30),
    )
    done = {
        **one,
        "state": "covered",
        "rows": receipt.rows,
        "bytes": receipt.bytes,
        "verdict": "unproven" if index in chapter.unproven else receipt.verdict,
        "receipt": receipt.to_json(),
        "quarantined": receipt.totals["quarantined"],
    }
    return [failed, {**done, "try_number": 2}] if index in chapter.retried else [done]


def shared() -> list[Chapter]:
    """One reader of ten windows: the older five read by a DAG of the shop, the newer five by another."""
    older, newer = frozenset(range(6, 11)), frozenset(range(1, 6))
    key = "pulsar:pulsar_default:persistent://shop/shared/events"
    return [
        Chapter(key, "both", 10, missing=newer, dag="shop_shared"),
        Chapter(key, "both", 10, missing=older, dag="warehouse"),
    ]
