"""Lock files: of each bundle the repository, and each file's path in it, size and SHA-256.

A fetch needs nothing else: it resolves nothing, and takes no other bytes. `make locks` writes them, with Maven.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from stream_servers.bundles import Bundle

_FOLDER = Path(__file__).with_name("locks")
_ADDRESS = re.compile(r"https?://[^\s\x1b]+")  # some Mavens colour it
_MAVEN = ("mvn", "-q", "-B")


class LockOutdated(RuntimeError):
    """A bundle's lock is missing, or was made of another declaration."""

    def __init__(self, bundle: Bundle, reason: str) -> None:
        super().__init__(f"{bundle.title}: {reason}. Run: make locks")


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of a bundle."""

    path: str
    """Below the repository's address."""
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Its own, with its group: two groups may have files of one name."""
        *group, _, _, name = PurePosixPath(self.path).parts
        return ".".join([*group, name])


@dataclass(frozen=True, slots=True)
class Lock:
    """What a bundle consists of."""

    bundle: Bundle
    repository: str
    """The address of the repository in which the files were found."""
    files: tuple[LockedFile, ...]

    @classmethod
    def read(cls, bundle: Bundle) -> Self:
        """The lock of a bundle.

        Raises:
            LockOutdated: it is missing, or was made before the bundle was changed.
        """
        file = lock_file(bundle)
        if not file.is_file():
            raise LockOutdated(bundle, "it has no lock file")
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        digest, repository = (line.split()[1] for line in lines[:2])
        if digest != bundle.digest:
            raise LockOutdated(bundle, "its lock file was made of another declaration")
        rows = (line.split() for line in lines[2:])
        return cls(bundle, repository, tuple(LockedFile(path, int(size), sha256) for path, size, sha256 in rows))

    def write(self) -> None:
        """Replace the lock file."""
        lines = [
            f"# {self.bundle.title}: made by `make locks`. Path in the repository, bytes, SHA-256.",
            f"bundle {self.bundle.digest}",
            f"repository {self.repository}",
            *(f"{file.path} {file.size} {file.sha256}" for file in self.files),
        ]
        lock_file(self.bundle).write_text("\n".join([*lines, ""]))

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def key(self) -> str:
        """A name for the cache: the bundle's, and a digest of its files."""
        digest = hashlib.sha256(repr(self.files).encode()).hexdigest()[:12]
        return f"{self.bundle.name}-{self.bundle.artifacts[0].version}-{digest}"


def lock_file(bundle: Bundle) -> Path:
    """Where a bundle's lock is kept."""
    return _FOLDER / f"{bundle.name}.lock"


def resolve(bundle: Bundle) -> Lock:
    """The lock that Maven makes of a bundle's declaration today.

    Raises:
        CalledProcessError: Maven failed.
    """
    with tempfile.TemporaryDirectory(prefix="streams-lock-") as folder:
        pom, found = Path(folder, "pom.xml"), Path(folder, "files")
        pom.write_text(maven_pom(bundle))
        copy = ["-Dmdep.useRepositoryLayout=true", "-DincludeScope=runtime", f"-DoutputDirectory={found}"]
        _maven(pom, "dependency:copy-dependencies", *copy)
        said = _maven(pom, "help:evaluate", "-Dexpression=project.repositories[0].url", "-DforceStdout")
        files = (path for path in sorted(found.rglob("*")) if path.is_file() and "maven-metadata" not in path.name)
        return Lock(bundle, _ADDRESS.findall(said)[0], tuple(_locked(path, found) for path in files))


def _locked(path: Path, repository: Path) -> LockedFile:
    content = path.read_bytes()
    return LockedFile(path.relative_to(repository).as_posix(), len(content), hashlib.sha256(content).hexdigest())


def _maven(pom: Path, *arguments: str) -> str:
    return subprocess.run([*_MAVEN, "-f", str(pom), *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


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
