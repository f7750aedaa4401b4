"""One api-server and one browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.browser import headless_chromium
from tests.airflow.ui import story
from tests.airflow.ui.server import NOW, PATIENCE, ApiServer, api_server


@pytest.fixture(scope="session")
def page_server(migrated_database: Path) -> Iterator[ApiServer]:
    """The api-server over a month of the shop, and one reader that two DAGs share."""
    with api_server(migrated_database) as server:
        story.write(server.journal_url, [*story.the_shop(), *story.shared()], NOW)
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Of one module only: while Playwright runs, it owns the event loop that asynchronous tests would need."""
    with headless_chromium() as browser:
        yield browser


@pytest.fixture
def open_page(page_server: ApiServer, chromium: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(user="admin", scheme="light")` gives Playwright's page; fails on any error in the script."""
    contexts, errors = [], []

    def opened(user: str = "admin", scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.clock.set_fixed_time(NOW)
        context.add_cookies([{"name": "_token", "value": page_server.token(user), "url": page_server.url}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{page_server.url}/plugin/streams", wait_until="domcontentloaded")
        page.wait_for_selector(".st-page:not([data-phase='loading'])")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
