"""One window of time of one stream, given by the run: wait until its edges are recorded, then land it.

Pravega's events carry no time: a window lies between two cuts that a recorder took on a clock. `make demo-pravega` runs
this DAG beside such a recorder.
"""

from __future__ import annotations

import os

from airflow.sdk import DAG, Param

from airflow_provider_streams import ParquetSink, PravegaSource, ReadWindowOperator, WindowReadySensor

ORDERS = PravegaSource("demo/orders", conn_id="pravega_demo")

with DAG(
    "pravega_demo",
    schedule=None,
    params={"window": Param("", type="string", description="start/end, ISO 8601")},
    doc_md=__doc__,
) as dag:
    ready = WindowReadySensor(
        task_id="ready", source=ORDERS, window="{{ params.window }}", basis="append", poke_interval=1, deferrable=False
    )
    read = ReadWindowOperator(
        task_id="read",
        source=ORDERS,
        window="{{ params.window }}",
        basis="append",
        sink=ParquetSink(os.environ.get("DEMO_LAKE", "/lake") + "/orders"),
        reader="demo",
    )
    ready >> read
