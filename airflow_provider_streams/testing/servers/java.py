"""Java on this machine: the right version, and small programs compiled against a server's jars.

Such programs are the independent peers of tests: they write and read with the system's own client.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from airflow_provider_streams.testing.servers.cache import cached

MINIMUM_VERSION = 17
# Half the CPU until a server is ready, but slow code ever after: for tests, not for measurements.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class JavaMissing(RuntimeError):
    """No Java of at least the version the servers need."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"Java {MINIMUM_VERSION} or newer is needed to run this server; {found}. "
            "Install it (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk@17; "
            "others: https://adoptium.net) and put its bin directory on PATH, or set JAVA_HOME."
        )


class JavaFailed(RuntimeError):
    """A Java program did not compile, or ended with an error."""

    def __init__(self, what: str, code: int, output: str) -> None:
        self.what, self.code, self.output = what, code, output
        super().__init__(f"{what} ended with code {code}:\n{output[-4000:]}")


def find_java(program: str = "java") -> str:
    """The path of `java` (or `javac`): below JAVA_HOME where that is set, else on PATH.

    Raises:
        JavaMissing: There is none, or it is older than `MINIMUM_VERSION`.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(program, path=str(Path(home, "bin")) if home else None)
    if path is None:
        raise JavaMissing(f"there is no {program} in {home + '/bin' if home else 'any directory of PATH'}")
    version = _version(path)
    if version < MINIMUM_VERSION:
        raise JavaMissing(f"{path} is Java {version}")
    return path


def java_home() -> Path | None:
    """The directory that JAVA_HOME means, found from `java` when it is not set; None when its place tells nothing."""
    home = Path(find_java()).resolve().parent.parent
    return home if (home / "lib" / "modules").exists() else None


@cache
def _version(path: str) -> int:
    told = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return java_version(told.stdout + told.stderr)


def java_version(told: str) -> int:
    """The feature release in what `java -version` or `javac -version` print: 8 for "1.8.0_392", 17 for "17.0.15"."""
    found = re.search(r'(?:version "|javac )(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0


def compile_java(source: Path, classpath: Sequence[str]) -> Path:
    """Compile one source file; returns the directory of its classes, kept in the cache by its digest.

    Raises:
        JavaMissing: No `javac`.
        JavaFailed: It does not compile.
    """
    compiler = find_java("javac")
    told = "\0".join([compiler, *classpath]).encode() + source.read_bytes()
    key = f"java-{source.stem}-{hashlib.sha256(told).hexdigest()[:16]}"

    def build(into: Path) -> None:
        command = [compiler, "-nowarn", "-d", str(into), "-cp", ":".join(classpath), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JavaFailed(f"javac {source.name}", done.returncode, done.stdout + done.stderr)

    return cached(key, build)


def start_java(
    source: Path, arguments: Sequence[str], classpath: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start the class named like `source`, compiled first, with pipes to speak with it.

    Its standard error is ours: nobody reads it while they speak, and a pipe that is full would stop it.
    """
    return subprocess.Popen(
        _command(source, arguments, classpath),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


def run_java(
    source: Path,
    arguments: Sequence[str],
    classpath: Sequence[str],
    environment: Mapping[str, str] | None = None,
    seconds: float = 120.0,
) -> str:
    """Run the class named like `source` to its end and return what it printed.

    Raises:
        JavaFailed: It does not compile, or ended with another code than 0.
        TimeoutExpired: It ran longer than `seconds`; it has been killed.
    """
    done = subprocess.run(
        _command(source, arguments, classpath),
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise JavaFailed(f"java {source.stem}", done.returncode, done.stdout + done.stderr)
    return done.stdout


def _command(source: Path, arguments: Sequence[str], classpath: Sequence[str]) -> list[str]:
    classes = compile_java(source, classpath)
    return [find_java(), "-cp", ":".join([str(classes), *classpath]), source.stem, *arguments]
