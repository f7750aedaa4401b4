"""What `airflow streams forget` does."""

from __future__ import annotations

import sys
from argparse import Namespace

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.journal import open_journal


@command
def forget(args: Namespace) -> None:
    """Forget one reader, once whoever asks has typed its name again."""
    with open_journal() as journal:
        named = [key for key, reader in journal.sources() if reader == args.reader]
        found = [key for key in named if args.source_key in (None, key)]
        if not found:
            raise InvalidRequest(
                f"the journal knows no reader {args.reader!r}{_of(args)}: see `airflow streams coverage`"
            )
        if len(found) > 1:
            raise InvalidRequest(f"say which one with --source-key: reader {args.reader!r} reads {', '.join(found)}")
        (key,) = found
        if not args.yes:
            _confirm(key, args.reader)
        journal.forget_reader(key, args.reader)
    answer(f"forgot reader {args.reader!r} of {key}")


def _of(args: Namespace) -> str:
    return f" of {args.source_key}" if args.source_key else ""


def _confirm(key: str, reader: str) -> None:
    """Ask on the terminal.

    Raises:
        InvalidRequest: another answer than the name, or nobody is there.
    """
    sys.stderr.write(
        f"The journal forgets every window, plan and run of reader {reader!r} of {key}. Its table stays, and no other "
        "reader may write into it; what it holds counts as read no more.\nType the name of the reader to go on: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != reader:
        raise InvalidRequest("nothing was forgotten: the name was not typed (--yes does not ask)")
