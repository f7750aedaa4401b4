"""The sinks' writers: stage a window where nobody looks, then put it in place in one step."""

from __future__ import annotations

import importlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import ParquetSink, Sink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.spark.atomic_rename import recover
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.parquet_table import WINDOW_COLUMNS, ParquetTable
from airflow_provider_streams.spark.process_lock import Life, is_alive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITERS: dict[str, str] = {"parquet": "airflow_provider_streams.spark.sinks:ParquetWriter"}
"""A sink's kind to the dotted path of its writer, imported when used."""


class Writer(Protocol):
    """Writes one window of one sink, once: staged where nobody looks, committed after the proof.

    A sink of your own is a class like `model.sink.Sink` whose `kind` is the dotted path of its writer.
    """

    sink_type: ClassVar[type[Sink]]

    def __init__(self, sink: Any, window: Window, terms: TableTerms) -> None:
        """Nothing is touched yet."""

    def stage(self, df: DataFrame) -> None:
        """Write the rows where no reader sees them; exactly one Spark action.

        Raises:
            SinkError: they cannot be written.
        """

    def commit(self, receipt: Receipt, rows: int | None) -> int | None:
        """Replace the window by what was staged; a receipt exists only for a read that agrees with its plan.

        Args:
            receipt: of the rows before the transform.
            rows: how many rows there must be; None: nobody knows, because a transform changed them and Spark did not
                count.

        Returns:
            How many rows of the window the table holds now; None: not counted.

        Raises:
            SinkError: the table holds what it held before.
            WindowsOverlap: other windows of the table share time with it, and shall stay.
        """

    def discard(self) -> None:
        """Remove what was staged; never raises."""


def writer_of(sink: Sink, window: Window, terms: TableTerms) -> Writer:
    """The writer of a sink's kind."""
    return writer_type(sink.kind)(sink, window, terms)


def table_state(sink: Sink) -> TableState | None:
    """What a sink's table says of itself; None: there is no table yet, or its kind cannot tell.

    Raises:
        SinkError: it cannot be looked at.
    """
    look = getattr(writer_type(sink.kind), "look", None)
    state: TableState | None = look(sink) if look is not None else None
    return state


def can_look(sink: Sink) -> bool:
    """Whether a sink's table can say of itself which windows it holds."""
    return hasattr(writer_type(sink.kind), "look")


def sink_from_json(data: dict[str, Any]) -> Sink:
    """The reverse of `Sink.to_json`.

    Raises:
        InvalidRequest: an unknown kind.
    """
    return writer_type(data["kind"]).sink_type.from_json(data)


def writer_type(kind: str) -> type[Writer]:
    """The class that writes a kind of sink. One that has `stage_together` can write many windows in one pass.

    Raises:
        InvalidRequest: an unknown kind.
    """
    path = WRITERS.get(kind, kind)
    module, colon, name = path.partition(":")
    if not colon:
        raise InvalidRequest(
            f"no sink of kind {kind!r}; known: {', '.join(sorted(WRITERS))}, and 'package.module:Writer' of your own"
        )
    try:
        writer: type[Writer] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(f"the writer {path!r} of a sink cannot be imported here: {error}") from error
    return writer


_UTC_TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Spark's default, INT96, has no time zone: other readers would take the times for local ones."""


@contextmanager
def _setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A session's setting for a while; it is the user's session."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


class ParquetWriter:
    """A window of a `ParquetTable`, replaced by exchanging two folders' names."""

    sink_type: ClassVar[type[Sink]] = ParquetSink

    def __init__(self, sink: ParquetSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._table = ParquetTable(sink.path)
        self.staged = self._table.staging / f"{window.label}-{uuid.uuid4().hex}"
        """Where the window's files are until it is committed."""
        self._life = Life(_life_of(self.staged))

    @classmethod
    def look(cls, sink: ParquetSink) -> TableState | None:
        """What the table says of itself; see `table_state`."""
        return ParquetTable(sink.path).state()

    def stage(self, df: DataFrame) -> None:
        """See `Writer`."""
        self.prepare(df.columns)
        self._write(df, self.staged)

    def stage_together(self, writers: Mapping[int, ParquetWriter], df: DataFrame, column: str) -> None:
        """Stage several windows of this sink in one pass, by a column that tells the number of each row's window.

        Each of the writers then goes on as after its own `stage`.

        Raises:
            SinkError: they cannot be written, or not all of them arrived here.
        """
        landed = [name for name in df.columns if name != column]
        for writer in writers.values():
            writer.prepare(landed)
        together = self.staged.with_name(self.staged.name + ".together")
        parts = {number: together / f"{column}={number}" for number in writers}
        try:
            rows = self._write_together(df, column, together)
            self._check_count(rows, sorted(together.rglob("*.parquet")))
            if not all(part.exists() for part in parts.values()):
                self._write(df.drop(column).limit(0), together / "empty")
            for number, writer in writers.items():
                writer.take(parts[number], together / "empty")
        finally:
            shutil.rmtree(together, ignore_errors=True)

    def _write_together(self, df: DataFrame, column: str, folder: Path) -> int | None:
        """How many rows Spark wrote into a folder per window; None: it did not say."""
        from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        written = Observation("streams rows of windows")
        self._write(df.observe(written, F.count(F.lit(1)).alias("rows")), folder, column)
        self._check_success(folder)
        rows = observed(written).get("rows")
        return None if rows is None else int(rows)

    def take(self, rows: Path, empty: Path) -> None:
        """Make a part of a common folder this writer's own staged one."""
        if rows.exists():
            rows.rename(self.staged)
            (self.staged / "_SUCCESS").touch()
        else:
            shutil.copytree(empty, self.staged)

    def commit(self, receipt: Receipt, rows: int | None) -> int:
        """See `Writer`."""
        written = self._check(rows)
        proof = {"fingerprint": receipt.fingerprint, "rows": receipt.rows, "written": written}
        (self.staged / _PROOF).write_text(json.dumps(proof))
        try:
            self._table.put(self.staged, self._window, self._terms)
        except OSError as error:
            raise SinkError(self._sink.path, f"window {self._window} cannot be put in place: {error}") from error
        self._life.end()
        self._remove_leftovers()
        return written

    def discard(self) -> None:
        """See `Writer`."""
        shutil.rmtree(self.staged, ignore_errors=True)
        with suppress(OSError):
            self._life.end()

    def prepare(self, columns: Sequence[str]) -> None:
        """Refuse rows of columns that the table cannot hold; make room for what will be staged.

        Raises:
            SinkError: they have a column that the folders' names give.
        """
        given = sorted({name.lower() for name in columns} & set(WINDOW_COLUMNS))
        if given:
            raise SinkError(
                self._sink.path, f"the rows have a column {given[0]!r}, which the table's folders already give"
            )
        self._table.claim(self._terms)
        self._life.begin()
        recover(self._table.folder_of(self._window), self._table.staging, f"{self._window.label}-")

    def _write(self, df: DataFrame, folder: Path, *partition_columns: str) -> None:
        with _setting(df.sparkSession, *_UTC_TIMESTAMPS):
            writer = df.write.partitionBy(*partition_columns) if partition_columns else df.write
            writer.option("compression", self._sink.compression).parquet(f"file://{folder}")

    def _check(self, rows: int | None) -> int:
        """What tasks wrote must be here: a folder not mounted everywhere keeps their files elsewhere. How many rows."""
        self._check_success(self.staged)
        files = sorted(self.staged.glob("*.parquet"))
        if not files:
            raise SinkError(self._sink.path, "not one of the files that Spark wrote is here")
        return self._check_count(rows, files)

    def _check_success(self, folder: Path) -> None:
        if not (folder / "_SUCCESS").exists():
            raise SinkError(
                self._sink.path, "what Spark wrote is not here: the path must be mounted on this machine too"
            )

    def _check_count(self, rows: int | None, files: Sequence[Path]) -> int:
        import pyarrow.parquet as pq  # noqa: PLC0415 - only where a table is written

        written = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
        if rows not in (None, written):
            raise SinkError(
                self._sink.path,
                f"there must be {rows} rows, {written} are here in {len(files)} files: "
                "the path must be one mounted file system for the driver and all executors",
            )
        return written

    def _remove_leftovers(self) -> None:
        """What dead attempts at this window left, now that it is replaced.

        Each is renamed first: an attempt that only looked dead can then put no folder in place that is being emptied.
        """
        for leftover in self._table.staging.glob(f"{self._window.label}-*"):
            if is_alive(_life_of(leftover)):
                continue
            doomed = leftover.with_name(leftover.name + ".doomed")
            with suppress(OSError):
                leftover.rename(doomed)
                if doomed.is_dir():
                    shutil.rmtree(doomed, ignore_errors=True)
                else:
                    doomed.unlink()


_PROOF = "_receipt.json"
"""Which plan a window's folder holds, and how many rows."""


def _life_of(staged: Path) -> Path:
    """Whose lock says that the attempt lives which made this folder, or one beside it."""
    label, _, attempt = staged.name.partition("-")  # a label has points where windows start between two seconds
    return staged.with_name(f"{label}-{attempt.partition('.')[0]}.alive")
