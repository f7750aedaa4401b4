"""How delta-rs reaches a table's folder, what its errors mean, and which folders may become tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from airflow_provider_streams.errors import InvalidRequest, SinkError, TableOwnedByOther
from airflow_provider_streams.lake.connections import properties_of
from airflow_provider_streams.lake.delta.store_environment import azure_options, s3_options
from airflow_provider_streams.lake.folder_overlap import check_outside, sign_around
from airflow_provider_streams.lake.storage import STORE_OPTIONS, Storage
from airflow_provider_streams.lake.storage_errors import plain
from airflow_provider_streams.model.sinks.sink import DeltaSink

_SECONDS = ("s3.connect-timeout", "s3.request-timeout")
"""Options that delta-rs takes with a unit."""
_AUTHORITY = "SSL_CERT_FILE"
LOG = "_delta_log"
_LOGGED = re.compile(r"\d{20}\..*(json|parquet)")
"""A commit in a log, or a checkpoint of many."""
_PANIC = "PanicException"
"""An unforeseen error in Rust, as in a forked process. It is no `Exception`."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def storage_of(sink: DeltaSink) -> Storage:
    """Where a table is, and how to reach it."""
    told = properties_of(sink.conn_id)
    return Storage(sink.location, {name: told[name] for name in told if name.startswith(("s3.", "client.", "adls."))})


def location_of(storage: Storage) -> str:
    """The path of a local folder, else the URL: in a URL, delta-rs would take escapes for names."""
    return storage.open()[1] if storage.is_local else storage.root


def object_store_options(storage: Storage) -> dict[str, str]:
    """How to reach a table's files, by delta-rs's names, with secrets.

    Raises:
        InvalidRequest: delta-rs has no such option, or the environment would change the connection's (see
            `store_environment`).
    """
    if asked := next((key for key in storage.options if key.endswith(".role-arn")), None):
        raise InvalidRequest(
            f"{storage.root}: a Delta table cannot be reached with {asked}: give keys with a session token, or none "
            "where the processes themselves have the role"
        )
    _check_authority(storage)
    options = {
        delta: f"{given}s" if name in _SECONDS else given
        for name, (_, delta) in STORE_OPTIONS.items()
        if delta and (given := storage.options.get(name))
    }
    if storage.root.startswith("s3:"):
        options |= s3_options(storage.root, options)
        options["aws_conditional_put"] = "etag"  # of two commits of one version, the first wins
    if storage.root.startswith("abfss:"):
        options |= _azure_account(storage)
        options |= azure_options(storage.root, options)
    return options


def _azure_account(storage: Storage) -> dict[str, str]:
    """The account that the address names, and its endpoint if that is not Azure's."""
    account = urlsplit(storage.root).netloc.rpartition("@")[2].partition(".")[0]
    if storage.options.get("adls.account-name", account) != account:
        raise InvalidRequest(f"{storage.root}: its account is {account}, and its connection names another one")
    options = {"AZURE_STORAGE_ACCOUNT_NAME": account}
    if authority := storage.options.get("adls.blob-storage-authority"):
        scheme = storage.options.get("adls.blob-storage-scheme", "https")
        # as Arrow reads it: accounts are subdomains of an authority with a leading dot, else folders of it
        host = f"{account}{authority}" if authority.startswith(".") else f"{authority}/{account}"
        options["AZURE_STORAGE_ENDPOINT"] = f"{scheme}://{host}"
    return options


def _check_authority(storage: Storage) -> None:
    """delta-rs takes an authority from its process's environment only."""
    authority = storage.options.get("s3.tls-ca-file")
    if authority and authority != os.environ.get(_AUTHORITY):
        raise InvalidRequest(
            f"{storage.root}: the log of a Delta table is reached with the authority that {_AUTHORITY} names: set it "
            f"to {authority} (s3.tls-ca-file) in the environment of driver and executors"
        )


@contextmanager
def errors_of(storage: Storage) -> Iterator[None]:
    """Raise errors of delta-rs and file systems as `TableUnavailable` if they may pass, else as `SinkError`."""
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
    """One line, without colours and Rust's backtrace."""
    text = _COLOUR.sub("", str(error)).partition("\n   0: ")[0]
    return plain(text.replace("↳", " ")).removeprefix("Kernel error -> ")


def check_free(storage: Storage) -> None:
    """Raise `TableOwnedByOther` if a new table's folder holds something, or is inside another table.

    Vacuum removes all in it that no log names.
    """
    with errors_of(storage):
        system, root = storage.open()
        around = sign_around(system, root)
        inside = _names_in(system, root)
        # in this order: another run that makes the table now writes the log first, and then the files
        is_logged = LOG in inside and any(map(_LOGGED.fullmatch, _names_in(system, f"{root}/{LOG}")))
    check_outside(storage.root, around)
    if is_logged or not (others := [name for name in inside if name != LOG]):
        return
    why = f"its {LOG} says nothing" if LOG in inside else "is no Delta table"
    raise TableOwnedByOther(
        storage.root,
        f"the folder holds {others[0]}, and {why}. A table has its folder for itself: move that away, or land in "
        "another folder",
    )


def _names_in(system: pafs.FileSystem, folder: str) -> list[str]:
    return sorted(one.base_name for one in system.get_file_info(pafs.FileSelector(folder, allow_not_found=True)))
