"""Every argument of a source or a sink that is a text refuses other values by its name."""

from pathlib import Path

import pytest

from airflow_provider_streams import (
    CustomSink,
    DeltaSink,
    IcebergSink,
    ParquetSink,
    PravegaSource,
    PulsarSource,
)
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.table_sink import TableSink

NAMES = [
    (ParquetSink, {"path": "/lake/t"}, ("path", "compression")),
    (DeltaSink, {"path": "/lake/t"}, ("path",)),
    (IcebergSink, {"table": "shop.t"}, ("table",)),
    (TableSink, {"table": "prod.shop.t"}, ("table",)),
    (CustomSink, {"kind": "shop:Writer", "target": "/lake/t"}, ("kind", "target")),
    (PulsarSource, {"topics": "t"}, ("conn_id",)),
    (PravegaSource, {"stream": "s/t"}, ("conn_id", "event_time_unit")),
]
OPTIONAL = [
    (DeltaSink, {"path": "/lake/t"}, ("conn_id",)),
    (IcebergSink, {"table": "shop.t"}, ("conn_id", "catalog")),
    (TableSink, {"table": "prod.shop.t"}, ("using",)),
    (PulsarSource, {}, ("pattern",)),
    (PravegaSource, {}, ("scope", "pattern")),
]
LISTS = [
    (PulsarSource, {"topics": "t"}, ("topics", "keys", "partitions", "key_hash_ranges")),
    (PravegaSource, {"stream": "s/t"}, ("stream", "routing_keys")),
    (PravegaSource, {"scope": "s"}, ("tags",)),
]


def each(*several):
    return [
        pytest.param(cls, given, name, id=f"{cls.__name__}.{name}")
        for cls, given, names in [one for part in several for one in part]
        for name in names
    ]


@pytest.mark.parametrize(("cls", "given", "name"), each(NAMES, OPTIONAL))
@pytest.mark.parametrize("value", [5, 0, [], ["a"], {}, {"a": "b"}, b"a", True])
def test_a_name_is_a_text(cls, given, name, value):
    with pytest.raises(InvalidRequest, match=rf"^{cls.__name__}: {name} is a text, not "):
        cls(**{**given, name: value})


@pytest.mark.parametrize(("cls", "given", "name"), each(NAMES))
def test_a_name_that_is_needed_is_not_none(cls, given, name):
    with pytest.raises(InvalidRequest, match=rf"^{cls.__name__}: {name} is a text, not None"):
        cls(**{**given, name: None})


@pytest.mark.parametrize(("cls", "given", "name"), each(NAMES, OPTIONAL))
@pytest.mark.parametrize("end", ["\n", "\r", "\nx"])
def test_a_name_has_no_line_break(cls, given, name, end):
    with pytest.raises(InvalidRequest, match=rf"^{cls.__name__}: {name} has a line break, which no name has$"):
        cls(**{**given, name: f"{given.get(name, 's')}{end}"})


@pytest.mark.parametrize(("cls", "given", "name"), each(LISTS))
@pytest.mark.parametrize("value", [None, 5, {"a": "b"}, b"a"])
def test_a_list_is_a_list(cls, given, name, value):
    with pytest.raises(InvalidRequest, match=rf"^{cls.__name__}: {name} is a list, not "):
        cls(**{**given, name: value})


@pytest.mark.parametrize(("cls", "given", "name"), each(LISTS))
@pytest.mark.parametrize("part", [None, [5], {"a": "b"}, b"a"])
def test_a_list_has_parts_of_one_kind(cls, given, name, part):
    with pytest.raises(InvalidRequest, match=name):
        cls(**{**given, name: [part, 1]})


@pytest.mark.parametrize("name", ["topics", "stream", "tags"])
def test_a_name_in_a_list_has_no_line_break(name):
    cls, more = (PulsarSource, {}) if name == "topics" else (PravegaSource, {"scope": "s"} if name == "tags" else {})
    with pytest.raises(InvalidRequest, match=rf"^{cls.__name__}: {name} has a line break"):
        cls(**more, **{name: ["s/t/u\n"]})


@pytest.mark.parametrize("conn_id", ["", " "])
@pytest.mark.parametrize("cls", [PulsarSource, PravegaSource])
def test_a_source_has_a_connection(cls, conn_id):
    with pytest.raises(InvalidRequest, match=f"{cls.__name__}: conn_id is the name of an Airflow connection"):
        cls("s/t/u", conn_id=conn_id)


def test_the_error_shows_no_key():
    for given in ("s3://key:canary-6a@lake/x\n", b"s3://key:canary-6a@lake/x"):
        with pytest.raises(InvalidRequest) as caught:
            DeltaSink(given)
        assert "canary-6a" not in str(caught.value)


def test_a_template_may_have_lines_and_a_key_too():
    assert IcebergSink("{{ params.x\n}}").table == "{{ params.x\n}}"
    assert PulsarSource("t", keys="a\n").keys == ("a\n",)


@pytest.mark.parametrize(
    "sink", [ParquetSink, DeltaSink, lambda path: CustomSink("shop:Writer", path)], ids=["parquet", "delta", "custom"]
)
def test_a_path_may_be_one_of_pathlib(sink):
    assert sink(Path("/lake/orders")) == sink("/lake/orders")
