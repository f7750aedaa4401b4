"""A mutant: a patch that breaks one rule of the package, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
AREAS = (
    *("planning", "reading", "decoding", "receipts", "journal"),
    *("landing", "sensors", "backfill", "secrets", "cli"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One patch."""

    path: Path
    rule: str
    """What it breaks."""
    tests: tuple[str, ...]
    """Paths or node ids."""

    @property
    def name(self) -> str:
        """`<area>_<rule>`."""
        return self.path.stem

    @property
    def area(self) -> str:
        """The part of the package whose rule it breaks."""
        return self.name.partition("_")[0]


def read_mutant(path: Path) -> Mutant:
    """From its file; the lines before the diff say what it is.

    Raises:
        ValueError: one of them is missing.
    """
    head = path.read_text().partition("diff --git ")[0]
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not all(facts.get(name, "").strip() for name in ("Rule", "Tests")):
        raise ValueError(f"{path.name} must begin with a line `Rule: ..` and a line `Tests: ..`")
    return Mutant(path, facts["Rule"], tuple(facts["Tests"].split()))


def mutants(names: Iterable[str] = ()) -> list[Mutant]:
    """Those of these names, or all.

    Raises:
        ValueError: there is none of a name.
    """
    found = {path.stem: path for path in sorted(FOLDER.glob("*.patch"))}
    chosen = list(names) or list(found)
    if unknown := [name for name in chosen if name not in found]:
        raise ValueError(f"no mutant is named {', '.join(unknown)}; there are {', '.join(found)}")
    return [read_mutant(found[name]) for name in chosen]
