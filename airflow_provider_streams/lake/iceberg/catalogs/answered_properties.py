"""What a catalog's answers may set of its client: a list of names. All else is the user's alone.

pyiceberg takes any property from an answer. Some of them load code (`auth`, `py-io-impl`), authenticate (`credential`,
`rest.sigv4-enabled`, `s3.role-arn`), name files of this machine (`ssl`, `s3.tls-ca-file`), or hide snapshots
(`snapshot-loading-mode`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pyiceberg.table import TableProperties

from airflow_provider_streams.errors import SinkError

_PAGE_SIZE = "rest-page-size"
_OF_CATALOG = (
    *("uri", "oauth2-server-uri", "token", "warehouse", "prefix", "namespace-separator", _PAGE_SIZE),
    *("view-endpoints-supported", "scan-planning-mode"),
)
_OF_STORES = {
    "s3": (
        *("endpoint", "access-key-id", "secret-access-key", "session-token", "session-token-expires-at-ms", "region"),
        *("resolve-region", "path-style-access", "force-virtual-addressing", "remote-signing-enabled", "signer"),
        *("signer.uri", "signer.endpoint", "proxy-uri", "connect-timeout", "request-timeout"),
    ),
    "client": ("access-key-id", "secret-access-key", "session-token", "region"),
    "gcs": ("oauth2.token", "oauth2.token-expires-at", "project-id", "service.host", "default-bucket-location"),
    "adls": (
        *("account-name", "account-key", "account-host", "sas-token", "blob-storage-authority"),
        *("dfs-storage-authority", "blob-storage-scheme", "dfs-storage-scheme"),
    ),
    "hf": ("endpoint", "token"),
}
_NAMES = {*_OF_CATALOG, *(f"{family}.{name}" for family, names in _OF_STORES.items() for name in names)}
_PATTERN = re.compile(r"header\.(x-[\w-]+|polaris-realm)|adls\.sas-token(-expires-at-ms)?\.[\w.-]+", re.IGNORECASE)
"""Names of which a part is free: no header that authenticates, and none that HTTP itself reads."""

_SENT = re.compile(r"[!-~]+([ \t]+[!-~]+)*")
"""What the value of a header may be."""
_COUNT = re.compile("[1-9][0-9]{0,8}")
_TOKEN = re.compile("[!-~]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_LOCATES = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL
"""A table's property that names code. pyiceberg runs it at every write, and has no setting against it."""


def accepted(where: str, answered: Mapping[str, Any]) -> dict[str, str]:
    """Those that an answer may set, as texts. One that is empty sets nothing.

    Args:
        where: the catalog, for errors.
        answered: properties of the catalog's answers.

    Raises:
        SinkError: one is no text, or cannot be sent.
    """
    found = {}
    for name, value in answered.items():
        if value not in (None, "") and (name in _NAMES or _PATTERN.fullmatch(name)):
            found[name] = _text(where, name, value)
    check_sendable(where, found)
    return found


def _text(where: str, name: str, value: Any) -> str:
    if isinstance(value, Mapping | list):
        raise SinkError(where, f"its answer sets {name} to a structure, and not to a text: correct the catalog")
    text = value if isinstance(value, str) else json.dumps(value)
    if name == _PAGE_SIZE and not _COUNT.fullmatch(text):
        raise SinkError(where, f"its answer sets {name} to {text!r}, which is no number of names: correct the catalog")
    return text


def check_sendable(where: str, properties: Mapping[str, Any]) -> None:
    """Check that headers and credentials can be sent. The error shows none.

    Raises:
        SinkError: one holds a character that HTTP does not carry, or that no token has.
    """
    for name, value in properties.items():
        if not isinstance(value, str) or not value:
            continue
        if name == "token" and not _TOKEN.fullmatch(value):
            raise SinkError(
                where,
                "token holds a line break, a blank or another character that no token has: give the token alone, on "
                "one line",
            )
        if name == "credential" and _CONTROL.search(value):
            raise SinkError(where, "the client's id or secret (credential) holds a line break or a control character")
        if name.startswith("header.") and not _SENT.fullmatch(value):
            raise SinkError(where, f"{name} holds a line break or another character that no header can carry")


def check_loads_no_code(where: str, properties: Mapping[str, Any]) -> None:
    """Check a table's properties.

    Raises:
        SinkError: a write would load code that the table names.
    """
    if properties.get(_LOCATES):
        raise SinkError(
            where,
            f"the table's property {_LOCATES} names code, which pyiceberg would run at every write: remove the "
            f"property (ALTER TABLE .. UNSET TBLPROPERTIES ('{_LOCATES}')); write.data.path names another folder",
        )


def forget_code(properties: dict[str, str]) -> None:
    """Leave out what names code, of a table that a commit changed already: its next load is refused."""
    properties.pop(_LOCATES, None)
