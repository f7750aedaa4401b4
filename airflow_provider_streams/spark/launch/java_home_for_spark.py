"""Which `JAVA_HOME` Spark's scripts get: the Java's own, or one whose `java` leaves out what this Java cannot do.

Spark starts each JVM with `--add-modules=jdk.incubator.vector`, for faster linear algebra, and does without it where it
must. A Java with fewer modules, such as the wheel's, ends at once.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path
from typing import Final

from airflow_provider_streams.spark.launch.java_search import Java
from airflow_provider_streams.spark.launch.py_files import cache_folders

_MODULE: Final = "jdk.incubator.vector"
_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def spark_java_home(java: Java) -> Path:
    """The `JAVA_HOME` for Spark. If it is not the Java's own, it is made once, in the user's cache folder.

    Raises:
        OSError: no folder can be written.
    """
    if has_module(java.home):
        return java.home
    script = _WRAPPER.format(module=_MODULE, java=shlex.quote(str(java.home / "bin" / "java")))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    for folder in cache_folders():
        try:
            return _written(folder / name, script)
        except OSError:
            continue
    raise OSError("neither the cache folder nor the temporary folder can be written")


def has_module(home: Path) -> bool:
    """Whether a Java has the module that Spark asks for; one that does not list its modules has all."""
    release = home / "release"
    lines = release.read_text(errors="replace").splitlines() if release.is_file() else []
    listed = [line for line in lines if line.startswith("MODULES=")]
    return not listed or _MODULE in listed[0]


def _written(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    if not java.is_file():
        java.parent.mkdir(parents=True, exist_ok=True)
        draft = java.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(java)
    return home
