"""The reader of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, listed, python_bytes, spread
from airflow_provider_streams.formats.avro.reader import AvroReader
from airflow_provider_streams.formats.codecs import TooMuch, codec, room
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, Column, Reader
from airflow_provider_streams.formats.primitives import BytesReader, FixedReader, TextReader
from airflow_provider_streams.formats.schema.row_types import naming
from airflow_provider_streams.model.schema.decoding import WriterSchema


def reader_of(
    schema: WriterSchema, causes: Causes, reader: WriterSchema | None = None, *, as_text: bool = False
) -> Reader:
    """The reader of a schema's payloads, for all formats but `key_value`.

    Args:
        schema: the writer's schema.
        causes: numbers the causes.
        reader: the schema whose names the columns have; None: the writer's own.
        as_text: whether types that have nothing in common are text, and values of types that Avro does not resolve.

    Raises:
        InvalidSchema: it decodes no row.
        MissingDependency: an extra is not installed.
        Ambiguous: several fields of the writer would become one of the reader.
    """
    # Pravega's serializers with a codec leave NULs after a value
    plain = _plain(schema, causes, naming(schema, reader), as_text=as_text, padded=bool(schema.codec))
    return CompressedReader(plain, schema.codec, causes) if schema.codec else plain


def _plain(schema: WriterSchema, causes: Causes, reader: WriterSchema | None, *, as_text: bool, padded: bool) -> Reader:
    match schema.format:
        case "bytes":
            return BytesReader()
        case "utf8":
            return TextReader(causes)
        case "avro":
            known = reader.schema if reader else None
            return AvroReader(schema.schema, causes, known, as_text=as_text, padded=padded)
        case "json":
            from airflow_provider_streams.formats.json.reader import JsonReader  # noqa: PLC0415  # loaded when used

            return JsonReader(schema, causes, padded=padded)
        case "protobuf":
            from airflow_provider_streams.formats.protobuf.reader import ProtobufReader  # noqa: PLC0415  # an extra

            return ProtobufReader(schema, causes, reader, padded=padded)
    return FixedReader(schema.format, causes)


class CompressedReader:
    """Reads payloads that a codec compressed one by one."""

    def __init__(self, inner: Reader, name: str, causes: Causes) -> None:
        self.type = inner.type
        self._inner, self._decompress = inner, codec(name)
        self._broken = causes.code(f"the codec {name} cannot undo it")
        self._too_much = causes.code(
            "its data would be too large: 250 times its bytes (or 64 KiB), 64 MiB, and 1 GiB of a batch are the most"
        )

    def read(self, payloads: Array) -> Column:
        """Decompress them one by one, and read many of them at a time."""
        codes = np.zeros(len(payloads), np.int16)
        parts = list(self._pieces(python_bytes(payloads), codes))
        good = np.flatnonzero(codes == GOOD)
        codes[good] = np.concatenate([part.codes for part in parts])
        values = parts[0].values if len(parts) == 1 else pa.concat_arrays([part.values for part in parts])
        return Column(values if len(good) == len(codes) else spread(values, good, len(codes)), codes)

    def _pieces(self, payloads: list[bytes], codes: Codes) -> Iterator[Column]:
        """Read what can be decompressed. Other payloads get their cause."""
        piece: list[bytes | None] = []
        left, held = MOST_OF_BATCH, 0
        for row, payload in enumerate(payloads):
            try:
                data = self._decompress(payload, min(room(len(payload)), left))
            except TooMuch:
                codes[row] = self._too_much
                continue
            except Exception:  # noqa: BLE001  # of a user's function, for any bytes
                codes[row] = self._broken
                continue
            piece.append(data)
            left, held = left - len(data), held + len(data)
            if held >= MOST_AT_A_TIME:
                yield self._inner.read(listed(piece))
                piece, held = [], 0
        yield self._inner.read(listed(piece))


MOST_OF_BATCH: Final = 1 << 30
"""Bytes: columns of Arrow hold at most twice as many."""

MOST_AT_A_TIME: Final = 64 << 20
