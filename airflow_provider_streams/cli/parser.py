"""`airflow streams ..`: what Airflow imports at every command; each command's work is in a file of its name."""

from __future__ import annotations

from typing import Any

from airflow.cli.cli_config import ARG_OUTPUT, ActionCommand, Arg, CLICommand, GroupCommand, lazy_load_command


def _arg(flag: str, help: str, **details: Any) -> Arg:  # noqa: A002 - argparse's name
    return Arg((flag,), help=help, **details)  # type: ignore[no-untyped-call]  # Airflow's is not annotated


def _on(flag: str, help: str) -> Arg:  # noqa: A002
    """An option without a value."""
    return _arg(flag, help, action="store_true")


def _seconds(flag: str, help: str) -> Arg:  # noqa: A002
    return _arg(flag, help, type=float, metavar="SECONDS")


def _pairs(flag: str, help: str) -> Arg:  # noqa: A002
    return _arg(flag, f"{help}; may be repeated", action="append", default=[], metavar="NAME=VALUE")


def _command(name: str, action: str, help: str, *args: Arg) -> ActionCommand:  # noqa: A002
    """A command, whose action in `cli.commands` is imported when it runs."""
    load = lazy_load_command(f"airflow_provider_streams.cli.commands.{action}")
    return ActionCommand(name=name, help=help, func=load, args=args)


_UNITS = ("s", "ms", "us")
_LIKE_WINDOW = "like 2026-11-20T10:00Z/2026-11-20T11:00Z"
_READER = _arg("--reader", "the name under which windows are covered; default cli, or the task's own")

SOURCE = (
    _arg("source", "for example: pulsar shop/orders/events", nargs="*", metavar="SYSTEM NAME"),
    _arg("--topic", "short for `pulsar NAME`; may be repeated", action="append", default=[]),
    _arg("--pattern", "instead of names, a regular expression of full topic names, or of scope/stream for Pravega"),
    _arg("--partitions", "Pulsar: only these partitions of each topic, between commas"),
    _arg("--keys", "Pulsar: only messages with these keys, between commas; all are read"),
    _arg("--key-hash-ranges", "Pulsar: the same by their keys' hashes, like 0-1023,4096-8191"),
    _arg("--routing-keys", "Pravega: only segments that may hold these routing keys, between commas"),
    _arg("--scope", "Pravega: all streams of a scope, instead of names"),
    _arg("--tags", "Pravega, with --scope or --pattern: only streams that have all of these tags, between commas"),
    _arg("--conn-id", "the Airflow connection; default <system>_default"),
    _arg(
        "--event-time-unit",
        "Pravega, basis event: the unit of the times that the stream's writers note; default ms",
        choices=_UNITS,
    ),
)
_BASIS = (
    _arg(
        "--basis",
        "how a time becomes a position; default: the reader's so far, else publish for Pulsar, append for Pravega",
        choices=("publish", "append", "event", "chained"),
    ),
    _seconds(
        "--max-skew",
        "basis append: how much later than an edge its cut may be recorded; default as of --slack, else 300",
    ),
    _seconds(
        "--slack",
        "publish, event: disorder of publish times; default: as the reader's last window had, else 60",
    ),
    _seconds(
        "--allowed-lateness",
        "basis event: how much later than its own time an event may be stored; default as of --slack, else 600",
    ),
    _arg("--event-time", "basis event: the decoded field; default: Pulsar's event time", metavar="FIELD"),
    _arg("--unit", "of an event time field of whole numbers, since 1970", choices=(*_UNITS, "ns")),
    _arg("--rows", "basis event, Pravega: superset leaves filtering to a transform", choices=("exact", "superset")),
)
READING = (
    *_BASIS,
    _READER,
    _arg("--on-loss", "what to do when events are gone", default="fail", choices=("fail", "record")),
    _arg(
        "--on-unproven",
        "what to do when nothing proves that the start is complete; default land",
        default="land",
        choices=("land", "fail"),
    ),
)
PAYLOADS = (
    _arg(
        "--value-format",
        "what values are: auto, bytes, utf8, json, avro, protobuf or registry; changes of a database: debezium, "
        "canal or maxwell; default: as the reader's were",
        metavar="FORMAT",
    ),
    _arg(
        "--value-schema",
        "json: columns like 'id long, name string', or a JSON object of their types by name; avro: its JSON; "
        "protobuf: message:descriptor; registry: its connection; debezium, canal, maxwell: columns that no "
        "message tells",
        metavar="TEXT",
    ),
    _arg("--value-type", "auto, registry: the one record type to read; several names of it: A,B", metavar="NAME"),
    _arg("--value-types", "auto, registry: read every record type, and add the column _type", choices=("all",)),
    _arg("--value-version", "auto, registry: the version of the schema that gives the columns", metavar="N"),
    _arg("--value-placeholder", "debezium: the connector's unavailable.value.placeholder", metavar="TEXT"),
    _on("--value-as-text", "auto, registry: fields that no type holds in all versions as text"),
    _on("--value-refuse-unmatched", "auto, json: an object with keys of no column is bad"),
    _arg("--key-format", "what keys are; words as for --value-format", metavar="FORMAT"),
    _arg("--key-schema", "the schema of keys; written as for --value-schema", metavar="TEXT"),
)
DECODING = (
    *PAYLOADS,
    _arg(
        "--on-decode-error",
        "what becomes of events that cannot be decoded; default fail",
        choices=("fail", "quarantine", "drop"),
    ),
    _arg("--max-decode-error-rate", "which share of a window they may be, 0 to 1", type=float, metavar="SHARE"),
)
TASK = (
    _arg("--dag-id", "read as a DAG's task does: source, table, transform and reader are the task's"),
    _arg("--task-id", "which task of the DAG"),
    _arg("--map-index", "which one, of a mapped task", type=int),
    _arg("--source-key", "refuse if the task reads another source than this key of the journal", metavar="KEY"),
)
OVERRIDES = (
    _on("--replan", "make a new plan, although one is pinned"),
    _on("--full-refresh", "set aside what the table holds, and land something else from now on"),
    _on("--allow-fewer-rows", "replace a window by one that holds fewer rows"),
    _on("--replace-overlaps", "take windows out of the table that share time with this one"),
)
_SINK = (
    _arg("--path", "the folder of a Parquet table, absolute; default: the reader's own table"),
    _arg(
        "--sink",
        "any other table: iceberg:shop.orders, delta:s3://lake/orders, table:prod.shop.orders, "
        "my_package.my_sinks:MyWriter:/lake/orders",
        metavar="KIND:NAME",
    ),
    _pairs(
        "--sink-option",
        "a further option of the sink, like conn_id=iceberg_default or widen=true; without --sink, of the reader's own",
    ),
)
SINK = (*_SINK, _arg("--columns", "columns to read, between commas"))
SPARK = (
    _arg("--spark-conn-id", "a Spark connection; default: Spark in this process"),
    _pairs("--spark", "a setting by the Spark provider's name, like driver_memory=4g"),
    _pairs("--conf", "one of Spark's own settings; secrets belong in the connection"),
)
WINDOW = (_arg("--window", f"start/end, {_LIKE_WINDOW}", required=True), *READING, *DECODING, *TASK)
_READERS = (
    _arg("--source", "only sources whose name contains this", default=""),
    _arg("--reader", "only this reader"),
)
_SPAN = (
    _arg("--start", "ISO 8601; only windows that end later"),
    _arg("--end", "ISO 8601; only windows that start earlier"),
)
_SCHEMA_SOURCE = (
    *SOURCE,
    _arg("--registry", "Pravega: the connection of the Schema Registry", metavar="CONN_ID"),
    _arg("--group", "Pravega: the group in the registry; default: the stream's name"),
    _arg("--namespace", "Pravega: the group's namespace in the registry; default: the stream's scope"),
)
_NAME = _arg("--name", "which one, if the source has several topics")


CUTS = GroupCommand(
    name="cuts",
    help="List, record and decode cuts: places in streams that windows of time are read between",
    subcommands=(
        _command(
            "list",
            "cuts.list_",
            "Show which sources have recorded cuts, or the last cuts of one",
            *SOURCE,
            _arg("--limit", "how many of the last cuts; default 20", type=int, default=20),
            _on("--scaling", "Pravega: show when its segments changed instead"),
            ARG_OUTPUT,
        ),
        _command(
            "record",
            "cuts.record",
            "Sample the tail of a source now, and store it",
            *SOURCE,
            _arg("--recorder", "the name to store with it; default cli:<user>"),
            _on("--start-over", "the source was deleted and made again: start over"),
            ARG_OUTPUT,
        ),
        _command(
            "decode",
            "cuts.decode",
            "Show the positions in a Pravega stream cut's text, or in a Pulsar message id",
            _arg("system", "whose notation it is: pravega or pulsar", metavar="SYSTEM"),
            _arg("text", "the text"),
            _arg("--shard", "Pulsar: the partition's full name, to check the id's against", default=""),
            ARG_OUTPUT,
        ),
    ),
)
INIT = _command(
    "init",
    "init.init",
    "Write a DAG file that lands each window of a source; at a terminal, asks for what the options leave open",
    *SOURCE,
    *_SINK,
    _arg("--schedule", "a cron expression, seconds, or a length of windows like 15m; default: hourly"),
    _arg("--timezone", "of a cron expression without one of its own; default UTC", default="", metavar="NAME"),
    _arg("--start-date", "the DAG's first day, like 2026-11-20; default: today", metavar="DAY"),
    *_BASIS,
    *PAYLOADS,
    _arg("--dag-id", "the DAG's name; default: the source's last word"),
    Arg(  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        ("--output",),
        dest="output_file",
        help="the file to write, which must not exist; default: <dag id>.py here",
        metavar="FILE",
    ),
    _on("--offline", "do not ask the stream system and Airflow"),
)
PLAN = _command(
    "plan", "read.plan", "Show what reading a window would read; pins and reads nothing", *SOURCE, *WINDOW, ARG_OUTPUT
)
READ = _command(
    "read",
    "read.read",
    "Read a window into a table, pinned and recorded as a task's read",
    *(*SOURCE, *WINDOW, *SINK, *SPARK, *OVERRIDES, ARG_OUTPUT),
)
TAIL = _command(
    "tail",
    "tail.tail",
    "Show the last events of a source, decoded; with --follow also those that come. Creates and consumes nothing",
    *SOURCE,
    Arg(("-n", "--number"), help="how many events; default 20", type=int, default=20),  # type: ignore[no-untyped-call]
    _on("--follow", "go on with events as they come, until Ctrl-C, or until the stream ends"),
    _arg("--interval", "--follow: seconds between two looks; default 1", type=float, default=1.0, metavar="SECONDS"),
    _arg(
        "--where",
        "only events that meet a condition on their columns, like: amount > 100 and _key == 'k1'",
        metavar="CONDITION",
    ),
    _on("--json", "a JSON object per event, one a line"),
    _arg(
        "--max-bytes",
        "how many stored bytes are looked through at most; default 256 MiB",
        type=int,
        default=256 * 1024**2,
        metavar="BYTES",
    ),
    *PAYLOADS,
)
COVERAGE = _command(
    "coverage",
    "coverage.coverage",
    "Show which windows are covered, missing, failed or lost",
    *_READERS,
    _arg("--start", "ISO 8601; default: 24 hours before the end"),
    _arg("--end", "ISO 8601; default: now"),
    _arg("--window-length", "of missing windows, like 15m, 1h, 1d; default: as read", metavar="LENGTH"),
    _on("--offline", "do not ask how far back the streams still reach"),
    ARG_OUTPUT,
)
BACKFILL = _command(
    "backfill",
    "backfill.backfill",
    "Read the windows of a span that are not covered yet, many in one Spark job; or preview that",
    *SOURCE,
    _arg("--start", "ISO 8601; where the first window starts", required=True),
    _arg("--end", "ISO 8601; where the last window ends at the latest; default: now"),
    _arg("--window-length", "like 15m, 1h, '1d Europe/Berlin'; default: the reader's own", metavar="LENGTH"),
    _arg(
        "--select",
        "missing (all that are not covered; default), failed, lost, late, all; several between commas",
        default="missing",
    ),
    _on("--dry-run", "show what would be read; pins and reads nothing"),
    *SINK,
    _arg("--lookback", "count rows stored so long after their window's end; like 1h", metavar="LENGTH"),
    _arg("--max-bytes", "stored bytes per Spark job; default 4 GiB", type=int, default=4 * 1024**3),
    _arg("--max-windows", "windows per Spark job; default 200", type=int, default=200),
    *(*SPARK, *READING, *DECODING, *TASK, *OVERRIDES, ARG_OUTPUT),
)
QUARANTINE = GroupCommand(
    name="quarantine",
    help="Look at events that could not be decoded, and decode them again",
    subcommands=(
        _command(
            "list",
            "quarantine.list_",
            "Show which windows have events that could not be decoded, and why",
            *(*_READERS, *_SPAN, ARG_OUTPUT),
        ),
        _command(
            "show",
            "quarantine.show",
            "Show such events of one window: where each is, why, and how its payload begins",
            *_READERS,
            _arg("--window", f"start/end, {_LIKE_WINDOW}", required=True),
            _arg("--limit", "how many events at most; default 20", type=int, default=20),
            ARG_OUTPUT,
        ),
        _command(
            "replay",
            "quarantine.replay",
            "Decode such events again, after a fix, and add them to the rows of their windows",
            *SOURCE,
            _READER,
            _arg("--window", f"only this one, {_LIKE_WINDOW}"),
            *(*_SPAN, *PAYLOADS, *TASK, ARG_OUTPUT),
        ),
    ),
)
FORGET = _command(
    "forget",
    "journal.forget",
    "Forget a reader: its windows, plans and runs in the journal. Its table and its stream stay as they are",
    _arg("reader", "the reader's name, whole"),
    _arg("--source-key", "which one, if readers of several sources have the name", metavar="KEY"),
    _on("--yes", "do not ask"),
)
JOURNAL = GroupCommand(
    name="journal",
    help="Look after the journal",
    subcommands=(
        _command(
            "prune",
            "journal.prune",
            "Forget old tries and plans that decide nothing any more. Coverage stays as it is",
            _arg("--older-than", "like 90d; a day at least", required=True, metavar="LENGTH"),
            _on("--dry-run", "show what would be forgotten"),
            ARG_OUTPUT,
        ),
    ),
)
SCHEMA = GroupCommand(
    name="schema",
    help="Look at the schemas of topics, or of the groups of a Schema Registry",
    subcommands=(
        _command(
            "show",
            "schema.show",
            "Show the versions of a schema; with --version the columns of one",
            *_SCHEMA_SOURCE,
            _arg("--version", "show the columns and types of this version"),
            ARG_OUTPUT,
        ),
        _command(
            "compare",
            "schema.compare",
            "Compare two versions of a schema field by field",
            *_SCHEMA_SOURCE,
            _NAME,
            _arg("--old", "default: the last but one", metavar="VERSION"),
            _arg("--new", "default: the last", metavar="VERSION"),
            ARG_OUTPUT,
        ),
        _command(
            "export",
            "schema.export",
            "Write a schema's own text: Avro's JSON, JSON Schema, or a descriptor set as base64",
            *_SCHEMA_SOURCE,
            _NAME,
            _arg("--version", "default: the last"),
            _arg("--file", "where to; default: the standard output"),
        ),
    ),
)
HOLDS = _command(
    "holds", "holds.holds", "Show what holds unread data of a source, for whom and since when", *SOURCE, ARG_OUTPUT
)
CONFIG = _command(
    "config",
    "config.config",
    "Show the settings of a connection, and where each of them comes from",
    _arg("system", "for example: pravega, or schema_registry; default: every system", nargs="*", metavar="SYSTEM"),
    _arg("--conn-id", "the Airflow connection; default <system>_default"),
    ARG_OUTPUT,
)
DOCTOR = _command(
    "doctor",
    "doctor.doctor",
    "Check a set-up before a reader runs: connection, grants, clock, retention, schema, journal, Spark, table, Airflow",
    *SOURCE,
    _arg("--schedule", "a cron expression, seconds, or a length of windows like 15m; default: hourly"),
    _arg("--outage", "how long readers may be down without losing events, like 3d; default 7d", metavar="LENGTH"),
    _seconds(
        "--slack",
        "disorder of publish times, which the clocks are compared with; default: as the reader's last window had, "
        "else 60",
    ),
    _arg("--reader", "the reader whose windows and holds count; default: the table's owner, and any reader's holds"),
    *PAYLOADS,
    *SINK[:-1],
    _on("--write", "also write a file to the sink's store under a name of ours, read it back and remove it"),
    *SPARK,
    *TASK,
    _on("--strict", "exit with 1 if there are warnings"),
    _on("--json", "the report as JSON"),
)
VERSION = _command(
    "version",
    "version.version",
    "Show the versions of this package, Airflow, Python, Java, PySpark and the clients that are installed",
    _on("--json", "as a JSON object"),
)


def get_streams_cli_commands() -> list[CLICommand]:
    """The command group."""
    commands = (
        *(INIT, TAIL, DOCTOR, CUTS, PLAN, READ, COVERAGE, BACKFILL, QUARANTINE, FORGET, JOURNAL, SCHEMA),
        *(HOLDS, CONFIG, VERSION),
    )
    return [GroupCommand(name="streams", help="Plan, read and account for windows of streams", subcommands=commands)]
