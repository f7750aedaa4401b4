"""The page on Spark's settings has every rule of the code."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_streams.spark.settings.setting_rules import RULES, WHERE_SPARK_IS
from airflow_provider_streams.spark.settings.variables import OF_OTHER_LAUNCHES

PAGE = (Path(__file__).parents[3] / "docs/pages/reference/spark-settings.md").read_text()


def test_each_rule_has_its_row_and_its_replacement() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `spark.")]
    for rule in RULES:
        (row,) = (row for row in rows if f"`{rule.name}`" in row)
        assert re.findall(r"`(\w+)` \|$", row) == ([rule.instead] if rule.instead else []), row


def test_what_a_connection_decides_is_named() -> None:
    assert [name for name in (*WHERE_SPARK_IS, *OF_OTHER_LAUNCHES) if f"`{name}" not in PAGE] == []
