"""Every codec of every client that writes it, batched and not, empty and null: the rows of Pulsar's Java reader."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pytest

from stream_servers.java import run_java

pytestmark = pytest.mark.pulsar

HERE = Path(__file__).parent
CODECS = {"NONE": "NONE", "LZ4": "LZ4", "ZLIB": "ZLib", "ZSTD": "ZSTD", "SNAPPY": "SNAPPY"}
"""As the Java client and as pulsar-client call them."""
COLUMNS = (
    "ledger",
    "entry",
    "batch_index",
    "value",
    "key",
    "properties",
    "publish_time",
    "event_time",
    "ordering_key",
    "sequence_id",
    "producer",
)


def write_with_java(bench, topics):
    """To each topic with a codec, in a way that `Codecs.java` knows."""
    arguments = [argument for topic in topics for argument in topic]
    run_java(HERE / "Codecs.java", [bench.server.service_url, *arguments], bench.server.classpath)


def by_java(bench, topics):
    """The rows of each topic as the Java reader gives them."""
    told = run_java(HERE / "ReadAll.java", [bench.server.service_url, *topics], bench.server.classpath)
    found = {topic: [] for topic in topics}
    for line in told.splitlines():
        topic, *fields = line.split("\t")
        if topic in found:
            found[topic].append(java_row(fields))
    return found


def java_row(fields):
    ledger, entry, batch, value, key, properties, published, event, ordering_key, sequence, producer = fields
    pairs = [pair[1:].split(".") for pair in properties.split(",") if pair]
    return (
        int(ledger),
        int(entry),
        int(batch),
        of_base64(value),
        text(of_base64(key)),
        {text(base64.b64decode(name)): text(base64.b64decode(value)) for name, value in pairs},
        int(published),
        int(event),
        of_base64(ordering_key),
        int(sequence),
        text(of_base64(producer)),
    )


def of_base64(field):
    return None if field == "-" else base64.b64decode(field[1:])


def text(data):
    return None if data is None else data.decode("utf-8")


def by_us(bench, topic):
    reader = bench.reader(bench.split(topic), COLUMNS)
    return [our_row(row) for batch in reader for row in in_micros(batch).to_pylist()]


def in_micros(batch):
    """Times as numbers: Python's own end in the year 9999."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.itercolumns()
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def our_row(row):
    times = {name: (row[name] or 0) // 1000 for name in ("publish_time", "event_time")}
    return tuple({**row, **times, "properties": dict(row["properties"])}.values())


@pytest.mark.slow
def test_every_codec_of_the_java_client(bench):
    topics = [(bench.topic(), codec, way) for codec in CODECS for way in ("single", "batches")]
    write_with_java(bench, topics)
    for topic, rows in by_java(bench, [topic for topic, *_ in topics]).items():
        assert by_us(bench, topic) == rows
        assert len(rows) == 42
        assert {row[3] for row in rows} >= {None, b""}


@pytest.mark.slow
def test_every_codec_of_pulsar_client(bench):
    import pulsar

    topics = []
    for codec in CODECS.values():
        for batch in (1, 7):
            topics.append(bench.topic())
            values = [(b"message %d " % number) * (number % 7 * 40) for number in range(40)]
            kind = getattr(pulsar.CompressionType, codec)
            bench.write(topics[-1], [*values, b""], batch=batch, send=decorated, compression_type=kind)
            # alone, in a batch of one
            bench.write(topics[-1], [b"", b"1"], batch=2, compression_type=kind)
    for topic, rows in by_java(bench, topics).items():
        assert by_us(bench, topic) == rows
        assert len(rows) == 43


def decorated(number):
    properties = {"n": str(number), "ü": "ß", "empty": ""} if number % 5 == 1 else None
    more = {"partition_key": f"key-{number % 6}"} if number % 2 else {}
    return {"properties": properties, "event_timestamp": 1_600_000_000_000 + number if number % 3 else None, **more}
