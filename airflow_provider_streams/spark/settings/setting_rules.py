"""Settings of Spark that would lose or change a window's rows, or send them elsewhere; where they may come from.

| a setting in | what happens |
|---|---|
| the operator's `spark=` or the connection's extra | refused as they are read |
| a file, a variable, or a session that runs already | replaced for the session by `instead`; without it, refused |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

WHERE_SPARK_IS: Final = {
    "spark.master": "the connection's host and port say where Spark is",
    "spark.remote": "the connection's host and port say where Spark is",
    "spark.api.mode": "the connection's type says how Spark is reached",
    "spark.submit.deployMode": "the driver program runs next to the task (client mode)",
}
"""Settings that a connection decides, and why they cannot be set. `spark-defaults.conf` has them for other programs."""


class Rule(NamedTuple):
    """A setting, and which of its values no job of ours can have."""

    name: str
    refuses: Callable[[str], bool]
    why: str
    instead: str | None = None
    """What a session gets in its place; None: the job is refused."""

    def broken_by(self, value: str, where: str) -> str:
        """A sentence on this value."""
        then = f": a job uses {self.instead!r}" if self.instead else ""
        return f"{where} has {self.name}={value!r}, with which {self.why}{then}."


def _is_one_of(*values: str) -> Callable[[str], bool]:
    return lambda given: given.strip().upper() in values


def _is_not_positive(value: str) -> bool:
    return value.strip().lstrip("+-").isdigit() and int(value) <= 0


_IS_SET: Final[Callable[[str], bool]] = bool
_STAGED: Final = "Iceberg would keep the rows apart from the table, and the window would count as landed"
_REBASED: Final = "dates before 1582 would be stored as other dates, for every reader except Spark"

RULES: Final = (
    Rule(
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        _is_not_positive,
        "rows are handed to Spark in batches of at least one row",
        "10000",
    ),
    Rule(
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled",
        _is_one_of("TRUE"),
        "an error of a task arrives in the task's traceback, and would lose its cause",
        "false",
    ),
    Rule(
        "spark.sql.parquet.outputTimestampType",
        _is_one_of("TIMESTAMP_MILLIS"),
        "times would be cut to milliseconds",
        "TIMESTAMP_MICROS",
    ),
    Rule("spark.sql.parquet.datetimeRebaseModeInWrite", _is_one_of("LEGACY"), _REBASED, "CORRECTED"),
    Rule("spark.sql.parquet.int96RebaseModeInWrite", _is_one_of("LEGACY"), _REBASED, "CORRECTED"),
    Rule("spark.wap.id", _IS_SET, _STAGED),
    Rule("spark.wap.branch", _IS_SET, _STAGED),
)


def rule_against(name: str, value: str) -> Rule | None:
    """The rule that refuses this value of a setting, if there is one."""
    return next((rule for rule in RULES if rule.name == name and rule.refuses(value)), None)


def broken_rules(value_of: Callable[[str], str | None]) -> list[tuple[Rule, str]]:
    """The rules that settings break, and the values with which they do."""
    values = ((rule, value_of(rule.name)) for rule in RULES)
    return [(rule, value) for rule, value in values if value and rule.refuses(value)]
