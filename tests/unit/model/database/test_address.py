from __future__ import annotations

import pytest
from sqlalchemy import make_url

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.database.address import (
    errors_of_driver,
    unescaped,
    with_clear_options,
)

POSTGRES = "postgresql+psycopg://me:canary-4711@db:5432/lake"
MYSQL = "mysql+pymysql://me:canary-4711@db/x"


def cleared(address: str) -> dict[str, object]:
    return dict(with_clear_options(make_url(address), "catalog 'lake'").query)


@pytest.mark.parametrize(
    ("address", "options"),
    [
        (f"{POSTGRES}?sslmode=&connect_timeout=3", {"connect_timeout": "3"}),
        *((f"{POSTGRES}?sslmode={mode}", {"sslmode": mode}) for mode in ("disable", "verify-full")),
        (f"{POSTGRES}?host=one&host=two", {"host": ("one", "two")}),
        *((f"{MYSQL}?ssl_disabled={no}&charset=utf8", {"charset": "utf8"}) for no in ("", "0", "no", "False", "off")),
        *((f"{MYSQL}?ssl_disabled={yes}", {"ssl_disabled": yes}) for yes in ("1", "yes", "True", "on")),
        (f"{MYSQL}?ssl_check_hostname=false", {"ssl_check_hostname": "false"}),
        (
            "mssql+pyodbc://db/x?TrustServerCertificate=yes&driver=ODBC+18",
            {"TrustServerCertificate": "yes", "driver": "ODBC 18"},
        ),
    ],
)
def test_options_that_say_nothing_of_tls_are_left_out(address, options):
    assert cleared(address) == options


@pytest.mark.parametrize(
    ("address", "said"),
    [
        *(
            (f"{POSTGRES}?{name}=disable", "is no plain word")
            for name in ("sslmode%20", "sslmode%09", "%20sslmode", "connect_timeout%3D5%20sslmode", "sslmode%0A")
        ),
        *((f"{POSTGRES}?sslmode={mode}", "write one of disable, ") for mode in ("DISABLE", "%20disable%20", "False")),
        (f"{POSTGRES}?sslmode=disable&sslmode=require", "'sslmode' is given 2 times"),
        (f"{POSTGRES}?conninfo=sslmode%3Ddisable", "'conninfo' holds options of its own"),
        ("postgresql+psycopg2:///?dsn=host%3Ddb", "'dsn' holds options of its own"),
        *(
            (f"{MYSQL}?ssl_disabled={word}", "'ssl_disabled' is .*write true or false")
            for word in ("False%20", "f", "none", "never", "t")
        ),
        (f"{MYSQL}?ssl_disabled=false&ssl_disabled=false", "'ssl_disabled' is given 2 times"),
        (f"{MYSQL}?ssl_check_hostname=x", "write true or false"),
        (f"{MYSQL}?ssl_ca=/a&ssl_ca=/b", "'ssl_ca' is given 2 times"),
        ("mysql+mysqlconnector://db/x?ssl_disabled=never", "write true or false"),
        ("mssql+pyodbc://db/x?Encrypt=yes&Encrypt=no", "'Encrypt' is given 2 times"),
    ],
)
def test_an_option_that_drivers_may_read_otherwise_is_refused(address, said):
    with pytest.raises(InvalidRequest, match=f"catalog 'lake': the option .*{said}") as caught:
        cleared(address)
    assert "canary" not in str(caught.value)


def test_an_error_of_python_names_the_options_and_the_file_that_is_not_there(tmp_path):
    (tmp_path / "ca.pem").touch()
    url = make_url(f"{MYSQL}?ssl_ca={tmp_path}/other.pem&ssl_cert={tmp_path}/ca.pem")
    lacks_file = pytest.raises(InvalidRequest, match=r"ssl_ca, ssl_cert\).*no file ssl_ca=\S+/other\.pem$")
    with lacks_file, errors_of_driver(url, "the journal"):
        raise FileNotFoundError(2, "No such file or directory")
    unknown = pytest.raises(InvalidRequest, match=r": ssl_mode\): TypeError: what: correct or remove what this names")
    with unknown, errors_of_driver(make_url(f"{MYSQL}?ssl_mode=DISABLED"), "the journal"):
        raise TypeError("what")
    strange = pytest.raises(InvalidRequest, match=r"AttributeError: 'str' object has no attribute 'wrap_socket'")
    with strange, errors_of_driver(make_url(f"{MYSQL}?ssl=yes"), "the journal"):
        raise AttributeError("'str' object has no attribute 'wrap_socket'")


@pytest.mark.parametrize(
    "address",
    [
        *(f"postgresql+psycopg://me:p{mark}canary@db/x" for mark in "@/?#"),
        "postgresql+psycopg://me:p@x/canary@db/x",
        "postgresql+psycopg://m/e:canary@db/x",
        "postgresql+psycopg://me:p@x:canary@db:5432/x",
    ],
)
def test_an_address_with_letters_that_are_not_escaped_is_told_by_its_at_sign(address):
    assert "%40 for '@'" in unescaped(address)
    assert "canary" not in unescaped(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:p%40%2F%3F%23:[x]@db:5432/x?user=a%40b",
        "postgresql://db/x",
        "postgresql://me@[::1]:5432/x",
        "sqlite:////data/a@b/c@d.db",
        "sqlite:///file:a@b?mode=ro&uri=true",
        "",
        "no address",
    ],
)
def test_an_escaped_address_is_none(address):
    assert unescaped(address) == ""
