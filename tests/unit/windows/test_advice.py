"""Each way out that a refusal offers is tried, on real tables of each format; what is not offered would be refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_provider_streams import Auto, DeltaSink, IcebergSink, Json, ParquetSink
from airflow_provider_streams.errors import LandingMismatch, SinkError
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of, given
from airflow_provider_streams.lake.connections import given as connected
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.decoding import ANY_VERSION
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem
from airflow_provider_streams.windows.claim.landing_defaults import stored_landing
from tests.unit.windows.plan.test_payload_decoding import minute

DROP = DecodeErrorPolicy("drop")
ROWS = 120
EMPTY = 30
"""The number of a window after the last event."""
PLAIN = {
    "another reader": "take another reader",
    "widen=True": "numbers (widen=True)",
    "full_refresh=True": "every window is missing again).",
    "full_refresh=True, widen=True": "every window is missing again), and have the sink add columns (widen=True).",
}
TEXT = ("as_text=True, replan=True", "as_text=True, full_refresh=True")
WAYS = (*PLAIN, "version='0', replan=True", *TEXT)


class Tables:
    """Readers of a topic, each with a table of its own, and what the system tells of the topic's schema."""

    def __init__(self, world, monkeypatch, sink_of):
        self.world, self.versions, self.widen = world, {}, False
        monkeypatch.setattr(world, "sink", lambda name="lake": sink_of(name, widen=self.widen))
        planned = FakeSystem.plan

        def plan(system, request):
            value = request.source.value
            if not isinstance(value, Auto):
                return planned(system, request)
            schemas = {version: given(Json(columns)) for version, columns in self.versions.items()}
            decoding = decoding_of(value, None, {str(request.source): schemas})
            return replace(planned(system, replace(request, source=FakeSource("numbers"))), decoding=decoding)

        monkeypatch.setattr(FakeSystem, "plan", plan)

    def read(self, number, *, reader="reader", sink=None, value=None, **acts):
        how = {"value": Auto() if value is None else value, "undecodable": DROP, **acts}
        return self.world.read(minute(number), reader=reader, sink=sink or reader, **how)

    def begin(self, before, after, reader="reader"):
        """One window lands as `before`; from then on the schema has another version."""
        self.versions = {ANY_VERSION: before}
        self.read(0, reader=reader)
        self.versions = {"0": before, ANY_VERSION: after}

    def refusal(self, reader="reader"):
        with pytest.raises(LandingMismatch) as caught:
            self.read(1, reader=reader)
        return str(caught.value)

    def follow(self, way, reader):
        """What the way says, done by this reader."""
        if way == "another reader":
            return self.read(1, reader=f"{reader}2")
        said = set(way.split(", "))
        self.widen = "widen=True" in said
        value = Auto(version="0" if "version='0'" in said else "", as_text="as_text=True" in said)
        return self.read(
            1, reader=reader, value=value, **{act: True for act in ("replan", "full_refresh") if f"{act}=True" in said}
        )


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def tables(request, world, monkeypatch, tmp_path):
    warehouse = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    of = {
        "parquet": lambda name, **how: ParquetSink(str(tmp_path / name), **how),
        "delta": lambda name, **how: DeltaSink(str(tmp_path / name), **how),
        "iceberg": lambda name, **how: IcebergSink(f"shop.{name}", conn_id="iceberg_advice", **how),
    }
    world.hold(events=600, records=1)
    with connected("iceberg_advice", warehouse):
        yield Tables(world, monkeypatch, of[request.param])


def offered(said):
    """The ways that an error names."""
    ways = {f"{how}, {act}" for how, act in re.findall(r"value=Auto\(([^)]*)\), with (\w+=True)", said)}
    return ways | {way for way, words in PLAIN.items() if words in said}


CHANGES = {
    "a column is dropped": ("n long, shard string", "n long, other string"),
    "a text becomes a number": ("n long, shard string", "n long, shard int"),
    "a number becomes text": ("n long, shard string", "n string, shard string"),
    "a number becomes wider": ("n int, shard string", "n long, shard string"),
}


@pytest.mark.slow_except(
    "parquet-a column is dropped", "delta-a text becomes a number", "iceberg-a number becomes wider"
)
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_refusal_offers_works_and_no_more_is_possible(tables, change):
    tables.begin(*CHANGES[change])
    ways = offered(tables.refusal())
    assert {"another reader"} < ways <= set(WAYS)
    for number, way in enumerate(WAYS):
        tables.widen, reader = False, f"r{number}"
        tables.begin(*CHANGES[change], reader=reader)
        if way in ways:
            landed = tables.follow(way, reader).receipt
            assert landed.rows + landed.totals["dropped"] == ROWS
        elif way not in TEXT and not {"full_refresh=True", "widen=True"} & ways & set(way.split(", ")):
            # a second way to the same end is not worth naming
            with pytest.raises((LandingMismatch, SinkError)):
                tables.follow(way, reader)


@pytest.mark.slow_except("parquet")
def test_bytes_become_columns_by_what_the_refusal_offers(tables):
    tables.versions = {ANY_VERSION: "n long, shard string"}
    for reader in ("r1", "r2"):
        tables.world.read(minute(0), reader=reader, sink=reader)
    said = tables.refusal("r1")
    assert "value={'format'" not in said
    assert offered(said) - {"full_refresh=True", "full_refresh=True, widen=True"} == {"another reader"}
    assert tables.follow("another reader", "r1").receipt.rows == ROWS
    (way,) = offered(said) - {"another reader"}
    assert tables.follow(way, "r2").receipt.rows == ROWS


@pytest.mark.slow_except("delta-True")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_reader_of_bytes_that_landed_no_row_may_land_columns(tables, dry_run):
    tables.world.hold(now=minute(40).start.isoformat())
    tables.versions = {ANY_VERSION: "n long, shard string"}
    tables.world.read(minute(EMPTY), sink="reader")
    assert tables.world.states(minute(EMPTY)) == ["covered"]
    if isinstance(tables.world.sink(), IcebergSink):
        with pytest.raises(SinkError, match="widen=True adds what is lacking"):
            tables.read(0, dry_run=dry_run)
        tables.widen = True
    tables.read(0, dry_run=dry_run)
    if not dry_run:
        assert stored_landing(tables.world.journal, FakeSource("numbers").key, "reader").value == Auto()
        for number in (EMPTY, 1):
            tables.read(number)
        assert tables.world.states(minute(0)) == tables.world.states(minute(EMPTY)) == ["covered"]
