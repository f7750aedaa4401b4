"""Batches of payloads of many versions: the plan's columns, row by row, and why rows are bad."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_streams.formats import decoder as decoder_module
from airflow_provider_streams.formats.arrow.arrays import masked
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decoder import MOST_ROWS, Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Auto, Avro, Bytes, Json, Registry, Utf8
from airflow_provider_streams.systems.pravega.reading.columns import MAX_ROWS
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import BATCH_ROWS

FIRST = WriterSchema(
    "avro",
    '{"type":"record","name":"R","fields":[{"name":"id","type":"int"},{"name":"c","type":"string"}]}',
)
SECOND = WriterSchema(
    "avro",
    '{"type":"record","name":"R","fields":[{"name":"name","aliases":["c"],"type":["null","string"]},'
    '{"name":"id","type":"long"},{"name":"k","type":"long","default":7}]}',
)
OF_FIRST, OF_SECOND = b"\x02\x02a", b"\x02\x02b\x06\x0e"
JAVA = bytes.fromhex("aced0005740001")


def binary(*values):
    return pa.array(values, pa.binary())


def version(number):
    return struct.pack(">q", number)


def header(number):
    return b"\x01" + struct.pack(">i", number)


def two_versions(key=None, **others):
    return Decoder(decoding_of(Auto(), key, {"t": {"0": FIRST, "1": SECOND}, **others}, "message"), "t")


def test_each_payload_is_read_by_its_own_version_and_stays_in_its_place():
    values = [OF_FIRST, OF_SECOND, OF_FIRST, OF_FIRST, OF_SECOND]
    versions = [version(number) for number in (0, 1, 0, 0, 1)]
    found = two_versions().decode(Payloads(binary(*values), None, binary(*versions)))
    first, second = {"name": "a", "id": 1, "k": 7}, {"name": "b", "id": 3, "k": 7}
    assert found.value.to_pylist() == [first, second, first, first, second]
    assert found.versions.to_pylist() == [0, 1, 0, 0, 1]
    assert found.causes.null_count == 5
    assert pa.types.is_dictionary(found.causes.type)
    assert found.key is None


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize(
    ("other", "number", "cause"),
    [
        (version(1), 1, "ends before its last field"),
        (version(1 << 56), 1 << 56, "none of those"),
        (None, None, "says no schema version"),
        (b"", None, "not of eight bytes"),
        (bytes(9), None, "not of eight bytes"),
    ],
)
def test_one_message_of_another_version_than_all_others_is_found(other, number, cause, place):
    versions = [version(0)] * 8
    versions[place] = other
    # as many bytes as eight versions have, if one is too long
    neighbor = (place + 1) % 8
    versions[neighbor] = bytes(7) if other == bytes(9) else versions[neighbor]
    sliced = binary(b"odd", *versions).slice(1)
    found = two_versions().decode(Payloads(binary(*[OF_FIRST] * 8), None, sliced))
    named = [one == version(0) for one in versions]
    assert [one is None for one in found.causes.to_pylist()] == named
    assert cause in found.causes[place].as_py()
    assert found.versions.to_pylist() == [number if at == place else 0 if named[at] else None for at in range(8)]


def test_a_message_without_a_version_has_none_whatever_bytes_its_null_has():
    versions = masked(binary(*[version(0)] * 3), np.array([True, False, True]))
    found = two_versions().decode(Payloads(binary(*[OF_FIRST] * 3), None, versions))
    assert found.causes.to_pylist() == [None, "it says no schema version", None]


def test_a_version_that_all_messages_name_is_read_as_it_is_written():
    found = two_versions().decode(Payloads(binary(OF_FIRST, None, OF_FIRST), None, binary(*[version(258)] * 3)))
    assert found.versions.to_pylist() == [258] * 3
    assert found.causes.is_valid().to_pylist() == [True, False, True]
    found = two_versions().decode(Payloads(binary(OF_SECOND, None, OF_SECOND), None, binary(*[version(1)] * 3)))
    assert found.value.to_pylist() == [{"name": "b", "id": 3, "k": 7}, None, {"name": "b", "id": 3, "k": 7}]


def test_a_whole_batch_of_a_systems_reader_is_one_piece():
    assert BATCH_ROWS <= MOST_ROWS
    assert MAX_ROWS <= MOST_ROWS


def test_bad_rows_are_named_one_by_one_and_good_ones_are_unharmed():
    values = binary(OF_FIRST, OF_FIRST + b"\x00", OF_FIRST, OF_FIRST, OF_FIRST, OF_SECOND[:2], None, JAVA)
    versions = binary(version(0), version(0), version(9), None, b"\x00", version(1), version(1), version(0))
    found = two_versions().decode(Payloads(values, None, versions))
    assert [one is not None for one in found.value.to_pylist()] == [True] + [False] * 7
    causes = found.causes.to_pylist()
    assert causes[0] is None
    assert "left after its last field" in causes[1]
    assert "version 9 is none of those" in causes[2]
    assert "says no schema version" in causes[3]
    assert "not of eight bytes" in causes[4]
    assert "ends early" in causes[5]
    assert causes[6] is None
    assert "Java's own serializer" in causes[7]
    assert found.versions.to_pylist() == [0, 0, 9, None, None, 1, 1, 0]


def test_a_tombstone_is_null_and_good_whatever_its_version_says():
    found = two_versions().decode(Payloads(binary(None, None, None), None, binary(version(0), version(99), None)))
    assert found.value.to_pylist() == [None, None, None]
    assert found.causes.null_count == 3


def test_an_empty_payload_is_no_tombstone():
    found = two_versions().decode(Payloads(binary(b""), None, binary(version(0))))
    assert found.causes.to_pylist()[0] is not None


def test_no_cause_says_what_a_payload_holds():
    secret = b"s3cr3t-of-a-customer"
    decoders = [
        Decoder(decoding_of(value, None, {}), "t")
        for value in (Json("id long, at timestamp, b binary"), Avro(FIRST.schema), Utf8())
    ]
    texts = [
        secret,
        b'{"id": "' + secret + b'"}',
        b'{"at": "' + secret + b'"}',
        b'{"b": "' + secret + b'"}',
        secret + b"\xff",
    ]
    for one in decoders:
        causes = one.decode(Payloads(binary(*texts))).causes.to_pylist()
        assert not any("s3cr3t" in cause for cause in causes if cause)
        assert any(causes)


def test_an_empty_batch():
    found = two_versions(Utf8()).decode(Payloads(binary(), binary(), binary()))
    assert [len(one) for one in found] == [0, 0, 0, 0]
    assert found.value.type.num_fields == 3


def test_slices_of_larger_arrays_are_read_where_they_lie():
    values = binary(*([b"x"] * 3 + [OF_FIRST, OF_SECOND] * 4))
    versions = binary(*([None] * 3 + [version(0), version(1)] * 4))
    keys = binary(*([b"\xff"] * 3 + [b"k", None] * 4))
    found = two_versions(Utf8()).decode(Payloads(values.slice(3), keys.slice(3), versions.slice(3)))
    assert found.causes.null_count == 8
    assert found.key.to_pylist() == ["k", None] * 4


def test_a_large_batch_is_read_in_pieces(monkeypatch):
    whole = Payloads(
        binary(*([OF_FIRST, OF_SECOND, None, b"x"] * 50)),
        binary(*[str(number).encode() for number in range(200)]),
        binary(*([version(0), version(1), version(1), version(0)] * 50)),
    )
    at_once = two_versions(Utf8()).decode(whole)
    for rows, size in ((7, 1 << 20), (1000, 20), (1, 1)):
        monkeypatch.setattr(decoder_module, "MOST_ROWS", rows)
        monkeypatch.setattr(decoder_module, "MOST_BYTES", size)
        in_pieces = two_versions(Utf8()).decode(whole)
        assert [one.to_pylist() for one in in_pieces] == [one.to_pylist() for one in at_once]
        assert [one.type for one in in_pieces] == [one.type for one in at_once]


def test_a_version_that_cannot_have_the_plans_columns_makes_bad_rows():
    odd = WriterSchema("avro", '{"type":"record","name":"R","fields":[{"name":"id","type":"string"}]}')
    decoding = decoding_of(Auto(), None, {"t": {"0": odd, "1": FIRST}}, "message")
    values, versions = binary(b"\x02a", OF_FIRST, None), binary(version(0), version(1), version(0))
    found = Decoder(decoding, "t").decode(Payloads(values, None, versions))
    assert found.value.to_pylist() == [None, {"id": 1, "c": "a"}, None]
    assert found.causes.to_pylist() == [
        "its schema version 0 does not fit the plan's columns: id is int and string",
        None,
        None,
    ]


def test_topics_of_other_schemas_have_the_same_columns():
    other = {"u": {"5": WriterSchema("json", '{"struct":[{"name":"z","type":"double"},{"name":"id","type":"int"}]}')}}
    decoding = decoding_of(Auto(), None, {"t": {"0": FIRST}, **other}, "message")
    first = Decoder(decoding, "t").decode(Payloads(binary(OF_FIRST), None, binary(version(0))))
    second = Decoder(decoding, "u").decode(Payloads(binary(b'{"id":5,"z":0.5}'), None, binary(version(5))))
    assert first.value.type == second.value.type == arrow_type(decoding.value)
    assert first.value.to_pylist() == [{"id": 1, "c": "a", "z": None}]
    assert second.value.to_pylist() == [{"id": 5, "c": None, "z": 0.5}]


def test_keys_are_decoded_whatever_their_values_are():
    values = binary(OF_FIRST, None, OF_FIRST)
    found = two_versions(Utf8()).decode(
        Payloads(values, binary(b"k", b"t", None), binary(version(0), version(0), version(0)))
    )
    assert found.key.to_pylist() == ["k", "t", None]
    assert found.causes.null_count == 3


def test_a_bad_key_makes_a_bad_row_even_of_a_tombstone():
    values, versions = binary(OF_FIRST, None), binary(version(0), None)
    found = two_versions(Utf8()).decode(Payloads(values, binary(b"\xff", b"\xff"), versions))
    assert found.value.to_pylist() == [None, None]
    assert found.key.to_pylist() == [None, None]
    assert found.causes.to_pylist() == ["the key: it is not UTF-8"] * 2


def test_keys_that_are_not_decoded_come_back_as_they_were():
    keys = binary(b"\xff", None)
    found = two_versions().decode(Payloads(binary(OF_FIRST, b"x"), keys, binary(version(0), version(0))))
    assert found.key.equals(keys)


def test_a_schema_of_the_users_own_asks_for_no_version():
    decoder = Decoder(decoding_of(Json("a int"), None, {}), "anything")
    found = decoder.decode(Payloads(binary(b'{"a":1}', b"x"), None, binary(b"odd", None)))
    assert found.value.to_pylist() == [{"a": 1}, None]
    assert found.versions.to_pylist() == [None, None]


def pairs(*, inline):
    schema = WriterSchema("key_value", parts=(WriterSchema("utf8"), WriterSchema("int32")), inline=inline)
    return Decoder(decoding_of(Auto(), None, {"t": {"0": schema}}, "message"), "t")


def inline(key, value):
    parts = [struct.pack(">i", -1) if one is None else struct.pack(">i", len(one)) + one for one in (key, value)]
    return b"".join(parts)


def test_key_and_value_inside_one_payload():
    four = struct.pack(">i", 5)
    values = [inline(b"k", four), inline(None, four), inline(b"", None), None]
    bad = [inline(b"k", four) + b"0", inline(b"k", four)[:-1], b"\x00", struct.pack(">i", -2) + inline(None, four)[4:],
           struct.pack(">i", 1 << 30) + four, inline(b"\xff", four), inline(b"k", b"xyz")]  # fmt: skip
    found = pairs(inline=True).decode(Payloads(binary(*values, *bad), None, binary(*[version(0)] * 11)))
    assert found.value.to_pylist() == [5, 5, None, None] + [None] * 7
    assert found.key.to_pylist() == ["k", None, "", None] + [None] * 7
    causes = found.causes.to_pylist()
    assert causes[:4] == [None] * 4
    assert all("no pair of a key and a value" in cause for cause in causes[4:9])
    assert causes[9] == "the key: it is not UTF-8"
    assert "4 bytes of int32" in causes[10]


def test_key_and_value_in_one_payload():
    four = struct.pack(">i", 5)
    found = pairs(inline=False).decode(
        Payloads(binary(four, None, four, None), binary(b"k", b"t", None, b"z"), binary(*[version(0)] * 3, None))
    )
    assert found.value.to_pylist() == [5, None, 5, None]
    assert found.key.to_pylist() == ["k", "t", None, None]
    assert found.causes.to_pylist() == [None, None, None, "it says no schema version"]


VECTORS = json.loads((Path(__file__).parent / "schema_registry.json").read_text())["vectors"]
BY_NAME = {one["name"]: one for one in VECTORS}
CODECS = {"": "", "application/x-gzip": "gzip", "application/x-snappy-framed": "snappy"}


def registered(format_):
    data = BY_NAME[{"Avro": "schema-avro", "Json": "schema-json", "Protobuf": "schema-proto"}[format_]]["base64"]
    if format_ == "Protobuf":
        return WriterSchema("protobuf", data, "t.U")
    if format_ == "Avro":
        return WriterSchema("avro", base64.b64decode(data).decode())
    from airflow_provider_streams.formats.json.columns import of_json_schema

    return of_json_schema(base64.b64decode(data).decode())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
@pytest.mark.parametrize("format_", ["avro", "json", "proto"])
def test_events_that_javas_serializers_wrote(format_, codec):
    """With a codec they hold 128 bytes, of which the last ones are NUL."""
    vector = BY_NAME[f"{format_}-{codec}"]
    schema = dataclasses.replace(registered(vector["fields"]["format"]), codec=CODECS[vector["fields"]["codec_type"]])
    decoder = Decoder(decoding_of(Registry(), None, {"s/t": {"0": schema}}, "header"), "s/t")
    event = bytes.fromhex(vector["hex"])
    broken = [event[:-3], event[:6], b"\x01", b"\x02" + event[1:], header(77) + event[5:], JAVA]
    found = decoder.decode(Payloads(binary(event, None, *broken, event)))
    assert found.value.to_pylist() == [vector["fields"]["record"], None, *[None] * 6, vector["fields"]["record"]]
    assert found.versions.to_pylist() == [0, None, 0, 0, None, None, 77, None, 0]
    causes = found.causes.to_pylist()
    assert causes[0] is None
    assert causes[1] is None
    assert causes[2]
    assert causes[3]
    assert "shorter than a registry's header" in causes[4]
    assert "does not begin with a registry's header" in causes[5]
    assert "77 is none of those" in causes[6]
    assert "Java's own serializer" in causes[7]


def test_neither_flat_avro_nor_json_in_blocks_loads_pandas():
    """Half a second and a hundred MiB in each of Spark's workers, for nothing."""
    code = (
        "import sys\n"
        "from airflow_provider_streams.formats.arrow.arrays import listed\n"
        "from airflow_provider_streams.formats.decoder import Decoder, Payloads\n"
        "from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of\n"
        "from airflow_provider_streams.model.schema.payload import Avro, Json, Utf8\n"
        "avro = {'type': 'record', 'name': 'R', 'fields': [{'name': 'e', 'type': ['null', 'string']}]}\n"
        "json = Json('a int, s struct<b: timestamp>')\n"
        "for value, rows in (\n"
        '    (json, [b\'{"a":1}\', b\'{"s":{"b":null}}\', None]),\n'
        "    (Avro(avro), [b'\\x02\\x02a', b'\\x00', b'\\x09', None]),\n"
        "):\n"
        "    decoder = Decoder(decoding_of(value, Utf8(), {}), 't')\n"
        "    found = decoder.decode(Payloads(listed(rows), listed(rows)))\n"
        "    assert found.causes.null_count >= 3\n"
        "print('pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_batch_of_versions_that_are_not_pinned_costs_little():
    count = 16_000
    versions = binary(*(version(number) for number in range(2, count + 2)))
    began = time.process_time()
    found = two_versions().decode(Payloads(binary(*[OF_FIRST] * count), None, versions))
    assert found.causes.null_count == 0
    assert len(found.causes.dictionary) <= 10_001
    assert time.process_time() - began < 5


def test_bytes_are_given_back():
    decoder = Decoder(decoding_of(Bytes(), Bytes(), {}), "t")
    values = binary(b"", b"\xff", None)
    found = decoder.decode(Payloads(values, values))
    assert found.value.equals(values)
    assert found.key.equals(values)


REGISTERED = 1_795_358_000_000
"""Milliseconds at which version 0 was registered; version 1 an hour later."""


def written(*milliseconds):
    return pa.array([None if ms is None else ms * 1000 for ms in milliseconds], pa.timestamp("us", "UTC"))


def made_at(**made):
    return dataclasses.replace(decoding_of(Auto(), None, {"t": {"0": FIRST, "1": SECOND}}, "message"), made=made)


def test_a_version_decodes_nothing_that_was_written_before_it_was_registered():
    """All versions were deleted, and their numbers started again: an older payload names another schema."""
    made = {"0": REGISTERED, "1": REGISTERED + 3_600_000}
    times = [-60_001, -60_000, -3_600_000, None, 3_540_000, 3_539_999, -3_600_000]
    values = binary(OF_FIRST, OF_FIRST, None, OF_FIRST, OF_SECOND, OF_SECOND, OF_SECOND)
    versions = binary(*(version(number) for number in (0, 0, 0, 0, 1, 1, 9)))
    late = written(*(None if one is None else REGISTERED + one for one in times))
    found = Decoder(made_at(t=made), "t").decode(Payloads(values, None, versions, late))
    causes = found.causes.to_pylist()
    assert [one is not None for one in causes] == [True, False, False, False, False, True, True]
    assert "version 0 was registered after it was written: the schema it was written with was deleted" in causes[0]
    assert "version 1 was registered after" in causes[5]
    assert "version 9 is none of those" in causes[6]
    assert [one is not None for one in found.value.to_pylist()] == [False, True, False, True, True, False, False]


def test_nothing_is_too_old_if_the_time_of_writing_or_registration_is_not_known():
    payloads = Payloads(binary(OF_FIRST), None, binary(version(0)))
    decodings = made_at(t={"0": REGISTERED}), made_at(t={"1": REGISTERED}), made_at(u={"0": REGISTERED})
    for one, at in zip((*decodings, made_at()), (None, *[written(0)] * 3), strict=True):
        assert Decoder(one, "t").decode(payloads._replace(written=at)).causes.null_count == 1


def test_pieces_of_slices_have_their_own_times(monkeypatch):
    monkeypatch.setattr(decoder_module, "MOST_ROWS", 3)
    times = written(*[0] * 2, *[REGISTERED, 0] * 5).slice(2)
    payloads = Payloads(binary(*[OF_FIRST] * 10), None, binary(*[version(0)] * 10), times)
    found = Decoder(made_at(t={"0": REGISTERED}), "t").decode(payloads)
    assert found.causes.is_valid().to_pylist() == [False, True] * 5


def test_what_names_a_version_is_not_the_bytes_of_a_topic_without_a_schema():
    values, versions = binary(b"\2\4", b"plain", None, b"\2"), binary(version(0), None, version(0), version(3))
    found = Decoder(decoding_of(Auto(), None, {"t": {}}, "message"), "t").decode(Payloads(values, None, versions))
    assert found.value.to_pylist() == [None, b"plain", None, None]
    causes = found.causes.to_pylist()
    assert causes[0] == "it names schema version 0, and the topic has no schema (any more)"
    assert causes[1:3] == [None, None]
    assert "version 3" in causes[3]
    given = Decoder(decoding_of(Bytes(), None, {"t": {}}, "message"), "t").decode(Payloads(values, None, versions))
    assert given.value.to_pylist() == values.to_pylist()
