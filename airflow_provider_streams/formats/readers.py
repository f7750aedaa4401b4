"""The reader of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, listed, python_bytes, spread
from airflow_provider_streams.formats.avro.reader import AvroReader
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes
from airflow_provider_streams.formats.codecs import TooMuch, codec, room
from airflow_provider_streams.formats.reader import Column, Reader
from airflow_provider_streams.formats.single import BytesReader, FixedReader, TextReader
from airflow_provider_streams.model.decoding import WriterSchema


def reader_of(schema: WriterSchema, causes: Causes) -> Reader:
    """The reader of payloads that were written with a schema of one value (all formats but `key_value`).

    Raises:
        InvalidSchema: no row can be decoded by it.
        MissingDependency: what it needs is not installed.
    """
    plain = _plain(schema, causes, padded=bool(schema.codec))
    return CompressedReader(plain, schema.codec, causes) if schema.codec else plain


def _plain(schema: WriterSchema, causes: Causes, *, padded: bool) -> Reader:
    match schema.format:
        case "bytes":
            return BytesReader()
        case "utf8":
            return TextReader(causes)
        case "avro":
            return AvroReader(schema.schema, causes, padded=padded)
        case "json":
            from airflow_provider_streams.formats.json.reader import JsonReader  # noqa: PLC0415  # loaded when used

            return JsonReader(schema, causes, padded=padded)
        case "protobuf":
            from airflow_provider_streams.formats.protobuf.reader import ProtobufReader  # noqa: PLC0415  # an extra

            return ProtobufReader(schema, causes, padded=padded)
    return FixedReader(schema.format, causes)


class CompressedReader:
    """Payloads that a codec compressed, each by itself."""

    def __init__(self, inner: Reader, name: str, causes: Causes) -> None:
        self.type = inner.type
        self._inner, self._decompress = inner, codec(name)
        self._broken = causes.code(f"the codec {name} cannot undo it")
        self._too_much = causes.code(
            "its data would be too large: 250 times its bytes (or 64 KiB), 64 MiB, and 1 GiB of a batch are the most"
        )

    def read(self, payloads: Array) -> Column:
        """Decompressed one by one, then read side by side, so many bytes at a time."""
        codes = np.zeros(len(payloads), np.int16)
        parts = list(self._pieces(python_bytes(payloads), codes))
        good = np.flatnonzero(codes == GOOD)
        codes[good] = np.concatenate([part.codes for part in parts])
        values = parts[0].values if len(parts) == 1 else pa.concat_arrays([part.values for part in parts])
        return Column(values if len(good) == len(codes) else spread(values, good, len(codes)), codes)

    def _pieces(self, payloads: list[bytes], codes: Codes) -> Iterator[Column]:
        """What can be decompressed, read; the rest gets its cause."""
        piece: list[bytes | None] = []
        left, held = MOST_OF_BATCH, 0
        for row, payload in enumerate(payloads):
            try:
                data = self._decompress(payload, min(room(len(payload)), left))
            except TooMuch:
                codes[row] = self._too_much
                continue
            except Exception:  # noqa: BLE001  # of a function that is not ours, and of bytes that are no one's
                codes[row] = self._broken
                continue
            piece.append(data)
            left, held = left - len(data), held + len(data)
            if held >= MOST_AT_A_TIME:
                yield self._inner.read(listed(piece))
                piece, held = [], 0
        yield self._inner.read(listed(piece))


MOST_OF_BATCH: Final = 1 << 30
"""Bytes: columns of Arrow hold no more than twice that."""

MOST_AT_A_TIME: Final = 64 << 20
