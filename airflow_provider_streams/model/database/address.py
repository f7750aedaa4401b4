"""Addresses of SQL databases: what may not be written in one, and errors of drivers that cannot use one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.database.drivers import ABOUT_TLS, LIBPQ, driver_of

if TYPE_CHECKING:
    from sqlalchemy import URL

YES: Final = ("true", "1", "yes", "on")
NO: Final = ("false", "0", "no", "off")
SSLMODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
"""Of Postgres' own library, the weakest first."""
_FLAGS: Final = ("ssl_disabled", "ssl_check_hostname")
"""Options of MySQL's drivers that are yes or no. Some drivers take every text for yes."""
_PLAIN_WORD: Final = re.compile(r"[\w.-]+")
_WHOLE_ADDRESSES: Final = ("conninfo", "dsn")
"""Options of Postgres' drivers that hold others."""
_PATHS: Final = (
    "ssl_ca",
    "ssl_capath",
    "ssl_cert",
    "ssl_key",
    "read_default_file",
    "option_files",
    "default_file",
)
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


def with_clear_options(url: URL, database: str) -> URL:
    """An address without the options about TLS that are empty or say no, since drivers would take them for yes.

    Args:
        url: of any driver.
        database: for errors.

    Raises:
        InvalidRequest: drivers may read an option as another one, or as another value than a person does.
    """
    for name, value in url.query.items():
        if why := _why_unclear(name, value, driver_of(url)):
            raise InvalidRequest(f"{database}: the option {name!r} {why}")
    return url.difference_update_query([name for name, value in url.query.items() if _says_nothing(name, str(value))])


@contextmanager
def errors_of_driver(url: URL, database: str) -> Iterator[None]:
    """Errors of Python, not of a driver, that say that options of an address cannot be used.

    Raises:
        InvalidRequest: in place of such an error.
    """
    try:
        yield
    except (ConnectionError, TimeoutError):  # of the network
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OSError) as error:
        lacking = [f"{name}={file}" for name, file in _files(url) if not Path(file).expanduser().exists()]
        advice = f"there is no file {', '.join(lacking)}" if lacking else "correct or remove what this names"
        raise InvalidRequest(
            f"{database} cannot be opened as it is described (options of its address: "
            f"{', '.join(url.query) or 'none'}): {type(error).__name__}: {error}: {advice}"
        ) from error


def _why_unclear(name: str, value: str | tuple[str, ...], driver: str) -> str:
    """Why an option is rejected; empty: it is clear."""
    if not _PLAIN_WORD.fullmatch(name):
        return "is no plain word, and the driver may take it for another option: correct its name"
    if name in _WHOLE_ADDRESSES and driver in LIBPQ:
        return "holds options of its own: write each of them into the address"
    return _why_unclear_of_tls(name, value, driver) if value and ABOUT_TLS.search(name) else ""


def _why_unclear_of_tls(name: str, value: str | tuple[str, ...], driver: str) -> str:
    if not isinstance(value, str):
        return f"is given {len(value)} times: write it once"
    if name == "sslmode" and driver in LIBPQ and value not in SSLMODES:
        return f"is {value!r}: write one of {', '.join(SSLMODES)}"
    if name in _FLAGS and value.lower() not in YES + NO:
        return f"is {value!r}: write true or false"
    return ""


def _says_nothing(name: str, value: str) -> bool:
    return bool(ABOUT_TLS.search(name)) and (not value or (name == "ssl_disabled" and value.lower() in NO))


def _files(url: URL) -> Iterator[tuple[str, str]]:
    """The options that name a file, with its path."""
    for name in _PATHS:
        value = url.query.get(name, ())
        yield from ((name, file) for file in ((value,) if isinstance(value, str) else value))
