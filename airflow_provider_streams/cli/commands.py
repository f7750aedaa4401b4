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
    _arg(
        "--pattern",
        help="instead of names, a regular expression of full topic names, or of scope/stream for Pravega",
    ),
    _arg("--partitions", help="Pulsar: only these partitions of each topic, between commas"),
    _arg("--keys", help="Pulsar: only messages with these keys, between commas; all are read"),
    _arg("--key-hash-ranges", help="Pulsar: the same by their keys' hashes, like 0-1023,4096-8191"),
    _arg("--routing-keys", help="Pravega: only segments that may hold these routing keys, between commas"),
    _arg("--scope", help="Pravega: all streams of a scope, instead of names"),
    _arg("--tags", help="Pravega, with --scope or --pattern: only streams that have all of these tags, between commas"),
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
        help="how a time becomes a position; default: the reader's so far, else publish for Pulsar, append for Pravega",
    ),
    _arg(
        "--max-skew",
        type=float,
        metavar="SECONDS",
        help="basis append: how much later than an edge its cut may be recorded; default as of --slack, else 300",
    ),
    _arg(
        "--slack",
        type=float,
        metavar="SECONDS",
        help="publish, event: disorder of publish times; default: as the reader's last window was planned, else 60",
    ),
    _arg(
        "--max-lateness",
        type=float,
        metavar="SECONDS",
        help="basis event: how much later than its own time an event may be stored; default as of --slack, else 600",
    ),
    _arg("--event-time", metavar="FIELD", help="basis event: the decoded field; default: Pulsar's event time"),
    _arg("--unit", choices=("s", "ms", "us", "ns"), help="of an event time field of whole numbers, since 1970"),
    _arg(
        "--rows", choices=("exact", "superset"), help="basis event, Pravega: superset leaves filtering to a transform"
    ),
    _arg("--reader", help="the name under which windows are covered; default cli, or the task's own"),
    _arg("--on-loss", default="fail", choices=("fail", "record"), help="what to do when events are gone"),
    _arg(
        "--on-unproven",
        default="land",
        choices=("land", "fail"),
        help="what to do when nobody can say whether events are gone; default land",
    ),
)
PAYLOADS = (
    _arg(
        "--value-format",
        metavar="FORMAT",
        help="what values are: auto, bytes, utf8, json, avro, protobuf or registry; default: as the reader's were",
    ),
    _arg(
        "--value-schema",
        metavar="TEXT",
        help="json: columns like 'id long, name string'; avro: its JSON; protobuf: message:descriptor; "
        "registry: its connection",
    ),
    _arg("--key-format", metavar="FORMAT", help="the same of keys"),
    _arg("--key-schema", metavar="TEXT", help="the same of keys"),
)
DECODING = (
    *PAYLOADS,
    _arg(
        "--on-undecodable",
        choices=("fail", "quarantine", "drop"),
        help="what becomes of events that cannot be decoded; default fail",
    ),
    _arg("--max-undecodable", type=float, metavar="SHARE", help="which share of a window they may be, 0 to 1"),
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
LANDS = (
    _arg("--path", help="the folder of a Parquet table, absolute; default: the reader's own table"),
    _arg(
        "--sink",
        metavar="KIND:NAME",
        help="any other table: iceberg:shop.orders, delta:s3://lake/orders, table:prod.shop.orders, "
        "my_package.my_sinks:MyWriter:/lake/orders",
    ),
    _arg(
        "--sink-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what else the sink is told, like conn_id=iceberg_default or widen=true; may be repeated",
    ),
    _arg("--columns", help="columns to read, between commas"),
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
WINDOW = (
    _arg("--window", required=True, help="start/end, like 2026-11-20T10:00Z/2026-11-20T11:00Z"),
    *READING,
    *DECODING,
    *TASK,
)


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
        *LANDS,
        _arg("--lookback", metavar="LENGTH", help="count rows stored so long after their window's end; like 1h"),
        _arg("--max-bytes", type=int, default=4 * 1024**3, help="stored bytes per Spark job; default 4 GiB"),
        _arg("--max-windows", type=int, default=200, help="windows per Spark job; default 200"),
        *SPARK,
        *READING,
        *DECODING,
        *TASK,
        *ACTS,
        ARG_OUTPUT,
    ),
)


_READERS = (
    _arg("--source", default="", help="only sources whose name contains this"),
    _arg("--reader", help="only this reader"),
)
_SPAN = (
    _arg("--start", help="ISO 8601; only windows that end later"),
    _arg("--end", help="ISO 8601; only windows that start earlier"),
)

QUARANTINE = GroupCommand(
    name="quarantine",
    help="Look at events that could not be decoded, and decode them again",
    subcommands=(
        ActionCommand(
            name="list",
            help="Show which windows have events that could not be decoded, and why",
            func=_load("quarantine.list_"),
            args=(*_READERS, *_SPAN, ARG_OUTPUT),
        ),
        ActionCommand(
            name="show",
            help="Show such events of one window: where each is, why, and how its payload begins",
            func=_load("quarantine.show"),
            args=(
                *_READERS,
                _arg("--window", required=True, help="start/end, like 2026-11-20T10:00Z/2026-11-20T11:00Z"),
                _arg("--limit", type=int, default=20, help="how many events at most; default 20"),
                ARG_OUTPUT,
            ),
        ),
        ActionCommand(
            name="replay",
            help="Decode such events again, after a fix, and add them to the rows of their windows",
            func=_load("quarantine.replay"),
            args=(
                *SOURCE,
                _arg("--reader", help="the name under which windows are covered; default cli, or the task's own"),
                _arg("--window", help="only this one, like 2026-11-20T10:00Z/2026-11-20T11:00Z"),
                *_SPAN,
                *PAYLOADS,
                *TASK,
                ARG_OUTPUT,
            ),
        ),
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


_SCHEMA_SOURCE = (
    *SOURCE,
    _arg("--registry", metavar="CONN_ID", help="Pravega: the connection of the Schema Registry"),
    _arg("--group", help="Pravega: the group in the registry; default: the stream's name"),
    _arg("--namespace", help="Pravega: the group's namespace in the registry; default: the stream's scope"),
)
_NAME = _arg("--name", help="which one, if the source has several topics")
SCHEMA = GroupCommand(
    name="schema",
    help="Look at the schemas of topics, or of the groups of a Schema Registry",
    subcommands=(
        ActionCommand(
            name="show",
            help="Show the versions of a schema; with --version the columns of one",
            func=_load("schema.show"),
            args=(
                *_SCHEMA_SOURCE,
                _arg("--version", help="show the columns and types of this version"),
                ARG_OUTPUT,
            ),
        ),
        ActionCommand(
            name="compare",
            help="Compare two versions of a schema field by field",
            func=_load("schema.compare"),
            args=(
                *_SCHEMA_SOURCE,
                _NAME,
                _arg("--old", metavar="VERSION", help="default: the last but one"),
                _arg("--new", metavar="VERSION", help="default: the last"),
                ARG_OUTPUT,
            ),
        ),
        ActionCommand(
            name="export",
            help="Write a schema's own text: Avro's JSON, JSON Schema, or a descriptor set as base64",
            func=_load("schema.export"),
            args=(
                *_SCHEMA_SOURCE,
                _NAME,
                _arg("--version", help="default: the last"),
                _arg("--file", help="where to; default: the standard output"),
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
                    help="Read a window into a table, pinned and recorded as a task's read",
                    func=_load("read.read"),
                    args=(
                        *SOURCE,
                        *WINDOW,
                        *LANDS,
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
                QUARANTINE,
                FORGET,
                JOURNAL,
                SCHEMA,
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
