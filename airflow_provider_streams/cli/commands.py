"""`airflow streams ..`: what Airflow imports at every command; each command's work is in a file of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.cli.cli_config import ARG_OUTPUT, ActionCommand, Arg, CLICommand, GroupCommand, lazy_load_command


def _arg(*flags: str, **options: Any) -> Arg:
    return Arg(flags, **options)  # type: ignore[no-untyped-call]  # Airflow's is not annotated


def _load(action: str) -> Callable[..., Any]:
    """An action of this folder, imported when its command runs."""
    loaded: Callable[..., Any] = lazy_load_command(f"airflow_provider_streams.cli.{action}")
    return loaded


SOURCE = (
    _arg("source", nargs="*", metavar="SYSTEM NAME", help="for example: pulsar shop/orders/events"),
    _arg("--topic", action="append", default=[], help="short for `pulsar NAME`; may be repeated"),
    _arg("--pattern", help="Pulsar: a regular expression of full topic names, instead of names"),
    _arg("--conn-id", help="the Airflow connection; default <system>_default"),
    _arg(
        "--event-time-unit",
        choices=("s", "ms", "us"),
        help="Pravega, basis event: the unit of the times that the stream's writers note; default ms",
    ),
)
READING = (
    _arg(
        "--basis",
        choices=("publish", "append", "event", "chained"),
        help="how a time becomes a position; default: the system's (publish for Pulsar, append for Pravega)",
    ),
    _arg(
        "--max-skew",
        type=float,
        metavar="SECONDS",
        help="basis append: how much later than an edge its cut may be recorded; default 300",
    ),
    _arg("--slack", type=float, metavar="SECONDS", help="basis publish: disorder of publish times; default 60"),
    _arg("--reader", help="the name under which windows are covered; default cli, or the task's own"),
    _arg("--on-loss", default="fail", choices=("fail", "record"), help="what to do when events are gone"),
    _arg(
        "--on-unproven",
        default="land",
        choices=("land", "fail"),
        help="what to do when nobody can say whether events are gone; default land",
    ),
)
TASK = (
    _arg("--dag-id", help="read as a DAG's task does: source, table, transform and reader are the task's"),
    _arg("--task-id", help="which task of the DAG"),
    _arg("--map-index", type=int, help="which one, of a mapped task"),
    _arg("--source-key", metavar="KEY", help="refuse if the task reads another source than this key of the journal"),
)
ACTS = (
    _arg("--replan", action="store_true", help="make a new plan, although one is pinned"),
    _arg("--reland", action="store_true", help="set aside what the table holds, and land something else from now on"),
    _arg("--accept-fewer", action="store_true", help="replace a window by one that holds fewer rows"),
    _arg("--replace-overlaps", action="store_true", help="take windows out of the table that share time with this one"),
)
SPARK = (
    _arg("--spark-conn-id", help="a Spark connection; default: Spark in this process"),
    _arg(
        "--spark",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting by the Spark provider's name, like driver_memory=4g; may be repeated",
    ),
    _arg(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one of Spark's own settings; may be repeated. Secrets belong into the connection",
    ),
)
WINDOW = (_arg("--window", required=True, help="start/end, like 2026-11-20T10:00Z/2026-11-20T11:00Z"), *READING, *TASK)


CUTS = GroupCommand(
    name="cuts",
    help="List, record and decode cuts: places in streams that windows of time are read between",
    subcommands=(
        ActionCommand(
            name="list",
            help="Show which sources have recorded cuts, or the last cuts of one",
            func=_load("cuts.list_"),
            args=(
                *SOURCE,
                _arg("--limit", type=int, default=20, help="how many of the last cuts; default 20"),
                _arg("--scaling", action="store_true", help="Pravega: show when its segments changed instead"),
                ARG_OUTPUT,
            ),
        ),
        ActionCommand(
            name="record",
            help="Sample the tail of a source now, and store it",
            func=_load("cuts.record"),
            args=(
                *SOURCE,
                _arg("--recorder", help="the name to leave beside it; default cli:<user>"),
                _arg("--anew", action="store_true", help="the source was deleted and made again: start over"),
                ARG_OUTPUT,
            ),
        ),
        ActionCommand(
            name="decode",
            help="Show the positions in a Pravega stream cut's text, or in a Pulsar message id",
            func=_load("cuts.decode"),
            args=(
                _arg("system", metavar="SYSTEM", help="whose notation it is: pravega or pulsar"),
                _arg("text", help="the text"),
                _arg("--shard", default="", help="Pulsar: the partition's full name, to check the id's against"),
                ARG_OUTPUT,
            ),
        ),
    ),
)


BACKFILL = ActionCommand(
    name="backfill",
    help="Read the windows of a span that are not covered yet, many in one Spark job; or preview that",
    func=_load("backfill.backfill"),
    args=(
        *SOURCE,
        _arg("--start", required=True, help="ISO 8601; where the first window starts"),
        _arg("--end", help="ISO 8601; where the last window ends at the latest; default: now"),
        _arg("--window-length", metavar="LENGTH", help="like 15m, 1h, '1d Europe/Berlin'; default: the reader's own"),
        _arg(
            "--select",
            default="missing",
            help="missing (all that are not covered; default), failed, lost, late, all; several between commas",
        ),
        _arg("--dry-run", action="store_true", help="show what would be read; pins and reads nothing"),
        _arg("--path", help="the folder of the table, absolute; default: the reader's own"),
        _arg("--columns", help="columns to read, between commas"),
        _arg("--lookback", metavar="LENGTH", help="count rows stored so long after their window's end; like 1h"),
        _arg("--max-bytes", type=int, default=4 * 1024**3, help="stored bytes per Spark job; default 4 GiB"),
        _arg("--max-windows", type=int, default=200, help="windows per Spark job; default 200"),
        *SPARK,
        *READING,
        *TASK,
        *ACTS,
        ARG_OUTPUT,
    ),
)


FORGET = ActionCommand(
    name="forget",
    help="Forget a reader: its windows, plans and runs in the journal. Its table and its stream stay as they are",
    func=_load("forget.forget"),
    args=(
        _arg("reader", help="the reader's name, whole"),
        _arg("--source-key", metavar="KEY", help="which one, if readers of several sources have the name"),
        _arg("--yes", action="store_true", help="do not ask"),
    ),
)


JOURNAL = GroupCommand(
    name="journal",
    help="Look after the journal",
    subcommands=(
        ActionCommand(
            name="prune",
            help="Forget old tries and plans that decide nothing any more. Coverage stays as it is",
            func=_load("journal.prune"),
            args=(
                _arg("--older-than", required=True, metavar="LENGTH", help="like 90d; a day at least"),
                _arg("--dry-run", action="store_true", help="show what would be forgotten"),
                ARG_OUTPUT,
            ),
        ),
    ),
)


def get_streams_cli_commands() -> list[CLICommand]:
    """The command group."""
    return [
        GroupCommand(
            name="streams",
            help="Plan, read and account for windows of streams",
            subcommands=(
                CUTS,
                ActionCommand(
                    name="plan",
                    help="Show what reading a window would read; pins and reads nothing",
                    func=_load("read.plan"),
                    args=(*SOURCE, *WINDOW, ARG_OUTPUT),
                ),
                ActionCommand(
                    name="read",
                    help="Read a window into Parquet files, pinned and recorded as a task's read",
                    func=_load("read.read"),
                    args=(
                        *SOURCE,
                        *WINDOW,
                        _arg("--path", help="the folder of the table, absolute; default: the reader's own"),
                        _arg("--columns", help="columns to read, between commas"),
                        *SPARK,
                        *ACTS,
                        ARG_OUTPUT,
                    ),
                ),
                ActionCommand(
                    name="coverage",
                    help="Show which windows are covered, missing, failed or lost",
                    func=_load("coverage.coverage"),
                    args=(
                        _arg("--source", default="", help="only sources whose name contains this"),
                        _arg("--reader", help="only this reader"),
                        _arg("--start", help="ISO 8601; default: 24 hours before the end"),
                        _arg("--end", help="ISO 8601; default: now"),
                        _arg(
                            "--window-length",
                            metavar="LENGTH",
                            help="of missing windows, like 15m, 1h, 1d; default: as read",
                        ),
                        _arg(
                            "--offline",
                            action="store_true",
                            help="do not ask how far back the streams still reach",
                        ),
                        ARG_OUTPUT,
                    ),
                ),
                BACKFILL,
                FORGET,
                JOURNAL,
                ActionCommand(
                    name="holds",
                    help="Show what holds unread data of a source, for whom and since when",
                    func=_load("holds.holds"),
                    args=(*SOURCE, ARG_OUTPUT),
                ),
                ActionCommand(
                    name="config",
                    help="Show the settings of a connection, and where each of them comes from",
                    func=_load("config.config"),
                    args=(
                        _arg("system", nargs="*", metavar="SYSTEM", help="for example: pravega; default: every system"),
                        _arg("--conn-id", help="the Airflow connection; default <system>_default"),
                        ARG_OUTPUT,
                    ),
                ),
            ),
        )
    ]
