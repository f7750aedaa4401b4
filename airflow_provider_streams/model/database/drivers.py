"""What options and variables of SQL drivers mean for a password: where it comes from, and whether TLS protects it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy import URL

LIBPQ: Final = ("psycopg", "psycopg2", "psycopg2cffi", "psycopg_async")
"""Drivers of Postgres' own library: it takes what an address does not say from the environment."""
MACHINE_PASSWORDS: Final = {
    **dict.fromkeys(LIBPQ, ("PGPASSWORD", "PGPASSFILE")),
    **dict.fromkeys(("mysqldb", "mariadbconnector"), ("MYSQL_PWD",)),
}
"""Per driver the variables by which an address without a password gets the machine's."""
_PASSWORD_FILE_VARIABLES: Final = ("PGPASSFILE",)
_HOLDS_PASSWORD: Final = re.compile(
    r"^(?!ssl).*(pass|pwd|secret)|^(read_)?default_(file|group)$|^option_files$", re.IGNORECASE
)
"""Names of options that are passwords, or files with passwords."""

DEMANDS_TLS: Final = {**dict.fromkeys(LIBPQ, ("sslmode", "require")), "pymysql": ("ssl_check_hostname", "true")}
"""Per driver the option that demands TLS.

Without a file of certificates, it checks none. With one (libpq's default file, `ssl-ca` in a file of MySQL's options),
it checks the server's, and MySQL's also the host.
"""
OBEYS_SINCE: Final = {"pymysql": (1, 2)}
"""Before, the driver goes on without TLS also where it is demanded."""
ABOUT_TLS: Final = re.compile("^[^=]*(ssl|tls|encrypt)", re.IGNORECASE)
"""Options (`name=value`) that may decide whether TLS is used."""
_DECIDING: Final = {
    **dict.fromkeys(LIBPQ, re.compile("^sslmode=|^sslrootcert=system$")),
    "pymysql": re.compile("^ssl_(?!key_password=)"),
}
"""Those that do. With any other of these drivers' options, the server decides."""

_ODBC: Final = "odbc_connect"
"""An option that is a connection string of its own: `Driver={..};Server=..;Uid=..;Pwd=..`."""
_ODBC_OPTION: Final = re.compile(r"(?P<name>[^;={}]+)=\s*(?P<value>\{(?:[^}]|\}\})*\}|[^;]*)")

_DEFAULT_DRIVERS: Final = {"postgresql": "psycopg"}
"""Of addresses that name none."""


def driver_of(url: URL) -> str:
    """The driver of an address; empty: it names none, and we know no default."""
    return url.drivername.partition("+")[2] or _DEFAULT_DRIVERS.get(url.drivername, "")


def decides_tls(url: URL, driver: str) -> bool:
    """Whether an address says how TLS is used."""
    decides = _DECIDING.get(driver, ABOUT_TLS)
    return any(decides.search(f"{name}={value}") for name, value in _options(url))


def has_own_password(url: URL) -> bool:
    """Whether an address has a password, or names a file that may have one."""
    return bool(url.password) or any(value and _HOLDS_PASSWORD.search(name) for name, value in _options(url))


def passwords_elsewhere(url: URL) -> Iterator[str]:
    """Passwords that the driver of an address may send, other than the address's own and its options'.

    They are in variables of the environment, or within a connection string of ODBC.
    """
    for variable in MACHINE_PASSWORDS.get(driver_of(url), ()):
        if variable not in _PASSWORD_FILE_VARIABLES and (password := os.environ.get(variable)):
            yield password
    yield from (value for name, value in _of_odbc(url) if value and _HOLDS_PASSWORD.search(name))


def _options(url: URL) -> Iterator[tuple[str, object]]:
    """The options of an address, with those in a connection string of ODBC."""
    yield from url.query.items()
    yield from _of_odbc(url)


def _of_odbc(url: URL) -> Iterator[tuple[str, str]]:
    given = next((value for name, value in url.query.items() if name.lower() == _ODBC), "")
    for text in (given,) if isinstance(given, str) else given:
        for found in _ODBC_OPTION.finditer(text):
            value = found["value"]
            yield found["name"].strip(), value[1:-1].replace("}}", "}") if value.startswith("{") else value.strip()


def stays_on_machine(url: URL, driver: str) -> bool:
    """Whether an address is a file, or a socket of this machine."""
    if url.get_backend_name() == "sqlite":
        return True
    # MySQL's own library takes the socket only for these hosts
    is_local = driver == "pymysql" or url.host in (None, "", "localhost")
    return is_local and driver not in LIBPQ and bool(url.query.get("unix_socket"))
