"""The readers that a command is about, by `--source` and `--reader`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import hint_for

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


def readers_of(journal: Journal, args: Namespace) -> list[tuple[str, str]]:
    """Source key and name of each reader that is meant; none where the journal has none at all.

    Raises:
        InvalidRequest: a name is not known, with the nearest one.
    """
    known = journal.sources()
    if not known:
        return []
    of_source = [one for one in known if args.source in one[0]]
    if args.source and not of_source:
        hint = hint_for(args.source, [_name(key) for key, _ in known])
        raise InvalidRequest(f"the journal knows no source like {args.source!r}; {hint}")
    found = [one for one in of_source if args.reader in (None, one[1])]
    if args.reader is not None and not found:
        of = f" of a source like {args.source!r}" if args.source else ""
        hint = hint_for(args.reader, [reader for _, reader in of_source])
        raise InvalidRequest(f"the journal knows no reader {args.reader!r}{of}; {hint}")
    return found


def check_known(source_key: str, known: Iterable[str]) -> None:
    """See that the journal knows a source, unless it knows none at all.

    Raises:
        InvalidRequest: it does not, with the nearest name.
    """
    keys = set(known)
    if keys and source_key not in keys:
        name = _name(source_key)
        raise InvalidRequest(f"the journal knows no source {name!r}; {hint_for(name, map(_name, keys))}")


def _name(key: str) -> str:
    """Of a source's key what follows system and connection, which is what people type."""
    return key.split(":", 2)[-1]
