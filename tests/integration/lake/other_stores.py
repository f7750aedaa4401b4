"""What stands for the stores of Azure and Google on this machine: Azurite from npm, gcp-storage-emulator from PyPI."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from typing import ClassVar
from urllib.parse import urlencode

import pyarrow.fs as pafs
import pytest

from airflow_provider_streams.lake.storage import Storage
from stream_servers.base import Server
from stream_servers.cache import cached
from stream_servers.process import LOOPBACK

VERSION = "3.37.0"
ACCOUNT = "shop"
CONTAINER = "lake"
HOST = f"{ACCOUNT}.dfs.core.windows.net"


class AzuriteServer(Server):
    """Azure's blob store with one account and one container, and `key` for all of it."""

    title: ClassVar[str] = "Azurite"
    ports: ClassVar[tuple[str, ...]] = ("blob",)
    ready_seconds: ClassVar[float] = 60.0

    def __init__(self) -> None:
        super().__init__()
        self.key = base64.b64encode(token_bytes(32)).decode()

    @property
    def folder(self) -> str:
        """The container, as a table's address has it."""
        return f"abfss://{CONTAINER}@{HOST}"

    @property
    def url(self) -> str:
        """Of the account: `http://127.0.0.1:<port>/shop`."""
        return f"http://{LOOPBACK}:{self.port['blob']}/{ACCOUNT}"

    @property
    def address(self) -> dict[str, str]:
        """Where it answers, by the names of Iceberg's file IO."""
        authority = f"{LOOPBACK}:{self.port['blob']}"
        parts = {f"adls.{part}-storage-authority": authority for part in ("blob", "dfs")}
        return parts | {f"adls.{part}-storage-scheme": "http" for part in ("blob", "dfs")}

    @property
    def storage_options(self) -> dict[str, str]:
        """The same with the key."""
        return {**self.address, "adls.account-name": ACCOUNT, "adls.account-key": self.key}

    def sas_token(self, allowed: str = "rwdlac", lasts: timedelta = timedelta(hours=1)) -> str:
        """What the owner of the key can give to others: an account's SAS, as Azure's documentation defines it."""
        version, until = "2020-12-06", (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
        signed = [ACCOUNT, allowed, "b", "sco", "", until, "", "http", version, "", ""]
        digest = hmac.digest(base64.b64decode(self.key), "\n".join(signed).encode(), hashlib.sha256)
        named = {"sv": version, "ss": "b", "srt": "sco", "sp": allowed, "se": until, "spr": "http"}
        return urlencode({**named, "sig": base64.b64encode(digest).decode()})

    def prepare(self) -> None:
        """Fetch it, once."""
        self._program = cached(f"azurite-{VERSION}", _install) / "node_modules" / ".bin" / "azurite-blob"

    def environment(self) -> Mapping[str, str]:
        """The account is in the environment, for arguments are public."""
        return {**super().environment(), "AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.key}"}

    def command(self) -> Sequence[str]:
        """The blob store alone, without telemetry."""
        flags = ("--silent", "--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence")
        return [str(self._program), "--blobPort", str(self.port["blob"]), *flags]

    def is_ready(self) -> bool:
        """It has the container."""
        if self._http.get(self.url).status_code >= 500:
            return False
        system, _ = Storage(f"{self.folder}/x", self.storage_options).open()
        system.create_dir(CONTAINER)
        return bool(system.get_file_info([CONTAINER])[0].type == pafs.FileType.Directory)


def _install(into: Path) -> None:
    if not (npm := shutil.which("npm")):
        pytest.skip("Azurite comes by npm, which is not here")
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(into), f"azurite@{VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm could not fetch Azurite: {error}")


class GcsEmulator(Server):
    """Google's store with one bucket, in memory; it takes any token."""

    title: ClassVar[str] = "gcp-storage-emulator"
    ports: ClassVar[tuple[str, ...]] = ("http",)
    ready_seconds: ClassVar[float] = 60.0

    @property
    def folder(self) -> str:
        """The bucket."""
        return f"gs://{CONTAINER}"

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{LOOPBACK}:{self.port['http']}"

    @property
    def storage_options(self) -> dict[str, str]:
        """How to reach it, by the names of Iceberg's file IO."""
        return {"gcs.service.host": self.url, "gcs.oauth2.token": "any"}

    def prepare(self) -> None:
        """It needs nothing."""

    def command(self) -> Sequence[str]:
        """The program that pip installed for this Python."""
        program = str(Path(sysconfig.get_path("scripts")) / "gcp-storage-emulator")
        where = ("--host", LOOPBACK, "--port", str(self.port["http"]))
        return [program, "start", *where, "--default-bucket", CONTAINER, "--in-memory", "--quiet"]

    def is_ready(self) -> bool:
        """It has the bucket."""
        return bool(self._http.get(f"{self.url}/storage/v1/b/{CONTAINER}").is_success)
