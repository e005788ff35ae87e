"""A form in a real browser: refused on its page with what was typed, and left by Escape and by Cancel."""

import pytest

from tests.deep.browser.conftest import SIZES, Windows
from tests.support.harness import AppHarness


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
async def test_a_form_is_refused_on_its_page_and_left_by_escape(
    harness: AppHarness, windows: Windows, size: tuple[int, int]
) -> None:
    scheme = "light" if size[0] > 1000 else "dark"
    window = await windows.of("alice", size=size, scheme=scheme)
    tab = window.tab
    await window.open("/you")
    await tab.fill("#zone", "Mars/Base")
    await tab.press("#zone", "Enter")
    await tab.wait_for_selector("form .alert")
    assert await tab.input_value("#zone") == "Mars/Base"
    assert await tab.evaluate("document.activeElement.className") == "alert"
    assert await tab.evaluate("location.pathname") == "/you"
    assert await window.violations() == []
    await window.open("/memory/add")
    await tab.fill("textarea[name=text]", "The heron nests in March")
    await tab.click("text=Remember it")
    await tab.wait_for_selector("#detail article")
    assert await tab.evaluate("document.activeElement.tagName") == "ARTICLE"
    await tab.click("details.editing summary")
    await tab.fill("details.editing textarea", "zq")
    await tab.keyboard.press("Escape")
    assert await tab.locator("details.editing[open]").count() == 0
    assert await tab.evaluate("document.activeElement.tagName") == "SUMMARY"
    await tab.click("details.editing summary")
    assert await tab.input_value("details.editing textarea") == "The heron nests in March"
    await tab.click("details.editing[open] [data-close]")
    assert await tab.locator("details.editing[open]").count() == 0
    assert await window.violations() == []
    await tab.set_viewport_size({"width": size[0], "height": 900})
    for path in ("/tools", "/team", "/waiting", "/you"):
        await window.open(path)
        frame = await tab.evaluate("Math.ceil(document.querySelector('.frame').getBoundingClientRect().bottom)")
        assert await tab.evaluate("document.documentElement.scrollHeight") <= max(900, frame), path
