"""The page's command, as the command line itself takes it."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from airflow.cli.cli_config import ActionCommand

from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.parser import BACKFILL, QUARANTINE
from airflow_provider_streams.journal.landings import StoredLanding
from airflow_provider_streams.journal.reader_overview import ReaderOverview, ReadingTask
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, parse_schedule
from airflow_provider_streams.plugin.backfill_command import WantedBackfill, of_quarantine, of_source, of_task
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pulsar.source import PulsarSource

T0 = datetime(2026, 11, 20, 2, tzinfo=UTC)
SPAN = Window(T0, T0 + timedelta(days=1))
LANDED = Landing(ParquetSink("/lake/orders"), "shop:flat").to_json()
KEPT = StoredLanding(1, 1, LANDED, "t", window_schedule="1d Europe/Berlin", basis="append")
READER = "d.t; rm -rf /"


def wanted(source, kept: StoredLanding | None = KEPT, select: str = "missing", **more: object) -> WantedBackfill:
    return WantedBackfill(
        ReaderOverview(7, source.key, READER, landing=kept),
        SPAN,
        select,
        more.get("window_schedule"),
        more.get("basis"),
    )


def arguments(command: str, named: Sequence[str] = ("backfill",), action: ActionCommand = BACKFILL) -> Namespace:
    """What the command line makes of a command that a shell hands over."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[: 2 + len(named)] == ["airflow", "streams", *named]
    parser = ArgumentParser()
    for arg in action.args:
        arg.add_to_parser(parser)
    return parser.parse_args(words[2 + len(named) :])


SOURCES = [
    PulsarSource("shop/orders/events", conn_id="prod"),
    PulsarSource(["a", "b"]),
    PulsarSource(pattern="persistent://shop/orders/.*"),
    PulsarSource("shop/orders/a+b"),
    PravegaSource("scope/stream"),
    PravegaSource("scope/stream", event_time_unit="us"),
]


@pytest.mark.parametrize("source", SOURCES)
def test_the_command_that_shows_a_quarantine_names_reader_and_window(source):
    one = ReaderOverview(7, source.key, READER, landing=KEPT)
    args = arguments(of_quarantine(one, SPAN), ["quarantine", "show"], QUARANTINE.subcommands[1])
    assert (args.source, args.reader, Window.parse(args.window)) == (source.key, READER, SPAN)


@pytest.mark.parametrize("source", SOURCES)
def test_a_dags_task_is_named_and_nothing_of_what_it_says_is_said_again(source):
    args = arguments(of_task(wanted(source), ReadingTask("d", "t")))
    assert (args.dag_id, args.task_id, args.map_index, args.reader) == ("d", "t", None, READER)
    assert args.source_key == source.key, "the task may read another source by now"
    assert (args.source, args.pattern, args.conn_id, args.path, args.window_length) == ([], None, None, None, None)
    assert (args.start, args.end) == ("2026-11-20T02:00:00Z", "2026-11-21T02:00:00Z")
    assert (args.select, args.dry_run) == ("missing", True)


def test_one_of_a_mapped_task_is_named_by_its_index():
    assert arguments(of_task(wanted(SOURCES[0]), ReadingTask("d", "t", 3))).map_index == 3


@pytest.mark.parametrize("source", SOURCES)
def test_without_a_task_the_command_means_the_same_source_and_the_journal_tells_the_rest(source):
    args = arguments(of_source(wanted(source), source))
    assert source_of_args(args) == source
    assert (args.reader, args.dag_id, args.path, args.window_length, args.basis) == (READER, None, None, None, None)


@pytest.mark.parametrize("kept", [None, StoredLanding(1, 1, Landing().to_json(), "t")])
def test_without_a_table_there_is_no_command_that_would_need_one(kept):
    assert of_source(wanted(SOURCES[0], kept), SOURCES[0]) is None


@pytest.mark.parametrize("text", ["15m", "90s", "1h +15m", "1d Europe/Berlin", "1mo", "cron 0 6 * * * Europe/Berlin"])
def test_a_schedule_that_the_journal_does_not_keep_is_written_out(text):
    kept = StoredLanding(1, 1, LANDED, "t")
    window_schedule = parse_schedule(text)
    for made in (
        of_task(wanted(SOURCES[0], kept, window_schedule=window_schedule), ReadingTask("d", "t")),
        of_source(wanted(SOURCES[0], kept, window_schedule=window_schedule), SOURCES[0]),
    ):
        assert parse_schedule(arguments(made).window_length) == window_schedule
    assert (
        arguments(
            of_task(wanted(SOURCES[0], window_schedule=Every(timedelta(hours=1))), ReadingTask("d", "t"))
        ).window_length
        is None
    )


def test_the_command_reads_by_the_basis_of_the_plans_before():
    kept = StoredLanding(1, 1, LANDED, "t")
    assert arguments(of_source(wanted(SOURCES[0], kept, basis="append"), SOURCES[0])).basis == "append"
    assert arguments(of_source(wanted(SOURCES[0], kept, basis="publish"), SOURCES[0])).basis is None


def test_a_lost_window_is_read_only_by_accepting_the_loss():
    task = ReadingTask("d", "t")
    assert arguments(of_task(wanted(SOURCES[0], select="lost"), task)).on_loss == "record"
    assert arguments(of_task(wanted(SOURCES[0]), task)).on_loss == "fail"
