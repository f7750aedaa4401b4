"""The page: how long its script works until 10 sources of 2,000 windows each are drawn, and when it draws again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.airflow.browser import headless_chromium
from tests.airflow.ui import story
from tests.airflow.ui.pictures import SIZE, own_api_server

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

SOURCES = 10
WINDOWS = 2_000
_LANES = "[...document.querySelectorAll('.st-lane')]"
_COUNTS = "[...document.querySelectorAll('.st-legend [data-count]')]"
_ALL = f"{_COUNTS}.reduce((sum, one) => sum + Number(one.innerText.replaceAll(',', '')), 0)"
_SPENT = "performance.getEntriesByName(name, 'measure').reduce((sum, one) => sum + one.duration, 0)"


def run(scale: float) -> None:
    """Write the journal, open the page, and ask the browser what its script cost."""
    windows = round(WINDOWS * scale)
    with own_api_server() as server, headless_chromium() as browser:
        story.write(server.journal_url, story.a_crowd(SOURCES, windows), datetime.now(UTC))
        context = browser.new_context(viewport=SIZE)
        context.add_cookies([{"name": "_token", "value": server.token("admin"), "url": server.url}])
        page = context.new_page()
        page.goto(f"{server.url}/plugin/streams", wait_until="domcontentloaded")
        page.wait_for_function(f"{_LANES}.length === {SOURCES} && {_ALL} > 0", timeout=120_000)
        page.wait_for_load_state("networkidle")
        session = context.new_cdp_session(page)
        session.send("Performance.enable")
        print(f"\nthe page, {SOURCES} sources x {windows:,} windows: seconds of the browser's main thread")
        print(f"  {'':<44}{'script':>8}{'layout':>8}{'all':>8}{'columns':>9}{'paint':>8}")
        wanted = f"{_ALL} >= {SOURCES * windows * 0.98}"
        _step(page, session, f"load and draw all {SOURCES * windows:,}", lambda: _widen(page, windows), wanted)
        _step(page, session, "zoom in", lambda: page.get_by_role("button", name="Zoom in").click(), "true")
        _step(page, session, "zoom out", lambda: page.get_by_role("button", name="Zoom out").click(), "true")
        _step(page, session, "see one state only", lambda: page.locator(".st-legend button").nth(3).click(), "true")


def _widen(page: Page, windows: int) -> None:
    page.get_by_role("radio", name="Custom").click()
    start = datetime.now(UTC).timestamp() - windows * 3600
    page.get_by_label("start of the range").fill(f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M}")
    page.get_by_label("start of the range").press("Enter")


def _step(page: Page, session: CDPSession, name: str, act: Callable[[], None], wanted: str) -> None:
    before, measured = _metrics(session), _measures(page)
    act()
    page.wait_for_function(wanted, timeout=120_000)
    page.wait_for_load_state("networkidle")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after, then = _metrics(session), _measures(page)
    spent = [after[metric] - before[metric] for metric in ("ScriptDuration", "LayoutDuration", "TaskDuration")]
    ours = [(late - early) / 1000 for early, late in zip(measured, then, strict=True)]
    print(f"  {name:<44}" + "".join(f"{seconds:>8.3f}" for seconds in spent) + f"{ours[0]:>9.3f}{ours[1]:>8.3f}")


def _metrics(session: CDPSession) -> dict[str, float]:
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def _measures(page: Page) -> list[float]:
    return [float(page.evaluate(f"(name) => {_SPENT}", name)) for name in ("streams-columns", "streams-paint")]
