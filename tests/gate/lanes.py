"""Which tests run side by side.

Each server, the Spark session and Airflow's four processes start once in a lane, and most belong to one lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lane:
    """The arguments of one process of pytest."""

    name: str
    arguments: Sequence[str]


def _without(*paths: str) -> tuple[str, ...]:
    return tuple(f"--ignore={path}" for path in paths)


_WINDOWS = ("tests/unit/windows", "tests/unit/journal")
_TABLES_AND_FUZZ = ("tests/unit/lake", "tests/fuzz")
_UNITS = ("tests/unit", "tests/fuzz")
_LANDING = (
    "tests/airflow/stack",
    "tests/integration/lake",
    "tests/spark/test_table_sink.py",
    "tests/spark/test_own_sink.py",
)
_SPARK = ("tests/spark",)
_PAGE = ("tests/airflow/ui", "tests/install")
_PULSAR = ("tests/integration/pulsar",)
_JOURNAL = ("tests/integration/journal",)
PIPELINE = "tests/pipeline"
"""A database and its connector are a large download: `make pipeline`."""

_STREAM_UNITS = ("tests/unit/systems", "tests/unit/formats", "tests/unit/lake", "tests/fuzz")
WITHOUT_SERVERS = "not (dagtest or pulsar or pravega or spark or stack or postgres or lake or install)"

LANES: dict[str, Sequence[Lane]] = {
    # Those that take longest come first.
    "servers": (
        Lane("streams", _without(*_UNITS, *_LANDING, *_SPARK, *_PAGE, *_PULSAR, *_JOURNAL, PIPELINE)),
        Lane("stack and lake", _LANDING),
        Lane("spark", (*_without(*_LANDING), *_SPARK)),
        Lane("units", (*_without(*_WINDOWS, *_TABLES_AND_FUZZ), "tests/unit")),
        Lane("pulsar", _PULSAR),
        Lane("tables, fuzz and journal", (*_TABLES_AND_FUZZ, *_JOURNAL)),
        Lane("page and install", _PAGE),
        Lane("windows", _WINDOWS),
    ),
    "fast": (
        Lane("units of streams and tables", _STREAM_UNITS),
        Lane("units of windows", _WINDOWS),
        Lane("units", (*_without(*_STREAM_UNITS, *_WINDOWS), "tests/unit")),
    ),
}


@dataclass(frozen=True, slots=True)
class Tier:
    """One of the suite's three sizes."""

    lanes: Sequence[Lane]
    """Each begins when one before it ends. The output of the first is shown as it comes."""
    marks: str = ""
    make: str = "make test"
    """Runs single tests of it."""
    at_once: int = 4
    """So many lanes run side by side: on two cores, for most tests wait for servers."""


TIERS = {
    "quick": Tier(LANES["servers"], "not slow"),
    "all": Tier(LANES["servers"]),
    "fast": Tier(LANES["fast"], f"not slow and {WITHOUT_SERVERS}", "make test-fast"),
}
