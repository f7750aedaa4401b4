"""What servers need is fetched once, whole, as the lock says: in parallel, resumed and verified."""

import hashlib
import io
import subprocess
import sys
import tarfile
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree as ET

import pytest

from stream_servers import FetchFailed, bundles, download, fetch, locks
from stream_servers.bundles import Artifact, Bundle
from stream_servers.cache import cache_root, cached
from stream_servers.locks import Lock, LockedFile, LockOutdated, maven_pom

BUNDLE = Bundle(
    "thing",
    "Thing 1",
    (Artifact("org.thing", "thing", "1"), Artifact("org.other", "other", "2", "tar.gz", "bin")),
    (("org.bad", "*"), ("org.worse", "worst")),
)
JAR, ARCHIVE = (artifact.path for artifact in BUNDLE.artifacts)
POM = "{http://maven.apache.org/POM/4.0.0}"


@dataclass
class Repository:
    """A Maven repository on loopback."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Paths, with the range that was asked for."""
    outages: int = 0
    """So many requests are answered 503."""
    cut: int | None = None
    """The next answer ends after so many bytes."""


@pytest.fixture
def repository(monkeypatch) -> Iterator[Repository]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path, sought = self.path.removeprefix("/"), self.headers.get("Range")
            there.asked.append((path, sought))
            content = there.files.get(path)
            status = 404 if content is None else 206 if sought else 200
            if there.outages:
                there.outages, status, content = there.outages - 1, 503, None
            body = (content or b"")[int((sought or "bytes=0-")[6:-1]) :]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut, there.cut = (there.cut, None) if body else (None, there.cut)
            self.wfile.write(body[:cut])
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Repository(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(download, "_PAUSE_SECONDS", 0.0)
    monkeypatch.delenv(fetch.MIRROR, raising=False)
    yield there
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "airflow-provider-streams"


@pytest.fixture
def locked(tmp_path, monkeypatch, repository) -> Lock:
    """A lock of two files that are in the repository: a jar, and an archive with a program."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        program = tarfile.TarInfo("thing-1/run")
        program.mode, program.size = 0o755, 9
        archive.addfile(program, io.BytesIO(b"#!/bin/sh"))
    repository.files |= {JAR: bytes(range(256)) * 4, ARCHIVE: buffer.getvalue()}
    monkeypatch.setattr(locks, "_FOLDER", tmp_path)
    files = [LockedFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in repository.files.items()]
    lock = Lock(BUNDLE, repository.url, tuple(files))
    lock.write()
    return lock


def test_the_cache_is_where_xdg_says(fresh_cache):
    assert cache_root() == fresh_cache


def test_files_are_fetched_once_and_archives_are_unpacked(locked, repository, capsys):
    place = fetch.fetch(BUNDLE)
    assert {path.name for path in place.iterdir()} == {"org.thing.thing-1.jar", "thing-1"}
    assert (place / "org.thing.thing-1.jar").read_bytes() == repository.files[JAR]
    assert (place / "thing-1" / "run").stat().st_mode & 0o111
    told = capsys.readouterr().err
    assert "Thing 1: fetching 2 files, 0 MB (once)" in told
    assert "Thing 1: unpacked" in told

    repository.files.clear()
    assert fetch.fetch(BUNDLE) == place, "what is in the cache needs no repository"
    assert capsys.readouterr().err == ""
    assert place.parent.joinpath(f"{locked.key}.download").exists() is False


@pytest.mark.usefixtures("locked")
def test_a_mirror_is_asked_instead_of_the_locks_repository(repository, monkeypatch):
    lock = Lock.read(BUNDLE)
    Lock(lock.bundle, "http://127.0.0.1:9/none", lock.files).write()
    repository.files = {f"mirror/{path}": data for path, data in repository.files.items()}
    monkeypatch.setenv(fetch.MIRROR, f"{repository.url}/mirror/")
    fetch.fetch(BUNDLE)
    assert {path for path, _ in repository.asked} == set(repository.files)


@pytest.mark.usefixtures("locked")
def test_a_line_that_breaks_is_resumed_and_a_busy_repository_asked_again(repository):
    repository.outages, repository.cut = 2, 100
    jar = Lock.read(BUNDLE).files[:1]
    Lock(BUNDLE, repository.url, jar).write()
    fetch.fetch(BUNDLE)
    assert [sought for _, sought in repository.asked] == [None, None, None, "bytes=100-"]


def test_what_arrived_before_a_failure_is_kept_for_the_next_try(locked, repository, fresh_cache):
    archive = repository.files.pop(ARCHIVE)
    with pytest.raises(FetchFailed, match=r"Thing 1 could not be fetched: org/other/.*HTTP 404.*STREAMS_MAVEN_MIRROR"):
        fetch.fetch(BUNDLE)
    assert not (fresh_cache / locked.key).exists()
    part = fresh_cache / f"{locked.key}.download" / f"{locked.files[1].name}.part"
    part.write_bytes(archive[:20])
    repository.files[ARCHIVE] = archive
    fetch.fetch(BUNDLE)
    assert (ARCHIVE, "bytes=20-") in repository.asked


def test_other_bytes_than_the_lock_says_are_refused_and_removed(locked, repository, fresh_cache):
    right = repository.files[JAR]
    repository.files[JAR] = bytes(len(right))
    with pytest.raises(FetchFailed, match=r"thing-1\.jar: 1024 bytes of SHA-256 \w+, not what the lock says"):
        fetch.fetch(BUNDLE)
    assert not list(fresh_cache.rglob("*thing-1.jar*"))
    repository.files[JAR] = right
    assert fetch.fetch(BUNDLE).name == locked.key


@pytest.mark.usefixtures("locked")
def test_a_repository_that_cannot_be_reached_is_named_by_its_error(monkeypatch):
    monkeypatch.setenv(fetch.MIRROR, "http://127.0.0.1:9")
    with pytest.raises(FetchFailed, match=r"org/.*: .*refused"):
        fetch.fetch(BUNDLE)


def test_of_several_bundles_the_error_of_the_one_that_failed_is_told(locked, repository):
    alone = Bundle("alone", "Alone 1", BUNDLE.artifacts[:1])
    Lock(alone, repository.url, (LockedFile("no/such/thing-1.jar", 1, "00"),)).write()
    with pytest.raises(FetchFailed, match="Alone 1 could not be fetched"):
        fetch.fetch_all([BUNDLE, alone])
    Lock(alone, repository.url, locked.files[:1]).write()
    assert len({*fetch.fetch_all([BUNDLE, alone])}) == 2


def test_a_lock_that_is_missing_or_of_another_declaration_is_refused(locked):
    assert Lock.read(BUNDLE) == locked
    for other in (Bundle("other", "Other", BUNDLE.artifacts), Bundle("thing", "Thing 2", BUNDLE.artifacts)):
        with pytest.raises(LockOutdated, match="Run: make locks"):
            Lock.read(other)


@pytest.mark.parametrize("bundle", bundles.ALL, ids=lambda bundle: bundle.name)
def test_every_bundle_is_locked_as_it_is_declared(bundle):
    lock = Lock.read(bundle)
    paths = {file.path for file in lock.files}
    assert {artifact.path for artifact in bundle.artifacts} <= paths
    assert len({file.name for file in lock.files}) == len(paths)
    excluded = {group.replace(".", "/") for group, name in bundle.excludes if name == "*" and group != "*"}
    named = {artifact.path for artifact in bundle.artifacts}
    assert not [path for path in paths - named for group in excluded if path.startswith(f"{group}/")]


def test_the_pom_names_every_artifact_without_the_excluded_ones():
    project = ET.fromstring(maven_pom(BUNDLE))  # noqa: S314 - our own text
    dependencies = project.findall(f"{POM}dependencies/{POM}dependency")
    thing, other = ({child.tag.removeprefix(POM): child.text for child in d} for d in dependencies)
    assert (thing["groupId"], thing["artifactId"], thing["version"], thing["type"]) == (
        "org.thing",
        "thing",
        "1",
        "jar",
    )
    assert "classifier" not in thing
    assert (other["type"], other["classifier"]) == ("tar.gz", "bin")
    for dependency in dependencies:
        excluded = [tuple(child.text for child in e) for e in dependency.iter(f"{POM}exclusion")]
        assert excluded == [("org.bad", "*"), ("org.worse", "worst")]


def test_a_build_that_fails_leaves_nothing_under_the_key(fresh_cache):
    def build(into):
        (into / "half").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached("thing", build)
    assert [path.name for path in fresh_cache.iterdir()] == ["thing.lock"]


def test_processes_that_need_the_same_build_it_once(tmp_path):
    built = tmp_path / "built"
    program = textwrap.dedent(
        f"""
        from stream_servers.cache import cached
        def build(into):
            with open({str(built)!r}, "a") as file:
                file.write("once\\n")
            (into / "file").write_text("whole")
        print((cached("thing", build) / "file").read_text())
        """
    )
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=600)[0] for process in started] == ["whole\n"] * 3
    assert built.read_text() == "once\n"
