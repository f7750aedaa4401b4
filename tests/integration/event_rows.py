"""Rows of a plan by a decoded field: by a plain decoder and the filter, and as Spark's tasks read them."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.model.plan.receipt import Receipt, check_split, compare
from airflow_provider_streams.model.plan.row_filter import FieldFilter
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.spark.datasource.event_time_filter import keep, place_column
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.systems.base import StreamSystem

Decode = Callable[[bytes], dict[str, Any] | None]


def of_json(payload: bytes) -> dict[str, Any] | None:
    """None: it is none."""
    try:
        return json.loads(payload)
    except ValueError:
        return None


@dataclass(frozen=True)
class Rows:
    """What is decoded, and how.

    Args:
        kind: of the decoded values.
        decode: one payload; None: it cannot be.
        payload: the system's column of payloads.
    """

    kind: pa.DataType
    decode: Decode = of_json
    payload: str = "value"

    def kept(self, system: StreamSystem, plan: Plan) -> list[bytes]:
        """The payloads of the window's rows, in the plan's order; every split's receipt agrees with it."""
        return [row for split in plan.splits for row in self._of_split(system, plan, split)]

    def _of_split(self, system: StreamSystem, plan: Plan, split: Split) -> Iterator[bytes]:
        assert isinstance(plan.filter, FieldFilter)
        place = place_column(plan.filter)
        with contextlib.closing(system.read(plan, split, [self.payload, *([place] if place else [])])) as reader:
            for batch in reader:
                payloads = batch.column(0).to_pylist()
                value = pa.array([None if one is None else self.decode(one) for one in payloads], self.kind)
                mask = keep(value, plan.filter, batch.column(1) if place else None, split.shard).mask
                yield from (one for one, is_kept in zip(payloads, mask.to_pylist(), strict=True) if is_kept)
            check_split(plan, split, reader.receipt)


def typed(system: StreamSystem, plan: Plan, column: str) -> tuple[Counter[Any], Receipt]:
    """One column of the rows as Spark's tasks read them, what cannot be decoded dropped; the receipt agrees."""
    rows: Counter[Any] = Counter()
    receipts = []
    for split in plan.splits:
        with contextlib.closing(
            open_split(system, plan, split, SplitReadOptions((column,), undecodable=DecodeErrorPolicy("drop")))
        ) as reader:
            rows.update(value for batch in reader for value in batch.column(0).to_pylist())
        receipts.append(reader.receipt)
    receipt = compare(plan, receipts, seconds=0)
    assert receipt.rows == rows.total()
    return rows, receipt
