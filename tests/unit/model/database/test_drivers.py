from __future__ import annotations

import pytest
from sqlalchemy import make_url

from airflow_provider_streams.model.database.drivers import passwords_elsewhere


@pytest.mark.parametrize(
    ("address", "passwords"),
    [
        *((f"postgresql{driver}://db/x", ["canary-1"]) for driver in ("", "+psycopg", "+psycopg2")),
        ("mysql+mysqldb://db/x", ["canary-2"]),
        ("mariadb+mariadbconnector://db/x", ["canary-2"]),
        ("mysql+pymysql://db/x", []),
        ("mssql+pyodbc:///?odbc_connect=Server%3Ddb%3BUid%3Dme%3BPwd%3D%7Bcanary%7D%7D-%3B3%7D%3B", ["canary}-;3"]),
        ("sqlite:////data/x.db", []),
    ],
)
def test_a_driver_sends_the_passwords_of_its_own_variables_and_of_odbc(address, passwords, monkeypatch):
    for variable, value in (("PGPASSWORD", "canary-1"), ("MYSQL_PWD", "canary-2"), ("PGPASSFILE", "/run/pgpass")):
        monkeypatch.setenv(variable, value)
    assert [*passwords_elsewhere(make_url(address))] == passwords
    for variable in ("PGPASSWORD", "MYSQL_PWD"):
        monkeypatch.setenv(variable, "")
    assert [*passwords_elsewhere(make_url(address))] == [one for one in passwords if "odbc" in address]
