"""What tables and their commits say of themselves: whose a table is, and which attempt at which window a commit is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from airflow_provider_streams.errors import TableOwnedByOther, WindowsOverlap
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.window.window import Window

_KEYS: Final = {"id": "streams.table-id", "source": "streams.source", "reader": "streams.reader"}
"""The properties of a table that name its owner."""

WINDOW: Final = "streams.window"
ATTEMPT: Final = "streams.attempt"
CLAIM: Final = "streams.claim"
"""In a commit's own facts: it wrote whose the table is."""
COMPACTED: Final = "streams.compacted"
"""In a commit's own facts: how many windows it compacted."""


def commit_facts(window: Window, fingerprint: str, attempt: str) -> dict[str, str]:
    """What a commit that lands a window says of itself; `fingerprint` is the plan's."""
    return {WINDOW: str(window), "streams.fingerprint": fingerprint, ATTEMPT: attempt}


def mark_in(properties: Mapping[str, str]) -> TableMark | None:
    """The owner that a table's properties name; None: they name none."""
    found = {name: properties.get(key) for name, key in _KEYS.items()}
    return None if None in found.values() else TableMark.from_json({name: str(value) for name, value in found.items()})


def properties_of(mark: TableMark) -> dict[str, str]:
    """A mark as a table's properties."""
    return {_KEYS[name]: value for name, value in mark.to_json().items()}


def unowned(target: str) -> TableOwnedByOther:
    """The error for a table that holds data and names no owner."""
    return TableOwnedByOther(
        target, "it holds data, and nothing in it says whose that is. A table has one owner: land in another one"
    )


def check_owner(target: str, found: TableMark | None, terms: TableTerms, kept_in: str) -> bool:
    """Whether a table that holds something bears the terms' mark already; otherwise it may be set aside, in `kept_in`.

    Raises `TableOwnedByOther` if it may not; `found` is its mark, or None.
    """
    wanted = terms.mark
    if found is None:
        raise unowned(target)
    if (found.source, found.reader) != (wanted.source, wanted.reader):
        renamed = f". If that is this task under an earlier name, go on with reader={found.reader!r}"
        raise TableOwnedByOther(
            target,
            f"the table belongs to {found}, not to {wanted}. A table has one owner, for the windows of two would "
            f"replace or double each other: land in another one{renamed if found.source == wanted.source else ''}",
        )
    if found != wanted and not terms.may_be_set_aside(found):
        raise TableOwnedByOther(
            target,
            f"the table was landed as {found.id[:12]}, and the journal expects {wanted.id[:12]}: it was made under "
            "another journal (another deployment?), put back from a copy, or given up by this reader. Land in "
            f"another one; or full_refresh=True sets aside what it holds, in {kept_in}, and every window is missing "
            "again",
        )
    return found == wanted


def in_the_way(window: Window, held: Iterable[Window], terms: TableTerms) -> list[Window]:
    """The other windows that share time with one, which replaces them. `WindowsOverlap`: they must stay."""
    found = sorted(one for one in held if one != window and one.overlaps(window))
    if found and not terms.replace_overlaps:
        raise WindowsOverlap(terms.mark.source, window, found)
    return found


def refuse_other_mark(target: str, found: TableMark | None, mark: TableMark) -> None:
    """Raise `TableOwnedByOther` if a table does not bear a mark."""
    if found != mark:
        raise TableOwnedByOther(target, f"the table belongs to {found or 'no owner that it names'}, not to {mark}")
