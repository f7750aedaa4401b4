"""A journal of revision 0006 goes on, whatever its sources are called: what it knew, it knows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.journal import migrate
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.sources import source_from_json, source_to_json
from tests.integration.journal.earlier import rows_of, write_as

WRITTEN = rows_of("0006")
T10 = datetime(2026, 11, 20, 10, tzinfo=UTC)
SPAN = (T10 - timedelta(hours=1), T10 + timedelta(hours=10))
READERS = {(one["key"], one["reader"]): one for one in WRITTEN["readers"]}
STREAM = PravegaSource("shop/orders", "prod_pravega", "us")
ORDERS = PulsarSource(pattern="persistent://shop/orders/.*", conn_id="prod")

NOT_WRITTEN_DOWN = [
    PulsarSource("shop/orders/looked,1", conn_id="prod"),
    PulsarSource(["shop/orders/l1", "shop/orders/l2"], conn_id="team:prod"),
    PulsarSource(pattern="persistent://shop/logs/.+", conn_id="prod"),
    PravegaSource("shop/watched", conn_id="team:pravega"),
]
"""A sensor looked at them, or a watcher waited for them: the earlier release kept their keys alone."""
WRITTEN_DOWN = [
    STREAM,
    ORDERS,
    PulsarSource("shop/orders/a+b", conn_id="prod"),
    PulsarSource("shop/orders/x,y", conn_id="prod"),
    PulsarSource("shop/orders/t:1:2", conn_id="prod"),
    PulsarSource(["shop/orders/w", "shop/orders/v,1", "shop/orders/x-partition-0"], conn_id="prod"),
    PulsarSource("shop/orders/colon", conn_id="team:prod"),
    PulsarSource(pattern="persistent://shop/orders/v.", conn_id="team:prod"),
    PulsarSource("shop/orders/moved", conn_id="prod"),
]


@pytest.fixture
def database(url):
    """As the earlier release has left it."""
    database = Database(url)
    with database._write() as connection:
        write_as(connection, WRITTEN)
    return database


@pytest.fixture
def journal(url, database):
    with Journal.open(url) as opened:
        yield opened


@pytest.mark.parametrize("source", [*WRITTEN_DOWN, *NOT_WRITTEN_DOWN], ids=lambda source: source.key)
def test_every_source_is_known_from_its_json(journal, source):
    assert source_from_json(journal.source(source.key)) == source


def test_what_a_key_does_not_tell_stays_usable(journal):
    assert journal.source("kafka:prod:orders") is None
    assert journal.source(f"{STREAM.key}#epoch") is None
    assert journal.watched_from("kafka:prod:orders", "dag.read", T10 + timedelta(hours=3)) == T10
    looked = PravegaSource("shop/watched", "team:pravega", "s")
    journal.introduce(looked.key, source_to_json(looked))
    assert source_from_json(journal.source(looked.key)) == looked


def test_a_source_that_was_written_down_wrongly_is_written_anew(url, database):
    """As an earlier migration did, where a connection's name has a colon or a topic's a comma."""
    wrong = {
        "pulsar:team:prod:persistent://shop/orders/colon": {"topics": ["prod:persistent://shop/orders/colon"]},
        "pulsar:prod:persistent://shop/orders/x,y": {"topics": ["persistent://shop/orders/x", "y"]},
    }
    with database._write() as connection:
        for key, source in wrong.items():
            values = {"source": json.dumps({"system": "pulsar", "conn_id": "team", **source}), "key": key}
            connection.execute(text("UPDATE streams_sources SET source = :source WHERE source_key = :key"), values)
    with Journal.open(url) as journal:
        assert all(source_from_json(journal.source(key)).key == key for key in wrong)


def test_every_reader_is_there(journal):
    assert journal.sources() == sorted(READERS)


@pytest.mark.parametrize("who", READERS, ids=" ".join)
def test_coverage_plans_and_receipts_are_what_they_were(journal, who):
    seen = []
    for item in journal.coverage(*who, *SPAN).windows:
        plan = journal.pinned(*who, item.window)
        receipts = [run.receipt.rows if run.receipt else None for run in journal.runs(*who, item.window)]
        fingerprint = plan.fingerprint if plan else None
        facts = (item.state, item.rows, item.cause, item.attempts, item.late_rows, item.verdict)
        seen.append([str(item.window), *facts, fingerprint, receipts])
    assert seen == READERS[who]["windows"]
    stretches = journal.stretches(*who, *SPAN).windows
    assert [[str(item.window), item.state] for item in stretches] == READERS[who]["stretches"]


@pytest.mark.parametrize("who", READERS, ids=" ".join)
def test_every_reader_goes_on_where_it_stood(journal, who):
    last, before = journal.last_covered(*who), journal.chain(*who, _hour(9)).before
    known = READERS[who]
    assert (last.fingerprint if last else None, before.fingerprint if before else None) == (
        known["last"],
        known["chain"],
    )
    assert [run.ref.id for run in journal.unannounced(*who)] == known["unannounced"]
    plans = {row["id"]: json.loads(row["plan"]) for row in WRITTEN["rows"]["streams_pins"]}
    assert last is None or last.to_json() in plans.values()


def test_recorded_cuts_edges_and_sightings_are_what_they_were(journal):
    seen = [
        [
            one.source_key,
            [
                [cut.sequence, cut.recorder, cut.cut.to_json(), dict(cut.identity)]
                for cut in journal.recorded_cuts(one.source_key, 99)
            ],
        ]
        for one in journal.cut_histories()
    ]
    assert seen == WRITTEN["cuts"]
    assert journal.cut_at(STREAM.key, T10).sequence == 1
    assert journal.sighting(STREAM.key, T10 + timedelta(hours=2)).at == T10
    assert journal.sighting(STREAM.key, T10 + timedelta(hours=4)).at == T10 + timedelta(hours=3)
    assert journal.sighting(NOT_WRITTEN_DOWN[0].key, T10).at == T10


def test_landings_keep_their_tables_and_columns(journal):
    kept = {row["reader_id"]: row["table_id"] for row in WRITTEN["rows"]["streams_landings"]}
    found = [journal.landing(*who) for who in READERS]
    assert {one.table_id for one in found if one} <= set(kept.values())
    assert {one.columns for one in found if one} == {(("value", "binary"), ("publish_time", "timestamp"))}


def test_the_migration_taken_up_again_changes_nothing(url, database):
    Journal.open(url).close()
    with database._write() as connection:
        before = connection.execute(text("SELECT id, source_key, source FROM streams_sources ORDER BY id")).all()
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0006'"))  # noqa: S608 - a constant
    Journal.open(url).close()
    with database._write() as connection:
        after = connection.execute(text("SELECT id, source_key, source FROM streams_sources ORDER BY id")).all()
    assert after == before


def _hour(number: int) -> Window:
    return Window(T10 + timedelta(hours=number), T10 + timedelta(hours=number + 1))
