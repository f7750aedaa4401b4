"""Programs of Debian's packages: found on this machine, or installed when root asks for them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable


class PackageMissing(RuntimeError):
    """A program is not on this machine, and could not be installed."""

    def __init__(self, title: str, reason: str, remedy: str) -> None:
        super().__init__(f"{title} is needed here: {reason}. {remedy}")


def find_program(title: str, package: str, present: Callable[[], str | None], remedy: str) -> str:
    """The path that `present` finds, after installing a package if it finds none.

    Args:
        title: what messages call the server.
        package: Debian's name of it.
        present: looks for the program.
        remedy: what to do where nothing can be installed.

    Raises:
        PackageMissing: the program is not there and could not be installed.
    """
    if found := present():
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise PackageMissing(title, f"package {package} is not installed", remedy)
    print(f"{title}: installing Debian's package (once)", file=sys.stderr, flush=True)
    done = _install(package)
    if done.returncode:  # a fresh machine has no list of packages yet, an old one a stale list
        subprocess.run(["apt-get", "update", "-q"], capture_output=True, check=False)
        done = _install(package)
    if found := present():
        return found
    raise PackageMissing(
        title, f"apt-get install {package} ended with code {done.returncode}: {done.stderr[-500:]}", remedy
    )


def _install(package: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    return subprocess.run(install, env=environment, capture_output=True, text=True, check=False)


def unprivileged_user(*preferred: str) -> str | None:
    """The account for a server that refuses to run as root: the first of these that exists; None if we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in preferred if name in known), "nobody")  # codespell:ignore nobody
