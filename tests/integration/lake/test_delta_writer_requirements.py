"""Tables of other engines that ask something of their writers: rows land as the table asks, or its name is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.delta.storage import storage_of
from airflow_provider_streams.lake.delta.writer import DeltaWriter
from airflow_provider_streams.lake.delta.writer_requirements import Place, requirements_of
from tests.integration.lake.delta_logs import OLD, ROWS, column, struct, with_features, write_log
from tests.integration.lake.delta_reading import adds, commits, windows
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, rows_of

NAMED = [one.name for one in requirements_of(Place.FEATURE)]
LANDS = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "variantType",
    "variantType-preview",
}
"""Features that a table may have if nothing in it makes them active."""


@pytest.fixture
def sink(tmp_path):
    return DeltaSink(str(tmp_path / "orders"))


def lands_twice(sink: DeltaSink) -> None:
    """A window, and then other rows in its place."""
    for first in (0, 100):
        DeltaWriter.check_rows(sink, SCHEMA, TERMS)
        Attempt(sink, hour(0), rows_of(first, 3)).land()
    assert [[row["id"] for row in rows] for rows in windows(storage_of(sink)).values()] == [[100, 101, 102]]


def is_refused(sink: DeltaSink, *names: str, schema: pa.Schema = SCHEMA) -> None:
    """Before rows are read, with the names, and nothing in the folder changes."""
    before = sorted(Path(sink.path).rglob("*"))
    for act in (
        lambda: DeltaWriter.check_rows(sink, schema, TERMS),
        lambda: DeltaWriter(sink, hour(0), TERMS).open(schema),
    ):
        with pytest.raises(SinkError) as caught:
            act()
        assert [name for name in names if name not in str(caught.value)] == []
        assert "Land in another table" in str(caught.value)
        assert not caught.value.retryable
    assert sorted(Path(sink.path).rglob("*")) == before


@pytest.mark.parametrize("name", [*NAMED, "somethingNew"])
def test_a_feature_is_fulfilled_or_refused_by_its_name(sink, name):
    write_log(Path(sink.path), with_features(*{"timestampNanos": ("timestampNtz",)}.get(name, ()), name))
    if name in LANDS:
        lands_twice(sink)
    else:
        is_refused(sink, f"table feature {name}: ")


@pytest.mark.parametrize(
    ("reader", "writer"), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (1, 7), (2, 7), (3, 7), (1, 8), (4, 7)]
)
def test_versions_from_before_features_have_those_that_they_imply(sink, reader, writer):
    named = {"writerFeatures": []} if writer == 7 else {}
    named |= {"readerFeatures": []} if reader == 3 else {}
    write_log(Path(sink.path), {"minReaderVersion": reader, "minWriterVersion": writer, **named})
    if writer == 6:
        is_refused(sink, "table feature identityColumns (of writer version 6)")
    elif writer > 7 or reader > 3:
        is_refused(sink, f"reader version {reader} and writer version {writer}")
    else:
        lands_twice(sink)


ACTIVE = {
    "delta.appendOnly": "true",
    "delta.constraints.positive": "id > 0",
    "delta.columnMapping.mode": "name",
    "delta.compatibility.symlinkFormatManifest.enabled": "TRUE",
    "delta.universalFormat.enabledFormats": "hudi",
}
INACTIVE = {
    "delta.appendOnly": "false",
    "delta.columnMapping.mode": "none",
    "delta.compatibility.symlinkFormatManifest.enabled": "False",
    "delta.universalFormat.enabledFormats": "",
    "delta.enableChangeDataFeed": "true",
    "delta.setTransactionRetentionDuration": "interval 1 day",
    "delta.checkpointPolicy": "v2",
    "delta.isolationLevel": "Serializable",
    "delta.randomizeFilePrefixes": "true",
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.enableDeletionVectors": "true",
    "delta.somethingNew": "true",
    "comment": "theirs",
}


@pytest.mark.parametrize("name", ACTIVE)
@pytest.mark.parametrize("writer", [2, 5])
def test_a_property_that_asks_what_no_writer_here_does_is_refused_by_its_name(sink, name, writer):
    protocol = {"minReaderVersion": 2 if writer == 5 else 1, "minWriterVersion": writer}
    mapped = [
        column(
            one["name"],
            one["type"],
            **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"},
        )
        for number, one in enumerate([*ROWS, column("window_start", "timestamp"), column("window_end", "timestamp")], 1)
    ]
    columns = {"columns": mapped[:3], "partition_by": mapped[3:]} if name == "delta.columnMapping.mode" else {}
    write_log(Path(sink.path), protocol, {name: ACTIVE[name]}, **columns)
    is_refused(sink, f"property {name} = {ACTIVE[name]}")


def test_properties_that_ask_nothing_hinder_nothing(sink):
    write_log(Path(sink.path), {"minReaderVersion": 2, "minWriterVersion": 5}, INACTIVE)
    lands_twice(sink)


SQL = json.dumps({"expression": {"expression": "id > 3"}})
ASKING = {
    "delta.invariants": column("amount", **{"delta.invariants": SQL}),
    "delta.generationExpression": column("total", **{"delta.generationExpression": "id + 1"}),
    "delta.identity.start": column("number", **{"delta.identity.start": 1, "delta.identity.step": 1}),
    "delta.identity.allowExplicitInsert": column("number", **{"delta.identity.allowExplicitInsert": True}),
    "CURRENT_DEFAULT": column("total", CURRENT_DEFAULT="42"),
    "__CHAR_VARCHAR_TYPE_STRING": column("code", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
    "__COLLATIONS": column("code", "string", __COLLATIONS={"code": "ICU.en_US"}),
    "delta.typeChanges": column("number", **{"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}),
    "delta.somethingNew": column("number", **{"delta.somethingNew": "?"}),
}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("where", ["of its own", "in a struct", "in a list", "in a map"])
@pytest.mark.parametrize("protocol", [OLD, with_features()])
def test_a_column_that_asks_what_no_writer_here_does_is_refused_by_its_name(sink, name, where, protocol):
    asking = ASKING[name]
    within, path = {
        "of its own": (asking, ""),
        "in a struct": (column("s", struct(asking)), "s."),
        "in a list": (
            column("s", {"type": "array", "elementType": struct(asking), "containsNull": True}),
            "s.element.",
        ),
        "in a map": (
            column("s", {"type": "map", "keyType": "string", "valueType": struct(asking), "valueContainsNull": True}),
            "s.value.",
        ),
    }[where]
    write_log(Path(sink.path), protocol, columns=[*ROWS, within])
    is_refused(sink, f"column {path}{asking['name']} has {name}: ")


def test_metadata_that_asks_nothing_hinders_nothing(sink):
    noted = column("note", "string", comment="theirs", **{"delta.columnMapping.physicalName": "note", "made.by": "me"})
    write_log(Path(sink.path), OLD, columns=[*ROWS, noted])
    lands_twice(sink)
    assert DeltaTable(sink.path).schema().fields[3].metadata["comment"] == "theirs"


def array_of(type_):
    return {"type": "array", "elementType": type_, "containsNull": True}


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("variant", "column more is variant"),
        (array_of("variant"), "column more is variant"),
        ("interval year to month", "column more is interval year to month"),
        ("interval day to second", "column more is interval day to second"),
        (array_of("void"), "column more is void in a list"),
        (struct(column("a", "void")), "column more is void in"),
        (struct(column("b"), column("a", struct(column("c", "void")))), "column more.a is void in"),
        ("geometry(OGC:CRS84)", "column more is geometry(OGC:CRS84)"),
        (array_of("string collate UNICODE"), "column more is string collate UNICODE"),
        ("void", None),
        (struct(column("a", "void"), column("b")), None),
        (array_of(struct(column("b"))), None),
    ],
)
def test_a_type_that_no_file_here_may_have_is_refused_by_its_name(sink, type_, said):
    write_log(Path(sink.path), with_features("variantType"), columns=[*ROWS, column("more", type_)])
    if said is None:
        lands_twice(sink)
    else:
        is_refused(sink, said)


def test_what_is_asked_in_many_places_is_named_at_once(sink):
    columns = [*ROWS, ASKING["delta.generationExpression"]]
    write_log(Path(sink.path), with_features("rowTracking", "domainMetadata"), {"delta.constraints.a": "b"}, columns)
    is_refused(sink, "rowTracking", "domainMetadata", "delta.constraints.a = b", "column total has delta.generationExp")


def test_a_table_that_began_to_ask_during_a_read_gets_no_rows(sink):
    Attempt(sink, hour(0), rows_of(0, 3)).land()
    attempt = Attempt(sink, hour(1), rows_of(3, 3)).write()
    DeltaTable(sink.path).alter.set_table_properties({"delta.constraints.a": "id > 0"}, raise_if_not_exists=False)
    with pytest.raises(SinkError, match=r"delta\.constraints\.a"):
        attempt.commit()
    attempt.writer.discard()
    assert list(windows(storage_of(sink))) == [hour(0)]


def test_a_full_refresh_of_a_table_that_asks_too_much_sets_nothing_aside(sink):
    Attempt(sink, hour(0), rows_of(0, 3)).land()
    asking = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    DeltaTable(sink.path).alter.set_table_properties(asking, raise_if_not_exists=False)
    again = TERMS.__class__(TERMS.mark.__class__("b" * 32, TERMS.mark.source, TERMS.mark.reader), set_aside=True)
    with pytest.raises(SinkError, match="symlinkFormatManifest"):
        Attempt(sink, hour(0), rows_of(0, 1), again).land()
    assert list(windows(storage_of(sink))) == [hour(0)]


def test_compaction_and_expiry_look_again_before_they_change_a_table(sink):
    for number in range(2):
        Attempt(sink, hour(number), rows_of(number * 4, 4)).land()
    table = DeltaWriter.compactable(sink, TERMS.mark)
    assert len(table.contents()) == 2
    DeltaTable(sink.path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(SinkError, match=r"delta\.appendOnly = true"):
        table.replace([])
    add_commit(sink, {"protocol": with_features("vacuumProtocolCheck")})
    with pytest.raises(SinkError, match=r"vacuumProtocolCheck.*Nothing is removed"):
        DeltaWriter.expire(sink, TERMS.mark, datetime.now(UTC) + timedelta(days=1))


def add_commit(sink: DeltaSink, *actions: dict) -> None:
    """Another engine's commit."""
    number = DeltaTable(sink.path).version() + 1
    path = Path(sink.path) / "_delta_log" / f"{number:020}.json"
    path.write_text("".join(json.dumps(one) + "\n" for one in actions))


def test_removed_files_stay_as_long_as_the_table_says(sink):
    for first in (0, 100):
        Attempt(sink, hour(0), rows_of(first, 3)).land()
    table = DeltaTable(sink.path)
    soon = datetime.now(UTC) + timedelta(minutes=1)
    for kept, said in (("interval 30 days", 0), ("interval 0 seconds", None)):
        table.alter.set_table_properties({"delta.deletedFileRetentionDuration": kept})
        if said is not None:
            assert len(DeltaWriter.expire(sink, TERMS.mark, soon, dry_run=True).files) == said
    add_commit(sink, _with_property(sink, "delta.deletedFileRetentionDuration", "interval 1 month"))
    with pytest.raises(SinkError, match="interval 1 month is no interval like"):
        DeltaWriter.expire(sink, TERMS.mark, soon)


def _with_property(sink: DeltaSink, name: str, value: str) -> dict:
    """The table's metadata with one property more."""
    metadata = next(
        one["metaData"] for actions in reversed(list(commits(storage_of(sink)))) for one in actions if "metaData" in one
    )
    return {"metaData": {**metadata, "configuration": {**metadata["configuration"], name: value}}}


@pytest.mark.parametrize(
    ("asked", "written"), [("snappy", "SNAPPY"), ("GZIP", "GZIP"), ("none", "UNCOMPRESSED"), ("brotli-9", "ZSTD")]
)
def test_files_are_compressed_as_the_table_says(sink, asked, written):
    write_log(Path(sink.path), OLD, {"delta.parquet.compression.codec": asked})
    Attempt(sink, hour(0), rows_of(0, 3)).land()
    assert codecs(sink) == {written}
    table = DeltaWriter.compactable(sink, TERMS.mark)
    assert compact(table, {hour(0): 3}, 2**20).windows == [hour(0)]
    assert codecs(sink) == {written}


def codecs(sink: DeltaSink) -> set[str]:
    files = [Path(sink.path) / unquote(path) for path in adds(storage_of(sink))]
    return {pq.read_metadata(file).row_group(0).column(0).compression for file in files}


def test_the_change_feed_has_what_a_replaced_window_lost_and_got(sink):
    write_log(Path(sink.path), {"minReaderVersion": 1, "minWriterVersion": 4}, {"delta.enableChangeDataFeed": "true"})
    lands_twice(sink)
    newest = DeltaTable(sink.path).version()
    feed = pa.table(DeltaTable(sink.path).load_cdf(starting_version=newest, ending_version=newest).read_all())
    found = sorted(zip(feed["_change_type"].to_pylist(), feed["id"].to_pylist(), strict=True))
    assert found == [*(("delete", one) for one in range(3)), *(("insert", one) for one in range(100, 103))]


def test_a_table_that_gets_named_features_keeps_those_that_its_version_implied(sink):
    write_log(Path(sink.path), {"minReaderVersion": 2, "minWriterVersion": 5})
    rows = rows_of(0, 3, pa.schema([*SCHEMA, ("local", pa.timestamp("us"))]))
    Attempt(DeltaSink(sink.path, widen=True), hour(0), rows).land()
    protocol = DeltaTable(sink.path).protocol()
    implied = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"}
    assert set(protocol.writer_features) == {*implied, "timestampNtz"}
    assert set(protocol.reader_features) == {"columnMapping", "timestampNtz"}


def test_fields_in_a_struct_that_grows_keep_their_metadata(sink):
    noted = column("s", struct(column("a", comment="theirs")), comment="the whole")
    write_log(Path(sink.path), OLD, columns=[column("id"), noted])
    more = pa.struct([("a", pa.int64()), ("b", pa.string())])
    rows = rows_of(0, 1, pa.schema([("id", pa.int64()), ("s", more)]))
    Attempt(DeltaSink(sink.path, widen=True), hour(0), rows).land()
    found = json.loads(DeltaTable(sink.path).schema().to_json())["fields"][1]
    assert found["metadata"] == {"comment": "the whole"}
    assert [one["metadata"] for one in found["type"]["fields"]] == [{"comment": "theirs"}, {}]
