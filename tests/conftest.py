"""Every test session has its own, empty AIRFLOW_HOME, set before anything imports Airflow; and a broker's REST side."""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import core, settings
from hypothesis.internal.conjecture import providers

from airflow_provider_streams import redaction
from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.launch.java_search import find_java
from tests.seeds import VARIABLES, chosen_seed, examples

if TYPE_CHECKING:
    from tests.integration.lake.other_stores import AzuriteServer

pytest_plugins = ["airflow_provider_streams.testing.plugin"]

_HOME = Path(tempfile.mkdtemp(prefix="streams-airflow-"))
(_HOME / "dags").mkdir()


_SYSTEMS = {
    "fake": "airflow_provider_streams.testing.fake.declaration:Fake",
    "files": "files_system.declaration:Files",
}
"""Those of tests: other packages', as the product sees them."""


def _install() -> None:
    """As pip would, for this process and those that it starts."""
    info = _HOME / "site" / "systems_of_tests-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: systems-of-tests\nVersion: 1\n")
    lines = [f"{system} = {path}\n" for system, path in _SYSTEMS.items()]
    (info / "entry_points.txt").write_text("".join(["[airflow_provider_streams.systems]\n", *lines]))
    added = [str(info.parent), str(Path(__file__).with_name("systems"))]
    sys.path += added
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *added]))


_install()

os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # a DAG runs as it is given, and not as another test gave it seconds ago
    "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}


def _show_java() -> None:
    """Tests that start Spark by its own scripts find a Java on any machine."""
    found = find_java()
    if found.origin not in {"JAVA_HOME", "PATH"}:
        os.environ["JAVA_HOME"] = str(spark_java_home(found))


_show_java()


def _draw_the_same_each_time() -> None:
    """Property tests draw other examples only where STREAMS_SEED or STREAMS_EXAMPLES says so.

    No time limit for an example, as machines are shared. No database: an earlier run decides nothing. Nor do the
    constants of those modules that happen to be imported, which Hypothesis would draw as well.
    """
    other = any(os.environ.get(name) for name in VARIABLES)
    common = {"deadline": None, "print_blob": True, "database": None}
    settings.register_profile("same", **common, derandomize=True)
    settings.register_profile("explore", **common, derandomize=False, max_examples=examples(100))
    settings.load_profile("explore" if other else "same")
    if other:
        core.global_force_seed = chosen_seed()
    providers._get_local_constants = lambda: providers._local_constants


os.environ["LC_ALL"] = "C.UTF-8"  # programs that tests start write their texts alike on any machine


_draw_the_same_each_time()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many cases, `slow_except` leaves those that differ most in `make test`."""
    missing: dict[str, set[str]] = {}
    for item in items:
        if kept := item.get_closest_marker("slow_except"):
            if not hasattr(item, "callspec"):
                raise pytest.UsageError(f"slow_except is for tests with cases: {item.nodeid} has none")
            missing.setdefault(item.nodeid.partition("[")[0], set(kept.args)).discard(item.callspec.id)
            if item.callspec.id not in kept.args:
                item.add_marker(pytest.mark.slow)
    by_case = _chosen_by_case(config)
    if gone := {test: cases for test, cases in missing.items() if cases and test not in by_case}:
        raise pytest.UsageError(f"slow_except names cases that do not exist: {gone}")


def _chosen_by_case(config: pytest.Config) -> set[str]:
    """The tests of which the command line names single cases, as pytest names tests."""
    found = set()
    for argument in config.args:
        path, _, rest = argument.partition("[")[0].partition("::")
        if "[" in argument:
            where = (config.invocation_params.dir / path).resolve().relative_to(config.rootpath.resolve())
            found.add(f"{where.as_posix()}::{rest}")
    return found


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteServer]:
    """Azure's blob store, with one account and one container."""
    from tests.integration.lake.other_stores import AzuriteServer

    with AzuriteServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_secret_of_another_test() -> Iterator[None]:
    """A password of one test may be a word of another's messages."""
    yield
    redaction.forget()


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """This session's AIRFLOW_HOME."""
    return _HOME


@dataclass
class RestSide:
    """What a broker's admin API answers, by path below `/admin/v2/`: a body, or a status, a body, and headers."""

    url: str
    answers: dict[str, object] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    """Paths asked for."""
    authorizations: set[str | None] = field(default_factory=set)
    outage: int = 0
    """So many requests are answered 503 before the others."""

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers."""
        if self.outage:
            self.outage -= 1
            return 503, b'{"reason": "the bundle is unloading"}', {}
        found = self.answers.get(path, (404, {"reason": f"{path} not found"}))
        status, body, *headers = found if isinstance(found, tuple) else (200, found)
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return status, content, headers[0] if headers else {}


@pytest.fixture
def rest_side() -> Iterator[RestSide]:
    """A stand-in for a broker's admin API on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path.removeprefix("/admin/v2/")
            side.seen.append(path)
            side.authorizations.add(self.headers.get("Authorization"))
            status, body, headers = side.answer(path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    side = RestSide(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield side
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pulsar_connection(rest_side: RestSide, monkeypatch: pytest.MonkeyPatch) -> RestSide:
    """The connection `pulsar_default` leads to `rest_side`, with the token `token-5d2c`."""
    extra = {"admin_url": rest_side.url, "request_timeout_seconds": 5}
    connection = {"conn_type": "pulsar", "host": "pulsar://127.0.0.1", "port": 1, "extra": extra}
    connection["password"] = "token-5d2c"
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    return rest_side


@pytest.hookimpl(wrapper=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> Iterator[None]:
    """A failure is shown when it happens; at the end of half an hour, all are shown together."""
    yield
    if report.failed and _reporter:
        _reporter[0].ensure_newline()
        _reporter[0].write_line(f"{report.nodeid} ({report.when})", red=True)
        _reporter[0].write_line(report.longreprtext)


_reporter: list[pytest.TerminalReporter] = []


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    _reporter.extend(filter(None, [config.pluginmanager.get_plugin("terminalreporter")]))


def pytest_collection_finish() -> None:
    # What was imported stays: to look through it at each collection takes a sixth of the quick tests' time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    # Spark's connections are closed by the collector, and would log that where nothing listens any more
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    shutil.rmtree(_HOME, ignore_errors=True)
