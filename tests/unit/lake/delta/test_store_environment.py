"""The environment changes nothing of a connection to a store; a listener records what reaches it."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

import deltalake
import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.delta.storage import object_store_options
from airflow_provider_streams.lake.storage import Storage
from stream_servers.certificates import Certificates
from tests.unit.lake.iceberg.rest_servers import serving
from tests.unit.lake.machine_identities import IDENTITIES, Machine, be

S3 = "s3://lake/orders"
KEYS = {"s3.access-key-id": "own-key", "s3.secret-access-key": "own-secret", "s3.region": "us-east-1"}
AZURE = "abfss://lake@shop.dfs.core.windows.net/orders"
KEY = {"adls.account-key": "a2V5"}
SAS = {"adls.sas-token": "sv=1&sig=own"}
APPLICATION = {"adls.client-id": "app", "adls.client-secret": "own-secret", "adls.tenant-id": "tenant"}


@pytest.mark.parametrize(
    ("root", "told", "variable"),
    [
        *((S3, KEYS, f"AWS_ENDPOINT{name}") for name in ("", "_URL", "_URL_S3")),
        *((S3, KEYS, name) for name in ("ENDPOINT", "ENDPOINT_URL", "aws_endpoint_url")),
        *((AZURE, told, "AZURE_STORAGE_ENDPOINT") for told in (KEY, SAS, APPLICATION)),
        (AZURE, SAS, "AZURE_ENDPOINT"),
        *((AZURE, APPLICATION, name) for name in ("AZURE_AUTHORITY_HOST", "AZURE_STORAGE_AUTHORITY_HOST")),
    ],
)
def test_an_address_without_tls_in_the_environment_gets_no_secret_of_a_connection(root, told, variable, monkeypatch):
    for address in ("http://127.0.0.1:1", "127.0.0.1:1"):
        monkeypatch.setenv(variable, address)
        with pytest.raises(
            InvalidRequest, match=f"variable {variable} .* without TLS: .*remove the variable"
        ) as caught:
            object_store_options(Storage(root, told))
        assert "own" not in str(caught.value)
    monkeypatch.setenv(variable, "https://store")
    assert (
        object_store_options(Storage(root, told))["AZURE_ALLOW_HTTP" if root == AZURE else "AWS_ALLOW_HTTP"] == "false"
    )


@pytest.mark.parametrize(("root", "told"), [(S3, {"s3.region": "eu-west-1"}), (AZURE, {})])
def test_a_connection_without_secrets_and_address_leaves_them_to_the_environment(root, told, monkeypatch):
    for variable in ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    for variable in ("AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.setenv(variable, "machine")
    assert not [name for name in object_store_options(Storage(root, told)) if "HTTP" in name or "ENDPOINT" in name]


@pytest.mark.parametrize("variable", ["AWS_SESSION_TOKEN", "AWS_TOKEN", "SESSION_TOKEN", "aws_session_token"])
def test_a_connections_keys_get_no_token_of_the_machine(variable, monkeypatch):
    monkeypatch.setenv(variable, "machine")
    with pytest.raises(InvalidRequest, match=f"variable {variable} .*aws_session_token"):
        object_store_options(Storage(S3, KEYS))
    own = object_store_options(Storage(S3, {**KEYS, "s3.session-token": "own"}))
    assert own["AWS_SESSION_TOKEN"] == "own"


@pytest.mark.parametrize("told", [SAS, APPLICATION])
@pytest.mark.parametrize("name", ["ACCOUNT", "ACCESS", "MASTER"])
def test_no_key_of_the_machine_replaces_a_connections_credentials(told, name, monkeypatch):
    monkeypatch.setenv(f"AZURE_STORAGE_{name}_KEY", "bWFjaGluZQ==")
    with pytest.raises(InvalidRequest, match=f"variable AZURE_STORAGE_{name}_KEY instead: remove"):
        object_store_options(Storage(AZURE, told))
    assert object_store_options(Storage(AZURE, KEY))["AZURE_STORAGE_ACCOUNT_KEY"] == "a2V5"


class Recording(BaseHTTPRequestHandler):
    """Refuses all, and records the headers."""

    def do_GET(self):
        self.server.asked.append(f"{self.path} {self.headers}")
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing."""


def ask(root: str, told: dict[str, str]) -> None:
    options = {**object_store_options(Storage(root, told)), "max_retries": "0"}
    with pytest.raises(OSError, match="error"):
        deltalake.DeltaTable(root, storage_options=options)


def azure_at(address: str) -> dict[str, str]:
    return {"adls.blob-storage-authority": address.partition("://")[2], "adls.blob-storage-scheme": "http"}


@pytest.mark.parametrize(
    ("root", "told", "at", "own"),
    [
        (S3, KEYS, lambda address: {"s3.endpoint": address}, "Credential=own-key/"),
        (AZURE, SAS, azure_at, "sig=own"),
        (AZURE, KEY, azure_at, "SharedKey shop:"),
    ],
)
def test_a_connections_address_and_credentials_are_used_whatever_the_environment_says(root, told, at, own, monkeypatch):
    with serving(Recording, None) as ours, serving(Recording, None) as other:
        elsewhere = f"http://127.0.0.1:{other.server_port}"
        for variable in (
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AZURE_STORAGE_ENDPOINT",
            "AZURITE_BLOB_STORAGE_URL",
        ):
            monkeypatch.setenv(variable, elsewhere)
        for variable in ("AWS_SKIP_SIGNATURE", "AZURE_SKIP_SIGNATURE", "AZURE_STORAGE_USE_EMULATOR"):
            monkeypatch.setenv(variable, "true")
        ask(root, {**told, **at(f"http://127.0.0.1:{ours.server_port}")})
    assert other.asked == []
    assert ours.asked
    assert all(own in one for one in ours.asked)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_no_identity_of_the_machine_is_used_with_a_connections_keys(identity, tmp_path, monkeypatch):
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be(identity, monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        ask(S3, {**KEYS, "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert machine.asked == []
    assert store.asked
    assert all("Credential=own-key/" in one and "oken" not in one for one in store.asked)


@pytest.mark.parametrize("identity", ["container", "virtual machine", "file", "profile", "environment"])
def test_without_keys_the_machines_own_identity_reaches_a_connections_address(identity, tmp_path, monkeypatch):
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be(identity, monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        ask(S3, {"s3.region": "us-east-1", "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert store.asked
    assert all("Credential=machine-key/" in one for one in store.asked)


def test_a_web_identity_is_exchanged_for_keys(tmp_path, monkeypatch):
    """The listener gives none, so the store is not asked."""
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be("web identity", monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        ask(S3, {"s3.region": "us-east-1", "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert [one.split(" ")[0] for one in machine.asked][:1] == ["/"]
    assert store.asked == []


def test_an_anonymous_connection_asks_for_no_identity(tmp_path, monkeypatch):
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be("container", monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        ask(S3, {"s3.anonymous": "true", "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert machine.asked == []
    assert store.asked
    assert all("Credential" not in one for one in store.asked)


def test_a_connections_address_with_tls_is_checked_whatever_the_environment_says(tmp_path, monkeypatch):
    certificates = Certificates.make(tmp_path / "tls", client="me")
    for name in ("AWS_ALLOW_HTTP", "AWS_ALLOW_INVALID_CERTIFICATES"):
        monkeypatch.setenv(name, "true")
    with serving(Recording, certificates) as unknown:
        ask(S3, {**KEYS, "s3.endpoint": f"https://127.0.0.1:{unknown.server_port}"})
    assert unknown.asked == []
