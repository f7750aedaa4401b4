"""What `airflow streams cuts ..` does: list, record and decode cuts."""

from __future__ import annotations

import getpass
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.output import answer_rows
from airflow_provider_streams.cli.reader_arguments import check_known
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.plan.tail_observations import observe_tail

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.pravega import PravegaHook
    from airflow_provider_streams.journal.evidence.recorded_cuts import RecordedCut
    from airflow_provider_streams.model.stream.source import Source


@command
def list_(args: Namespace) -> None:
    """Show which sources have recorded cuts, or the last cuts of one."""
    if not (args.source or args.topic or args.pattern or args.scope):
        with open_journal() as journal:
            found = journal.cut_histories()
        rows = [
            {"source": one.source_key, "cuts": one.count, "first": _time(one.first), "last": _time(one.last)}
            for one in found
        ]
        answer_rows(rows, args.output, "no cut was ever recorded: see `airflow streams cuts record`")
        return
    source = source_of_args(args)
    if args.scaling:
        answer_rows(list(_scaling(source)), args.output, "no scaling event is known")
        return
    with open_journal() as journal:
        entries = journal.recorded_cuts(source.key, args.limit)
        if not entries:
            read = (key for key, _ in journal.sources())
            check_known(source.key, [*read, *(one.source_key for one in journal.cut_histories())])
    answer_rows([_entry(source, entry) for entry in entries], args.output, f"no cut of {source} was ever recorded")


@command
def record(args: Namespace) -> None:
    """Sample the tail of a source now, and store it."""
    source = source_of_args(args)
    recorder = args.recorder or f"cli:{getpass.getuser()}"
    with open_journal() as journal, closing(hook_for(source).system()) as system:
        taken = sample(system, source)
        sequence = store(journal, system, taken, recorder, start_over=args.start_over)
        observe_tail(journal, system, source)
    row = {"sequence": sequence, "sampled_from": _time(taken.sampled_from), "recorder": recorder}
    if sequence is None:
        row["note"] = "not stored: another recorder was quicker"
    answer_rows([{**row, "cut": declaration_of(source.system).cut_text(source, taken.cut)}], args.output, "")


@command
def decode(args: Namespace) -> None:
    """Show the positions in a Pravega stream cut's text, or in a Pulsar message id in any notation."""
    rows = declaration_of(args.system).decode_cut(args.text, args.shard)
    answer_rows(rows, args.output, "a cut without positions: the tail of what was sealed")


def _entry(source: Source, entry: RecordedCut) -> dict[str, Any]:
    span = (entry.sampled_to - entry.sampled_from).total_seconds()
    return {
        "sequence": entry.sequence,
        "sampled_from": _time(entry.sampled_from),
        "seconds": round(span, 3),
        "recorder": entry.recorder,
        "cut": declaration_of(source.system).cut_text(source, entry.cut),
    }


def _scaling(source: Source) -> Iterator[dict[str, Any]]:
    from airflow_provider_streams.systems.pravega.metadata.scaling_events import scaling_events

    if not isinstance(source, PravegaSource):
        raise InvalidRequest("only Pravega streams scale: leave out --scaling")
    endpoint = cast("PravegaHook", hook_for(source)).endpoint()
    for event in scaling_events(endpoint, source.stream):
        yield {
            "time": _time(event.moment),
            "segments": len(event.segments),
            "splits": event.splits,
            "merges": event.merges,
        }


def _time(moment: Any) -> str:
    return str(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
