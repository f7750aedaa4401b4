"""Tables in the stores of Azure and Google, with the keys that Airflow's connections have."""

from __future__ import annotations

import json
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from airflow.sdk import Connection

from airflow_provider_streams import DeltaSink, IcebergSink
from airflow_provider_streams.connections.store_properties import azure_properties
from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.connections import given
from tests.integration.lake import iceberg_reading
from tests.integration.lake.kept_tables import KeptTable, delta_in, iceberg_of, now
from tests.integration.lake.landing import Attempt, hour, rows_of
from tests.integration.lake.other_stores import ACCOUNT, AzuriteServer, GcsEmulator

pytestmark = [pytest.mark.lake, pytest.mark.slow]


@pytest.fixture(scope="module")
def gcs():
    with GcsEmulator() as server:
        yield server


@pytest.fixture
def folder(azurite):
    return below(azurite)


def below(server: AzuriteServer | GcsEmulator) -> str:
    return f"{server.folder}/test-{secrets.token_hex(4)}"


def connection(azurite: AzuriteServer, login: str | None = None, password: str | None = None, **extra: str):
    told = json.dumps({**azurite.address, **extra})
    return Connection(conn_id="store", conn_type="wasb", login=login, password=password, extra=told)


@pytest.fixture(params=["delta in Azure", "iceberg in Azure", "iceberg in Google's"])
def table(request, tmp_path):
    if request.param.endswith("Azure"):
        azurite = request.getfixturevalue("azurite")
        folder, store = below(azurite), azure_properties(connection(azurite, ACCOUNT, azurite.key))
    else:
        gcs = request.getfixturevalue("gcs")
        folder, store = below(gcs), gcs.storage_options
    if request.param.startswith("delta"):
        with given("store", store):
            yield delta_in(f"{folder}/orders", "store")
        return
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": folder}
    with given("catalog", {**catalog, **store}):
        sink = IcebergSink("lake.orders", conn_id="catalog")
        yield replace(iceberg_of(sink), ids=lambda: iceberg_reading.ids(sink))


def test_windows_are_landed_replaced_and_emptied_as_another_reader_sees(table: KeptTable):
    for number, rows in [(0, 10), (1, 5), (2, 8), (0, 7), (2, 0)]:
        table.land(hour(number), number * 100, rows)
    full = {hour(0): list(range(7)), hour(1): list(range(100, 105))}
    assert {window: ids for window, ids in table.ids().items() if ids} == full
    assert table.windows() >= set(full)


def test_windows_that_land_at_once_all_land(table: KeptTable):
    table.land(hour(0), 0, 3)
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda number: table.land(hour(number), number * 100, 4), range(1, 7)))
    assert {window: ids[0] for window, ids in table.ids().items()} == {hour(n): n * 100 for n in range(7)}


def test_small_files_become_fewer_and_those_of_failed_attempts_go(table: KeptTable):
    table.land_in_pieces(hour(0), 0, 8, tasks=2)
    failed = table.attempt(hour(1), 100, 5, tasks=1)
    before, held = table.files(), table.ids()
    assert table.compact().files_after == 1
    table.expire(now())
    assert table.ids() == held
    assert len(table.files()) == 1
    assert len(before) == 2 + len(failed.files)


def refusal(sink: DeltaSink) -> SinkError:
    """Why a landing is refused for good. The emulator now and then answers with what is no HTTP: ask again."""
    for _ in range(5):
        with pytest.raises(SinkError) as raised:
            Attempt(sink, hour(1), rows_of(0, 5)).land()
        if not raised.value.retryable:
            return raised.value
    raise AssertionError(f"passed each time: {raised.value}")


def test_a_signature_is_enough_and_a_read_only_one_is_reported(azurite, folder):
    sink = DeltaSink(f"{folder}/orders", "store")
    signed = azure_properties(connection(azurite, sas_token=f"?{azurite.sas_token()}"))
    with given("store", signed):
        Attempt(sink, hour(0), rows_of(0, 5)).land()
        assert delta_in(sink.path, "store").ids() == {hour(0): list(range(5))}
    for token in (azurite.sas_token("rl"), azurite.sas_token(lasts=timedelta(hours=-1))):
        few = azure_properties(connection(azurite, sas_token=token))
        with given("store", few):
            refused = refusal(sink)
        assert re.search(r"40[13]", str(refused))
        assert few["adls.sas-token"].rpartition("sig=")[2] not in str(refused)


def test_a_wrong_key_a_wrong_account_and_a_wrong_container_are_reported(azurite, folder):
    wrong = AzuriteServer().key
    store = azure_properties(connection(azurite, ACCOUNT, wrong))
    with given("store", store), pytest.raises(SinkError, match="keys are right") as raised:
        Attempt(DeltaSink(f"{folder}/orders", "store"), hour(0), rows_of(0, 5)).land()
    assert wrong not in str(raised.value)
    store = azure_properties(connection(azurite, "other", azurite.key))
    with given("store", store), pytest.raises(InvalidRequest, match="account is shop"):
        Attempt(DeltaSink(f"{folder}/orders", "store"), hour(0), rows_of(0, 5)).land()
    with given("store", azure_properties(connection(azurite, ACCOUNT, azurite.key))):
        elsewhere = folder.replace("lake@", "sea@")
        with pytest.raises(SinkError, match="make it at the store"):
            Attempt(DeltaSink(f"{elsewhere}/orders", "store"), hour(0), rows_of(0, 5)).land()
