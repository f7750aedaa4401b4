"""A watcher of a Pulsar subscription, as users of Airflow's own message queues write it."""

from __future__ import annotations

from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher

QUEUE = Asset(
    "queued_messages",
    watchers=[
        AssetWatcher(
            name="queue",
            trigger=MessageQueueTrigger(
                scheme="pulsar",
                conn_id="pulsar_queued",
                topic="public/queued/corrections",
                subscription="airflow",
                max_entries=5,
                poll_interval=0.5,
            ),
        )
    ],
)

with DAG("queued_messages", schedule=[QUEUE]) as dag:
    EmptyOperator(task_id="note")
