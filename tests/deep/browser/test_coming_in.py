"""Coming to an organisation by a link in a real browser: at two sizes, light and dark, by keyboard, without scripts."""

import re

import pytest

from bot.console.operations import set_admin
from tests.deep.browser.conftest import SIZES, Window, Windows
from tests.support.harness import AppHarness


async def made(harness: AppHarness, windows: Windows, name: str = "Dana", **options: object) -> tuple[Window, str]:
    """The window of an admin in which an invitation was made, and its link."""
    await harness.say("alice", "hello", room="general")
    await set_admin(harness.app, harness.name, "alice", True)
    window = await windows.of("alice", **options)  # type: ignore[arg-type]
    await window.open("/invitations")
    await window.tab.fill("#invited", name)
    await window.tab.click("button:has-text('Make a link')")
    await window.tab.wait_for_selector(".copied.key")
    link = await window.tab.inner_text(".copied.key pre")
    return window, link[link.index("/invite") :]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_of_invitations_are_for_everybody_s_eyes(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    window, link = await made(harness, windows, "Dana " * 12, size=size, scheme=scheme)
    assert await window.violations() == []
    await window.tab.context.clear_cookies()
    for path in (link, "/invitations"):
        if path == "/invitations":
            window = await windows.of("alice", size=size, scheme=scheme)
        await window.open(path)
        assert await window.violations() == [], path
        wide = await window.tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, path
        assert window.faults == []


async def test_somebody_joins_by_keyboard_alone(harness: AppHarness, windows: Windows) -> None:
    window, link = await made(harness, windows, "")
    await window.tab.context.clear_cookies()
    await window.open(link)
    await window.tab.keyboard.type("nexus")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector("text=An agent, an app or a group is called so")
    assert await window.violations() == []
    assert await window.tab.evaluate("document.activeElement.id") == "name"
    await window.tab.keyboard.press("Control+A")
    await window.tab.keyboard.type("Dana Moss")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_url(re.compile(r"/ask$"))
    assert await window.tab.locator("text=Dana Moss").count()
    assert [each for each in window.faults if "422" not in each] == []


async def test_somebody_joins_without_scripts(harness: AppHarness, windows: Windows) -> None:
    window, link = await made(harness, windows, "<b>Dana</b>", scripts=False)
    await window.tab.context.clear_cookies()
    await window.open(link)
    await window.tab.fill("#name", "Dana")
    await window.tab.click("button:has-text('Join')")
    await window.tab.wait_for_url(re.compile(r"/ask$"))
