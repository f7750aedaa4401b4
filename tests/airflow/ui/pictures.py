"""`python -m tests.airflow.ui.pictures`: takes the documentation's pictures again, in light and in dark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.airflow.browser import headless_chromium
from tests.airflow.ui import story
from tests.airflow.ui.server import NOW, ApiServer, api_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[3] / "docs" / "pages" / "images"
SIZE = {"width": 1440, "height": 780}


@contextmanager
def own_api_server() -> Iterator[ApiServer]:
    """The server on a database of its own, for use outside of pytest."""
    home = Path(tempfile.mkdtemp(prefix="streams-metadata-"))
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    try:
        subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"], env=environment, check=True, capture_output=True
        )
        with api_server(home / "airflow.db") as server:
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


def open_page(browser: Browser, server: ApiServer, scheme: str) -> Page:
    """The page as `admin`, once every lane is drawn."""
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]  # light or dark
    context.clock.set_fixed_time(NOW)
    context.add_cookies([{"name": "_token", "value": server.token("admin"), "url": server.url}])
    page = context.new_page()
    page.goto(f"{server.url}/plugin/streams", wait_until="domcontentloaded")
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until nothing is asked and all is drawn."""
    lanes = "[...document.querySelectorAll('.st-lane')]"
    page.wait_for_function(f"{lanes}.length && {lanes}.every((lane) => lane.dataset.windows)", timeout=120_000)
    page.wait_for_load_state("networkidle")


def take(page: Page, scheme: str) -> None:
    """A day, a window's receipt, a gap to be filled, a reader, a month."""
    page.screenshot(path=IMAGES / f"page-day-{scheme}.png")
    box = page.locator(".st-lane[aria-label*='shop/orders/events']").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + box["width"] * 0.86, middle)
    page.wait_for_selector(".st-panel .st-runs")
    page.mouse.move(700, 760)
    page.screenshot(path=IMAGES / f"page-window-{scheme}.png")
    page.keyboard.press("Escape")
    page.wait_for_selector(".st-panel", state="detached")
    box = page.locator(".st-lane[aria-label*='shop/payments/settled']").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.7, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, middle, steps=5)
    page.mouse.up()
    page.wait_for_selector(".st-action")
    page.mouse.move(700, 760)
    page.screenshot(path=IMAGES / f"page-backfill-{scheme}.png")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="shop/orders/events").click()
    page.wait_for_selector(".st-panel >> text=Forget this reader")
    page.mouse.move(700, 760)
    page.screenshot(path=IMAGES / f"page-reader-{scheme}.png")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("radio", name="Month").click()
    page.wait_for_function(
        "[...document.querySelectorAll('.st-lane')].filter((lane) => lane.dataset.windows > 700).length >= 6"
    )
    settled(page)
    page.screenshot(path=IMAGES / f"page-month-{scheme}.png")


def main() -> None:
    """Take them all."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with own_api_server() as server, headless_chromium() as browser:
        story.write(server.journal_url, story.the_shop(), NOW)
        for scheme in ("light", "dark"):
            take(open_page(browser, server, scheme), scheme)


if __name__ == "__main__":
    main()
