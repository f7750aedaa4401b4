"""The page about versions of Airflow shows what the code asks for."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_streams.airflow_features import features_table

PAGE = Path(__file__).parents[3] / "docs/pages/reference/airflow-versions.md"


def test_the_page_has_the_table_of_features():
    assert features_table() in PAGE.read_text()
