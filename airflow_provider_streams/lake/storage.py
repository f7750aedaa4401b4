"""Where a table's files are: a folder of some file system, reached with what the table's connection says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import CredentialsExpired, InvalidRequest, SinkError
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.store_failures import failure_of, have_expired
from airflow_provider_streams.redaction import conceal


@dataclass(frozen=True)
class Storage:
    """A folder.

    Args:
        root: `file:///lake/orders`, `s3://bucket/orders`, ..
        options: how to reach it, by the names of Iceberg's file IO (`s3.endpoint`, `s3.access-key-id`, ..); may hold
            secrets.
        lent: whether a catalog lent the credentials among them, for a while.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    lent: bool = False

    def open(self) -> tuple[pafs.FileSystem, str]:
        """The file system, and the folder's path in it.

        Raises:
            InvalidRequest: nobody knows this kind of file system, or the options are not what it takes.
        """
        for secret in secrets_of(self.options):
            conceal(secret)
        url = urlsplit(self.root)
        known = _SCHEMES.get(url.scheme)
        if known is None:
            raise InvalidRequest(f"no file system is known as {url.scheme}://; known: {', '.join(sorted(_SCHEMES))}")
        try:
            system = known(self.options, url.netloc)
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            raise InvalidRequest(f"{self.root} cannot be reached with what its connection says: {error}") from error
        return system, path_in(url.scheme, url.netloc, unquote(url.path)).rstrip("/")

    def failure(self, words: str, cause: BaseException) -> SinkError:
        """What a file system's error means: whether it may pass by itself, and if not, who can help."""
        if self.lent and have_expired(self.options):
            return CredentialsExpired(self.root, words)
        return failure_of(self.root, words, cause, is_lent=self.lent)

    def to_json(self) -> str:
        """All of it, secrets included: never to be shown."""
        return json.dumps({"root": self.root, "options": dict(self.options), "lent": self.lent})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The reverse of `to_json`."""
        return cls(**json.loads(text))


def _local(_options: Mapping[str, str], _host: str) -> pafs.FileSystem:
    return pafs.LocalFileSystem()


def _s3(options: Mapping[str, str], _host: str) -> pafs.FileSystem:
    given = _given(options, _S3_NAMES)
    if "region" not in given and "endpoint_override" in given:
        given["region"] = "us-east-1"  # of a store of one's own; asking for a bucket's region asks AWS
    # path-style, as stores of one's own want it, unless it is asked for otherwise
    if virtual := options.get("s3.force-virtual-addressing"):
        given["force_virtual_addressing"] = is_true(virtual)
    if is_true(options.get("s3.anonymous", "")):
        given["anonymous"] = True
    for name in ("connect_timeout", "request_timeout"):
        if name in given:
            given[name] = float(given[name])
    return pafs.S3FileSystem(**given)


def _gcs(options: Mapping[str, str], _host: str) -> pafs.FileSystem:
    given = _given(
        options, {"gcs.oauth2.token": "access_token", "gcs.default-bucket-location": "default_bucket_location"}
    )
    if "access_token" in given:
        expires = options.get("gcs.oauth2.token-expires-at")
        # Arrow wants to know the end of a token; if nobody says it, the store tells when it is over
        end = datetime.fromtimestamp(int(expires) / 1000, UTC) if expires else datetime.now(UTC) + _NO_END
        given["credential_token_expiration"] = end
    if service := options.get("gcs.service.host"):
        url = urlsplit(service)
        given |= {"scheme": url.scheme, "endpoint_override": url.netloc}
    return pafs.GcsFileSystem(**given)


_NO_END = timedelta(days=7)


def _azure(options: Mapping[str, str], host: str) -> pafs.FileSystem:
    given = _given(options, _AZURE_NAMES)
    _, _, account = host.rpartition("@")
    if account and "account_name" not in given:
        given["account_name"] = account.partition(".")[0]
    for name in (account, given.get("account_name")):
        if token := options.get(f"adls.sas-token.{name}"):  # as catalogs lend them
            given["sas_token"] = token
    if token := given.get("sas_token"):
        given["sas_token"] = f"?{token.removeprefix('?')}"  # Arrow puts it behind addresses as it is
    return pafs.AzureFileSystem(**given)


def _hdfs(options: Mapping[str, str], host: str) -> pafs.FileSystem:
    given = _given(options, {"hdfs.user": "user", "hdfs.kerberos_ticket": "kerb_ticket"})
    name, _, port = host.partition(":")
    return pafs.HadoopFileSystem(
        name or options.get("hdfs.host", "default"), int(port or options.get("hdfs.port", "0")), **given
    )


def _given(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """What options say, by pyarrow's names; of two for one thing, the later."""
    return {name: options[key] for key, name in names.items() if options.get(key)}


def is_true(text: str) -> bool:
    """What a property says that is one of two."""
    return text.strip().lower() in ("1", "true", "yes", "on")


_S3_NAMES = {
    "client.access-key-id": "access_key",
    "client.secret-access-key": "secret_key",
    "client.session-token": "session_token",
    "client.region": "region",
    "client.role-arn": "role_arn",
    "client.role-session-name": "session_name",
    "s3.endpoint": "endpoint_override",
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
    "s3.role-arn": "role_arn",
    "s3.role-session-name": "session_name",
    "s3.proxy-uri": "proxy_options",
    "s3.connect-timeout": "connect_timeout",
    "s3.request-timeout": "request_timeout",
    "s3.tls-ca-file": "tls_ca_file_path",  # the one name that is not Iceberg's: it has none
}
_AZURE_NAMES = {
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_token",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
    "adls.blob-storage-authority": "blob_storage_authority",
    "adls.dfs-storage-authority": "dfs_storage_authority",
    "adls.blob-storage-scheme": "blob_storage_scheme",
    "adls.dfs-storage-scheme": "dfs_storage_scheme",
}

BUCKET_SCHEMES = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss"))

_SCHEMES: dict[str, Callable[[Mapping[str, str], str], pafs.FileSystem]] = {
    "file": _local,
    **dict.fromkeys(("s3", "s3a", "s3n"), _s3),
    **dict.fromkeys(("gs", "gcs"), _gcs),
    **dict.fromkeys(("abfs", "abfss"), _azure),
    "hdfs": _hdfs,
}


_ONE_KIND = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LOCATION = re.compile(r"(?:([A-Za-z][\w+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)


def plain_location(location: str) -> str:
    """A place as all engines' ways to write it come to: `file:/x` and `/x` are `file:///x`, `s3a://b/x` is `s3://b/x`."""
    scheme, host, path = _LOCATION.fullmatch(location).groups()  # type: ignore[union-attr]  # matches all texts
    if scheme in (None, "file"):
        return f"file://{path}"  # the host is no part of it
    return f"{_ONE_KIND.get(scheme, scheme)}://{host or ''}{path}"


def place_in(folder: str, location: str) -> str | None:
    """The path of a file below a folder, both as metadata write them; None: it lies elsewhere."""
    path, top = plain_location(location), f"{plain_location(folder)}/"
    return path.removeprefix(top) if path.startswith(top) else None


def path_in(scheme: str, netloc: str, path: str) -> str:
    """A folder as its file system calls it."""
    if scheme in ("file", "hdfs"):
        return path  # the host is no part of it
    if scheme in ("abfs", "abfss") and "@" in netloc:
        netloc = netloc.partition("@")[0]  # container@account.dfs.core.windows.net
    return f"{netloc}{path}"
