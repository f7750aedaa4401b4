"""Apache Pulsar standalone: broker, bookie and metadata in one JVM."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import httpx

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers import tokens
from stream_servers.base import Server
from stream_servers.bundles import PULSAR, PULSAR_VERSION
from stream_servers.certificates import Certificates
from stream_servers.fetch import fetch
from stream_servers.process import LOOPBACK, free_ports

VERSION = PULSAR_VERSION
ADMIN_ROLE = "admin"
INTERCEPTORS = (
    "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor,"
    "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
)
_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"

_REGISTRATION_LOST = "Lock on resource /ledgers/available/"
_FEW = 10
"""Losses while a server starts; a restless bookie has thousands, a sound one none."""

_SETTINGS = {
    # Topics exist because someone made them, and stay: reading must neither create nor delete any.
    "allowAutoTopicCreation": "false",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "forceDeleteNamespaceAllowed": "true",
    "forceDeleteTenantAllowed": "true",
    # Nothing is trimmed until a test asks for it, and then soon.
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "retentionCheckIntervalInSeconds": "1",
    "ttlDurationDefaultInSeconds": "0",
}


class PulsarServer(Server):
    """A Pulsar broker: `service_url` for clients, `admin_url` for the REST API.

    Defaults differ from Pulsar's where tests want it: topics are never created or deleted by themselves, and
    retention is infinite until `set_retention`.

    Args:
        settings: Lines of `standalone.conf` to override, by their names there.
        ledger_entries: Close a ledger after so many entries, so that a small topic has many ledgers.
        transactions: Run the transaction coordinator.
        interceptors: Stamp entries with the broker's time and an index, and show both to clients.
        token_auth: Authentication and authorization by token; `token(role)` makes tokens, `ADMIN_ROLE` may do
            everything, others what `grant` allows.
        token_key: What signs tokens; a fresh one unless several brokers share it.
        tls: Also listen with TLS, on ports of its own; `certificates` are what clients need. With `token_auth`, the
            client's certificate is the administrator's.
        heap: The most heap the JVM takes, as `-Xmx` writes it.
        jvm: The JVM's other flags; `java.QUICK_START` halves the CPU a start takes.
    """

    title: ClassVar[str] = f"Pulsar {VERSION}"
    address: str = LOOPBACK
    """What it calls itself."""
    certificates: Certificates
    """From the start on, with `tls`."""
    ports: ClassVar[tuple[str, ...]] = ("broker", "web", "bookie")

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        ledger_entries: int | None = None,
        transactions: bool = False,
        interceptors: bool = False,
        token_auth: bool = False,
        token_key: bytes | None = None,
        tls: bool = False,
        heap: str = "1g",
        jvm: Sequence[str] = ("-XX:+UseG1GC",),
    ) -> None:
        super().__init__()
        self.token_auth, self._tls = token_auth, tls
        if tls:
            self.port |= dict(zip(("broker_tls", "web_tls"), free_ports(2), strict=True))
        self._heap, self._jvm = heap, tuple(jvm)
        self._key = token_key or secrets.token_bytes(32)
        self._settings = {
            **_SETTINGS,
            **(_ledgers(ledger_entries) if ledger_entries else {}),
            **({"transactionCoordinatorEnabled": "true"} if transactions else {}),
            **(_interceptors() if interceptors else {}),
            **(self._token_settings() if token_auth else {}),
            **(settings or {}),
        }

    @property
    def service_url(self) -> str:
        """Where clients connect: `pulsar://127.0.0.1:<port>`."""
        return f"pulsar://{self.address}:{self.port['broker']}"

    @property
    def admin_url(self) -> str:
        """The REST API: `http://127.0.0.1:<port>`."""
        return f"http://{self.address}:{self.port['web']}"

    @property
    def variables(self) -> Mapping[str, str]:
        """As Airflow connections of type `pulsar` read them."""
        return {"PULSAR_SERVICE_URL": self.service_url, "PULSAR_ADMIN_URL": self.admin_url}

    @property
    def service_url_tls(self) -> str:
        """Where clients connect with TLS."""
        return f"pulsar+ssl://{LOOPBACK}:{self.port['broker_tls']}"

    @property
    def admin_url_tls(self) -> str:
        """The REST API with TLS."""
        return f"https://{LOOPBACK}:{self.port['web_tls']}"

    @property
    def distribution(self) -> Path:
        """Pulsar as unpacked: `bin/pulsar-perf`, `bin/pulsar-admin`, ..."""
        return fetch(PULSAR) / f"apache-pulsar-{VERSION}"

    @property
    def classpath(self) -> list[str]:
        """For Java programs that use Pulsar's own client (see `java.run_java`)."""
        return [f"{self.distribution}/lib/*"]

    def token(self, role: str = ADMIN_ROLE, valid_seconds: float | None = None) -> str:
        """A token for `role`, signed with this server's key; without an end unless `valid_seconds` is given."""
        return tokens.sign({"sub": role}, self._key, valid_seconds=valid_seconds)

    def login(self) -> dict[str, str]:
        """The headers of the administrator's REST calls."""
        return {"Authorization": f"Bearer {self.token()}"} if self.token_auth else {}

    # The REST API, as far as tests prepare a broker with it.

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Call `/admin/v2/<path>` as administrator; returns the answer's JSON, or None for an empty one.

        Raises:
            HTTPStatusError: The broker refused; the message holds its reason.
        """
        answer = self._call(method, f"admin/v2/{path}", body)
        return json.loads(answer) if answer else None

    def create_namespace(self, namespace: str) -> None:
        """Create `tenant/namespace`."""
        self.admin("PUT", f"namespaces/{namespace}")

    def delete_namespace(self, namespace: str) -> None:
        """Delete `tenant/namespace`, if it is there, with all its topics.

        Raises:
            HTTPStatusError, TimeoutException: The broker refused, or did not answer, for a minute.
        """
        # A topic that is just being trimmed or closed makes the broker refuse or wait, with some of the work done.
        deadline = time.monotonic() + 60
        while namespace in self.admin("GET", f"namespaces/{namespace.partition('/')[0]}"):
            try:
                self.admin("DELETE", f"namespaces/{namespace}?force=true")
            except (httpx.HTTPStatusError, httpx.TimeoutException):
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def create_topic(self, topic: str, partitions: int | None = None) -> str:
        """Create `tenant/namespace/name` with so many partitions (None: unpartitioned); returns its full name."""
        path = f"persistent/{topic.removeprefix('persistent://')}"
        if partitions is None:
            self.admin("PUT", path)
        else:
            self.admin("PUT", f"{path}/partitions", partitions)
        return path.replace("persistent/", "persistent://", 1)

    def set_retention(self, namespace: str, *, minutes: int = -1, megabytes: int = -1) -> None:
        """Keep acknowledged data for so long and so much; -1 is without limit, 0 and 0 is nothing."""
        policy = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
        self.admin("POST", f"namespaces/{namespace}/retention", policy)

    def grant(self, namespace: str, role: str, actions: Sequence[str]) -> None:
        """Let `role` do `actions` ("produce", "consume", ...) in `tenant/namespace`."""
        self.admin("POST", f"namespaces/{namespace}/permissions/{role}", list(actions))

    def topics(self, namespace: str) -> list[str]:
        """The full names of the namespace's persistent topics, partitions one by one, without Pulsar's own."""
        names: list[str] = self.admin("GET", f"persistent/{namespace}")
        return sorted(name for name in names if not name.rsplit("/", 1)[1].startswith("__"))

    def owner(self, topic: str) -> str:
        """The `service_url` of the broker that serves an unpartitioned topic or a partition."""
        return str(json.loads(self._call("GET", f"lookup/v2/topic/{topic.replace('://', '/', 1)}"))["brokerUrl"])

    def inventory(self) -> dict[str, list[str]]:
        """Every topic of every tenant but Pulsar's own, with the names of its subscriptions."""
        return {
            topic: sorted(self.admin("GET", f"{topic.replace('://', '/', 1)}/subscriptions"))
            for tenant in self.admin("GET", "tenants")
            if tenant != "pulsar"
            for namespace in self.admin("GET", f"namespaces/{tenant}")
            for topic in self.topics(namespace)
        }

    # How it runs.

    def start(self) -> Self:
        """Start and wait until it is ready; started again, in good order, if a crash before left its bookie restless.

        The registration of a killed bookie stays in the metadata. Now and then its removal is taken for the loss of
        the new one. That is then created again and again (Pulsar 4.0's ResourceLockImpl), and ledgers cannot be
        written.

        Raises:
            ServerFailed: It ended, or was not ready within `ready_seconds`.
        """
        said = len(self.log_text()) if self._process else 0
        super().start()
        if self.log_text()[said:].count(_REGISTRATION_LOST) > _FEW:
            self.restart()
        return self

    def prepare(self) -> None:
        """Write `standalone.conf` with our settings."""
        self.write_configuration("standalone.conf", self.network)

    def write_configuration(self, name: str, more: Mapping[str, str]) -> None:
        """Write the file `name` below `home`: Pulsar's own of that name, with our settings and `more`."""
        if self.token_auth:
            key = self.home / "token.key"
            key.touch(mode=0o600)
            key.write_bytes(self._key)
            more = {**more, "tokenSecretKey": f"file://{key}"}
        if self._tls:
            more = {**more, **self._tls_settings()}
        template = (self.distribution / "conf" / name).read_text()
        conf = self.home / name
        conf.touch(mode=0o600)
        conf.write_text(configure(template, {**more, **self._settings}))

    def command(self) -> Sequence[str]:
        """`bin/pulsar standalone`, with its data below `home`."""
        places = ["--metadata-dir", str(self.home / "metadata"), "--bookkeeper-dir", str(self.home / "bookkeeper")]
        network = ["-a", LOOPBACK, "--bookkeeper-port", str(self.port["bookie"])]
        # -nfw -nss: no functions worker, no stream storage.
        return [str(self.distribution / "bin" / "pulsar"), "standalone", "-nfw", "-nss", *network, *places]

    def environment(self) -> Mapping[str, str]:
        """Small memory, quiet collector, logs below `home`."""
        return {
            **super().environment(),
            # Pulsar's script finds Java by itself only where `which` is installed.
            "JAVA_HOME": str(find_java().home),
            "PULSAR_STANDALONE_CONF": str(self.home / "standalone.conf"),
            "PULSAR_LOG_DIR": str(self.home / "logs"),
            "PULSAR_LOG_IMMEDIATE_FLUSH": "true",
            "PULSAR_MEM": f"-Xms128m -Xmx{self._heap} -XX:MaxDirectMemorySize=1g",
            "PULSAR_GC": " ".join(self._jvm),
            "PULSAR_GC_LOG": "-Xlog:disable",
            "PULSAR_EXTRA_OPTS": f"-Djava.io.tmpdir={self.scratch} -Dpulsar.allocator.exit_on_oom=true",
        }

    def is_ready(self) -> bool:
        """The broker says so, its first namespace exists, and its bookie stores a message."""
        try:
            if not self.says_ready() or "public/default" not in self.admin("GET", "namespaces/public"):
                return False
            # After a crash the broker is ready before its bookie has registered again.
            return self._call("GET", "admin/v2/brokers/health?topicVersion=V2") == "ok"
        except httpx.HTTPStatusError:
            return False

    def says_ready(self) -> bool:
        """What the broker itself answers."""
        return self._call("GET", "admin/v2/brokers/ready") == "ok"

    def _call(self, method: str, path: str, body: object = None) -> str:
        headers = self.login()
        answer = self._http.request(method, f"{self.admin_url}/{path}", json=body, headers=headers)
        while answer.has_redirect_location:  # to the broker that owns the topic
            answer = self._http.request(method, answer.headers["location"], json=body, headers=headers)
        if answer.is_error:
            message = f"{method} {path}: {answer.status_code} {answer.text[:500]}"
            raise httpx.HTTPStatusError(message, request=answer.request, response=answer)
        return answer.text

    @property
    def network(self) -> dict[str, str]:
        """Settings of the ports and addresses."""
        return {
            "bindAddress": LOOPBACK,
            "advertisedAddress": self.address,
            "brokerServicePort": str(self.port["broker"]),
            "webServicePort": str(self.port["web"]),
            # The bookie's: it would otherwise listen on the interface of the host's name.
            "listeningInterface": "lo",
            "allowLoopback": "true",
            # Without it the bookie ignores --bookkeeper-port.
            "allowEphemeralPorts": "true",
        }

    def _tls_settings(self) -> dict[str, str]:
        self.certificates = Certificates.make(self.home / "tls", client=ADMIN_ROLE)
        return {
            "brokerServicePortTls": str(self.port["broker_tls"]),
            "webServicePortTls": str(self.port["web_tls"]),
            "tlsCertificateFilePath": str(self.certificates.server.certificate),
            "tlsKeyFilePath": str(self.certificates.server.key),
            "tlsTrustCertsFilePath": str(self.certificates.authority),
            "brokerClientTrustCertsFilePath": str(self.certificates.authority),
        }

    def _token_settings(self) -> dict[str, str]:
        kinds = ("Token", "Tls") if self._tls else ("Token",)
        return {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": ",".join(f"{_PROVIDER}{kind}" for kind in kinds),
            "superUserRoles": ADMIN_ROLE,
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": json.dumps({"token": self.token()}),
        }


def configure(template: str, settings: Mapping[str, str]) -> str:
    """`template` with each setting's line replaced, and the settings it does not have at its end."""
    missing = dict(settings)
    lines = []
    for line in template.splitlines():
        name = line.partition("=")[0].strip()
        lines.append(f"{name}={missing.pop(name)}" if name in missing else line)
    return "\n".join([*lines, *(f"{name}={value}" for name, value in missing.items()), ""])


def _ledgers(entries: int) -> dict[str, str]:
    return {
        "managedLedgerMaxEntriesPerLedger": str(entries),
        "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    }


def _interceptors() -> dict[str, str]:
    return {
        "brokerEntryMetadataInterceptors": INTERCEPTORS,
        "exposingBrokerEntryMetadataToClientEnabled": "true",
    }
