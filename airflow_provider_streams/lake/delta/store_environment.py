"""What the environment of a process may not change of a connection to a store.

delta-rs takes each setting that it is not given from the environment. An option of ours wins over a variable. Some
settings have no value that means "none", so their variables are refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.storage import is_true

_S3_ADDRESSES = ("endpoint_url_s3", "endpoint_url", "endpoint")
_S3_TOKENS = ("session_token", "token")
_AZURE_ADDRESSES = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_AZURE_AUTHORITIES = ("AZURE_STORAGE_AUTHORITY_HOST", "AZURE_AUTHORITY_HOST")
"""Where an application gets its tokens."""
_AZURE_KEYS = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
"""delta-rs prefers them to all other credentials."""
_IS_CHECKED = "false"


def s3_options(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a store like S3, by delta-rs's names, that keep the environment away from a connection's.

    Args:
        root: the table's address, for errors.
        options: what the connection says. Without keys and address in it, the environment decides.

    Raises:
        InvalidRequest: the environment leads the connection's keys out of TLS, or gives them another key's token.
    """
    address, has_keys = options.get("AWS_ENDPOINT_URL", ""), "AWS_ACCESS_KEY_ID" in options
    if has_keys and not address:
        _refuse_plain(root, _named(_S3_ADDRESSES, _as_s3), "the extra endpoint_url of the connection (s3.endpoint)")
    if has_keys and "AWS_SESSION_TOKEN" not in options and (name := next(_named(_S3_TOKENS, _as_s3), "")):
        raise InvalidRequest(
            f"{root}: its connection has keys without a session token, and delta-rs would add the token in the "
            f"environment variable {name} to them: remove the variable from driver and executors, or put the token "
            "into the connection (aws_session_token), or leave the connection's keys out to use the machine's"
        )
    if not address and not has_keys:
        return {}
    is_signed_by_machine = not has_keys and not is_true(options.get("AWS_SKIP_SIGNATURE", ""))
    return {
        # at another address than Amazon's, delta-rs would look for neither files nor profiles with the machine's keys
        **({"AWS_FORCE_CREDENTIAL_LOAD": "true"} if is_signed_by_machine else {}),
        **({"AWS_ENDPOINT_URL_S3": address} if address else {}),  # a variable of this name would win over the other
        "AWS_ALLOW_HTTP": _is_plain(address),
        "AWS_ALLOW_INVALID_CERTIFICATES": _IS_CHECKED,
        "AWS_SKIP_SIGNATURE": options.get("AWS_SKIP_SIGNATURE", "false"),
    }


def azure_options(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """As `s3_options`, of an Azure account."""
    address = options.get("AZURE_STORAGE_ENDPOINT", "")
    has_key, has_application = "AZURE_STORAGE_ACCOUNT_KEY" in options, "AZURE_STORAGE_CLIENT_SECRET" in options
    has_credentials = has_key or has_application or "AZURE_STORAGE_SAS_TOKEN" in options
    if has_credentials and not address:
        _refuse_plain(root, _named(_AZURE_ADDRESSES), "adls.blob-storage-authority and adls.blob-storage-scheme")
    if has_application:
        _refuse_plain(root, _named(_AZURE_AUTHORITIES), "")
    if has_credentials and not has_key and (name := next(_named(_AZURE_KEYS), "")):
        raise InvalidRequest(
            f"{root}: its connection has credentials without a key, and delta-rs would use the key in the "
            f"environment variable {name} instead: remove the variable from driver and executors, or leave the "
            "connection's credentials out to use the machine's"
        )
    if not address and not has_credentials:
        return {}
    return {
        "AZURE_ALLOW_HTTP": _is_plain(address),
        "AZURE_ALLOW_INVALID_CERTIFICATES": _IS_CHECKED,
        "AZURE_SKIP_SIGNATURE": "false",
        "AZURE_STORAGE_USE_EMULATOR": "false",
    }


def _named(names: tuple[str, ...], spelled: Callable[[str], str] = str) -> Iterator[str]:
    """The variables of these names that have a value."""
    return (name for name, value in os.environ.items() if value and spelled(name) in names)


def _as_s3(name: str) -> str:
    """delta-rs knows the settings of S3 in small and capital letters, and without `AWS_`."""
    return name.lower().removeprefix("aws_")


def _refuse_plain(root: str, names: Iterator[str], place: str) -> None:
    for name in names:
        if not os.environ[name].lower().startswith("https://"):
            write_it = f"write the address into {place}, or " if place else ""
            raise InvalidRequest(
                f"{root}: the environment variable {name} would lead the connection's secrets to an address without "
                f"TLS: {write_it}remove the variable from driver and executors"
            )


def _is_plain(address: str) -> str:
    return str(address.lower().startswith("http://")).lower()
