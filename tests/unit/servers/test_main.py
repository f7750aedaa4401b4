"""`python -m stream_servers`: which files it fetches, and where a shell finds a running server."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from pyiceberg.utils.config import Config

from stream_servers import SeaweedServer
from stream_servers import __main__ as program
from stream_servers.bundles import PRAVEGA, SERVERS


@pytest.mark.parametrize(("words", "bundles"), [(["fetch"], SERVERS), (["fetch", "pravega"], (PRAVEGA,))])
def test_only_the_named_servers_are_fetched(words, bundles, monkeypatch, tmp_path):
    fetched = []
    monkeypatch.setattr(program, "fetch_all", lambda given: [fetched.append(one) or tmp_path for one in given])
    program.main(words)
    assert fetched == list(bundles)


@pytest.mark.parametrize("words", [["fetch", "kafka"], ["pulsar", "pravega"]])
def test_other_names_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        program.main(words)
    assert "only fetch takes names, and knows pulsar, pravega" in capsys.readouterr().err


def test_a_shell_reads_the_addresses_while_the_server_runs(tmp_path):
    file = tmp_path / "server.env"
    server = SimpleNamespace(variables={"ADDRESS": "tcp://a b'c;d"})
    with program.environment_file(server, file):
        shown = subprocess.run(
            ["bash", "-c", f"source {file}; printenv ADDRESS"], capture_output=True, text=True, check=True
        )
        assert file.stat().st_mode & 0o777 == 0o600
    assert shown.stdout == "tcp://a b'c;d\n"
    assert list(tmp_path.iterdir()) == []


def test_pyiceberg_finds_the_catalog_by_the_variables(monkeypatch):
    server = SeaweedServer()
    server.port = dict.fromkeys(server.ports, 1)
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    assert Config().get_catalog_config("lake") == server.catalog_properties


@pytest.mark.parametrize("name", program.SERVERS)
def test_each_server_has_variables(name):
    server = program.SERVERS[name]()
    server.port = dict.fromkeys(server.ports, 1)
    assert server.variables
    assert all(server.variables.values())
