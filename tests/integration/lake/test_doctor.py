"""Doctor and the stores of real tables: what it writes is gone afterwards, and a full disk is named."""

from __future__ import annotations

from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.doctor.sink import check_sink
from tests.integration.lake.killed_landing import land
from tests.integration.lake.landing import hour
from tests.integration.lake.test_full_disk import no_file_beyond, table
from tests.integration.lake.test_kills import OLD

__all__ = ["table"]


def checked(table, **more):
    found = check_sink(Setup("pulsar", "pulsar_default", sink=table.sink, **more), None)
    return {one.check: one for one in found}


def test_a_file_is_written_read_and_removed_and_the_table_stays_as_it_was(table):
    land(table.sink, hour(0), OLD)
    found = checked(table, write=True)
    assert found["write"].level == "ok", found["write"].says
    assert "holds 1 window" in found["table"].says
    assert table.ids() == OLD
    assert table.orphans() == set()


def test_without_leave_nothing_is_written(table):
    land(table.sink, hour(0), OLD)
    found = checked(table)
    assert found["write"].level == "skipped"
    assert found["table"].level == "ok"


def test_a_full_disk_is_named_before_a_window_meets_it(table):
    land(table.sink, hour(0), OLD)
    with no_file_beyond(16_384):
        found = checked(table, write=True)
    assert found["write"].level == "error"
    assert "full" in found["write"].says
    assert table.orphans() == set()
