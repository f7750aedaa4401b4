"""The page in a real browser, on a real api-server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from tests.airflow.ui import story
from tests.airflow.ui.server import NOW, PATIENCE

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

DRAWN = "[...document.querySelectorAll('.st-lane')].every((lane) => lane.dataset.windows !== '')"
WAKE = "document.dispatchEvent(new Event('visibilitychange'))"
ORDERS = ".st-lane[aria-label*='shop/orders/events']"


def drawn(page, rows: int):
    """The page once all lanes have their windows."""
    page.wait_for_function(f"document.querySelectorAll('.st-lane').length === {rows} && {DRAWN}")
    return page


def month(page) -> None:
    """Thirty days, all of them drawn."""
    page.get_by_role("radio", name="Month").click()
    covered = "Number(document.querySelector('.st-legend [data-count=covered]').innerText.replaceAll(',', ''))"
    page.wait_for_function(f"{covered} > 7000")


def counts(page) -> dict[str, int]:
    """The legend."""
    numbers = page.locator(".st-legend [data-count]")
    return {
        numbers.nth(at).get_attribute("data-count"): int(numbers.nth(at).inner_text().replace(",", ""))
        for at in range(numbers.count())
    }


@pytest.mark.slow
def test_a_month_of_all_sources_is_counted_as_it_was_written(open_page):
    page = drawn(open_page(), 9)
    month(page)
    chapters = [*story.the_shop(), *story.shared()]
    shown = counts(page)
    for state in ("failed", "lost", "running"):
        assert shown[state] == sum(len(getattr(chapter, state)) for chapter in chapters), state
    # the oldest windows may be just outside of 30 days; no gap is there
    unread = sum(len(chapter.missing | chapter.planned) for chapter in story.the_shop())
    assert 0 <= shown["missing"] - unread <= 9
    assert shown["covered"] > 7_000


@pytest.mark.slow
def test_there_is_no_element_per_window(open_page):
    page = drawn(open_page(), 9)
    few = page.locator(".st-table *").count()
    month(page)
    assert page.locator(".st-table *").count() < few + 30


def test_the_page_asks_nobody_but_its_own_server(open_page, page_server, chromium):
    context = chromium.new_context()
    context.clock.set_fixed_time(NOW)
    context.add_cookies([{"name": "_token", "value": page_server.token("admin"), "url": page_server.url}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{page_server.url}/plugin/streams", wait_until="domcontentloaded")
    drawn(page, 9)
    context.close()
    ours = [url for url in asked if "/streams/" in url]
    assert any(url.endswith("api/sources") for url in ours)
    assert {urlsplit(url).hostname for url in asked if not url.startswith(("data:", "blob:"))} == {"localhost"}


@pytest.mark.slow
def test_the_page_follows_the_theme(open_page):
    background = "getComputedStyle(document.querySelector('.st-page')).backgroundColor"
    light = drawn(open_page(scheme="light"), 9)
    dark = drawn(open_page(scheme="dark"), 9)
    assert light.evaluate(background) == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark.evaluate(background)))) < 60
    light.evaluate("document.documentElement.className = 'dark'")
    light.wait_for_selector(".st-page.st-dark")
    assert light.evaluate(background) == dark.evaluate(background)


def test_a_click_leads_to_the_run_and_its_receipt(open_page):
    page = drawn(open_page(), 9)
    lane = page.locator(ORDERS)
    box = lane.bounding_box()
    # the last window but one: two before the one that is running
    hour = box["width"] / (24 * 1.02)
    back = (NOW.minute / 60) + 2.5
    page.mouse.move(box["x"] + box["width"] / 1.02 - back * hour, box["y"] + box["height"] / 2)
    page.wait_for_selector(".st-tip >> text=covered")
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector(".st-panel .st-runs")
    link = page.locator(".st-panel .st-link").first
    assert re.search(r"/dags/shop_orders/runs/scheduled__.*/tasks/read$", link.get_attribute("href"))
    facts = page.locator(".st-panel .st-facts").first.inner_text()
    assert re.search(r"Rows\s+[\d,]+", facts)
    assert re.search(r"Verdict\s+complete", facts)


def test_a_drag_previews_a_backfill_and_gives_its_command(open_page):
    page = drawn(open_page(), 9)
    box = page.locator(ORDERS).bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=4)
    page.mouse.move(box["x"] + box["width"] - 2, middle, steps=4)
    page.wait_for_selector(".st-tip >> text=/\\d+ windows: /")
    page.mouse.up()
    page.wait_for_selector(".st-command")
    panel = page.locator(".st-panel")
    assert panel.locator(".st-badge-missing").inner_text() == "3 missing"
    assert panel.locator(".st-badge-failed").inner_text() == "2 failed"
    command = panel.locator(".st-command > code").inner_text()
    assert "persistent://shop/orders/events" in command
    assert "--select missing" in command
    panel.get_by_role("radio", name="Failed").click()
    page.wait_for_selector(".st-command >> text=--select failed")
    assert panel.locator(".st-badge-missing").count() == 0


def test_everything_can_be_done_by_keyboard(open_page):
    page = drawn(open_page(), 9)
    page.locator(ORDERS).focus()
    said = lambda: page.locator(ORDERS).get_attribute("aria-valuetext")  # noqa: E731 - asked five times
    page.keyboard.press("p")
    assert "failed" in said()
    page.keyboard.press("ArrowLeft")
    assert "failed" in said()
    page.keyboard.press("ArrowLeft")
    assert re.search(r"covered, [\d,]+ rows", said())
    page.keyboard.press("Enter")
    page.wait_for_selector(".st-panel .st-runs")
    assert page.evaluate("document.activeElement.className") == "st-panel"
    page.keyboard.press("Escape")
    page.wait_for_selector(".st-panel", state="detached")
    page.keyboard.press("n")
    assert "failed" in said(), "the place is kept"
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_selector(".st-command")
    assert said().startswith("selected")
    assert "3 windows: 2 covered, 1 failed" in said()
    page.keyboard.press("ArrowDown")
    assert "shop/orders/returns" in page.evaluate("document.activeElement.getAttribute('aria-label')")


@pytest.fixture
def new_reader(page_server):
    """Writes the first three windows of a reader whose DAG only `admin` and `newcomer` may read."""
    chapter = story.Chapter("fake:fake_default:numbers", "new_numbers.read", 3)
    yield lambda: story.write(page_server.journal_url, [chapter], NOW)
    story.forget(page_server.journal_url, chapter.reader)


@pytest.mark.slow
def test_a_new_reader_appears_by_itself_on_an_empty_page(open_page, new_reader):
    page = open_page(user="newcomer")
    page.wait_for_selector("text=No windows yet")
    new_reader()
    page.evaluate(WAKE)
    page.wait_for_selector(".st-lane[aria-label*='numbers'][data-windows='3']")
    assert "new_numbers.read" in page.locator(".st-row").inner_text()
    assert counts(page)["covered"] == 3


def test_a_filter_shows_only_what_matches(open_page):
    page = open_page(user="shopkeeper")
    page.wait_for_selector(ORDERS)
    page.get_by_label("Filter sources").fill("PAYMENTS")
    drawn(page, 1)
    page.get_by_label("Filter sources").fill("nothing like it")
    page.wait_for_selector("text=No source matches")


def test_who_may_read_no_dag_is_told_so(open_page):
    page = open_page(user="stranger")
    page.wait_for_selector("text=Nothing you may see")
    assert page.locator(".st-lane").count() == 0


def test_a_server_that_fails_leaves_what_was_seen_and_says_so(open_page):
    page = drawn(open_page(user="shopkeeper"), 5)
    detail = '{"detail": "The journal\'s database does not answer."}'
    page.route("**/streams/api/sources", lambda route: route.fulfill(status=503, body=detail))
    page.evaluate(WAKE)
    page.wait_for_selector(".st-banner >> text=does not answer")
    assert page.locator(".st-lane").count() == 5
    page.unroute("**/streams/api/sources")
    page.get_by_role("button", name="Try now").click()
    page.wait_for_selector(".st-banner", state="detached")
    page.context.clear_cookies()
    page.evaluate(WAKE)
    page.wait_for_selector("text=Signed out")


def drag(page, lane: str, begin: float, end: float) -> None:
    """Over a share of a lane."""
    box = page.locator(lane).bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * begin, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (begin + end) / 2, middle, steps=3)
    page.mouse.move(box["x"] + box["width"] * end, middle, steps=3)
    page.mouse.up()


PAYMENTS = ".st-lane[aria-label*='shop/payments/settled']"


@pytest.mark.slow
def test_a_span_without_windows_ends_nothing(open_page):
    page = drawn(open_page(), 9)
    page.get_by_role("radio", name="Custom").click()
    page.get_by_label("end of the range").fill("2001-01-02 00:00")
    page.get_by_label("end of the range").press("Enter")
    page.get_by_label("start of the range").fill("2001-01-01 00:00")
    page.get_by_label("start of the range").press("Enter")
    page.wait_for_function("[...document.querySelectorAll('.st-lane')].every((lane) => lane.dataset.windows === '0')")
    page.locator(ORDERS).focus()
    for key in ("Enter", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End", "n", "p", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert "no windows" in page.locator(ORDERS).get_attribute("aria-valuetext")
    assert page.locator(".st-lane").count() == 9
    drag(page, ORDERS, 0.2, 0.6)
    page.wait_for_selector(".st-panel >> text=Nothing to do")
    page.get_by_role("button", name="Latest").click()
    page.wait_for_function(f'Number(document.querySelector("{ORDERS}").dataset.windows) > 20')


@pytest.mark.slow
def test_all_of_time_can_be_looked_at(open_page):
    page = drawn(open_page(), 9)
    for _ in range(24):
        page.get_by_role("button", name="Zoom out").click()
    page.wait_for_function(
        "document.querySelector('.st-legend [data-count=covered]').innerText.replace(',', '') > 7000"
    )
    for _ in range(40):
        page.get_by_role("button", name="Zoom in").click()
    drawn(page, 9)


@pytest.mark.slow
def test_zooming_keeps_now_where_it_is(open_page):
    page = drawn(open_page(), 9)
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Zoom in").click()
    last = page.get_by_label("end of the range").input_value()
    end = datetime.strptime(last, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert abs((end - NOW).total_seconds()) < 1800, "the newest windows stay in view"


@pytest.mark.slow
def test_times_are_of_24_hours_and_what_is_none_is_refused(open_page):
    page = drawn(open_page(), 9)
    page.get_by_role("radio", name="Custom").click()
    field = page.get_by_label("start of the range")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", field.input_value())
    before = field.input_value()
    for wrong in ("2026-11-20 25:00", "2 PM", "nan", "0000-01-01"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true", wrong
    field.press("Enter")
    assert field.input_value() == before


@pytest.mark.slow
def test_tooltips_never_lie_over_the_panel(open_page):
    page = drawn(open_page(), 9)
    page.set_viewport_size({"width": 800, "height": 700})
    drag(page, ORDERS, 0.05, 0.15)
    page.wait_for_selector(".st-panel .st-big, .st-panel .st-note")
    box = page.locator(ORDERS).bounding_box()
    for share in (0.02, 0.1, 0.2):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        page.wait_for_selector(".st-tip:visible")
        edges = "['.st-tip', '.st-panel'].map((one) => document.querySelector(one).getBoundingClientRect())"
        tip, panel = page.evaluate(f"() => {edges}")
        assert tip["width"] > 0
        assert tip["right"] <= panel["left"]


@pytest.mark.slow
def test_a_drag_snaps_to_the_schedule_and_says_where_the_rows_go(open_page):
    page = drawn(open_page(), 9)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/preview/" in request.url else None)
    drag(page, ORDERS, 0.213, 0.587)
    page.wait_for_selector(".st-panel >> text=file:///lake/shop/orders/events")
    assert page.locator(".st-panel >> text=shop.orders:flatten").count()
    spans = re.findall(r"(?:start|end)=[^&]*T\d\d%3A(\d\d)%3A(\d\d)", asked[-1])
    assert spans == [("00", "00")] * 2


def test_a_gap_is_filled_by_a_button_after_the_preview(open_page, page_server):
    page = drawn(open_page(user="shopkeeper"), 5)
    drag(page, PAYMENTS, 0.5, 0.99)
    page.wait_for_selector(".st-panel >> text=not among your rights")
    assert page.get_by_role("button", name="Fill in Airflow").count() == 0
    page = drawn(open_page(), 9)
    drag(page, PAYMENTS, 0.5, 0.99)
    assert "--dag-id shop_payments" in page.locator(".st-command > code").inner_text()
    page.get_by_role("button", name="Fill in Airflow").click()
    started = page_server.airflow("backfills?dag_id=shop_payments")["backfills"]
    assert started == [], "it asks first"
    page.get_by_role("button", name="Yes, start 2 runs").click()
    page.wait_for_selector(".st-panel >> text=Started.")
    (one,) = page_server.airflow("backfills?dag_id=shop_payments")["backfills"]
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    dates = [datetime.fromisoformat(one[name]) for name in ("from_date", "to_date")]
    assert [round((hour - date).total_seconds() / 3600) for date in dates] == [2, 1], "the two windows before now"
    link = page.locator(".st-panel .st-link").first.get_attribute("href")
    assert link.endswith("/dags/shop_payments/backfills")
    page.get_by_role("button", name="Close").click()
    drag(page, PAYMENTS, 0.5, 0.99)
    page.wait_for_selector(".st-panel >> text=at work")
    assert page.get_by_role("button", name="Fill in Airflow").count() == 0, "no user starts them twice"


def test_a_reader_is_shown_with_its_holds_and_forgotten(open_page, page_server):
    chapter = story.Chapter("fake:fake_default:once", "once.read", 3)
    story.write(page_server.journal_url, [chapter], NOW)
    try:
        page = drawn(open_page(), 10)
        page.wait_for_selector(".st-row .st-held")
        page.get_by_role("button", name="shop/orders/events").click()
        page.wait_for_selector(".st-panel >> text=orders-daily")
        page.locator(".st-name", has_text="once.read").click()
        page.wait_for_selector(".st-panel[aria-label='once.read']")  # the other reader's panel has the same button
        page.get_by_role("button", name="Forget this reader").click()
        sure = page.get_by_role("button", name="Forget it for good")
        assert sure.is_disabled()
        page.get_by_label("Name of the reader").fill("once.read")
        sure.click()
        page.wait_for_selector(".st-panel", state="detached")
        drawn(page, 9)
    finally:
        story.forget(page_server.journal_url, chapter.reader)


@pytest.mark.slow
def test_overlapping_unproven_and_half_decoded_windows_are_told(open_page, page_server):
    chapter = story.Chapter(
        "fake:fake_default:twice",
        "new_twice.read",
        6,
        shifted=frozenset({2}),
        unproven=frozenset({5}),
        torn=frozenset({2}),
    )
    story.write(page_server.journal_url, [chapter], NOW)
    try:
        page = drawn(open_page(user="newcomer"), 1)
        page.wait_for_selector(".st-legend >> text=overlapping 1")
        page.wait_for_selector(".st-legend >> text=unproven 1")
        page.wait_for_selector(".st-legend >> text=undecodable events 1")
        page.locator(".st-lane").focus()
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        said = page.locator(".st-lane").get_attribute("aria-valuetext")
        assert "overlaps an earlier window" in said
        assert "5 events quarantined: could not be decoded" in said
        page.keyboard.press("Enter")
        page.wait_for_selector(".st-panel >> text=in the table twice")
        page.wait_for_selector(".st-panel >> text=airflow streams quarantine show")
    finally:
        story.forget(page_server.journal_url, chapter.reader)


@pytest.mark.slow
def test_a_first_view_shows_windows_that_can_be_aimed_at(open_page, page_server):
    old = NOW.replace(year=2024)
    chapter = story.Chapter("fake:fake_default:tutorial", "new_tutorial.read", 10, timedelta(minutes=1))
    story.write(page_server.journal_url, [chapter], old)
    try:
        page = drawn(open_page(user="newcomer"), 1)
        # the view begins where the data are; the page may ask for the last day before it knows where that is
        page.wait_for_function("document.querySelector('.st-legend [data-count=covered]').innerText === '10'")
        page.locator(".st-lane").focus()
        width = page.evaluate("document.querySelector('.st-mark').offsetWidth")
        assert width > 20
    finally:
        story.forget(page_server.journal_url, chapter.reader)


@pytest.mark.slow
def test_many_windows_are_pieces_and_a_click_looks_closer(open_page, page_server):
    chapter = story.Chapter(
        "fake:fake_default:many", "new_many.read", 30_000, timedelta(minutes=1), missing=frozenset({9})
    )
    story.write_plain(page_server.journal_url, chapter, NOW)
    try:
        page = drawn(open_page(user="newcomer"), 1)
        page.get_by_role("radio", name="Month").click()
        page.wait_for_function("Number(document.querySelector('.st-lane').dataset.windows) > 100")
        page.wait_for_function("document.querySelector('.st-legend [data-count=covered]').innerText === '29,999'")
        assert counts(page)["missing"] == 1, "one missing window among thirty thousand is seen"
        for _ in range(4):
            box = page.locator(".st-lane").bounding_box()
            page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
            page.wait_for_timeout(600)
            if page.locator(".st-panel").count():
                break
        page.wait_for_selector(".st-panel >> text=Pinned plan")
    finally:
        story.forget(page_server.journal_url, chapter.reader)
