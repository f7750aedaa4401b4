"""A user's own sink: a folder of JSON lines, one file per window, written when the window is proven."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from airflow_provider_streams import DataFrameSinkWriter
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableTerms
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import Window


@dataclass(frozen=True)
class JsonSink(Sink):
    """What a DAG names."""

    kind: ClassVar[str] = "tests.spark.own_sink:JsonWriter"
    path: str

    @property
    def asset_uri(self) -> str:
        return f"file://{self.path}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "path": self.path}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(data["path"])


class JsonWriter(DataFrameSinkWriter):
    """What lands one window of it, in Spark's driver program."""

    sink_type = JsonSink

    def __init__(self, sink: JsonSink, window: Window, terms: TableTerms) -> None:
        self._place = Path(sink.path) / window.label
        self._staged = Path(sink.path) / f".staged-{uuid.uuid4().hex}"
        self.terms = terms

    def stage(self, df: Any) -> None:
        df.write.json(str(self._staged))

    def commit(self, receipt: Receipt, rows: int | None) -> int | None:
        (self._staged / "_PLAN").write_text(receipt.fingerprint)
        shutil.rmtree(self._place, ignore_errors=True)
        self._staged.rename(self._place)
        return rows

    def discard(self) -> None:
        shutil.rmtree(self._staged, ignore_errors=True)
