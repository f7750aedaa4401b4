"""What a check found, and the report of all checks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from airflow_provider_streams.errors import MissingDependency, StreamsError

Level = Literal["ok", "warning", "error", "skipped"]
"""`skipped`: the check needs another one that failed, or something that the caller did not name."""
Area = Literal["airflow", "connection", "grants", "clock", "retention", "schema", "journal", "spark", "sink"]
"""The areas, in the order in which they are examined."""

AREAS: Final[tuple[Area, ...]] = get_args(Area)
OK, WARNINGS, ERRORS = 0, 1, 2
"""Exit statuses."""
INSTALL: Final = "Run that command in the Python of Airflow's workers"
"""The next step if a package is missing: the error has the command."""
_VERSION: Final = 1
"""Of the JSON form."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    area: Area
    check: str
    level: Level
    says: str
    """What was observed, and how."""
    next_step: str = ""
    """What to do about it; empty: nothing."""

    def to_json(self) -> dict[str, str]:
        """Plain JSON values."""
        return {
            "area": self.area,
            "check": self.check,
            "level": self.level,
            "says": self.says,
            "next_step": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order of their areas."""

    findings: tuple[Finding, ...]
    subject: str = ""
    """What was examined: the connection, and the source if there is one."""

    @property
    def counts(self) -> dict[Level, int]:
        """How many findings there are of each level."""
        found = Counter(one.level for one in self.findings)
        return {level: found[level] for level in get_args(Level)}

    def exit_status(self, *, strict: bool = False) -> int:
        """2 if there are errors; 1 if there are warnings, and the examination is strict; else 0."""
        if self.counts["error"]:
            return ERRORS
        return WARNINGS if strict and self.counts["warning"] else OK

    def of(self, area: Area) -> tuple[Finding, ...]:
        """The findings of one area."""
        return tuple(one for one in self.findings if one.area == area)

    def summary(self) -> str:
        """One line."""
        counted = (f"{number} {_plural(level, number)}" for level, number in self.counts.items() if number)
        return f"{self.subject or 'arguments'}: {', '.join(counted) or 'nothing was checked'}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "version": _VERSION,
            "subject": self.subject,
            "exit_status": self.exit_status(),
            "counts": self.counts,
            "findings": [one.to_json() for one in self.findings],
        }


def _plural(level: Level, number: int) -> str:
    return f"{level}s" if level in ("warning", "error") and number != 1 else level


@dataclass(slots=True)
class Notes:
    """Collects the findings of one area."""

    area: Area
    findings: list[Finding] = field(default_factory=list)

    def ok(self, check: str, says: str) -> None:
        """Something that was seen to work."""
        self._add(check, "ok", says)

    def warning(self, check: str, says: str, next_step: str) -> None:
        """A risk, or something that cannot be checked from here."""
        self._add(check, "warning", says, next_step)

    def error(self, check: str, says: str, next_step: str) -> None:
        """A reader will fail, or lose events."""
        self._add(check, "error", says, next_step)

    def skipped(self, check: str, why: str, next_step: str = "") -> None:
        """A check that was not made."""
        self._add(check, "skipped", why, next_step)

    @contextmanager
    def failing(self, check: str, next_step: str) -> Iterator[None]:
        """An error of this package that is raised inside becomes the finding."""
        try:
            yield
        except MissingDependency as error:
            self.error(check, str(error), INSTALL)
        except StreamsError as error:
            self.error(check, str(error), next_step)

    @property
    def has_errors(self) -> bool:
        """Whether a check failed."""
        return any(one.level == "error" for one in self.findings)

    def failed(self, check: str) -> bool:
        """Whether this check failed."""
        return any(one.level == "error" for one in self.findings if one.check == check)

    def _add(self, check: str, level: Level, says: str, next_step: str = "") -> None:
        self.findings.append(Finding(self.area, check, level, _sentence(says), _sentence(next_step)))


def _sentence(text: str) -> str:
    """One line, without the period that a message may end with."""
    return " ".join(text.split()).removesuffix(".")


def report_of(subject: str, findings: Iterable[Finding]) -> Report:
    """The report of all areas' findings."""
    order = {area: number for number, area in enumerate(AREAS)}
    return Report(tuple(sorted(findings, key=lambda one: order[one.area])), subject)
