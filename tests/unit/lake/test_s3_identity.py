"""Who asks an S3 store: a connection's own keys count alone, and without them the machine's identity does."""

from __future__ import annotations

import pyarrow.fs as pafs
import pytest

from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO
from airflow_provider_streams.lake.storage import Storage
from tests.unit.lake.iceberg.rest_servers import serving
from tests.unit.lake.machine_identities import IDENTITIES, KEYS, Machine, be


def list_folder(options: dict[str, str]) -> None:
    system, root = Storage("s3://lake/orders", options).open()
    system.get_file_info(pafs.FileSelector(root))


def read_file(options: dict[str, str]) -> None:
    StoreFileIO(options).new_input("s3://lake/orders/metadata.json").open()


@pytest.mark.parametrize("ask", [list_folder, read_file])
@pytest.mark.parametrize("family", ["s3", "client"])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_no_identity_of_the_machine_is_used_with_a_connections_keys(ask, family, identity, tmp_path, monkeypatch):
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be(identity, monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "machine-token")
        keys = {name.replace("s3.", f"{family}."): value for name, value in KEYS.items()}
        with pytest.raises(OSError, match="AWS Error"):
            ask({**keys, "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert machine.asked == []
    assert store.asked
    assert all("Credential=own-key/" in one and "oken" not in one for one in store.asked)


@pytest.mark.parametrize("ask", [list_folder, read_file])
@pytest.mark.parametrize("identity", ["container", "file", "profile", "environment"])  # others block this process
def test_without_keys_the_machines_own_identity_reaches_a_connections_address(ask, identity, tmp_path, monkeypatch):
    with serving(Machine, None) as store, serving(Machine, None) as machine:
        be(identity, monkeypatch, tmp_path, f"http://127.0.0.1:{machine.server_port}")
        with pytest.raises(OSError, match="AWS Error"):
            ask({"s3.region": "us-east-1", "s3.endpoint": f"http://127.0.0.1:{store.server_port}"})
    assert store.asked
    assert all("Credential=machine-key/" in one for one in store.asked)
