"""A real Postgres: reachable with its password alone, on loopback alone, not run by root, and durable."""

import os
import pwd
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from stream_servers import PackageMissing, PostgresServer, postgres
from tests.integration.listening import addresses_of_port

pytestmark = pytest.mark.postgres


def test_the_url_is_one_sqlalchemy_takes(postgres_url):
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("select 1")).scalar() == 1
    engine.dispose()


def test_a_wrong_password_is_refused(postgres_url):
    plain = sqlalchemy.make_url(postgres_url).set(drivername="postgresql", password="wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(plain.render_as_string(hide_password=False))


def test_data_outlives_a_crash_and_root_does_not_run_it():
    with PostgresServer() as server:
        url = server.url.replace("+psycopg", "")
        owner = Path(f"/proc/{server.pid}").stat().st_uid
        assert owner != 0
        assert pwd.getpwuid(owner).pw_name == server.user or owner == os.geteuid()
        assert addresses_of_port(server.port["sql"]) == ["127.0.0.1"]
        with psycopg.connect(url) as connection:
            connection.execute("create table kept as select 42 as answer")
        server.kill()
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("select answer from kept").fetchone() == (42,)


def test_without_postgres_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "_PACKAGED", tmp_path)
    with pytest.raises(PackageMissing, match=r"Postgres is needed here.*apt-get install postgresql"):
        postgres.find_postgres("initdb")
