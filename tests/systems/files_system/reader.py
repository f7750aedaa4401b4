from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from airflow_provider_streams.model.plan.plan import Plan, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.stream.position import Position
from files_system.folder import Folder


class FilesReader:
    """See `SplitReader`: one batch a split."""

    def __init__(self, folder: Folder, plan: Plan, split: Split, schema: pa.Schema) -> None:
        self._folder, self._filter, self._split, self._schema = folder, plan.filter, split, schema
        self.receipt = SplitReceipt(split.index)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        (start,), (end,) = self._split.start.parts, self._split.end.parts
        held = [number for number in range(start, end) if self._folder.file(number).exists()]
        kept = [number for number in held if self._keeps(number)]
        values = [self._folder.file(number).read_bytes() for number in kept]
        self.receipt = SplitReceipt(
            self._split.index,
            rows=len(kept),
            bytes=sum(map(len, values)),
            entries=len(held),
            filtered=len(held) - len(kept),
            first=Position.of(kept[0]) if kept else None,
            last=Position.of(kept[-1]) if kept else None,
            gaps=tuple(Span(0, number, number + 1) for number in range(start, end) if number not in held),
        )
        content = {"value": values, "publish_time": [self._folder.published(one) for one in kept], "number": kept}
        arrays = [pa.array(content[column.name], column.type) for column in self._schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> None:
        pass

    def _keeps(self, number: int) -> bool:
        if self._filter is None:
            return True
        return self._filter.start_ms <= self._folder.published(number).timestamp() * 1000 < self._filter.end_ms
