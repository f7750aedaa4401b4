"""Looks for a secret where others could see it: command lines, environments, Spark's pages, files of any kind."""

from __future__ import annotations

import base64
import json
import re
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import psutil

from tests.plain_http import NO_AUTHORITIES

_LINK = re.compile(r"""(?:href|src)=["']([^"'#]+)""")
_STATIC = re.compile(r"/static/|logout|/kill|/log|\.(js|css|png|svg|ico)\b")
_MOST_PAGES = 60
_CLUSTER = ("CoarseGrainedExecutorBackend", "deploy.worker.Worker", "SparkConnectServer")
_ANSWERS = ("jobs", "stages?details=true", "environment", "allexecutors", "sql?details=true&planDescription=true")


def settings(folder: Path, port: int) -> dict[str, str]:
    """Spark's settings with which it shows and stores all that it can."""
    events = folder / "events"
    events.mkdir(parents=True, exist_ok=True)
    return {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.sql.ui.explainMode": "extended",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def pages(port: int) -> dict[str, str]:
    """What Spark's UI shows at this moment, by address: its pages as they link to each other, and its REST API."""
    base = f"http://127.0.0.1:{port}"
    found: dict[str, str] = {}
    waiting = [f"{base}/", f"{base}/connect/", f"{base}/SQL/", *_api(base)]
    while waiting and len(found) < _MOST_PAGES:
        url = waiting.pop(0)
        if url in found or _STATIC.search(url):
            continue
        found[url] = text = _get(url)
        links = (urljoin(url, link.replace("&amp;", "&")) for link in _LINK.findall(text))
        waiting += [link for link in links if urlsplit(link).port == port]
    return {url: text for url, text in found.items() if text}


def _api(base: str) -> list[str]:
    with suppress(ValueError, LookupError):
        application = json.loads(_get(f"{base}/api/v1/applications"))[0]["id"]
        return [f"{base}/api/v1/applications/{application}/{answer}" for answer in _ANSWERS]
    return []


def _get(url: str) -> str:
    with suppress(httpx.HTTPError, httpx.InvalidURL):
        return httpx.get(url, timeout=10, trust_env=False, verify=NO_AUTHORITIES).text
    return ""


def has(text: str, secret: str) -> bool:
    """Whether a secret is in a text, as it is or as our jobs mark it for Spark."""
    return secret in text or base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=") in text


def files_with(folder: Path, secret: str) -> list[str]:
    """Files below a folder that hold the secret, but the one with which the fake stream was told its password."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "truth.json")
    return [str(file) for file in files if has(file.read_bytes().decode("latin-1"), secret)]


class Watch:
    """Watches the machine while a process and its children run.

    Args:
        secrets: what must not be seen.
        mark: what the environment of the process and its children holds: these may have secrets there, which only their
            owner can read.
        port: of Spark's UI.
    """

    def __init__(self, secrets: tuple[str, ...], mark: str, port: int | None) -> None:
        self._secrets, self._mark, self._port = secrets, mark, port
        self.seen: set[str] = set()
        """Where a secret was."""
        self.command_lines: set[str] = set()
        self.pages: set[str] = set()
        self._over = threading.Event()
        self._crawler = threading.Thread(target=self._crawl, daemon=True)
        self._crawler.start()

    def look(self) -> None:
        """At all processes, once."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                line = " ".join(process.cmdline())
                self.command_lines.add(line)
                self._note(f"command line of {process.pid}", line)
                environment = json.dumps(process.environ())
                if not self._is_ours(process, environment):
                    self._note(f"environment of {line[:200]}", environment)

    def _is_ours(self, process: psutil.Process, environment: str) -> bool:
        """Whether it is the job's process or a child of it, which may have lost its parent by now, and no cluster's."""
        if self._mark not in environment:
            return False
        lines = [" ".join(one.cmdline()) for one in (process, *process.parents())]
        return not any(name in line for name in _CLUSTER for line in lines)

    def end(self) -> None:
        """No more pages."""
        self._over.set()
        self._crawler.join(600)

    def _crawl(self) -> None:
        while self._port and not self._over.wait(0.5):
            for url, text in pages(self._port).items():
                self.pages.add(url)
                self._note(url, text)

    def _note(self, where: str, text: str) -> None:
        self.seen.update(where for secret in self._secrets if has(text, secret))
