"""`airflow streams ..`: what Airflow imports at every command; the work is in `cli_actions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand, lazy_load_command


def _arg(*flags: str, **options: Any) -> Arg:
    return Arg(flags, **options)  # type: ignore[no-untyped-call]  # Airflow's is not annotated


SOURCE = (
    _arg("source", nargs="*", metavar="SYSTEM NAME", help="for example: pulsar shop/orders/events"),
    _arg("--topic", action="append", default=[], help="short for `pulsar NAME`; may be repeated"),
    _arg("--pattern", help="Pulsar: a regular expression of full topic names, instead of names"),
    _arg("--conn-id", help="the Airflow connection; default <system>_default"),
)
WINDOW = (
    _arg("--window", required=True, help="start/end, like 2026-11-20T10:00Z/2026-11-20T11:00Z"),
    _arg("--basis", default="publish", choices=("publish", "chained"), help="how a time becomes a position"),
    _arg("--slack", type=float, default=60.0, metavar="SECONDS", help="disorder of publish times; default 60"),
    _arg("--reader", default="cli", help="the name under which windows are covered; default cli"),
    _arg("--on-loss", default="fail", choices=("fail", "record"), help="what to do when events are gone"),
)
OUTPUT = _arg("--output", default="table", choices=("table", "json"), help="default table")


def get_streams_cli_commands() -> list[CLICommand]:
    """The command group."""
    return [
        GroupCommand(
            name="streams",
            help="Plan, read and account for windows of streams",
            subcommands=(
                ActionCommand(
                    name="plan",
                    help="Show what reading a window would read; pins and reads nothing",
                    func=_action("plan"),
                    args=(*SOURCE, *WINDOW, OUTPUT),
                ),
                ActionCommand(
                    name="read",
                    help="Read a window into Parquet files, pinned and recorded as a task's read",
                    func=_action("read"),
                    args=(
                        *SOURCE,
                        *WINDOW,
                        _arg("--path", required=True, help="the folder of the table, absolute"),
                        _arg("--columns", help="columns to read, between commas"),
                        _arg("--spark-conn-id", help="a Spark connection; default: Spark in this process"),
                        _arg("--replan", action="store_true", help="make a new plan, although one is pinned"),
                        OUTPUT,
                    ),
                ),
                ActionCommand(
                    name="coverage",
                    help="Show which windows are covered, missing, failed or lost",
                    func=_action("coverage"),
                    args=(
                        _arg("--source", default="", help="only sources whose name contains this"),
                        _arg("--reader", help="only this reader"),
                        _arg("--start", help="ISO 8601; default: 24 hours before the end"),
                        _arg("--end", help="ISO 8601; default: now"),
                        OUTPUT,
                    ),
                ),
            ),
        )
    ]


def _action(name: str) -> Callable[..., Any]:
    command: Callable[..., Any] = lazy_load_command(f"airflow_provider_streams.cli_actions.{name}")
    return command
