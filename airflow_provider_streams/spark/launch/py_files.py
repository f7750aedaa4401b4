"""What Spark's processes need of this package, and other packages' systems: one archive for `--py-files`."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from airflow_provider_streams.systems.registry import SYSTEMS, known
from airflow_provider_streams.version import __version__

EXECUTOR_FILES = (
    *("__init__.py", "version.py", "background_work.py", "redaction.py"),
    *("errors", "model", "systems", "formats", "lake", "spark"),
)
"""Files and folders below the package that tasks on executors need."""

_PACKAGE = Path(__file__).parents[2]
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def executor_archive() -> Path:
    """A zip of `EXECUTOR_FILES`; made once per content, kept in the user's cache folder (or a fresh private one)."""
    content = _content()
    digest = hashlib.sha256(content).hexdigest()[:12]
    name = f"airflow_provider_streams-{__version__}-{digest}.zip"
    for folder in cache_folders():
        archive = folder / name
        try:
            if archive.is_file() and archive.read_bytes() == content:
                return archive
            draft = folder / f"{name}.{os.getpid()}"
            draft.write_bytes(content)
            return draft.replace(archive)
        except OSError:
            continue
    raise OSError("neither the cache folder nor the temporary folder can be written")


def _content() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files().items()):
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _files() -> dict[str, Path]:
    """Names in the archive, with their files: `EXECUTOR_FILES`, and those of systems that others declare."""
    found = dict(_below(_PACKAGE, EXECUTOR_FILES))
    for path in set(known().values()) - set(SYSTEMS.values()):
        found |= dict(_declared(path.partition(":")[0].rpartition(".")[0]))
    return found


def _declared(package: str) -> Iterator[tuple[str, Path]]:
    """A system's folder, and what makes the folders above it packages."""
    *parents, _ = accumulate(package.split("."), "{}.{}".format)
    for parent in parents:
        if opened := importlib.import_module(parent).__file__:
            yield f"{parent.replace('.', '/')}/__init__.py", Path(opened)
    (root,) = importlib.import_module(package).__path__
    for name, file in _below(Path(root), ("",)):
        yield f"{package.rpartition('.')[0].replace('.', '/')}/{name}".lstrip("/"), file


def _below(root: Path, members: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for name in members:
        member = root / name
        for path in member.rglob("*") if member.is_dir() else [member]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root.parent).as_posix(), path


def cache_folders() -> Iterator[Path]:
    """Folders that only this user writes to."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "airflow-provider-streams"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid == os.geteuid():
            yield folder
    except OSError:
        pass
    yield Path(tempfile.mkdtemp(prefix="streams-package-"))
