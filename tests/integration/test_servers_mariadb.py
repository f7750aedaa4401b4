"""A real MariaDB: reachable with its password alone, on loopback alone, not run by root."""

import pwd
from pathlib import Path

import pymysql
import pytest
import sqlalchemy

from stream_servers import MariaDBServer, PackageMissing, mariadb
from tests.integration.listening import addresses_of_port

pytestmark = pytest.mark.postgres


def test_it_listens_on_loopback_for_its_account_and_root_does_not_run_it():
    with MariaDBServer() as server:
        owner = Path(f"/proc/{server.pid}").stat().st_uid
        assert owner != 0
        assert server.user is None or pwd.getpwuid(owner).pw_name == server.user
        assert addresses_of_port(server.port["sql"]) == ["127.0.0.1"]
        wrong = sqlalchemy.make_url(server.url).set(password="wrong")
        with pytest.raises(pymysql.OperationalError, match="Access denied"):
            pymysql.connect(host=wrong.host, port=wrong.port, user=wrong.username, password=wrong.password)


def test_without_mariadb_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(mariadb, "_SYSTEM_PROGRAMS", str(tmp_path))
    with pytest.raises(PackageMissing, match=r"MariaDB is needed here.*apt-get install mariadb-server-core"):
        mariadb.find_mariadb()
