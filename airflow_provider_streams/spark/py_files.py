"""The part of this package that Spark's processes need, as one archive for `--py-files` and `addArtifacts`."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_streams import __version__

RING = (
    "__init__.py",
    "errors.py",
    "redaction.py",
    "model",
    "systems",
    "formats",
    "spark",
    "testing/__init__.py",
    "testing/fake",
)
"""Files and folders below the package, as `design` draws the ring; the fake system is one of the systems."""

_PACKAGE = Path(__file__).parent.parent
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def ring_archive() -> Path:
    """A zip of the ring; made once per content, kept in the user's cache folder (or a fresh private one)."""
    content = _content()
    digest = hashlib.sha256(content).hexdigest()[:12]
    name = f"airflow_provider_streams-{__version__}-{digest}.zip"
    for folder in _folders():
        archive = folder / name
        if archive.is_file() and archive.read_bytes() == content:
            return archive
        try:
            draft = folder / f"{name}.{os.getpid()}"
            draft.write_bytes(content)
            return draft.replace(archive)
        except OSError:
            continue
    raise OSError("neither the cache folder nor the temporary folder can be written")


def _content() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_files()):
            entry = zipfile.ZipInfo(f"{_PACKAGE.name}/{path.relative_to(_PACKAGE).as_posix()}", _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _files() -> Iterator[Path]:
    for name in RING:
        member = _PACKAGE / name
        found = member.rglob("*") if member.is_dir() else [member]
        yield from (path for path in found if path.is_file() and "__pycache__" not in path.parts)


def _folders() -> Iterator[Path]:
    """Folders that only this user writes to."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "airflow-provider-streams"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield folder
    except OSError:
        pass
    yield Path(tempfile.mkdtemp(prefix="streams-ring-"))
