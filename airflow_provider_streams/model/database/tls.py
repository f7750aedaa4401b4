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
from airflow_provider_streams.model.database.address import with_clear_options
from airflow_provider_streams.model.database.drivers import (
    DEMANDS_TLS,
    LIBPQ,
    MACHINE_PASSWORDS,
    OBEYS_SINCE,
    decides_tls,
    driver_of,
    has_own_password,
    stays_on_machine,
)

if TYPE_CHECKING:
    from sqlalchemy import URL

_LEADING: Final = {
    "PGHOSTADDR": "hostaddr",
    "PGSERVICE": "service",
    "PGHOST": "host",
    "PGPORT": "port",
    "PGUSER": "user",
}
"""Variables that say where a password goes, unless the address has this option."""
_CHECKING_MODES: Final = ("verify-ca", "verify-full")


def with_tls(url: URL, database: str) -> URL:
    """An address that demands TLS for its password, if it does not say how TLS is used.

    A Postgres address without a password uses the machine's (`PGPASSWORD`, `~/.pgpass`). There, `PGSSLMODE` counts as
    well.

    Args:
        url: of any driver.
        database: for errors.

    Raises:
        InvalidRequest: an option is not clear; the environment says where the password goes; a service of Postgres may
            say how TLS is used; or we do not know the driver's option that demands TLS, or it is too old for it.
    """
    driver = driver_of(url)
    if stays_on_machine(url, driver):
        return url
    url = with_clear_options(url, database)
    if driver in LIBPQ:
        _check_environment(url, database)
        _check_service(url, database)
    if decides_tls(url, driver) or not (has_own_password(url) or _machine_has_password(driver)):
        return url
    if driver not in DEMANDS_TLS:
        raise InvalidRequest(
            f"{database} has a password, and nothing says whether the driver of {url.drivername}:// demands TLS: add "
            "the driver's option for TLS to the address, or use postgresql+psycopg:// or mysql+pymysql://, which "
            "demand it by default"
        )
    _check_version(driver, database)
    return url.update_query_pairs([_demanded(url, driver)])


def _demanded(url: URL, driver: str) -> tuple[str, str]:
    """The option that demands TLS, and no less than the environment does: an option counts more than a variable."""
    name, value = DEMANDS_TLS[driver]
    if driver in LIBPQ:
        if os.environ.get("PGSSLROOTCERT") == "system" and not url.query.get("sslrootcert"):
            value = "verify-full"  # libpq rejects any other mode with the system's certificates
        elif (mode := os.environ.get("PGSSLMODE", "")) in _CHECKING_MODES:
            value = mode
    return name, value


def _check_version(driver: str, database: str) -> None:
    """Raise `InvalidRequest` if a driver is too old to demand TLS; one that is not installed fails later."""
    with suppress(importlib.metadata.PackageNotFoundError):
        found = importlib.metadata.version(driver)
        since = OBEYS_SINCE.get(driver, ())
        if tuple(map(int, re.findall(r"\d+", found)))[: len(since)] < since:
            raise InvalidRequest(
                f"{database} has a password, and {driver} {found} sends it to a server without TLS also where TLS is "
                f"demanded: install {driver}>={'.'.join(map(str, since))}"
            )


def _machine_has_password(driver: str) -> bool:
    """Whether this machine has a password for an address without one, and does not say how TLS is used."""
    if driver in LIBPQ and os.environ.get("PGSSLMODE"):
        return False
    if any(map(os.environ.get, MACHINE_PASSWORDS.get(driver, ()))):
        return True
    with suppress(RuntimeError):  # this user has no home
        return driver in LIBPQ and (Path.home() / ".pgpass").exists()
    return False


def _check_environment(url: URL, database: str) -> None:
    """Raise `InvalidRequest` if the environment says where the password of an address goes."""
    if not has_own_password(url):
        return
    written = {*_written(url)}
    for variable, option in _LEADING.items():
        if os.environ.get(variable) and option not in written:
            raise InvalidRequest(
                f"{database} has a password, and the environment variable {variable} would say where it goes: remove "
                f"the variable from driver and executors, or write its value into the address ({option})"
            )


def _check_service(url: URL, database: str) -> None:
    """Raise `InvalidRequest` if a service may hold a password, and alone says how TLS is used.

    A mode in the address counts more than the service's, so ours could be the weaker one.
    """
    by = "the option service" if url.query.get("service") else "the environment variable PGSERVICE"
    if (url.query.get("service") or os.environ.get("PGSERVICE")) and not decides_tls(url, "psycopg"):
        raise InvalidRequest(
            f"{database}: {by} names a service of Postgres, which may hold a password, and nothing says whether it "
            "travels with TLS: write sslmode (require, verify-full, ..) into the options of the address, or for the "
            "journal into its connection's extra. It counts more than the service's"
        )


def _written(url: URL) -> Iterator[str]:
    yield from (name for name, value in url.query.items() if value)
    yield from (name for name, value in (("host", url.host), ("port", url.port), ("user", url.username)) if value)
    if ":" in str(url.query.get("host", "")):  # host:port
        yield "port"
