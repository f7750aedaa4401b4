"""A dry run refuses what the table would refuse of the job, and nothing else; either changes nothing."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from airflow_provider_streams import DeltaSink, IcebergSink
from airflow_provider_streams.errors import InvalidRequest, SinkError, StreamsError, TableOwnedByOther
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.column_types import MOMENT
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta.writer import DeltaWriter
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.windows.claim.table_coverage import compare
from tests.integration.lake.delta_logs import OLD, column, with_features, write_log
from tests.unit.windows.plan.test_payload_decoding import minute

KEY = FakeSource("numbers").key
NUMBERS = Json("n long")
BOTH = Json("n long, shard string")
SPAN = Window(minute(0).start, minute(2).end)


class Died(Exception):
    pass


def die(_spec):
    raise Died


@pytest.fixture
def put(world, tmp_path):
    """Lets the world's table be of a kind."""
    world.hold(events=300, records=1)
    world.read = partial(world.read, undecodable=DecodeErrorPolicy())
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    parquet = world.sink()

    def put(kind, **options):
        made = {
            "parquet": lambda: parquet,
            "delta": lambda: DeltaSink(str(tmp_path / "delta"), **options),
            "iceberg": lambda: IcebergSink("shop.orders", conn_id="iceberg_test", **options),
        }[kind]()
        world.sink = lambda _name="lake": made
        return made

    with given("iceberg_test", catalog):
        yield put


def refusal(act, **how):
    """The kind of error that it ends with; None: it does not."""
    try:
        act(**how)
    except StreamsError as error:
        return type(error)
    return None


on_all = pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
with_columns = pytest.mark.parametrize("kind", ["delta", "iceberg"])
"""Kinds whose tables have columns of their own."""


def is_refused(world, window=None, **how):
    """A read's dry run and a backfill's, then the read itself: how each ends. The dry ones change nothing."""
    window = window or minute(0)
    before = world.journal.landing(KEY, "reader"), table_state(world.sink()), world.states(window)
    found = [refusal(lambda: world.read(window, dry_run=True, **how))]
    found.append(refusal(lambda: world.backfill(window, select="all", dry_run=True, **how)))
    assert (world.journal.landing(KEY, "reader"), table_state(world.sink()), world.states(window)) == before
    found.append(refusal(lambda: world.read(window, **how)))
    assert len(set(found)) == 1, found
    assert found[0] is None or table_state(world.sink()) == before[1]
    return found[0]


@on_all
def test_a_column_that_there_is_not(world, put, kind):
    put(kind)
    assert is_refused(world, value=BOTH, columns=("n", "nope")) is InvalidRequest
    assert is_refused(world, value=BOTH, columns=("n",)) is None


@pytest.mark.slow_except(
    "parquet-n long, window_start string", "iceberg-n long, window_start string", "delta-n long, `a,b` string"
)
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *(
            (kind, f"n long, {name} string")
            for kind in ("parquet", "delta", "iceberg")
            for name in ("window_start", "Window_End")
        ),
        ("delta", "n long, t time"),
        *(("delta", f"n long, `{name}` string") for name in ("a b", "a,b", "a=b", "{a}")),
        ("delta", "n long, s struct<`a b`: long>"),
    ],
)
def test_columns_that_no_such_table_has(world, put, kind, fields):
    put(kind)
    assert is_refused(world, value=Json(fields)) is SinkError
    assert is_refused(world, value=Json(fields), columns=("n",)) is None


@pytest.mark.slow_except("how0-delta", "how1-iceberg")
@on_all
@pytest.mark.parametrize("how", [{"value": Json("n long, window_start string")}, {"value": BOTH, "columns": ("nope",)}])
def test_a_backfill_and_its_dry_run_are_refused_alike(world, put, kind, how):
    put(kind)
    for _ in range(2):
        assert refusal(lambda: world.backfill(SPAN, dry_run=True, **how)) in {SinkError, InvalidRequest}
    dry, real = (refusal(lambda one=one: world.backfill(SPAN, dry_run=one, **how)) for one in (True, False))
    assert dry is real
    assert refusal(lambda: world.backfill(SPAN, dry_run=True, value=NUMBERS)) is None
    _, outcome = world.backfill(SPAN, value=NUMBERS)
    assert (len(outcome.covered), outcome.failures) == (3, {})


def test_names_and_types_that_other_tables_have(world, put):
    for kind in ("parquet", "iceberg"):
        put(kind)
        assert is_refused(world, value=Json("n long, t time, `a b` string"), reader=kind) is None


@pytest.mark.slow_except("parquet")
@on_all
def test_once_it_is_mended_it_lands_whichever_plan_is_pinned(world, put, kind):
    put(kind)
    asked = Json("n long, window_start string")
    assert is_refused(world, value=asked) is SinkError
    assert is_refused(world, value=NUMBERS) is None
    with pytest.raises(SinkError):
        world.read(minute(1), value=asked, reader="another", dry_run=True)


@on_all
def test_a_plan_that_only_a_dry_run_pinned_is_decoded_as_is_asked_by_then(world, put, kind):
    put(kind)
    for _ in range(2):
        with pytest.raises(SinkError, match="window_start"):
            world.read(minute(0), value=Json("n long, window_start string"), dry_run=True)
    assert is_refused(world, value=NUMBERS) is None


@pytest.mark.parametrize(
    ("protocol", "metadata"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 4}, {"delta.generationExpression": "n + 1"}),
        ({"minReaderVersion": 1, "minWriterVersion": 6}, {}),
        (with_features("rowTracking", "domainMetadata"), {}),
    ],
)
def test_a_delta_table_that_asks_more_of_writers_than_they_do(world, put, protocol, metadata):
    columns = [column("n"), column("more", **metadata)]
    write_log(Path(put("delta").path), protocol, columns=columns)
    assert is_refused(world, value=NUMBERS) is SinkError


def test_a_delta_table_that_cannot_even_be_read(world, put):
    write_log(Path(put("delta").path), with_features("catalogManaged"), columns=[column("n")])
    for act in (partial(world.read, minute(0)), partial(world.backfill, minute(0), select="all")):
        for how in ({"dry_run": True}, {}):
            with pytest.raises(SinkError, match="table feature catalogManaged"):
                act(value=NUMBERS, **how)


def test_a_delta_table_that_asks_nothing_more(world, put):
    write_log(Path(put("delta", widen=True).path), OLD, columns=[column("n"), column("more")])
    assert is_refused(world, value=NUMBERS) is None


@with_columns
def test_a_column_that_the_table_may_not_get(world, put, kind):
    put(kind)
    world.read(minute(0), value=NUMBERS)
    assert is_refused(world, value=BOTH, replan=True) is SinkError
    for dry_run in (True, False):
        with pytest.raises(SinkError) as found:
            world.read(minute(0), value=BOTH, replan=True, dry_run=dry_run)
        assert found.value.foreseeable, "doctor makes the same check"
    put(kind, widen=True)
    assert is_refused(world, value=BOTH, replan=True) is None


def test_a_folder_takes_any_new_column(world, put):
    put("parquet")
    world.read(minute(0), value=NUMBERS)
    assert is_refused(world, value=BOTH, replan=True) is None


@pytest.mark.slow_except("delta")
@with_columns
def test_a_new_column_that_the_system_tells_of(world, put, told, kind):
    put(kind)
    told("n long")
    world.read(minute(0), value=BOTH)
    told("n long, shard string")
    assert is_refused(world, minute(1), value=BOTH) is SinkError
    put(kind, widen=True)
    world.read(minute(2), value=BOTH)
    assert is_refused(world, minute(1), value=BOTH) is None


@pytest.mark.slow_except("iceberg")
@with_columns
def test_windows_of_older_plans_lack_what_came_later(world, put, told, kind):
    put(kind, widen=True)
    told("n long")
    world.read(minute(0), value=BOTH)
    world.read(minute(1), value=BOTH, dry_run=True)
    told("n long, shard string")
    world.read(minute(2), value=BOTH)
    put(kind)
    assert is_refused(world, minute(1), value=BOTH) is None


@with_columns
def test_columns_of_a_run_that_failed_give_way(world, put, told, kind):
    put(kind)
    told("n string, other long")
    world.before = die
    with suppress(Died):
        world.read(minute(0), value=BOTH)
    world.before = lambda _spec: None
    told("n long, shard string")
    assert is_refused(world, minute(1), value=BOTH) is None


@with_columns
def test_a_mistaken_value_under_which_nothing_landed(world, put, kind):
    put(kind)
    world.before = die
    with suppress(Died):
        world.read(minute(0), value=Json("n string"))
    world.before = lambda _spec: None
    assert is_refused(world, value=NUMBERS) is None


def test_a_delta_table_takes_any_columns_where_all_is_landed_again(world, put):
    put("delta")
    world.read(minute(0), value=NUMBERS)
    assert is_refused(world, value=Json("n long, t time"), full_refresh=True) is SinkError
    assert is_refused(world, value=Json("n double"), full_refresh=True) is None


def test_an_iceberg_table_keeps_its_columns_where_all_is_landed_again(world, put):
    put("iceberg")
    world.read(minute(0), value=NUMBERS)
    assert is_refused(world, value=Json("n double"), full_refresh=True) is SinkError
    assert is_refused(world, value=NUMBERS, columns=("n",), full_refresh=True) is None


@with_columns
def test_present_columns_that_the_table_cannot_take(world, put, told, kind):
    """A full refresh: what Delta sets aside takes its columns with it, and Iceberg keeps them."""
    put(kind)
    world.read(minute(0), value=BOTH)
    told("n double, shard string")
    wanted = None if kind == "delta" else SinkError
    assert refusal(lambda: world.read(minute(1), value=BOTH, full_refresh=True, dry_run=True)) is wanted
    assert refusal(lambda: world.read(minute(1), value=BOTH, full_refresh=True)) is wanted


EDGES = [("window_start", MOMENT), ("window_end", MOMENT)]


def delta_by_hand(sink, fields, by):
    DeltaTable.create(sink.path, pa.schema(fields), partition_by=by)


def iceberg_by_hand(sink, fields, by):
    types = {pa.int64(): LongType(), pa.string(): StringType(), MOMENT: TimestamptzType()}
    schema = Schema(*(NestedField(at, name, types[type_]) for at, (name, type_) in enumerate(fields, 1)))
    spec = PartitionSpec(
        *(
            PartitionField(schema.find_field(name).field_id, 1000 + at, IdentityTransform(), name)
            for at, name in enumerate(by)
        )
    )
    catalog_of(sink).create_namespace_if_not_exists("shop")
    catalog_of(sink).create_table(sink.table, schema, partition_spec=spec)


BY_HAND = {"delta": delta_by_hand, "iceberg": iceberg_by_hand}
BY_WINDOW = ["window_start", "window_end"]


@pytest.mark.slow_except(
    "fits-delta", "has more-iceberg", "lacks one-delta", "another type-iceberg", "no windows-delta"
)
@with_columns
@pytest.mark.parametrize(
    ("made", "options", "fits"),
    [
        (([("n", pa.int64()), *EDGES], BY_WINDOW), {}, True),
        (([("n", pa.int64()), ("more", pa.string()), *EDGES], BY_WINDOW), {}, True),
        (([("more", pa.string()), *EDGES], BY_WINDOW), {}, False),
        (([("more", pa.string()), *EDGES], BY_WINDOW), {"widen": True}, True),
        (([("n", pa.string()), *EDGES], BY_WINDOW), {"widen": True}, False),
        (([("n", pa.int64()), ("more", pa.string()), *EDGES], ["more"]), {}, False),
        (([("n", pa.int64())], []), {}, False),
    ],
    ids=["fits", "has more", "lacks one", "may get it", "another type", "partitioned otherwise", "no windows"],
)
def test_an_empty_table_that_another_program_made(world, put, kind, made, options, fits):  # noqa: PLR0917 - its cases
    sink = put(kind, **options)
    BY_HAND[kind](sink, *made)
    assert is_refused(world, value=NUMBERS, columns=("n",)) is (None if fits else SinkError)


@pytest.mark.slow_except("lacks one-iceberg", "partitioned otherwise-delta")
@with_columns
@pytest.mark.parametrize(
    "made",
    [
        ([("more", pa.string()), *EDGES], BY_WINDOW),
        ([("more", pa.string()), *EDGES], ["more"]),
        ([("n", pa.int64())], []),
    ],
    ids=["lacks one", "partitioned otherwise", "no windows"],
)
def test_a_table_that_refused_a_read_and_was_filled_by_its_owner_stays_its_owners(world, put, kind, made):
    sink = put(kind)
    BY_HAND[kind](sink, *made)
    with pytest.raises(SinkError):
        world.read(minute(0), value=NUMBERS, columns=("n",))
    seen = partial(compare, world.journal, KEY, "reader")
    assert seen(world.journal.coverage(KEY, "reader", SPAN.start, SPAN.end))[1].status == "absent"
    row = pa.Table.from_pylist([{"n": 1, "more": "theirs"}], pa.schema(made[0]))
    if kind == "delta":
        write_deltalake(sink.path, row, mode="append")
    else:
        catalog_of(sink).load_table(sink.table).append(row)
    assert is_refused_as_foreign(world, replace(sink, widen=True))
    table = seen(world.journal.coverage(KEY, "reader", SPAN.start, SPAN.end))[1]
    assert (table.status, table.cause.startswith("it holds data, and nothing in it says whose")) == ("foreign", True)


def is_refused_as_foreign(world, sink):
    """A read's dry run and the read itself, in a table that may become wider."""
    world.sink = lambda _name="lake": sink
    found = [
        refusal(lambda one=one: world.read(minute(0), value=NUMBERS, columns=("n",), dry_run=one))
        for one in (True, False)
    ]
    return found == [TableOwnedByOther, TableOwnedByOther]


def test_coverage_says_of_a_delta_table_that_it_is_not_by_window_any_more(world, put):
    sink = put("delta")
    world.read(minute(0), value=NUMBERS)
    properties = DeltaTable(sink.path).metadata().configuration
    shutil.rmtree(sink.path)
    schema = pa.schema([("n", pa.int64())])
    DeltaTable.create(sink.path, schema, configuration=properties, raise_if_key_not_exists=False)
    write_deltalake(sink.path, pa.table({"n": [1]}), mode="append")
    with pytest.raises(SinkError, match="partitioned by window_start and window_end"):
        world.read(minute(1), value=NUMBERS)
    _, table = compare(world.journal, KEY, "reader", world.journal.coverage(KEY, "reader", SPAN.start, SPAN.end))
    assert table.status == "unseen"
    assert "it is not partitioned by window_start and window_end" in str(table)


def test_a_folder_is_not_claimed_by_a_read_that_keeps_undecodable_events_and_is_refused(world, put):
    sink = put("parquet")
    with pytest.raises(SinkError, match="window_start"):
        world.read(minute(0), value=Json("n long, window_start string"), undecodable=DecodeErrorPolicy("quarantine"))
    assert table_state(sink) is None
    Path(sink.path).mkdir()  # nothing is left of it
    (Path(sink.path) / "theirs.parquet").touch()
    with pytest.raises(TableOwnedByOther, match=r"holds theirs\.parquet"):
        world.read(minute(0), value=NUMBERS, undecodable=DecodeErrorPolicy("quarantine"))


def test_an_iceberg_table_without_windows_gets_them_too(world, put):
    sink = put("iceberg", widen=True)
    iceberg_by_hand(sink, [("n", pa.int64())], [])
    assert is_refused(world, value=NUMBERS, columns=("n",)) is None


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_of_a_table_that_cannot_be_reached_only_its_kind_is_known(world, put, kind, monkeypatch):
    monkeypatch.setattr(connections, "_resolvers", [])  # another test's Airflow would ask its own
    sink = replace(put(kind), conn_id="nobody_knows")
    world.sink = lambda _name="lake": sink
    world.read(minute(0), value=NUMBERS, dry_run=True)
    world.backfill(SPAN, value=NUMBERS, dry_run=True)
    with pytest.raises(SinkError, match="window_start"):
        world.read(minute(0), value=Json("window_start string"), dry_run=True)


@on_all
def test_what_a_transform_makes_of_unknown_columns(world, put, kind):
    put(kind)
    how = {"value": Json("n long, window_start string"), "transform": "some.where:rename"}
    world.read(minute(0), dry_run=True, **how)
    world.backfill(SPAN, dry_run=True, **how)
    with pytest.raises(InvalidRequest, match="nope"):
        world.read(minute(0), columns=("nope",), dry_run=True, **how)


def test_a_sink_of_ones_own_that_does_not_say_is_not_asked(world, put, tmp_path):
    own = CustomSink("tests.spark.own_files_writer:ListedFiles", str(tmp_path / "own"))
    world.sink = lambda _name="lake": own
    world.read(minute(0), value=Json("n long, window_start string"), dry_run=True)


def test_a_backfill_asks_the_table_once_for_windows_of_the_same_columns(world, put, monkeypatch):
    sink, asked = put("delta"), []
    monkeypatch.setattr(DeltaWriter, "check_rows", lambda *args: asked.append(args))
    world.backfill(SPAN, value=NUMBERS, dry_run=True)
    first = len(asked)
    assert first in range(1, 5)  # some windows are planned side by side
    world.backfill(Window(minute(0).start, minute(4).end), value=NUMBERS, dry_run=True)
    assert (len(asked) <= first + 4, {one for one, *_ in asked}) == (True, {sink})
