import subprocess
import sys

import pyarrow as pa
import pytest

from airflow_provider_streams import CustomSink
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.registry import FORMATS, table_state, writer_type, writes_files
from airflow_provider_streams.lake.writer import SinkWriter


@pytest.mark.parametrize("kind", FORMATS)
def test_a_class_does_what_its_row_declares(kind):
    writer, row = writer_type(kind), FORMATS[kind]

    def does(method: str) -> bool:
        return any(method in vars(one) for one in writer.__mro__[: writer.__mro__.index(SinkWriter)])

    assert writer.sink_type.kind == kind
    assert (does("compactable"), does("expire"), does("open_quarantine")) == (
        row.compacts,
        row.expires,
        row.keeps_undecodable,
    )
    assert writer.keeps_columns == (kind == "iceberg")
    assert does("check_rows") or not writer.keeps_columns


@pytest.mark.parametrize("name", ["own_frame_writer:JsonLines", "own_files_writer:ListedFiles"])
def test_a_class_of_ones_own_promises_nothing_that_it_does_not_override(name):
    sink = CustomSink(f"tests.spark.{name}", "/lake/orders")
    writer = writer_type(sink.kind)
    assert table_state(sink) == "unseen"
    assert writer.check_rows(sink, pa.schema([]), None) is None
    assert not writer.keeps_columns
    assert writer.sink_type is CustomSink
    assert writes_files(sink) == ("ListedFiles" in name)


def test_a_class_that_is_no_writer_is_refused():
    with pytest.raises(InvalidRequest, match="inherit from TableWriter or DataFrameSinkWriter"):
        writer_type("pathlib:Path")


def test_a_dag_asks_what_tables_can_do_and_loads_no_client():
    code = (
        "import sys\n"
        "from airflow_provider_streams import DeltaSink, IcebergSink\n"
        "from airflow_provider_streams.lake.registry import check_compaction\n"
        "check_compaction(DeltaSink('/lake/orders')), check_compaction(IcebergSink('lake.orders'))\n"
        "print({'pyarrow', 'numpy', 'pyspark', 'deltalake', 'pyiceberg'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
