"""Writes `fragments/types.md` from the table of types: `python docs/generate_types.py`. A test compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_streams.model.schema.type_table import TYPES

FRAGMENT = Path(__file__).parent / "fragments" / "types.md"


def fragment() -> str:
    """The table, for the pages that include it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| column | also accepted | holds | Spark | Arrow | Iceberg | Delta | Parquet |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in TYPES:
        also = [name for name in dict.fromkeys((one.spark, *one.also)) if name != one.word and "<" not in name]
        names = (one.spark, one.arrow, one.iceberg, one.delta, one.parquet)
        cells = (f"`{one.word}`", ", ".join(map(_code, also)), one.holds, *map(_code, names))
        yield f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    return f"`{name}`" if name else "none"


if __name__ == "__main__":
    FRAGMENT.write_text(fragment())
    sys.stdout.write(f"{FRAGMENT} is written\n")
