"""Whether a password travels to a SQL database with TLS: one rule for the journal and for catalogs in a database.

A driver asks a server for TLS, and by default goes on without it if the server has none. So we demand it for a
password, unless its address says how TLS is used.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from sqlalchemy import URL

_LIBPQ: Final = ("psycopg", "psycopg2", "psycopg2cffi", "psycopg_async")
"""Drivers of Postgres' own library: it takes what an address does not say from the environment."""
_DEMANDED: Final = {**dict.fromkeys(_LIBPQ, ("sslmode", "require")), "pymysql": ("ssl_check_hostname", "false")}
"""Per driver the option that demands TLS, and checks no certificate."""
_DEFAULT_DRIVERS: Final = {"postgresql": "psycopg"}
"""Of addresses that name none."""
_DECIDING: Final = {
    **dict.fromkeys(_LIBPQ, re.compile("^sslmode=|^sslrootcert=system$")),
    "pymysql": re.compile("^ssl_(?!key_password=)"),
}
"""Per driver the options (`name=value`) that decide whether TLS is used: beside any other the server decides."""
_ABOUT_TLS: Final = re.compile("^[^=]*(ssl|tls|encrypt)", re.IGNORECASE)
"""The same of a driver that we do not know."""
_OBEYS_SINCE: Final = {"pymysql": (1, 2)}
"""Before, the driver goes on without TLS also where it is demanded."""
_NOT_DISABLED: Final = {"ssl_disabled": ("", "0", "false", "no", "off")}
"""Values that a person means as no, and that pymysql takes for yes."""
_PASSWORDS: Final = ("password", "passwd", "passfile")
_OF_MACHINE: Final = ("PGPASSWORD", "PGPASSFILE")
_LEADING: Final = {
    "PGHOSTADDR": "hostaddr",
    "PGSERVICE": "service",
    "PGHOST": "host",
    "PGPORT": "port",
    "PGUSER": "user",
}
"""Variables that say where a password goes, unless the address has this option."""
_PATH_OR_MORE: Final = re.compile(r"[/?#]")


def unescaped(address: str) -> str:
    """What is wrong with an address whose password or another part is not percent-encoded; empty: nothing is seen.

    Such an address is read as another one: a piece of the password becomes the host, which errors show.
    """
    rest = address.partition("://")[2]
    authority = _PATH_OR_MORE.split(rest, maxsplit=1)[0]
    if not authority or ("@" not in rest.removeprefix(authority) and authority.count("@") <= 1):
        return ""
    return (
        "an '@' is not where a user ends and a host begins: percent-encode user, password, database and options (%40 "
        "for '@', %2F for '/', %3F for '?', %23 for '#', %3A for ':')"
    )


def with_tls(url: URL, database: str) -> URL:
    """An address that demands TLS for its password, if it does not say how TLS is used.

    A Postgres address without a password uses the machine's (`PGPASSWORD`, `~/.pgpass`). There, `PGSSLMODE` counts as
    well.

    Args:
        url: of any driver.
        database: for errors.

    Raises:
        InvalidRequest: the environment says where the password goes; or we do not know the driver's option that
            demands TLS; or the driver is too old for it.
    """
    driver = url.drivername.partition("+")[2] or _DEFAULT_DRIVERS.get(url.drivername, "")
    has_own = bool(url.password) or any(map(url.query.get, _PASSWORDS))
    if url.get_backend_name() == "sqlite" or "unix_socket" in url.query:
        return url
    if has_own and driver in _LIBPQ:
        _check_environment(url, database)
    if not (has_own or (driver in _LIBPQ and _machine_has_password() and not os.environ.get("PGSSLMODE"))):
        return url
    url = url.difference_update_query([name for name, value in url.query.items() if _is_not_said(name, value)])
    decides = _DECIDING.get(driver, _ABOUT_TLS)
    if any(decides.search(f"{name}={value}") for name, value in url.query.items()):
        return url
    if driver not in _DEMANDED:
        raise InvalidRequest(
            f"{database} has a password, and nothing says whether the driver of {url.drivername}:// demands TLS: add "
            "the driver's option for TLS to the address, or use postgresql+psycopg:// or mysql+pymysql://, which "
            "demand it by default"
        )
    _check_version(driver, database)
    return url.update_query_pairs([_DEMANDED[driver]])


def _check_version(driver: str, database: str) -> None:
    """Raise `InvalidRequest` if a driver is too old to demand TLS; one that is not installed fails later."""
    with suppress(importlib.metadata.PackageNotFoundError):
        found = importlib.metadata.version(driver)
        since = _OBEYS_SINCE.get(driver, ())
        if tuple(map(int, re.findall(r"\d+", found)))[: len(since)] < since:
            raise InvalidRequest(
                f"{database} has a password, and {driver} {found} sends it to a server without TLS also where TLS is "
                f"demanded: install {driver}>={'.'.join(map(str, since))}"
            )


def _is_not_said(name: str, value: object) -> bool:
    return bool(_ABOUT_TLS.search(name)) and str(value).lower() in _NOT_DISABLED.get(name, ("",))


def _machine_has_password() -> bool:
    if any(map(os.environ.get, _OF_MACHINE)):
        return True
    with suppress(RuntimeError):  # this user has no home
        return (Path.home() / ".pgpass").exists()
    return False


def _check_environment(url: URL, database: str) -> None:
    """Raise `InvalidRequest` if the environment says where the password of an address goes."""
    written = {*_written(url)}
    for variable, option in _LEADING.items():
        if os.environ.get(variable) and option not in written:
            raise InvalidRequest(
                f"{database} has a password, and the environment variable {variable} would say where it goes: remove "
                f"the variable from driver and executors, or write its value into the address ({option})"
            )


def _written(url: URL) -> Iterator[str]:
    yield from (name for name, value in url.query.items() if value)
    yield from (name for name, value in (("host", url.host), ("port", url.port), ("user", url.username)) if value)
    if ":" in str(url.query.get("host", "")):  # host:port
        yield "port"
