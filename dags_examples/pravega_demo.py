"""One window of time of one stream, given by the run: wait until its edges are recorded, then land it.

Pravega's events carry no time: a window is between two cuts that a recorder took on a clock. `make demo-pravega` runs
this DAG together with such a recorder.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_streams import IcebergSink, Json, PravegaSource, ReadWindowOperator, WindowReadySensor

ORDERS = PravegaSource(
    "demo/orders",
    value=Json("number long, customer string, country string, cents long, note string"),
    conn_id="pravega_demo",
)

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
        sink=IcebergSink("demo.orders", conn_id="lake_demo"),
        reader="demo",
    )
    ready >> read
