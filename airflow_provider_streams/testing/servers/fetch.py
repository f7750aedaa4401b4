"""Server software from Maven Central, fetched once: by `mvn` where it is on PATH, else by PySpark's Ivy."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from airflow_provider_streams.testing.servers.cache import cached
from airflow_provider_streams.testing.servers.java import find_java

_PROGRESS_SECONDS = 10.0
_GIVE_UP_SECONDS = 1800.0


class FetchFailed(RuntimeError):
    """Server software could not be fetched."""

    def __init__(self, title: str, reason: str) -> None:
        self.title = title
        super().__init__(f"{title} could not be fetched from Maven Central: {reason}")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a Maven repository."""

    group: str
    name: str
    version: str
    type: str = "jar"
    classifier: str | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files one server needs: `artifacts`, and what they depend on but `excludes`.

    The version of an artifact named here wins over the one a dependency asks for. `excludes` are pairs of
    (group, name); "*" stands for any name, and ("*", "*") for no dependencies at all.
    """

    title: str
    artifacts: tuple[Artifact, ...]
    excludes: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """A name for the cache: what it is, its version, and a digest of all that decides the files."""
        first = self.artifacts[0]
        digest = hashlib.sha256(repr((self.artifacts, self.excludes)).encode()).hexdigest()[:8]
        return f"{first.name}-{first.version}-{digest}"


def fetch(bundle: Bundle) -> Path:
    """The directory with the bundle's files; archives are unpacked in it. Downloads on first use only.

    Raises:
        JavaMissing: No Java to run the server, or Ivy, with.
        FetchFailed: No way to fetch, or the repository refused.
    """
    find_java()
    return cached(bundle.key, lambda into: _build(bundle, into))


def _build(bundle: Bundle, into: Path) -> None:
    work = into / ".fetch"
    work.mkdir()
    if maven := shutil.which("mvn"):
        _run(bundle, "Maven", maven_command(maven, bundle, work, into), into)
    else:
        # Kept when the fetch fails: Ivy asks for hundreds of modules one by one, and goes on where it was.
        downloads = into.parent / f"{bundle.key}.ivy"
        _run(bundle, "PySpark's Ivy", ivy_command(_ivy_jar(bundle), bundle, work, into, downloads), into, downloads)
        shutil.rmtree(downloads, ignore_errors=True)
    shutil.rmtree(work)
    for archive in into.glob("*.tar.gz"):
        _tell(f"{bundle.title}: unpacking {archive.name}")
        with tarfile.open(archive) as files:
            files.extractall(into, filter="data")
        archive.unlink()
    if not any(into.iterdir()):
        raise FetchFailed(bundle.title, "the tool succeeded but left no files")


def _run(bundle: Bundle, tool: str, command: Sequence[str], *places: Path) -> None:
    """Run the tool to its end, with a line of progress now and then: what is in `places` so far."""
    _tell(f"{bundle.title}: fetching with {tool} into {places[0].parent} (once)")
    started = time.monotonic()
    log = places[0] / ".fetch" / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=log.parent, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            while _still_running(process) and time.monotonic() - started < _GIVE_UP_SECONDS:
                _tell(f"{bundle.title}: {time.monotonic() - started:.0f} s, {_megabytes(*places):.0f} MB")
        finally:
            process.kill()
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise FetchFailed(bundle.title, f"{tool} ended with code {process.returncode}:\n{tail}")
    _tell(f"{bundle.title}: {_megabytes(places[0]):.0f} MB in {time.monotonic() - started:.0f} s")


def _still_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_PROGRESS_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _megabytes(*directories: Path) -> float:
    """The files that are there now; some come and go meanwhile."""
    total = 0
    for directory in directories:
        for file in directory.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                total += file.lstat().st_size
    return total / 1e6


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# Maven: one pom with our artifacts as its dependencies.


def maven_command(maven: str, bundle: Bundle, work: Path, into: Path) -> list[str]:
    """The command that copies the bundle's files `into` a directory; writes its pom below `work`."""
    pom = work / "pom.xml"
    pom.write_text(maven_pom(bundle))
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    return [maven, "-q", "-B", "-f", str(pom), *copy]


def maven_pom(bundle: Bundle) -> str:
    """A project that depends on the bundle's artifacts, each without the excluded ones."""
    excludes = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        for group, name in bundle.excludes
    )
    dependencies = "\n".join(
        f"<dependency><groupId>{a.group}</groupId><artifactId>{a.name}</artifactId><version>{a.version}</version>"
        f"<type>{a.type}</type>{f'<classifier>{a.classifier}</classifier>' if a.classifier else ''}"
        f"<exclusions>{excludes}</exclusions></dependency>"
        for a in bundle.artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>bundle</artifactId><version>1</version>"
        f"<dependencies>\n{dependencies}\n</dependencies></project>\n"
    )


# Ivy: PySpark ships it, so whoever runs Spark has it.


def _ivy_jar(bundle: Bundle) -> Path:
    pyspark = find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    for folder in folders or ():
        for jar in Path(folder, "jars").glob("ivy-*.jar"):
            return jar
    raise FetchFailed(
        bundle.title,
        "there is neither mvn on PATH nor Apache Ivy, which PySpark brings. "
        "Install one: apt-get install maven, or pip install pyspark.",
    )


def ivy_command(jar: Path, bundle: Bundle, work: Path, into: Path, downloads: Path) -> list[str]:
    """The command that retrieves the bundle's files `into` a directory; writes its module below `work`."""
    module = work / "ivy.xml"
    module.write_text(ivy_module(bundle))
    types = sorted({"jar", "bundle", *(artifact.type for artifact in bundle.artifacts)})
    pattern = f"{into}/[organisation]-[artifact]-[revision](-[classifier]).[ext]"
    ivy = [find_java(), "-cp", str(jar), "org.apache.ivy.Main", "-ivy", str(module), "-retrieve", pattern]
    return [*ivy, "-cache", str(downloads), "-types", *types]


def ivy_module(bundle: Bundle) -> str:
    """The bundle as an Ivy module."""
    transitive = "false" if ("*", "*") in bundle.excludes else "true"
    dependencies = "\n".join(_ivy_dependency(artifact, transitive) for artifact in bundle.artifacts)
    excludes = "\n".join(
        f"<exclude org={quoteattr(group)} module={quoteattr(name)}/>"
        for group, name in bundle.excludes
        if transitive == "true"
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="local" module="bundle"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>\n{dependencies}\n{excludes}\n</dependencies></ivy-module>\n"
    )


def _ivy_dependency(artifact: Artifact, transitive: str) -> str:
    line = (
        f"<dependency org={quoteattr(artifact.group)} name={quoteattr(artifact.name)} "
        f'rev={quoteattr(artifact.version)} conf="default->master,runtime" force="true" transitive="{transitive}"'
    )
    if artifact.type == "jar" and artifact.classifier is None:
        return line + "/>"
    classifier = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    named = f"<artifact name={quoteattr(artifact.name)} type={quoteattr(artifact.type)} ext={quoteattr(artifact.type)}"
    return f"{line}>{named}{classifier}/></dependency>"
