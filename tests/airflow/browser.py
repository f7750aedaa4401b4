"""A headless Chromium for tests of pages, from the system's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""It runs as root in containers, without a screen, and asks only the page's own server."""
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


class ChromiumMissing(RuntimeError):
    """No Chromium on this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Chromium is needed here: {reason}. Install it (Debian, Ubuntu: apt-get install chromium; "
            "macOS: brew install chromium) and put it on PATH."
        )


@contextmanager
def headless_chromium() -> Iterator[Browser]:
    """A browser with a profile of its own, driven by Playwright; closed and forgotten at the end.

    Raises:
        ChromiumMissing: It is not there and could not be installed.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def find_chromium() -> str:
    """The path of Chromium on PATH; root installs Debian's package when it is missing.

    Raises:
        ChromiumMissing: It is not there and could not be installed.
    """
    if found := _present():
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ChromiumMissing(f"none of {', '.join(NAMES)} is on PATH")
    print("Chromium: installing Debian's package (once)", file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or not (found := _present()):
        raise ChromiumMissing(f"apt-get install chromium ended with code {done.returncode}: {done.stderr[-500:]}")
    return found


def _present() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
