"""Airflow's api-server alone, with users of different rights, on a copy of the migrated database."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from airflow_provider_streams.journal.database import Database
from stream_servers import wait_until
from stream_servers.process import ServerProcess, free_ports
from tests.plain_http import NO_AUTHORITIES

HERE = Path(__file__).parent
NOW = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
"""The page's time, to its server and its browser: an hour that ends while tests run would be one more window."""
PATIENCE = 400_000
"""Milliseconds for one action in the browser: for hangs alone, as a busy machine takes a minute."""
CANARY = "canary-51fe07aa"
"""In every connection's password and extras, and in the password of the journal's."""
PASSWORD = "a password of a test"
USERS = {"admin": "admin", "shopkeeper": "viewer", "newcomer": "viewer", "stranger": "viewer"}
"""See `rights.py` for what they may read."""


@dataclass
class ApiServer:
    """A running api-server."""

    home: Path
    port: int
    process: ServerProcess
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def journal_url(self) -> str:
        return f"sqlite:///{self.home / 'journal.db'}"

    def log(self) -> str:
        """All that the server said."""
        return self.process.log.read_text(errors="replace")

    def token(self, user: str) -> str:
        """What a user's browser keeps in the cookie `_token`."""
        if user not in self.tokens:
            given = {"username": user, "password": PASSWORD}
            answer = httpx.post(f"{self.url}/auth/token", json=given, timeout=600, verify=NO_AUTHORITIES)
            answer.raise_for_status()
            self.tokens[user] = answer.json()["access_token"]
        return self.tokens[user]

    def get(self, path: str, user: str | None, **headers: str) -> httpx.Response:
        """One request below `/streams` as a user, or as no one."""
        if user:
            headers["Authorization"] = f"Bearer {self.token(user)}"
        return httpx.get(f"{self.url}/streams/{path}", headers=headers, timeout=600, verify=NO_AUTHORITIES)

    def post(self, path: str, user: str | None, body: object, **headers: str) -> httpx.Response:
        """One request below `/streams` that changes something."""
        if user:
            headers["Authorization"] = f"Bearer {self.token(user)}"
        headers = {"Content-Type": "application/json", **headers}
        return httpx.post(
            f"{self.url}/streams/{path}", content=json.dumps(body), headers=headers, timeout=600, verify=NO_AUTHORITIES
        )

    def airflow(self, path: str, user: str = "admin") -> Any:
        """What Airflow's own API answers."""
        headers = {"Authorization": f"Bearer {self.token(user)}"}
        return (
            httpx.get(f"{self.url}/api/v2/{path}", headers=headers, timeout=600, verify=NO_AUTHORITIES)
            .raise_for_status()
            .json()
        )


@contextmanager
def api_server(database: Path) -> Iterator[ApiServer]:
    """The server with an empty journal; stopped afterwards."""
    home = Path(tempfile.mkdtemp(prefix="streams-page-"))
    shutil.copy(database, home / "airflow.db")
    shutil.copytree(HERE / "dags", home / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "plugins").mkdir()
    for name in ("rights.py", "surroundings.py"):
        shutil.copy(HERE / name, home / "plugins" / name)
    (home / "passwords.json").write_text(json.dumps(dict.fromkeys(USERS, PASSWORD)))
    reserialize = [sys.executable, "-m", "airflow", "dags", "reserialize"]
    subprocess.run(reserialize, env=_environment(home), check=True, capture_output=True)
    (port,) = free_ports(1)
    process = ServerProcess(
        [sys.executable, "-m", "airflow", "api-server", "--port", str(port), "--host", "127.0.0.1", "--workers", "1"],
        log=home / "api-server.out",
        directory=home,
        environment=_environment(home),
        scratch=home,
    )
    server = ApiServer(home, port, process)
    try:
        Database(server.journal_url).prepare()
        wait_until(lambda: _answers(server), f"the api-server\n{process.log_tail()}", 120)
        yield server
    finally:
        # it waits for browsers that keep their connections
        process.stop(2)
        shutil.rmtree(home, ignore_errors=True)


def _answers(server: ApiServer) -> bool:
    if server.process.exit_code is not None:
        raise RuntimeError(server.process.log_tail())
    with contextlib.suppress(httpx.TransportError):
        return (
            httpx.get(f"{server.url}/api/v2/version", timeout=300, verify=NO_AUTHORITIES).status_code == httpx.codes.OK
        )
    return False


def _environment(home: Path) -> dict[str, str]:
    journal = {"conn_type": "sqlite", "host": str(home / "journal.db"), "password": CANARY}
    unreachable = {"admin_url": "http://127.0.0.1:1", "request_timeout_seconds": 2}
    secret = {"port": 1, "password": CANARY}
    pulsar = {"conn_type": "pulsar", "host": "pulsar://127.0.0.1", **secret, "extra": unreachable}
    pravega = {"conn_type": "pravega", "host": "tcp://127.0.0.1", **secret, "login": "user", "extra": unreachable}
    return {
        **os.environ,
        "PYTHONPATH": str(home / "plugins"),
        "STREAMS_PAGE_TIME": NOW.isoformat(),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__AUTH_MANAGER": "rights.Rights",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__API_AUTH__JWT_SECRET": "one secret for this server",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_STREAMS_JOURNAL": json.dumps(journal),
        "AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps(pulsar),
        "AIRFLOW_CONN_PRAVEGA_DEFAULT": json.dumps(pravega),
    }
