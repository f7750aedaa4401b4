"""Messages of a registry's schemas (Avro, JSON): the package's decoder reads them, and schemas say what they mean."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.change_data.messages import layouts
from airflow_provider_streams.formats.change_data.messages.message_reading import ReadPart
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import StructOf


class TypedMessages(NamedTuple):
    """A batch of decoded messages."""

    parts: list[ReadPart]
    there: Flags
    """Which messages have a value; others are tombstones, unless they have a cause."""
    keys: Array | None
    """Decoded, if they are, or as they were read."""


class TypedReader:
    """Reads messages by the schemas of a registry.

    Args:
        change_format: what the plan pinned, with the schema of the messages.
        decoding: how payloads become columns.
        name: the source's name in the plan.
        causes: numbers the causes.

    Raises:
        InvalidSchema: its schemas describe no changes.
    """

    def __init__(self, change_format: ChangeFormat, decoding: Decoding, name: str, causes: Causes) -> None:
        if not isinstance(decoding.value, StructOf):
            raise InvalidSchema("value=Debezium()", "the messages' schema describes no record")
        self._decoder, self._causes = Decoder(decoding, name), causes
        self._layout = layouts.of_schema(json.loads(change_format.schema), {}, change_format)
        self.key_type = decoding.key if isinstance(decoding.key, StructOf) else None

    def read(self, payloads: Payloads, codes: Codes) -> TypedMessages:
        """Decode a batch. Messages that cannot be decoded get their cause."""
        decoded = self._decoder.decode(payloads)
        texts = decoded.causes.to_pylist() if decoded.causes.null_count < len(codes) else []
        for row, text in enumerate(texts):
            if text is not None:
                codes[row] = self._causes.code(str(text))
        there = arrays.valid_flags(decoded.value)
        rows = np.flatnonzero(there & (codes == GOOD))
        part = ReadPart(rows, self._layout, arrays.at_rows(decoded.value, rows))
        return TypedMessages([part] if len(rows) else [], there | (codes != GOOD), decoded.key)
