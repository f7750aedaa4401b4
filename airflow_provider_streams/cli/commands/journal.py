"""What `airflow streams journal ..` and `airflow streams forget` do."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.output import answer, answer_rows
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.base import as_sentence
from airflow_provider_streams.model.name_suggestion import hint_for
from airflow_provider_streams.model.window.window import parse_length


@command
def prune(args: Namespace) -> None:
    """Forget what is older and decides nothing any more; show how much that was, or would be."""
    with open_journal() as journal:
        found = journal.prune(parse_length(args.older_than), dry_run=args.dry_run)
    answer_rows([asdict(one) for one in found], args.output, f"nothing older than {args.older_than} can be forgotten")


@command
def forget(args: Namespace) -> None:
    """Forget one reader, once the user has typed its name again."""
    with open_journal() as journal:
        named = [key for key, reader in journal.sources() if reader == args.reader]
        found = [key for key in named if args.source_key in (None, key)]
        if not found:
            raise InvalidRequest(
                f"{as_sentence(_unknown(args, journal.sources(), named))} See `airflow streams coverage`"
            )
        if len(found) > 1:
            raise InvalidRequest(f"say which one with --source-key: reader {args.reader!r} reads {', '.join(found)}")
        (key,) = found
        if not args.yes:
            _confirm(key, args.reader)
        journal.forget_reader(key, args.reader)
    answer(f"forgot reader {args.reader!r} of {key}")


def _unknown(args: Namespace, known: Iterable[tuple[str, str]], keys: Iterable[str]) -> str:
    """Why no reader is found: another source reads under its name, or none has it."""
    if keys:
        hint = hint_for(args.source_key, keys)
        return f"reader {args.reader!r} does not read {args.source_key}; {hint}"
    hint = hint_for(args.reader, [reader for _, reader in known])
    return f"the journal knows no reader {args.reader!r}; {hint}"


def _confirm(key: str, reader: str) -> None:
    """Ask on the terminal.

    Raises:
        InvalidRequest: another answer than the name, or none.
    """
    sys.stderr.write(
        f"The journal forgets every window, plan and run of reader {reader!r} of {key}. Its table stays, and no other "
        "reader may write into it; what it holds counts as read no more.\nType the name of the reader to go on: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != reader:
        raise InvalidRequest("nothing was forgotten, as the name was not typed. --yes does not ask for it")
