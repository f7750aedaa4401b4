"""The last events of a topic, against what the official client reads; nothing is created, and nothing consumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.model.schema.payload import Utf8
from airflow_provider_streams.systems.pulsar.client.admin import changes
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.windows.tail.event import Event
from airflow_provider_streams.windows.tail.row_condition import RowCondition
from airflow_provider_streams.windows.tail.tail import Tail
from stream_servers.java import run_java
from tests.seeds import random_bytes

pytestmark = pytest.mark.pulsar


@pytest.fixture
def tail_of(bench):
    """The tail of a source at the bench's broker."""

    def made(source: PulsarSource | str, **more: Any) -> Tail:
        given = PulsarSource(source) if isinstance(source, str) else source
        return Tail(SystemPool(lambda: PulsarSystem(bench.endpoint)), given, **more)

    return made


def payloads(events: tuple[Event, ...]) -> list[Any]:
    return [event.payload if event.value is None else event.value for event in events]


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_last_messages_are_those_of_the_official_client(bench, tail_of, batch):
    topic = bench.topic()
    bench.write(topic, [b"%d" % n for n in range(450)], batch=batch, send=lambda n: {"partition_key": f"k{n}"})
    peer = bench.peer(topic)
    before = bench.server.inventory()
    for count in (1, 20, 460):
        events = tail_of(topic).last(count).events
        assert [(event.place[1], event.payload, event.key) for event in events] == [
            (place, value, key) for place, value, key, *_ in peer[-count:]
        ]
    assert bench.server.inventory() == before


def test_all_partitions_by_publish_time(bench, tail_of):
    topic = bench.topic(partitions=5)
    bench.write(topic, [b"%d" % n for n in range(200)], send=lambda n: {"partition_key": f"k{n}"})
    events = tail_of(topic).last(20).events
    everything = tail_of(topic).last(1000).events
    assert len(everything) == 200
    assert {event.place[0] for event in everything} == {f"{topic}-partition-{n}" for n in range(5)}
    times = [event.moment for event in everything]
    assert times == sorted(times)
    assert [event.moment for event in events] == times[-20:]


def test_encrypted_messages_are_left_out_and_said_and_no_others(bench, tail_of, tmp_path):
    import pulsar
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key, form = rsa.generate_private_key(65537, 2048), serialization.Encoding.PEM
    (tmp_path / "public").write_bytes(
        key.public_key().public_bytes(form, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    (tmp_path / "private").write_bytes(
        key.private_bytes(form, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    )
    keys = pulsar.CryptoKeyReader(str(tmp_path / "public"), str(tmp_path / "private"))
    topic = bench.topic()
    for how, value in (({}, b"early"), ({"encryption_key": "k", "crypto_key_reader": keys}, b"secret"), ({}, b"late")):
        producer = bench.client.create_producer(topic, batching_enabled=False, **how)
        for number in range(3):
            producer.send(value + b"%d" % number)
        producer.close()
    seen = tail_of(topic).last(20)
    assert payloads(seen.events) == [b"early0", b"early1", b"early2", b"late0", b"late1", b"late2"]
    (said,) = seen.unreadable
    assert "encrypt" in said
    assert tail_of(topic).last(2).unreadable == ()


def test_chunks_are_one_message_and_aborted_ones_are_none(bench, tail_of):
    import pulsar

    topic = bench.topic()
    run_java(Path(__file__).with_name("Txn.java"), [bench.server.service_url, topic, "false"], bench.server.classpath)
    large = random_bytes(12 << 20)
    producer = bench.client.create_producer(
        topic, chunking_enabled=True, batching_enabled=False, compression_type=pulsar.CompressionType.ZSTD
    )
    producer.send(large)
    producer.close()
    assert payloads(tail_of(topic).last(1).events) == [large]
    before = [b"plain0", b"plain1", b"plain2", b"committed0", b"committed1", b"between0"]
    assert payloads(tail_of(topic).last(3).events) == [*before[-2:], large]
    assert payloads(tail_of(topic).last(50).events) == [*before, large]


def test_empty_topics(bench, tail_of):
    single, parted = bench.topic(), bench.topic(partitions=3)
    before = bench.server.inventory()
    assert tail_of(single).last(20).events == ()
    seen = tail_of(parted).last(20)
    assert bench.server.inventory() == before
    assert (seen.events, seen.notes) == ((), ())


def test_undecodable_values_keep_their_place(bench, tail_of):
    topic = bench.topic()
    bench.write(topic, [b"one", b"\xff", b"three"])
    one, bad, three = tail_of(PulsarSource(topic, value=Utf8())).last(20).events
    assert (one.value, three.value) == ("one", "three")
    assert (bad.value, bad.payload) == (None, b"\xff")
    assert "UTF-8" in bad.cause


def test_the_schema_of_a_topic_decodes_its_values(bench, tail_of):
    from pulsar.schema import AvroSchema, Integer, Record, String

    class Order(Record):
        number = Integer()
        name = String()

    topic = bench.topic()
    producer = bench.client.create_producer(topic, schema=AvroSchema(Order))
    for number in range(50):
        producer.send(Order(number=number, name=f"n{number}"))
    producer.close()
    bench.write(topic, [b"no Avro at all"])
    *good, bad = tail_of(topic).last(3).events
    assert payloads(tuple(good)) == [{"number": n, "name": f"n{n}"} for n in (48, 49)]
    assert (bad.payload, bool(bad.cause)) == (b"no Avro at all", True)
    found = tail_of(topic, condition=RowCondition("number < 2 and startswith(name, 'n')")).last(20).events
    assert [event.value["number"] for event in found] == [0, 1]


def test_hostile_keys_are_text_in_json(bench, tail_of):
    topic = bench.topic()
    key = "\x1b[2J\u202eabc"
    bench.write(topic, [b"1"], send=lambda _: {"partition_key": key})
    (event,) = tail_of(topic).last(1).events
    assert event.key == key
    assert "\x1b" not in json.dumps(event.to_json())


def test_a_limit_of_bytes_is_said(bench, tail_of, noise):
    topic = bench.topic()
    bench.write(topic, [noise[:1000]] * 500)
    tail = tail_of(topic, condition=RowCondition("_ledger < 0"), most_bytes=100_000)
    seen = tail.last(1)
    assert seen.events == ()
    (note,) = seen.notes
    assert "Raise --max-bytes" in note
    assert tail_of(topic, most_bytes=100_000).last(20).notes == ()


def test_following_gives_each_message_once_also_of_new_partitions(bench, tail_of, pulsar_namespace):
    topic = bench.topic(partitions=2)
    bench.write(topic, [b"before"])
    tail = tail_of(topic)
    seen = tail.last(10)
    assert payloads(seen.events) == [b"before"]
    got = []
    for turn in range(4):
        if turn == 2:
            with AdminClient(bench.endpoint) as admin:
                admin(changes.update_partitions(topic, 4))
        bench.write(topic, [b"%d-%d" % (turn, n) for n in range(20)], send=lambda n: {"partition_key": f"k{n}"})
        seen = tail.since(seen.plan, 10)
        got += payloads(seen.events)
    assert sorted(got) == sorted(b"%d-%d" % (turn, n) for turn in range(4) for n in range(20))
    seen = tail.since(seen.plan, 10)
    assert (seen.events, seen.is_gone) == ((), False)
