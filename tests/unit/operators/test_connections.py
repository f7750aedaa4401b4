"""A source has a connection of its own: one given next to it is the same, or refused when the DAG is parsed."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.operators.pravega import PravegaDeleteStreamOperator
from airflow_provider_streams.operators.pulsar import PulsarDeleteTopicOperator
from airflow_provider_streams.sensors.pravega import PravegaStreamSealedSensor
from airflow_provider_streams.sensors.pulsar import PulsarTerminatedSensor
from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger
from tests.unit.operators.test_parameters import own
from tests.unit.test_template_fields import PUBLIC, arguments

WITH_BOTH = [cls for cls in PUBLIC if {"source", "conn_id"} <= own(cls)]
EACH = pytest.mark.parametrize("cls", WITH_BOTH, ids=lambda cls: cls.__name__)


def made(cls: type, source_conn_id: str, **given: Any) -> Any:
    source_class = PulsarSource if "topic" in own(cls) else PravegaSource
    source = source_class("shop/orders/new" if source_class is PulsarSource else "shop/orders", conn_id=source_conn_id)
    rest = {name: value for name, value in arguments(cls).items() if name not in ("topic", "stream", "source")}
    return cls(task_id="task", source=source, **{**rest, **given})


@EACH
@pytest.mark.parametrize("conn_id", ["us", "pulsar_default", "pravega_default", "{{ params.x }}"])
def test_another_connection_than_the_sources_is_refused(cls, conn_id):
    with pytest.raises(InvalidRequest, match=rf"{cls.__name__}: conn_id is '.*', but the source .* connection 'eu'"):
        made(cls, "eu", conn_id=conn_id)


@EACH
@pytest.mark.parametrize("conn_id", ["eu", "{{ params.x }}"])
def test_the_sources_connection_is_the_tasks(cls, conn_id):
    assert made(cls, conn_id).conn_id == conn_id
    assert made(cls, conn_id, conn_id=conn_id).conn_id == conn_id


@pytest.mark.parametrize(
    ("cls", "name", "default"),
    [
        (PulsarDeleteTopicOperator, {"topic": "t"}, "pulsar_default"),
        (PulsarTerminatedSensor, {"topic": "t"}, "pulsar_default"),
        (PravegaDeleteStreamOperator, {"stream": "s/t"}, "pravega_default"),
        (PravegaStreamSealedSensor, {"stream": "s/t"}, "pravega_default"),
    ],
)
def test_a_name_has_the_connection_given_with_it_or_the_default(cls, name, default):
    assert cls(task_id="task", **name).conn_id == default
    assert cls(task_id="task", **name, conn_id="eu").conn_id == "eu"


@pytest.mark.parametrize(
    ("trigger", "source", "how"),
    [
        (PulsarMessagesTrigger, PulsarSource("t", conn_id="eu"), {"subscription": "s"}),
        (PravegaUnreadTrigger, PravegaSource("s/t", conn_id="eu"), {"reader": "r"}),
    ],
)
def test_a_watcher_has_its_sources_connection(trigger, source, how):
    assert trigger(source=source, conn_id="eu", **how).source == source
    with pytest.raises(InvalidRequest, match=r"conn_id is 'us', but the source .* has the connection 'eu'"):
        trigger(source=source, conn_id="us", **how)


def test_what_is_no_source_is_refused_by_name():
    with pytest.raises(InvalidRequest, match="orders is not a Pulsar source"):
        PulsarDeleteTopicOperator(task_id="task", source="orders")


def test_partitions_of_a_source_are_not_taken_for_the_whole_topic():
    source = PulsarSource("shop/orders/new", partitions=[1, 2])
    with pytest.raises(InvalidRequest, match=r"takes a whole topic.*\[1, 2\].*new-partition-1'"):
        PulsarDeleteTopicOperator(task_id="task", source=source)
