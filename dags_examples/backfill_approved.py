"""Fill what is missing of a span of time, once a person has looked at what that would read, and approved."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param

from airflow_provider_streams import BackfillWindowsOperator, ParquetSink, PulsarSource

SPAN: dict[str, Any] = {
    "source": PulsarSource("shop/orders/events", conn_id="pulsar_default"),
    "start": "{{ params.start }}",
    "end": "{{ params.end }}",
    "window_length": timedelta(hours=1),
    "select": "{{ params.select }}",
    "reader": "pulsar_hourly.read",
    # hours of which the stream holds only a part are read as far as they are held, if that is approved
    "on_loss": "record",
}
QUESTION = """
{%- set preview = ti.xcom_pull(task_ids='preview') -%}
{{ preview.windows | length }} windows, {{ preview.bytes }} bytes in {{ preview.jobs }} Spark jobs,
about {{ preview.minutes }} minutes.
{% if preview.beyond_horizon %}The stream no longer holds all of: {{ preview.beyond_horizon | join(', ') }}.{% endif %}
"""

with DAG(
    "backfill_approved",
    schedule=None,
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    params={
        "start": Param("2026-11-20T00:00Z", type="string", description="ISO 8601"),
        "end": Param("2026-11-21T00:00Z", type="string", description="ISO 8601"),
        "select": Param("missing", enum=["missing", "failed", "lost", "all"]),
    },
    doc_md=__doc__,
) as dag:
    preview = BackfillWindowsOperator(task_id="preview", dry_run=True, **SPAN)
    approve = ApprovalOperator(
        task_id="approve",
        subject="Backfill from {{ params.start }} to {{ params.end }}?",
        body=QUESTION,
        response_timeout=timedelta(days=1),
    )
    fill = BackfillWindowsOperator(
        task_id="fill", sink=ParquetSink(os.environ.get("LAKE", "/lake") + "/orders"), **SPAN
    )
    preview >> approve >> fill
