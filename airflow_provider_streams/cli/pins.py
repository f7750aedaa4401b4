"""What `airflow streams pins` does."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.systems.pulsar.hold import pins_of
from airflow_provider_streams.systems.pulsar.hold_subscription import PinSubscription
from airflow_provider_streams.systems.pulsar.source import PulsarSource


@command
def pins(args: Namespace) -> None:
    """Show the pin subscriptions of a source, oldest first."""
    source = source_of_args(args)
    if not isinstance(source, PulsarSource):
        raise InvalidRequest(f"pins are subscriptions of Pulsar topics, and {source} is none")
    now = datetime.now(UTC)
    with closing(PulsarHook(source.conn_id)) as hook:
        found = sorted(hook.answer(pins_of(source)), key=lambda pin: (pin.mark.placed, pin.shard))
    if args.output == "json":
        answer(json.dumps([pin.to_json(now) for pin in found], indent=2))
    elif found:
        answer(pins_table(found, now))
    else:
        answer(f"No pins on {source}.")


def pins_table(found: list[PinSubscription], now: datetime) -> str:
    """One line per pin and shard."""
    rows = [("pin", "reader", "shard", "position", "age", "keeps", "from")]
    rows += [
        (
            pin.name,
            pin.mark.reader,
            pin.shard.removeprefix("persistent://"),
            str(pin.mark.position),
            str(timedelta(seconds=round(pin.age(now).total_seconds()))),
            "?" if pin.bytes is None else f"{pin.bytes:,} B",
            pin.mark.since.isoformat() if pin.mark.since else "",
        )
        for pin in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
