"""What one opens on a page stands where one looks, at every size."""

from typing import Any

import pytest

from tests.deep.browser.conftest import SIZES, Windows
from tests.support.entries import Hub
from tests.support.harness import AppHarness

ROOM: dict[str, Any] = {"room": "general"}
# By how many pixels the text of each name that has a sign stands off the words before it.
OFF: str = """() => [...document.querySelectorAll('.done .by')].map(line => {
  const [word, name] = [line.querySelector('b'), line.querySelector('a span')];
  return Math.abs(word.getBoundingClientRect().bottom - name.getBoundingClientRect().bottom);
})"""


@pytest.mark.parametrize("size", [(1280, 800), SIZES[1]])
async def test_sharing_a_memory_needs_no_scrolling(
    windows: Windows, harness: AppHarness, size: tuple[int, int]
) -> None:
    hub = Hub(harness)
    entry = (await hub.write("alice", "I prefer aisle seats on trains, and a window on flights.")).entry.id
    window = await windows.of("alice", size=size)
    await window.open("/team")
    await window.tab.fill("#new input[name=name]", "Design")
    await window.tab.click("#new button")
    await window.open(f"/memory/{entry}")
    before = await window.tab.evaluate("scrollY")
    await window.tab.click("summary:has-text('Share…')")
    button = window.tab.locator(f"form[action='/memory/{entry}/share'] .btn:not([data-variant])")
    box = await button.bounding_box()
    assert 0 <= box["y"] <= box["y"] + box["height"] <= size[1]
    assert await window.tab.evaluate("scrollY") == before
    assert await window.misplaced() == []


async def test_a_name_with_a_sign_stands_on_its_line(windows: Windows, harness: AppHarness) -> None:
    await harness.say("alice", "We decided to ship the heron on Fridays.", **ROOM)
    window = await windows.of("alice")
    await window.open("/team")
    off = await window.tab.evaluate(OFF)
    assert off
    assert max(off) < 1
