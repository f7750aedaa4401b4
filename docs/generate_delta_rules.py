"""Writes `fragments/delta-rules.md` from the code: `python docs/generate_delta_rules.py`. A test compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_streams.lake.delta.writer_requirements import Place, Requirement, requirements_of

FRAGMENT = Path(__file__).parent / "fragments" / "delta-rules.md"

_TITLES = {
    Place.FEATURE: "Table features",
    Place.PROPERTY: "Table properties",
    Place.COLUMN: "Metadata of columns",
    Place.TYPE: "Types of columns",
}


def fragment() -> str:
    """The four tables, for the page that includes them."""
    return "\n".join(line for place in Place for line in _table(place))


def _table(place: Place) -> Iterator[str]:
    yield f"## {_TITLES[place]}\n"
    yield f"| {place.value} | asks writers to | answer | how, or why |"
    yield "|---|---|---|---|"
    for one in requirements_of(place):
        yield f"| {_name(one)} | {one.asks} | {one.answer.value} | {one.does} |"
    yield ""


def _name(one: Requirement) -> str:
    since = f" (writer version {one.since})" if one.since is not None else ""
    return f"`{one.name}`{since}"


if __name__ == "__main__":
    FRAGMENT.write_text(fragment())
    sys.stdout.write(f"{FRAGMENT} is written\n")
