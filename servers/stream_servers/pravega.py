"""Pravega standalone: ZooKeeper, controller and segment store in one JVM, with storage in memory."""

from __future__ import annotations

import base64
import hashlib
import secrets
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import httpx

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers import tokens
from stream_servers.base import Server
from stream_servers.bundles import PRAVEGA, PRAVEGA_VERSION
from stream_servers.cache import cached
from stream_servers.certificates import Certificates
from stream_servers.fetch import jars
from stream_servers.process import LOOPBACK

VERSION = PRAVEGA_VERSION
ADMIN = "admin"
# Fixed in the standalone server: what it signs delegation tokens with.
DELEGATION_KEY = b"secret"

_QUIET = """<configuration>
<statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
<appender name="out" class="ch.qos.logback.core.ConsoleAppender"><target>System.err</target>
<encoder><pattern>%d %p [%t] %c{0}: %m%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
"""


class PravegaServer(Server):
    """A Pravega server: `controller_uri` for clients, `rest_url` for the REST API.

    Storage is in memory: what was written ends with the process, also in `restart()` and `kill()`.

    Args:
        settings: System properties to set or override, by their names in Pravega's documentation.
        accounts: Turns authentication on. User names, each with its permissions as `{resource: "READ"}` or
            "READ_UPDATE"; every user gets a password (`password(user)`), and `ADMIN` may do everything.
        tls: Speak TLS alone, on every port; `certificates` are what clients need.
        heap: The most heap the JVM takes, as `-Xmx` writes it.
        jvm: The JVM's other flags; `java.QUICK_START` halves the CPU a start takes.
        cache_bytes: The cache that holds unflushed data. Writing more than it holds in one life breaks the
            server for good, so it is large here.
    """

    title: ClassVar[str] = f"Pravega {VERSION}"
    certificates: Certificates
    """From the start on, with `tls`."""
    ports: ClassVar[tuple[str, ...]] = ("zookeeper", "controller", "segment_store", "rest", "segment_store_rest")
    # It does not end by itself in any time worth waiting for, and has nothing on disk to save.
    grace_seconds: ClassVar[float] = 1.0

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        accounts: Mapping[str, Mapping[str, str]] | None = None,
        tls: bool = False,
        heap: str = "2g",
        jvm: Sequence[str] = (),
        cache_bytes: int = 1 << 30,
    ) -> None:
        super().__init__()
        self._settings = dict(settings or {})
        self.tls = tls
        self._heap, self._jvm, self._cache_bytes = heap, tuple(jvm), cache_bytes
        self._accounts = None if accounts is None else {ADMIN: {"prn::*": "READ_UPDATE"}, **accounts}
        self._passwords = {user: secrets.token_hex(12) for user in self._accounts or ()}

    @property
    def controller_uri(self) -> str:
        """Where clients connect: `tcp://127.0.0.1:<port>`, or `tls://..`."""
        return f"{'tls' if self.tls else 'tcp'}://{LOOPBACK}:{self.port['controller']}"

    @property
    def variables(self) -> Mapping[str, str]:
        """As Airflow connections of type `pravega` read them."""
        return {"PRAVEGA_CONTROLLER_URI": self.controller_uri}

    @property
    def rest_url(self) -> str:
        """The controller's REST API: `http://127.0.0.1:<port>`, or `https://..`."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port['rest']}"

    @property
    def classpath(self) -> list[str]:
        """For Java programs that use Pravega's own client (see `java.run_java`); they log warnings, to stderr."""
        # Ahead of the jars, of which one brings a configuration that fills a file in the current directory.
        logging = cached(f"pravega-logging-{hashlib.sha256(_QUIET.encode()).hexdigest()[:8]}", _write_logging)
        return [str(logging), *jars(PRAVEGA)]

    @property
    def auth(self) -> bool:
        """Whether the server asks who is there."""
        return self._accounts is not None

    def password(self, user: str = ADMIN) -> str:
        """The password of a user of `accounts`, or of `ADMIN`."""
        return self._passwords[user]

    def client_properties(self, user: str = ADMIN) -> dict[str, str]:
        """System properties that make Pravega's Java client log in as `user`; none when auth is off."""
        if not self.auth:
            return {}
        credentials = base64.b64encode(f"{user}:{self.password(user)}".encode()).decode()
        names = {"method": "Basic", "token": credentials, "loadDynamic": "false"}
        return {f"pravega.client.auth.{name}": value for name, value in names.items()}

    def delegation_token(self, subject: str, resources: Mapping[str, str], valid_seconds: float = 600) -> str:
        """A token as the controller hands out for segment stores: `resources` map a resource to READ or READ_UPDATE."""
        claims = {"sub": subject, "aud": "segmentstore", **resources}
        return tokens.sign(claims, DELEGATION_KEY, algorithm="HS512", valid_seconds=valid_seconds)

    # The REST API, as far as tests prepare a server with it.

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Call `/v1/<path>` as administrator; returns the answer's JSON, or None for an empty one.

        Raises:
            HTTPStatusError: The controller refused; the message holds its reason.
        """
        login = (ADMIN, self.password()) if self.auth else None
        answer = self._http.request(method, f"{self.rest_url}/v1/{path}", json=body, auth=login)
        if answer.is_error:
            message = f"{method} {path}: {answer.status_code} {answer.text[:500]}"
            raise httpx.HTTPStatusError(message, request=answer.request, response=answer)
        return answer.json() if answer.content else None

    def create_scope(self, scope: str) -> None:
        """Create a scope."""
        self.admin("POST", "scopes", {"scopeName": scope})

    def create_stream(self, scope: str, stream: str, segments: int = 1) -> str:
        """Create a stream of so many segments that never scales by itself; returns `scope/stream`."""
        scaling = {"type": "FIXED_NUM_SEGMENTS", "minSegments": segments}
        self.admin("POST", f"scopes/{scope}/streams", {"streamName": stream, "scalingPolicy": scaling})
        return f"{scope}/{stream}"

    # How it runs.

    def prepare(self) -> None:
        """Write the files the server insists on, and the accounts."""
        (self.home / "config").mkdir()
        (self.home / "config" / "standalone-config.properties").touch()
        accounts = self.home / "accounts"
        accounts.touch(mode=0o600)
        accounts.write_text(
            "".join(
                accounts_line(user, self._passwords[user], permissions)
                for user, permissions in (self._accounts or {}).items()
            )
        )
        if self.tls:
            self.certificates = Certificates.make(self.home / "tls", client=ADMIN)
            self._http = httpx.Client(
                trust_env=False, timeout=30, verify=ssl.create_default_context(cafile=self.certificates.authority)
            )
        properties = self.home / "server.properties"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._secret_properties().items()))

    def command(self) -> Sequence[str]:
        """The JVM with the standalone main class."""
        memory = [f"-Xmx{self._heap}", "-XX:MaxDirectMemorySize=2g", *self._jvm]
        properties = [f"-D{name}={value}" for name, value in {**self._properties(), **self._settings}.items()]
        return [
            str(find_java().program),
            *memory,
            *properties,
            "-cp",
            ":".join(self.classpath),
            "io.pravega.local.LocalPravegaEmulator",
        ]

    def is_ready(self) -> bool:
        """The REST server answers, and the controller lists its own scope."""
        try:
            scopes = self.admin("GET", "scopes").get("scopes", [])  # at first it answers without them
        except httpx.HTTPStatusError:
            return False
        return "_system" in {scope["scopeName"] for scope in scopes}

    def _properties(self) -> dict[str, str]:
        return {
            "java.io.tmpdir": str(self.scratch),
            "singlenode.configurationFile": str(self.home / "server.properties"),
            "singlenode.zk.port": str(self.port["zookeeper"]),
            "singlenode.controller.rpc.port": str(self.port["controller"]),
            "singlenode.segmentStore.port": str(self.port["segment_store"]),
            "singlenode.controller.rest.port": str(self.port["rest"]),
            "pravegaservice.rest.listener.port": str(self.port["segment_store_rest"]),
            "singlenode.admin.gateway.enable": "false",
            "pravegaservice.service.listener.host.nameOrIp": LOOPBACK,
            "pravegaservice.service.published.host.nameOrIp": LOOPBACK,
            "pravegaservice.cache.size.max": str(self._cache_bytes),
            # The default layout may keep a whole core busy from the start until its metadata is next written: an empty
            # removal is an append of no bytes, and flushing that does not end (TableBasedMetadataStore.writeAll,
            # WriterTableProcessor.flushOnce; Pravega 0.13).
            "pravegaservice.storage.layout": "ROLLING_STORAGE",
            "controller.watermarking.frequency.seconds": "2",
        }

    def _secret_properties(self) -> dict[str, str]:
        if not self.auth:
            return self._tls_properties()
        return {
            **self._tls_properties(),
            "singlenode.security.auth.enable": "true",
            "singlenode.security.auth.credentials.username": ADMIN,
            "singlenode.security.auth.credentials.pwd": self.password(),
            "singlenode.security.auth.pwdAuthHandler.accountsDb.location": str(self.home / "accounts"),
        }

    def _tls_properties(self) -> dict[str, str]:
        if not self.tls:
            return {}
        files = self.certificates
        return {
            "singlenode.security.tls.enable": "true",
            "singlenode.security.tls.certificate.location": str(files.server.certificate),
            "singlenode.security.tls.privateKey.location": str(files.server.key),
            "singlenode.security.tls.trustStore.location": str(files.truststore),
            "singlenode.security.tls.keyStore.location": str(files.keystore),
            "singlenode.security.tls.keyStore.pwd.location": str(files.store_password),
        }


def _write_logging(into: Path) -> None:
    (into / "logback.xml").write_text(_QUIET)


def accounts_line(user: str, password: str, permissions: Mapping[str, str]) -> str:
    """One user of an accounts file; the hash is the one Pravega's own password tool makes (PBKDF2, 5000 rounds)."""
    salt = secrets.token_bytes(32)
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 5000, 64)
    hashed = f"5000:{salt.hex()}:{digest.hex()}".encode().hex()
    acl = "".join(f"{resource},{permission};" for resource, permission in permissions.items())
    return f"{user}:{hashed}:{acl}\n"
