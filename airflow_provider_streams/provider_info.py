"""What Airflow discovers about this package; imports nothing."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Airflow's provider dictionary."""
    return {
        "package-name": "airflow-provider-streams",
        "name": "Streams",
        "description": "Exact, retryable windows of Apache Pulsar and Pravega, read with PySpark.",
    }
