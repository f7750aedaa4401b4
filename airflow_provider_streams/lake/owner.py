"""Whose a table is: the rule for every kind of table, and how a table format's properties say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from airflow_provider_streams.errors import ForeignTable
from airflow_provider_streams.model.landing import TableMark, TableTerms

_KEYS: Final = {"id": "streams.table-id", "source": "streams.source", "reader": "streams.reader"}
"""The properties of a table that say whose it is."""


def mark_in(properties: Mapping[str, str]) -> TableMark | None:
    """Whose a table is by its properties; None: they do not say."""
    found = {name: properties.get(key) for name, key in _KEYS.items()}
    return None if None in found.values() else TableMark.from_json({name: str(value) for name, value in found.items()})


def properties_of(mark: TableMark) -> dict[str, str]:
    """A mark as a table's properties."""
    return {_KEYS[name]: value for name, value in mark.to_json().items()}


def unowned(target: str) -> ForeignTable:
    """What a table is to everybody that holds data and does not say whose."""
    return ForeignTable(
        target, "it holds data, and nothing in it says whose that is. A table has one owner: land in another one"
    )


def check_owner(target: str, found: TableMark | None, terms: TableTerms, kept_in: str) -> bool:
    """Whether a table that holds something is the terms' already; otherwise it may be made theirs.

    Args:
        target: the table, for people.
        found: whose it says to be; None: it does not say.
        terms: whose it must be.
        kept_in: where this kind of table keeps what is set aside.

    Raises:
        ForeignTable: it may not.
    """
    wanted = terms.mark
    if found is None:
        raise unowned(target)
    if (found.source, found.reader) != (wanted.source, wanted.reader):
        raise ForeignTable(
            target,
            f"the table belongs to {found}, not to {wanted}. A table has one owner, for the windows of two would "
            "replace or double each other: land in another one",
        )
    if found != wanted and not terms.gives_way(found):
        raise ForeignTable(
            target,
            f"the table was landed as {found.id[:12]}, and the journal expects {wanted.id[:12]}: it was made under "
            "another journal (another deployment?), put back from a copy, or left behind by this reader. Land in "
            f"another one; or reland=True sets aside what it holds, in {kept_in}, and every window is missing again",
        )
    return found == wanted
