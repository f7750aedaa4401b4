"""Files and variables that a connection may name: none, until the deployment says so."""

from __future__ import annotations

import asyncio
import json

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook

SECRET = "canary-2f6b01dd"


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "allowed" / "token"
    file.parent.mkdir()
    file.write_text(f"{SECRET}\n")
    return file


@pytest.fixture
def connect(monkeypatch):
    def set_extra(system="pulsar", **extra):
        scheme = {"pulsar": "pulsar", "pravega": "tcp"}[system]
        connection = {"conn_type": system, "host": f"{scheme}://h", "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{system.upper()}_DEFAULT", json.dumps(connection))

    return set_extra


def refused(hook=PulsarHook):
    with pytest.raises(InvalidRequest) as caught:
        hook().options()
    with pytest.raises(InvalidRequest) as awaited:
        asyncio.run(hook().aoptions())
    assert str(awaited.value) == str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("option", ["token_file", "tls_cert_file", "tls_key_file"])
def test_a_connection_names_no_file_by_default(connect, token_file, option):
    connect(**{option: str(token_file)})
    text = refused()
    assert f"connection pulsar_default, extra {option}" in text
    assert "AIRFLOW__STREAMS__CREDENTIAL_FOLDERS" in text
    assert str(token_file) not in text


def test_a_connection_names_no_variable_by_default(connect, monkeypatch):
    monkeypatch.setenv("OTHERS_SECRET", SECRET)
    connect(token_env="OTHERS_SECRET")
    assert "AIRFLOW__STREAMS__CREDENTIAL_VARIABLES" in refused()
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_VARIABLES", "OURS, OTHERS")
    assert "OTHERS_SECRET" not in refused()


def test_keycloaks_file_is_one_of_them(connect, token_file):
    connect("pravega", keycloak_file=str(token_file))
    assert "keycloak_file" in refused(PravegaHook)


def test_listed_folders_and_variables_are_read(connect, token_file, monkeypatch):
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", f"/elsewhere, {token_file.parent}/")
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_VARIABLES", "OTHERS, OUR_TOKEN")
    monkeypatch.setenv("OUR_TOKEN", SECRET)
    for extra in ({"token_file": str(token_file)}, {"token_env": "OUR_TOKEN"}):
        connect(**extra)
        assert PulsarHook().endpoint().token_value() == SECRET


@pytest.mark.parametrize(
    "path", ["{0}/../outside", "{0}/link", "{0}/loop", "{0}2/token", "allowed/token", "/proc/self/environ", "{0}\0"]
)
def test_no_way_leads_out_of_the_listed_folders(connect, token_file, monkeypatch, path):
    folder = token_file.parent
    monkeypatch.chdir(folder.parent)
    (folder.parent / "outside").write_text(SECRET)
    (folder.parent / f"{folder.name}2").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "loop").symlink_to(folder.parent / "loop")
    (folder.parent / "loop").symlink_to(folder.parent / "loop")
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", str(folder))
    connect(token_file=path.format(folder))
    assert "credential_folders" in refused()


def test_a_mounted_secret_of_kubernetes_is_read(connect, token_file, monkeypatch):
    folder = token_file.parent
    (folder / "..2026_01").mkdir()
    token_file.rename(folder / "..2026_01" / "token")
    (folder / "..data").symlink_to("..2026_01")
    token_file.symlink_to("..data/token")
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", str(folder))
    connect(token_file=str(token_file))
    assert PulsarHook().endpoint().token_value() == SECRET


@pytest.mark.parametrize("folder", ["/", "secrets", "//", "."])
def test_a_folder_must_be_one(connect, token_file, monkeypatch, folder):
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", folder)
    connect(token_file=str(token_file))
    assert "not the absolute path" in refused()


def test_arguments_and_the_environment_need_no_leave(connect, token_file, monkeypatch):
    connect()
    assert PulsarHook(options={"token_file": str(token_file)}).endpoint().token_value() == SECRET
    monkeypatch.setenv("STREAMS_PULSAR_TOKEN_FILE", str(token_file))
    assert PulsarHook().endpoint().token_value() == SECRET


@pytest.mark.parametrize("place", ["token_file", "token_env"])
def test_a_token_of_a_file_or_variable_is_masked_in_airflows_logs(place, token_file, monkeypatch):
    from airflow.sdk._shared.secrets_masker import redact

    monkeypatch.setenv("OUR_TOKEN", f"{SECRET}-env")
    token_file.write_text(f"{SECRET}-file")
    given = {"token_file": str(token_file)} if place == "token_file" else {"token_env": "OUR_TOKEN"}
    value = PulsarHook(options={"service_url": "pulsar://h", **given}).endpoint().token_value()
    assert value.startswith(SECRET)
    assert value not in redact(f"it is {value}")


def test_so_it_is_from_an_event_loop(token_file):
    from airflow.sdk._shared.secrets_masker import redact

    async def read():
        endpoint = PulsarHook(options={"service_url": "pulsar://h", "token_file": str(token_file)}).endpoint()
        value = endpoint.token_value()
        await asyncio.sleep(0)
        return value

    token_file.write_text(f"{SECRET}-in-a-loop")
    assert asyncio.run(read()) not in redact(f"it is {SECRET}-in-a-loop")
