import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Estimate, Loss, Plan, Range, Skipped, SourceRef, Split
from airflow_provider_streams.model.plan.plan_summary import bytes_text, plan_table
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import ANY_NAME, ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.types import Simple
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from tests.unit.model.values import plans

TOPIC = "persistent://shop/orders/events"
WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
START, END, HEAD = Position.of(31044, 118, -1), Position.of(31051, 7, -1), Position.of(30988, 0, -1)


def plan_of(*verdicts, entries=41_207, size=63_000_000):
    ranges = tuple(
        Range(f"{TOPIC}-partition-{i}", START, END, size, entries, HEAD, verdict) for i, verdict in enumerate(verdicts)
    )
    splits = tuple(Split(2 * i + j, part.shard, START, END, 1) for i, part in enumerate(ranges) for j in range(2))
    cut = Cut({part.shard: START for part in ranges})
    source = SourceRef("pulsar", "c", (TOPIC,))
    estimate = Estimate(size * len(ranges))
    row_filter = RowFilter("publish_time", 1, 2)
    return Plan("r", source, WINDOW, "publish", row_filter, cut, cut, ranges, splits, estimate, WINDOW.end, cut)


def test_the_table_says_what_is_skipped_and_why_but_not_without_end():
    piece = Skipped(f"{TOPIC}-partition-0", START, END, 4_000_000, 5, "an earlier window read it, and met no event")
    lines = plan_table(replace(plan_of("ok"), skipped=(piece,) * 25)).splitlines()
    told = [line for line in lines if line.startswith(" skip")]
    assert told[0] == f" skip  {piece.shard} {START} .. {END}, 4.0 MB: {piece.because}"
    assert (len(told), told[-1]) == (21, " skip  .. and 5 more")
    assert not any("skip" in line for line in plan_table(plan_of("ok")).splitlines())


def test_the_table_says_which_columns_rows_will_have():
    avro, json_ = WriterSchema("avro", "{}"), WriterSchema("json", "{}")
    versions = {"shop/orders": {"0": json_, "10": avro, "2": avro}, "shop/more": {ANY_VERSION: WriterSchema("utf8")}}
    decoding = Decoding(parse_columns("id long, `a name` array<string>"), Simple("string"), versions, "message")
    assert plan_table(replace(plan_of("ok"), decoding=decoding)).splitlines()[-5:-1] == [
        " rows  id long, `a name` array<string>",
        " keys  _key string",
        " with  shop/orders: version 0 json, versions 2 to 10 (2) avro",
        " with  shop/more: the given utf8",
    ]
    scalar = Decoding(Simple("string"), None, {ANY_NAME: {ANY_VERSION: WriterSchema("utf8")}})
    assert plan_table(replace(plan_of("ok"), decoding=scalar)).splitlines()[-3:-1] == [
        " rows  value string",
        " with  the given utf8",
    ]


def test_the_table_says_what_will_be_read():
    plan = plan_of("ok", "edge: 14 min to expiry")
    title, header, first, second, totals = plan_table(plan).splitlines()
    assert title == (
        f"pulsar  {TOPIC}   window 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z   basis publish   reader r"
        "   rows by publish_time"
    )
    assert re.split(r"\s{2,}", header.strip()) == [
        "shard",
        "start",
        "end",
        "entries",
        "bytes",
        "tasks",
        "first kept",
        "verdict",
    ]
    cells = re.split(r"\s{2,}", first.strip())
    assert cells == ["events-partition-0", "31044:118:-1", "31051:7:-1", "41,207", "63 MB", "2", "30988:0:-1", "ok"]
    assert second.endswith("EDGE: 14 min to expiry")
    assert totals == f" total 82,414 entries, 126 MB, 4 tasks   fingerprint {plan.fingerprint[:12]}"


def test_columns_are_aligned():
    lines = plan_table(plan_of("ok", "unknown", "ok")).splitlines()[1:-1]
    assert len({line.index(word) for line, word in zip(lines, ["verdict", "ok", "unknown", "ok"], strict=True)}) == 1


def test_units_that_are_bytes_are_shown_once():
    table = plan_table(plan_of("ok", entries=63_000_000))
    assert "entries" not in table


def test_losses_are_listed():
    lost = replace(plan_of("lost: trimmed"), losses=(Loss(TOPIC, START, END, "trimmed"),))
    assert f" lost  {TOPIC} 31044:118:-1 .. 31051:7:-1: trimmed" in plan_table(lost).splitlines()


def test_a_long_plan_shows_the_shards_with_something_to_say():
    verdicts = ["ok"] * 100
    verdicts[77] = "edge: 1 min to expiry"
    table = plan_table(plan_of(*verdicts), max_rows=3)
    assert "events-partition-77" in table
    assert "97 more shards, all of them ok or empty" in table
    table = plan_table(plan_of(*["unknown"] * 5), max_rows=3)
    assert table.splitlines()[-2] == " .. and 2 more shards"


def test_an_empty_plan_is_a_table_too():
    assert " total 0 B, 0 tasks" in plan_table(plan_of())


@given(plans(), st.integers(1, 3))
def test_every_plan_has_a_table_with_its_fingerprint(plan, rows):
    assert plan.fingerprint[:12] in plan_table(plan, max_rows=rows)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (63_000_000, "63 MB"),
        (999_999, "1.0 MB"),
        (4 * 10**18, "4,000 PB"),
    ],
)
def test_sizes_are_written_for_people(size, text):
    assert bytes_text(size) == text
