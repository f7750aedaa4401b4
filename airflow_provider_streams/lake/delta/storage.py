"""How delta-rs reaches a table's folder, what its errors mean, and what a folder must be to hold a table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from airflow_provider_streams.errors import ForeignTable, InvalidRequest, SinkError
from airflow_provider_streams.lake.folders import sign_around
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.store_failures import plain

_OPTIONS = {
    "client.access-key-id": "AWS_ACCESS_KEY_ID",
    "client.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "client.session-token": "AWS_SESSION_TOKEN",
    "client.region": "AWS_REGION",
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
    "s3.region": "AWS_REGION",
    "s3.force-virtual-addressing": "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "s3.anonymous": "AWS_SKIP_SIGNATURE",
    "s3.proxy-uri": "proxy_url",
    "adls.account-key": "AZURE_STORAGE_ACCOUNT_KEY",
    "adls.sas-token": "AZURE_STORAGE_SAS_TOKEN",
    "adls.tenant-id": "AZURE_STORAGE_TENANT_ID",
    "adls.client-id": "AZURE_STORAGE_CLIENT_ID",
    "adls.client-secret": "AZURE_STORAGE_CLIENT_SECRET",
}
"""Of two for one thing, the later."""
_SECONDS = {"s3.connect-timeout": "connect_timeout", "s3.request-timeout": "timeout"}
_ELSEWHERE = {
    "role-arn": "give keys with a session token, or none where the processes themselves have the role",
}
_AUTHORITY = "SSL_CERT_FILE"
_LOG = "_delta_log"
_LOGGED = re.compile(r"\d{20}\..*(json|parquet)")
"""A commit in a log, or a checkpoint of many."""
_PANIC = "PanicException"
"""How Rust's errors come through that nobody foresaw, as in a process that was forked: no `Exception`."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def location_of(storage: Storage) -> str:
    """A path, where there are paths: of a URL delta-rs would take the escapes for names."""
    return storage.open()[1] if storage.root.startswith("file:") else storage.root


def object_store_options(storage: Storage) -> dict[str, str]:
    """What reaches a table's files, by the names that delta-rs takes; secrets among them.

    Raises:
        InvalidRequest: something is asked for that delta-rs cannot be told.
    """
    for name, instead in _ELSEWHERE.items():
        if asked := next((key for key in storage.options if key.endswith(f".{name}")), None):
            raise InvalidRequest(f"{storage.root}: a Delta table cannot be reached with {asked}: {instead}")
    _check_authority(storage)
    options = {name: storage.options[key] for key, name in _OPTIONS.items() if storage.options.get(key)}
    options |= {name: f"{storage.options[key]}s" for key, name in _SECONDS.items() if storage.options.get(key)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    if storage.root.startswith("s3:"):
        options["aws_conditional_put"] = "etag"  # so that of two commits of one version the first is the one
    if storage.root.startswith("abfss:"):
        options |= _azure_account(storage)
    return options


def _azure_account(storage: Storage) -> dict[str, str]:
    """The account that the address names, and where it answers if not at Azure's own place."""
    account = urlsplit(storage.root).netloc.rpartition("@")[2].partition(".")[0]
    if storage.options.get("adls.account-name", account) != account:
        raise InvalidRequest(f"{storage.root}: its account is {account}, and that of its connection another one")
    options = {"AZURE_STORAGE_ACCOUNT_NAME": account}
    if authority := storage.options.get("adls.blob-storage-authority"):
        scheme = storage.options.get("adls.blob-storage-scheme", "https")
        # as Arrow reads it: with a point before it, accounts are names below it, and folders of it without
        host = f"{account}{authority}" if authority.startswith(".") else f"{authority}/{account}"
        options |= {"AZURE_STORAGE_ENDPOINT": f"{scheme}://{host}", "AZURE_ALLOW_HTTP": str(scheme == "http").lower()}
    return options


def _check_authority(storage: Storage) -> None:
    """delta-rs takes an authority from its process's environment only, from where all else here takes it, too."""
    authority = storage.options.get("s3.tls-ca-file")
    if authority and authority != os.environ.get(_AUTHORITY):
        raise InvalidRequest(
            f"{storage.root}: the log of a Delta table is reached with the authority that {_AUTHORITY} names: set it "
            f"to {authority} (s3.tls-ca-file) in the environment of driver and executors"
        )


@contextmanager
def errors_of(storage: Storage) -> Iterator[None]:
    """Every error of delta-rs and of file systems, as ours.

    Raises:
        TableUnavailable: a store fails, and may work again by itself.
        SinkError: anything else.
    """
    try:
        yield
    except (SinkError, InvalidRequest):
        raise
    except OSError as error:
        raise storage.failure(f"the store fails: {words_of(error)}", error) from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise SinkError(storage.root, f"the table cannot be used: {words_of(error)}") from error


def words_of(error: BaseException) -> str:
    """One line, without colours and what is for delta-rs's authors."""
    text = _COLOUR.sub("", str(error)).partition("\n   0: ")[0]
    return plain(text.replace("↳", " ")).removeprefix("Kernel error -> ")


def make_folder(storage: Storage, folder: str) -> None:
    """Only paths have folders.

    Raises:
        SinkError: it cannot be made.
    """
    if storage.root.startswith("file:"):
        with errors_of(storage):
            system, root = storage.open()
            system.create_dir(f"{root}/{folder}", recursive=True)


def check_mounted(storage: Storage) -> None:
    """Refuse to say that there is no table where nobody can tell.

    Raises:
        SinkError: what the folder should lie in is not here.
    """
    if storage.root.startswith("file:") and not (parent := Path(storage.open()[1]).parent).is_dir():
        raise SinkError(storage.root, f"there is no {parent} here: mount it; or make it, if it was deleted on purpose")


def check_free(storage: Storage) -> None:
    """A new table has its folder for itself: vacuum removes from it whatever no log names.

    Raises:
        ForeignTable: something is in it, or it is in another table.
        SinkError: the store fails.
    """
    with errors_of(storage):
        system, root = storage.open()
        around = sign_around(system, root)
        inside = _names_in(system, root)
        # in this order: whoever makes the table at this moment has the log first, and then what it names
        is_logged = _LOG in inside and any(map(_LOGGED.fullmatch, _names_in(system, f"{root}/{_LOG}")))
    if around is not None:
        raise ForeignTable(storage.root, f"it lies inside of another table, which has {around}: land beside it")
    if is_logged or not (others := [name for name in inside if name != _LOG]):
        return
    why = f"its {_LOG} says nothing" if _LOG in inside else "is no Delta table"
    raise ForeignTable(
        storage.root,
        f"the folder holds {others[0]}, and {why}. A table has its folder for itself: move that away, or land in "
        "another folder",
    )


def _names_in(system: pafs.FileSystem, folder: str) -> list[str]:
    return sorted(one.base_name for one in system.get_file_info(pafs.FileSelector(folder, allow_not_found=True)))
