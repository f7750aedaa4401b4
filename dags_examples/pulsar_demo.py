"""One window of one topic, given by the run: wait until it is complete, then land it. `make demo` runs this DAG."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_provider_streams import IcebergSink, PublishTime, PulsarSource, ReadWindowOperator, WindowReadySensor

ORDERS = PulsarSource("public/demo/orders", value="auto", conn_id="pulsar_demo")
BY_TIME = PublishTime(slack=timedelta(seconds=2))

with DAG(
    "pulsar_demo",
    schedule=None,
    params={"window": Param("", type="string", description="start/end, ISO 8601")},
    doc_md=__doc__,
) as dag:
    ready = WindowReadySensor(
        task_id="ready",
        source=ORDERS,
        window="{{ params.window }}",
        basis=BY_TIME,
        poke_interval=1,
        deferrable=False,
    )
    read = ReadWindowOperator(
        task_id="read",
        source=ORDERS,
        window="{{ params.window }}",
        basis=BY_TIME,
        sink=IcebergSink("demo.orders", conn_id="lake_demo"),
        reader="demo",
    )
    ready >> read
