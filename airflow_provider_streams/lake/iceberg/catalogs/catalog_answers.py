"""Where a catalog's answers may lead a client: not out of TLS, and no secret of the connection to another host.

A REST catalog configures its clients, and every catalog keeps properties of tables; `answered_properties` says which of
them count. Among those are addresses: its own, the one that gives tokens, the stores'. What the user wrote of them is
in the connection or pyiceberg's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_streams.errors import RedirectRefused
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.storage import is_true

_CATALOG = "catalog"
_TOKENS_AT = "oauth2-server-uri"
_FAMILIES = {"s3": ("s3.", "client."), "gcs": ("gcs.",), "adls": ("adls.",), "hf": ("hf.",)}
"""Whose secrets travel to a store, by the first word of its address's name."""
_OF_STORES = tuple(prefix for prefixes in _FAMILIES.values() for prefix in prefixes)
_ADDRESSES = {
    **dict.fromkeys(("uri", _TOKENS_AT, "s3.signer.uri"), _CATALOG),
    **dict.fromkeys(("s3.endpoint", "s3.proxy-uri"), "s3"),
    "gcs.service.host": "gcs",
    **dict.fromkeys(("adls.account-host", "adls.blob-storage-authority", "adls.dfs-storage-authority"), "adls"),
    "hf.endpoint": "hf",
}
"""Properties that say where a client calls, and whose secrets it sends there."""
_SCHEMES = ("adls.blob-storage-scheme", "adls.dfs-storage-scheme")
_PROPER = re.compile(r"(https?://)?(\.?\w[\w.-]*|\[[0-9a-f:.]+\])(:\d{1,5})?(/[!-\[\]-~]*)?", re.IGNORECASE | re.ASCII)
"""Addresses in which all clients see the same host: without user, backslash, blank or control character."""
NO_ADDRESS = "something that is no address"
CORRECT = "Correct it in the catalog: https://host:port/path, without user, blanks and backslashes."


class _Address(NamedTuple):
    name: str
    family: str
    host: str
    is_tls: bool
    shown: str
    is_proper: bool = True


def check_answer(written: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Check where a catalog leads a client.

    Args:
        written: the properties of the catalog as the user wrote them.
        told: the properties that now apply instead: the user's, the catalog's and the table's.

    Raises:
        RedirectRefused: secrets would travel without TLS, or the user's own ones to a host that the user did not write;
            or clients may read an address differently.
    """
    known = tuple(_addresses(written))
    for one in _addresses(told):
        if told[one.name] == written.get(one.name):
            continue
        if not one.is_proper:
            raise _refused(written, one, "an address that clients read differently", CORRECT)
        if _is_known(one, known):
            continue
        if not one.is_tls and _is_protected(one, written, told):
            raise _refused(written, one, "an address without TLS, where secrets would travel in clear")
        if _own_secrets(one, written, told):
            raise _refused(written, one, "another host, which would get the connection's secrets")


def _addresses(properties: Mapping[str, Any]) -> Iterator[_Address]:
    for name, family in _ADDRESSES.items():
        text = properties.get(name)
        if isinstance(text, str) and text and (name != _TOKENS_AT or properties.get("credential")):
            scheme, host, shown = _parts(text)
            is_proper = is_address(text, needs_scheme=family == _CATALOG)
            yield _Address(name, family, host, scheme == "https", shown if is_proper else NO_ADDRESS, is_proper)
    for name in _SCHEMES:
        scheme = str(properties.get(name) or "https").lower()
        if scheme != "https":
            yield _Address(name, "adls", "", is_tls=False, shown=f"{scheme}://")


def is_address(text: str, *, needs_scheme: bool) -> bool:
    """Whether all clients see the same host in what a server names as an address."""
    found = _PROPER.fullmatch(text)
    return found is not None and (found[1] is not None or not needs_scheme)


def _parts(text: str) -> tuple[str, str, str]:
    """The scheme and the host of an address as clients read it, and what errors show of it."""
    try:
        split = urlsplit(text if "://" in text else f"https://{text.removeprefix('.')}")
    except ValueError:
        return "", "", NO_ADDRESS
    return split.scheme, split.hostname or "", f"{split.scheme}://{split.netloc.rpartition('@')[2]}"


def _is_known(one: _Address, known: tuple[_Address, ...]) -> bool:
    """Whether the user wrote this host, and without TLS for the same secrets, if it is led to without."""
    return any(
        one.host == other.host and (one.is_tls or (one.family == other.family and not other.is_tls)) for other in known
    )


def _is_protected(one: _Address, written: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether the user expects TLS: the catalog has it, or the secrets are not those that it gave without."""
    if _parts(str(written.get("uri", "")))[0] != "http" or _own_secrets(one, written, told):
        return True
    is_of_machine = one.family != _CATALOG and not _secrets(one.family, told)
    return is_of_machine and not is_true(str(told.get("s3.anonymous", "")))


def _own_secrets(one: _Address, written: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether secrets that the user wrote would travel there."""
    return bool(_secrets(one.family, written) & _secrets(one.family, told))


def _secrets(family: str, properties: Mapping[str, Any]) -> set[str]:
    """The secrets of a store, or those of the catalog itself."""
    is_catalog = family == _CATALOG
    prefixes = _OF_STORES if is_catalog else _FAMILIES[family]
    mine = {name: one for name, one in properties.items() if name.startswith(prefixes) != is_catalog}
    objects = {str(mine["auth"])} if is_catalog and mine.get("auth") else set()  # which only files can describe
    return objects | set(secrets_of({name: one for name, one in mine.items() if isinstance(one, str)}))


def _refused(written: Mapping[str, Any], one: _Address, what: str, fix: str = "") -> RedirectRefused:
    uri = str(written.get("uri", ""))
    known = (
        f"If that is right, write {one.name} with this value where the catalog is described: in the extra of its "
        "connection, or in pyiceberg's configuration."
    )
    where = _parts(uri)[2] if uri else "the catalog"
    return RedirectRefused(where, one.shown, f"its answer sets {one.name} to {what}", fix or known)
