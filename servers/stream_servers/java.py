"""Small Java programs, compiled against a server's jars and run on the Java that this machine has.

Such programs are the independent peers of tests: they write and read with the system's own client.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_provider_streams.spark.launch.java_search import MINIMUM_VERSION, Java, find_java
from stream_servers.bundles import COMPILER
from stream_servers.cache import cached
from stream_servers.fetch import jars

# Half the CPU until a server is ready, but slow code ever after: for tests, not for measurements.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class JavaFailed(RuntimeError):
    """A Java program did not compile, or ended with an error."""

    def __init__(self, what: str, code: int, output: str) -> None:
        self.what, self.code, self.output = what, code, output
        super().__init__(f"{what} ended with code {code}:\n{output[-4000:]}")


def compile_java(source: Path, classpath: Sequence[str]) -> Path:
    """Compile one source file; returns the directory of its classes, kept in the cache by its digest.

    The compiler is `javac` if our Java has one, else Eclipse's, which is a jar.

    Raises:
        JavaMissing: no Java.
        JavaFailed: It does not compile.
    """
    java = find_java()
    compiler = _compiler(java)
    told = "\0".join([*compiler, *classpath]).encode() + source.read_bytes()
    key = f"java-{source.stem}-{hashlib.sha256(told).hexdigest()[:16]}"

    def build(into: Path) -> None:
        command = [*compiler, "-nowarn", "-proc:none", "-d", str(into), "-cp", ":".join(classpath), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JavaFailed(f"compiling {source.name}", done.returncode, done.stdout + done.stderr)

    return cached(key, build)


def _compiler(java: Java) -> list[str]:
    if found := shutil.which("javac", path=str(java.home / "bin")):
        return [found]
    main = "org.eclipse.jdt.internal.compiler.batch.Main"
    return [str(java.program), "-cp", ":".join(jars(COMPILER)), main, f"-{MINIMUM_VERSION}"]


def start_java(
    source: Path,
    arguments: Sequence[str],
    classpath: Sequence[str],
    environment: Mapping[str, str] | None = None,
    jvm: Sequence[str] = QUICK_START,
) -> subprocess.Popen[str]:
    """Start the class named like `source`, compiled first, with pipes to speak with it.

    Its standard error is ours: no one reads it while they speak, and a pipe that is full would stop it.
    """
    return subprocess.Popen(
        _command(source, arguments, classpath, jvm),
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
    seconds: float = 600.0,
) -> str:
    """Run the class named like `source` to its end and return what it printed.

    Raises:
        JavaFailed: It does not compile, or ended with another code than 0.
        TimeoutExpired: It ran longer than `seconds`; it has been killed.
    """
    done = subprocess.run(
        _command(source, arguments, classpath, QUICK_START),
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise JavaFailed(f"java {source.stem}", done.returncode, done.stdout + done.stderr)
    return done.stdout


def _command(source: Path, arguments: Sequence[str], classpath: Sequence[str], jvm: Sequence[str]) -> list[str]:
    classes = compile_java(source, classpath)
    return [str(find_java().program), *jvm, "-cp", ":".join([str(classes), *classpath]), source.stem, *arguments]
