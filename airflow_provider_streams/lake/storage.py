"""Where a table's files are: a folder of some file system, reached with the properties of the table's connection."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import CredentialsExpired, InvalidRequest, SinkError, foreseen
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.storage_errors import failure_of, have_expired
from airflow_provider_streams.redaction import register_secret


@dataclass(frozen=True)
class Storage:
    """A folder.

    Args:
        root: `file:///lake/orders`, `s3://bucket/orders`, ..
        options: how to reach it, by the names of Iceberg's file IO (`s3.endpoint`, `s3.access-key-id`, ..); may hold
            secrets.
        is_vended: whether a catalog vended the credentials among them. They expire.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_vended: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is a path: only paths need folders to be made."""
        return self.root.startswith("file:")

    @foreseen()
    def open(self) -> tuple[pafs.FileSystem, str]:
        """The file system, and the folder's path in it. `InvalidRequest`: none takes this address and these options."""
        for secret in secrets_of(self.options):
            register_secret(secret)
        url = urlsplit(self.root)
        known = _SCHEMES.get(url.scheme)
        if known is None:
            raise InvalidRequest(f"no file system is known as {url.scheme}://; known: {', '.join(sorted(_SCHEMES))}")
        try:
            system = known(self.options, url.netloc)
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            raise InvalidRequest(f"{self.root} cannot be reached with what its connection says: {error}") from error
        return system, path_in(url.scheme, url.netloc, unquote(url.path)).rstrip("/")

    def make_folder(self, folder: str) -> None:
        """Make a folder below this one, if it is a path; raises `SinkError`."""
        if self.is_local:
            with self.errors():
                system, root = self.open()
                system.create_dir(f"{root}/{folder}", recursive=True)

    def failure(self, words: str, cause: BaseException) -> SinkError:
        """What a file system's error means: whether it may pass by itself, and if not, what helps."""
        if self.is_vended and have_expired(self.options):
            return CredentialsExpired(self.root, words)
        return failure_of(self.root, words, cause, uses_vended_credentials=self.is_vended)

    @contextmanager
    def errors(self, what: str = "the store fails") -> Iterator[None]:
        """Raise errors of the file system as `TableUnavailable` if they may pass, else as `SinkError`."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise self.failure(f"{what}: {error}", error) from error

    def to_json(self) -> str:
        """All of it with its secrets, so never show it."""
        return json.dumps({"root": self.root, "options": dict(self.options), "is_vended": self.is_vended})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The reverse of `to_json`."""
        return cls(**json.loads(text))


def _s3(options: Mapping[str, str], _host: str) -> pafs.FileSystem:
    given = _given(options, "client.", "s3.")
    if "region" not in given and "endpoint_override" in given:
        given["region"] = "us-east-1"  # of a store that is not Amazon's; looking a bucket's region up asks AWS
    # path-style by default, as stores that are not Amazon's want it
    if virtual := options.get("s3.force-virtual-addressing"):
        given["force_virtual_addressing"] = is_true(virtual)
    if is_true(options.get("s3.anonymous", "")):
        given["anonymous"] = True
    for name in ("connect_timeout", "request_timeout"):
        if name in given:
            given[name] = float(given[name])
    return pafs.S3FileSystem(**given)


def _gcs(options: Mapping[str, str], _host: str) -> pafs.FileSystem:
    given = _given(options, "gcs.")
    if "access_token" in given:
        expires = options.get("gcs.oauth2.token-expires-at")
        # Arrow needs the token's end; where it is not given, the store refuses the token in time
        end = datetime.fromtimestamp(int(expires) / 1000, UTC) if expires else datetime.now(UTC) + _NO_END
        given["credential_token_expiration"] = end
    if service := options.get("gcs.service.host"):
        url = urlsplit(service if "://" in service else f"https://{service}")  # catalogs may vend a host alone
        given |= {"scheme": url.scheme, "endpoint_override": url.netloc}
    if "access_token" in given:
        _check_no_emulator(has_address=bool(service))
    return pafs.GcsFileSystem(**given)


_NO_END = timedelta(days=7)
_EMULATORS = ("CLOUD_STORAGE_EMULATOR_ENDPOINT", "CLOUD_STORAGE_TESTBENCH_ENDPOINT")
"""Variables of Google's client that win over the address that it is given."""


def _check_no_emulator(*, has_address: bool) -> None:
    """Raise `InvalidRequest` if the environment leads a token out of TLS, or elsewhere than the connection says."""
    for name in _EMULATORS:
        address = os.environ.get(name)
        if address and (has_address or not address.lower().startswith("https://")):
            where = "elsewhere than to gcs.service.host" if has_address else "to an address without TLS"
            raise InvalidRequest(
                f"the environment variable {name} would lead the token of a bucket (gcs.oauth2.token) {where}: remove "
                "the variable from driver and executors, and write the address into gcs.service.host if it is meant"
            )


def _azure(options: Mapping[str, str], host: str) -> pafs.FileSystem:
    given = _given(options, "adls.")
    _, _, account = host.rpartition("@")
    if account and "account_name" not in given:
        given["account_name"] = account.partition(".")[0]
    for name in (account, given.get("account_name")):
        if token := options.get(f"adls.sas-token.{name}"):  # as catalogs vend them
            given["sas_token"] = token
    if token := given.get("sas_token"):
        given["sas_token"] = f"?{token.removeprefix('?')}"  # Arrow appends it to addresses as it is
    return pafs.AzureFileSystem(**given)


def _hdfs(options: Mapping[str, str], host: str) -> pafs.FileSystem:
    given = _given(options, "hdfs.")
    name, _, port = host.partition(":")
    return pafs.HadoopFileSystem(
        name or options.get("hdfs.host", "default"), int(port or options.get("hdfs.port", "0")), **given
    )


def _given(options: Mapping[str, str], *families: str) -> dict[str, Any]:
    """The options of some families by pyarrow's names."""
    known = ((key, arrow) for key, (arrow, _) in STORE_OPTIONS.items() if arrow and key.startswith(families))
    return {arrow: options[key] for key, arrow in known if options.get(key)}


def is_true(text: str) -> bool:
    """The truth value of a property."""
    return text.strip().lower() in ("1", "true", "yes", "on")


STORE_OPTIONS = {
    "client.access-key-id": ("access_key", "AWS_ACCESS_KEY_ID"),
    "client.secret-access-key": ("secret_key", "AWS_SECRET_ACCESS_KEY"),
    "client.session-token": ("session_token", "AWS_SESSION_TOKEN"),
    "client.region": ("region", "AWS_REGION"),
    "client.role-arn": ("role_arn", ""),
    "client.role-session-name": ("session_name", ""),
    "s3.endpoint": ("endpoint_override", "AWS_ENDPOINT_URL"),
    "s3.access-key-id": ("access_key", "AWS_ACCESS_KEY_ID"),
    "s3.secret-access-key": ("secret_key", "AWS_SECRET_ACCESS_KEY"),
    "s3.session-token": ("session_token", "AWS_SESSION_TOKEN"),
    "s3.region": ("region", "AWS_REGION"),
    "s3.role-arn": ("role_arn", ""),
    "s3.role-session-name": ("session_name", ""),
    "s3.force-virtual-addressing": ("", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
    "s3.anonymous": ("", "AWS_SKIP_SIGNATURE"),
    "s3.proxy-uri": ("proxy_options", "proxy_url"),
    "s3.connect-timeout": ("connect_timeout", "connect_timeout"),
    "s3.request-timeout": ("request_timeout", "timeout"),
    "s3.tls-ca-file": ("tls_ca_file_path", ""),  # the one name that is not Iceberg's: it has none
    "gcs.oauth2.token": ("access_token", ""),
    "gcs.default-bucket-location": ("default_bucket_location", ""),
    "adls.account-name": ("account_name", ""),
    "adls.account-key": ("account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
    "adls.sas-token": ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
    "adls.tenant-id": ("tenant_id", "AZURE_STORAGE_TENANT_ID"),
    "adls.client-id": ("client_id", "AZURE_STORAGE_CLIENT_ID"),
    "adls.client-secret": ("client_secret", "AZURE_STORAGE_CLIENT_SECRET"),
    "adls.blob-storage-authority": ("blob_storage_authority", ""),
    "adls.dfs-storage-authority": ("dfs_storage_authority", ""),
    "adls.blob-storage-scheme": ("blob_storage_scheme", ""),
    "adls.dfs-storage-scheme": ("dfs_storage_scheme", ""),
    "hdfs.user": ("user", ""),
    "hdfs.kerberos_ticket": ("kerb_ticket", ""),
}
"""Names of pyarrow and of delta-rs, by Iceberg's; empty: it has no such option. If two mean one, the later counts."""

BUCKET_SCHEMES = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss"))

_SCHEMES: dict[str, Callable[[Mapping[str, str], str], pafs.FileSystem]] = {
    "file": lambda _options, _host: pafs.LocalFileSystem(),
    **dict.fromkeys(("s3", "s3a", "s3n"), _s3),
    **dict.fromkeys(("gs", "gcs"), _gcs),
    **dict.fromkeys(("abfs", "abfss"), _azure),
    "hdfs": _hdfs,
}


_ONE_KIND = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LOCATION = re.compile(r"(?:([A-Za-z][\w+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)


def is_known(location: str) -> bool:
    """Whether there is a file system for an address as metadata write it."""
    return (_LOCATION.fullmatch(location)[1] or "file").lower() in _SCHEMES  # type: ignore[index]  # matches all texts


def plain_location(location: str) -> str:
    """One spelling for all that engines use: `file:/x` and `/x` are `file:///x`, `s3a://b/x` is `s3://b/x`."""
    scheme, host, path = _LOCATION.fullmatch(location).groups()  # type: ignore[union-attr]  # matches all texts
    if scheme in (None, "file"):
        return f"file://{path}"  # the host is no part of it
    return f"{_ONE_KIND.get(scheme, scheme)}://{host or ''}{path}"


def place_in(folder: str, location: str) -> str | None:
    """The path of a file below a folder, both as metadata write them; None: the file is elsewhere."""
    path, top = plain_location(location), f"{plain_location(folder)}/"
    return path.removeprefix(top) if path.startswith(top) else None


def path_in(scheme: str, netloc: str, path: str) -> str:
    """A folder as its file system calls it."""
    if scheme in ("file", "hdfs"):
        return path  # the host is no part of it
    if scheme in ("abfs", "abfss") and "@" in netloc:
        netloc = netloc.partition("@")[0]  # container@account.dfs.core.windows.net
    return f"{netloc}{path}"
