"""One round, decided by its seed alone: payloads of one schema, some of them damaged, read by both decoders.

The rows are the same, and so are the payloads that are refused.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.avro.reader import AvroReader
from airflow_provider_streams.formats.decode_failures import Causes, Reader
from airflow_provider_streams.formats.json.reader import JsonReader
from airflow_provider_streams.formats.protobuf.reader import ProtobufReader
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import to_json
from tests.fuzz.formats import avro_made, avro_plain, json_made, json_plain, protobuf_made, protobuf_plain
from tests.fuzz.formats.bytes_changed import changed

Plain = Callable[[bytes], Any]


class DifferentError(AssertionError):
    """The decoders differ."""


@dataclass
class Done:
    """What rounds did: payloads by format."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    @property
    def payloads(self) -> int:
        """Of all formats."""
        return self.taken.total() + self.refused.total()


def avro(seed: int, done: Done, most: int = 200) -> None:
    """Random schemas, written by fastavro."""
    dice = random.Random(seed)
    schema = avro_made.schema(dice)
    parsed = fastavro.parse_schema(avro_made.without_logical(schema))
    rows = [
        _written(parsed, avro_made.for_fastavro(schema, avro_made.datum(dice, schema)))
        for _ in range(_count(dice, most))
    ]
    reader = AvroReader(schema, Causes())
    compare("avro", reader, lambda data: avro_plain.decode(schema, data), _damaged(dice, rows), done)


def json_(seed: int, done: Done, most: int = 200) -> None:
    """Random row types."""
    dice = random.Random(seed)
    type_ = json_made.row_type(dice)
    rows = [json_made.text(dice, type_) for _ in range(_count(dice, most))]
    rows = _damaged(dice, rows, json_made.PIECES)
    if dice.random() < 0.6:
        # blocks are read as a whole only where nearly all of their rows are right
        rows = [one for one in rows if _is_right(type_, one) or dice.random() < 0.01]
    reader = JsonReader(WriterSchema("json", json.dumps(to_json(type_))), Causes())
    compare("json", reader, lambda data: json_plain.decode(type_, data), rows, done)


def protobuf(seed: int, done: Done, most: int = 200) -> None:
    """Random message types."""
    dice = random.Random(seed)
    made = protobuf_made.Made(dice)
    rows = _damaged(dice, [made.payload() for _ in range(_count(dice, most))], protobuf_made.PIECES)
    reader = ProtobufReader(WriterSchema("protobuf", made.descriptor_set, "t.M"), Causes())
    compare("protobuf", reader, lambda data: protobuf_plain.decode(made.type, data), rows, done)


def compare(name: str, reader: Reader, plain: Plain, rows: list[bytes], done: Done) -> None:
    """Both decoders over the same payloads.

    Raises:
        DifferentError: they differ.
    """
    found, codes = reader.read(pa.array(rows, pa.binary()))
    found.validate(full=True)
    expected: list[Any] = []
    for row, (data, code) in enumerate(zip(rows, codes.tolist(), strict=True)):
        try:
            value = plain(data)
        except (avro_plain.Refused, json_plain.Refused, protobuf_plain.Refused):
            if not code:
                raise DifferentError(f"row {row} is taken: {data!r}") from None
            continue
        if code:
            raise DifferentError(f"row {row} is refused: {data!r}")
        expected.append(value)
    good = found.filter(pa.array(codes == 0))
    wanted = pa.array(expected, arrow_type(reader.type))
    for row, (one, other) in enumerate(zip(plainly(good), plainly(wanted), strict=True)):
        if repr(one) != repr(other):
            raise DifferentError(f"good row {row}: {one!r} instead of {other!r}")
    done.taken[name] += len(expected)
    done.refused[name] += len(rows) - len(expected)
    done.rounds += 1


def plainly(values: pa.Array) -> list[Any]:
    """Python's values; times of day as their number, which Python's cannot hold to the nanosecond."""
    return _numbers(values).to_pylist()


def _numbers(values: Any) -> Any:
    kind = values.type
    if pa.types.is_time64(kind):
        return values.cast(pa.int64())
    if pa.types.is_struct(kind):
        inner = [_numbers(values.field(place)) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, [one.name for one in kind], mask=values.is_null())
    if pa.types.is_map(kind):
        offsets = values.offsets
        items = pa.StructArray.from_arrays([values.keys, _numbers(values.items)], ["key", "value"])
        return pa.ListArray.from_arrays(offsets, items, mask=values.is_null() if values.null_count else None)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            values.offsets, _numbers(values.values), mask=values.is_null() if values.null_count else None
        )
    return values


def _count(dice: random.Random, most: int) -> int:
    return dice.choice((1, 3, most // 8, most))


def _damaged(dice: random.Random, rows: list[bytes], pieces: Any = None) -> list[bytes]:
    share = dice.choice((0, 0.01, 0.1, 0.5, 1))
    more = (pieces,) if pieces else ()
    return [changed(dice, row, *more) if dice.random() < share else row for row in rows]


def _is_right(type_: Any, data: bytes) -> bool:
    try:
        json_plain.decode(type_, data)
    except json_plain.Refused:
        return False
    return True


def _written(parsed: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


ROUNDS: dict[str, Callable[..., None]] = {"avro": avro, "json": json_, "protobuf": protobuf}
