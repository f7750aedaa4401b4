from __future__ import annotations

import importlib.metadata
import os

import certifi
import pymysql
import pytest
from sqlalchemy import make_url

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.database.tls import with_tls

POSTGRES = "postgresql+psycopg://me:canary-4711@db:5432/lake"


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch, tmp_path):
    """Neither a variable nor a file of it says anything of Postgres."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [one for one in os.environ if one.startswith("PG")] + ["MYSQL_PWD"]:
        monkeypatch.delenv(name, raising=False)


def added(address: str) -> dict[str, object]:
    """The options that an address got."""
    url = make_url(address)
    safe = with_tls(url, "catalog 'lake'")
    assert safe.set(query={}) == url.set(query={})
    return {name: value for name, value in safe.query.items() if url.query.get(name) != value}


@pytest.mark.parametrize(
    ("address", "demanded"),
    [
        *((f"postgresql{driver}://me:secret@db/x", {"sslmode": "require"}) for driver in ("", "+psycopg", "+psycopg2")),
        ("postgresql+psycopg://db/x?user=me&password=secret", {"sslmode": "require"}),
        ("postgresql+psycopg://me@db/x?passfile=/run/pgpass", {"sslmode": "require"}),
        ("postgresql+psycopg://me:secret@127.0.0.1/x?connect_timeout=3", {"sslmode": "require"}),
        *(
            (f"{POSTGRES}?{option}", {"sslmode": "require"})
            for option in (
                "sslrootcert=/etc/ca.pem",
                "sslcert=/c.pem&sslkey=/k.pem",
                "sslcertmode=require",
                "sslnegotiation=direct",
                "ssl_min_protocol_version=TLSv1.3",
                "sslmode=",
            )
        ),
        ("mysql+pymysql://me:secret@db/x", {"ssl_check_hostname": "true"}),
        ("mysql+pymysql://me:secret@db/x?ssl_key_password=k", {"ssl_check_hostname": "true"}),
        ("mariadb+pymysql://me:secret@db/x?charset=utf8mb4", {"ssl_check_hostname": "true"}),
        *(
            (f"mysql+pymysql://me:secret@db/x?ssl_disabled={no}", {"ssl_check_hostname": "true"})
            for no in ("false", "OFF")
        ),
        ("mysql+pymysql://me:secret@db/x?unix_socket=", {"ssl_check_hostname": "true"}),
        *(
            (f"mysql+pymysql://me@db/x?{option}", {"ssl_check_hostname": "true"})
            for option in ("passwd=secret", "read_default_file=/run/my.cnf", "read_default_group=client")
        ),
    ],
)
def test_tls_is_demanded_for_a_password(address, demanded):
    assert added(address) == demanded


@pytest.mark.parametrize(
    "address",
    [
        *(f"{POSTGRES}?sslmode={mode}" for mode in ("disable", "prefer", "verify-full")),
        f"{POSTGRES}?sslrootcert=system",  # libpq checks the certificate then
        *(f"mysql+pymysql://me:secret@db/x?{option}" for option in ("ssl_disabled=true", "ssl_ca=/etc/ca.pem")),
        "mysql+mysqldb://me:secret@db/x?ssl_mode=PREFERRED",
        "mssql+pyodbc://me:secret@db/x?Encrypt=yes",
    ],
)
def test_what_an_address_says_of_tls_counts(address):
    assert added(address) == {}


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me@db/x",
        "mysql+pymysql://me:secret@/x?unix_socket=/run/mysqld.sock",
        "sqlite:////data/catalog.db",
        "sqlite+pysqlcipher://:secret@/catalog.db",
        "mssql+pyodbc://db/x",
        "mssql+pyodbc:///?odbc_connect=Server%3Ddb%3BTrusted_Connection%3Dyes",
        "mssql+pyodbc:///?odbc_connect=Server%3Ddb%3BUid%3Dme%3BPwd%3Dsecret%3BEncrypt%3Dno",  # the user's word
    ],
)
def test_nothing_is_demanded_where_no_password_travels(address):
    assert added(address) == {}


def test_a_driver_that_does_not_obey_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", {"pymysql": "1.1.3", "psycopg": "3.2"}.__getitem__)
    with pytest.raises(InvalidRequest, match=r"pymysql 1.1.3 .* without TLS .*install pymysql>=1.2"):
        added("mysql+pymysql://me:secret@db/x")
    assert added("mysql+pymysql://me:secret@db/x?ssl_disabled=true") == {}
    assert added(POSTGRES) == {"sslmode": "require"}


def test_a_pymysql_that_would_take_no_for_yes_is_told_nothing_of_it():
    url = with_tls(make_url("mysql+pymysql://me:secret@db/x?ssl_disabled=False"), "the journal")
    assert dict(url.query) == {"ssl_check_hostname": "true"}


@pytest.mark.parametrize(
    "scheme", ["mysql", "mysql+mysqlconnector", "postgresql+pg8000", "postgresql+asyncpg", "mssql+pyodbc", "unknown"]
)
def test_a_password_with_a_driver_whose_tls_is_not_known_is_refused(scheme):
    with pytest.raises(InvalidRequest, match=r"catalog 'lake' has a password, .*driver's option for TLS") as caught:
        added(f"{scheme}://me:canary-4711@db/x")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "mysql+mysqldb://me:canary-4711@db/x?unix_socket=/run/mysqld.sock",  # whose library calls the host
        "mysql+mysqldb://me@db/x?read_default_file=/run/my.cnf",
        "mysql+mysqlconnector://me@db/x?option_files=/run/my.cnf",
        "mysql+mysqlconnector://me@db/x?password1=canary-4711",
        "mysql+mysqlconnector://me:canary-4711@db/x?ssl_disabled=false",
        "mariadb+mariadbconnector://me@db/x?default_file=/run/my.cnf",
        "mssql+pyodbc:///?odbc_connect=Driver%3D%7BODBC+18%7D%3BServer%3Ddb%3BUid%3Dme%3BPwd%3Dcanary-4711",
        "mysql+pyodbc:///?ODBC_Connect=DRIVER%3Dx%3B+PASSWORD+%3D+%7Bcanary-4711%3Bssl%3D1%7D",
    ],
)
def test_a_file_or_another_option_with_a_password_counts_as_one(address):
    with pytest.raises(InvalidRequest, match=r"has a password, .*driver's option for TLS") as caught:
        added(address)
    assert "canary" not in str(caught.value)


def test_mysqls_library_takes_a_password_from_the_environment(monkeypatch):
    assert added("mysql+mysqldb://me@db/x") == {}
    monkeypatch.setenv("MYSQL_PWD", "secret")
    with pytest.raises(InvalidRequest, match="has a password"):
        added("mysql+mysqldb://me@db/x")
    assert added("mysql+pymysql://me@db/x") == {}


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_service_alone_does_not_say_how_a_password_travels(driver, by, monkeypatch):
    address = f"postgresql+{driver}://db/x?connect_timeout=3"
    if by == "option":
        address += "&service=lake"
    else:
        monkeypatch.setenv("PGSERVICE", "lake")
    monkeypatch.setenv("PGSSLMODE", "require")  # counts less than the service's
    with pytest.raises(InvalidRequest, match=r"'lake': the (option service|environment variable PGSERVICE) .*sslmode"):
        added(address)
    for mode in ("sslmode=verify-full", "sslmode=disable", "sslrootcert=system"):
        assert added(f"{address}&{mode}") == {}


def test_an_addresss_own_password_does_not_weaken_its_service():
    with pytest.raises(InvalidRequest, match="write sslmode") as caught:
        added(f"{POSTGRES}?service=lake")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("variable", ["PGPASSWORD", "PGPASSFILE", "file"])
def test_the_machines_password_for_postgres_needs_tls_as_well(variable, monkeypatch, tmp_path):
    if variable == "file":
        (tmp_path / ".pgpass").touch()
    else:
        monkeypatch.setenv(variable, "secret")
    assert added("postgresql+psycopg://me@db/x") == {"sslmode": "require"}
    assert added("mysql+pymysql://me@db/x") == {}
    monkeypatch.setenv("PGSSLMODE", "disable")  # by whom has set the password
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")
    assert added("postgresql+psycopg://me@db/x") == {}


@pytest.mark.parametrize(
    ("variable", "address", "written"),
    [
        ("PGHOSTADDR", POSTGRES, f"{POSTGRES}?hostaddr=127.0.0.1"),
        ("PGHOST", "postgresql+psycopg://me:canary-4711@/x", "postgresql+psycopg://me:canary-4711@/x?host=/run"),
        ("PGPORT", "postgresql+psycopg://me:canary-4711@db/x", POSTGRES),
        ("PGPORT", "postgresql://me:canary-4711@/x?host=one", "postgresql://me:canary-4711@/x?host=one:1"),
        ("PGUSER", "postgresql+psycopg://:canary-4711@db/x", POSTGRES),
    ],
)
def test_the_environment_leads_no_password_of_an_address_elsewhere(variable, address, written, monkeypatch):
    monkeypatch.setenv(variable, "other")
    for sslmode in ({}, {"sslmode": "disable"}):
        with pytest.raises(InvalidRequest, match=f"'lake' has a password, .*variable {variable} .*remove") as caught:
            with_tls(make_url(address).update_query_dict(sslmode), "catalog 'lake'")
        assert "canary" not in str(caught.value)
    assert added(written) == {"sslmode": "require"}
    with_tls(make_url("mysql+pymysql://me:secret@db/x"), "catalog 'lake'")


def test_a_service_of_the_environment_is_refused_for_an_addresss_own_password(monkeypatch):
    monkeypatch.setenv("PGSERVICE", "other")
    with pytest.raises(InvalidRequest, match=r"variable PGSERVICE .*remove"):
        added(f"{POSTGRES}?sslmode=require")
    assert added(f"{POSTGRES}?sslmode=require&service=lake") == {}


@pytest.mark.parametrize(
    ("mode", "demanded"),
    [
        *((weaker, "require") for weaker in ("", "disable", "prefer", "require", "VERIFY-FULL")),
        *((stronger, stronger) for stronger in ("verify-ca", "verify-full")),
    ],
)
def test_a_mode_of_the_environment_counts_for_an_addresss_own_password_if_it_demands_more(mode, demanded, monkeypatch):
    monkeypatch.setenv("PGSSLMODE", mode)
    assert added(POSTGRES) == {"sslmode": demanded}
    assert added(f"{POSTGRES}?sslmode=disable") == {}


def test_the_systems_certificates_need_the_mode_that_checks_all(monkeypatch):
    monkeypatch.setenv("PGSSLROOTCERT", "system")
    assert added(POSTGRES) == {"sslmode": "verify-full"}
    assert added(f"{POSTGRES}?sslrootcert=/etc/ca.pem") == {"sslmode": "require"}


def test_a_certificate_authority_of_a_file_of_mysqls_options_still_checks_the_host(tmp_path):
    file = tmp_path / "my.cnf"
    file.write_text(f"[client]\nssl-ca = {certifi.where()}\n")
    url = with_tls(make_url(f"mysql+pymysql://me:secret@db/x?read_default_file={file}"), "the journal")
    options = url.get_dialect()().create_connect_args(url)[1]
    assert pymysql.Connection(**options, defer_connect=True).ctx.check_hostname
