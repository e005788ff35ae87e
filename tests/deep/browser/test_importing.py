"""The page Import in a browser: with scripts and without, wide and narrow."""

import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from composer.settings import Settings, TenantSettings
from tests.deep.browser.conftest import SIZES, Window, Windows
from tests.deep.integration.test_pages_import import make_admin
from tests.deep.integration.test_uploads import export, messages
from tests.support.exports import ALICE, BOB, CAROL, TEAM, slack_said
from tests.support.harness import AppHarness, open_harness

CHANNELS = ("general", "engineering", "launch-of-the-very-long-named-harbour-project", "random")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    own = TenantSettings(workspaces=("acme", TEAM))
    many = {"requests_per_minute": 10_000, "admin_requests_per_minute": 10_000, "tenants": {"acme": own}}
    async with open_harness(settings.model_copy(update=many)) as harness:
        harness.clock.set(datetime(2026, 6, 1, 9, 0, tzinfo=UTC))
        await make_admin(harness)
        yield harness


def acme() -> bytes:
    """An export of some channels."""
    days = {
        f"{name}/2026-05-04": [
            slack_said(f"{1777885200 + 600 * n}.{number:06d}", (ALICE, BOB, CAROL)[n % 3], f"{name} {n}")
            for n in range(12 // (number + 1))
        ]
        for number, name in enumerate(CHANNELS)
    }
    days["leads/2026-05-04"] = [slack_said("1777885200.000100", ALICE, "carol gets a raise")]
    return export(days, channels=[{"id": f"C{n}", "name": name} for n, name in enumerate(CHANNELS)])


async def drop(window: Window, *, scripts: bool = True) -> None:
    """Give the page a file, and wait until what is in it is shown."""
    await window.open("/admin/import")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "acme-export.zip"
        path.write_bytes(acme())
        await window.tab.set_input_files("#file", str(path))
        await window.tab.click("button:has-text('See what is in it')")
    while not scripts and not await window.tab.locator("#upload table").count():
        await window.open("/admin/import")
    await window.tab.wait_for_selector("#upload table")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_export_is_imported_and_undone(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    window = await windows.of("root", size=size, scheme=scheme)
    await window.open("/admin/import")
    assert await window.violations() == []
    await drop(window)
    assert await window.violations() == []
    wide = await window.tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    await window.tab.click("label:has-text('random')")
    await window.tab.click("button:has-text('Import the chosen channels')")
    await window.tab.wait_for_selector("text=new messages")
    assert await window.violations() == []
    assert {text.split()[0] for _, text in await messages(harness)} == set(CHANNELS[:-1])
    await window.tab.click("summary:has-text('Undo')")
    assert await window.violations() == []
    await window.tab.click("button:has-text('Erase them')")
    await window.tab.wait_for_selector("#imports")
    assert await window.misplaced() == []
    assert window.faults == []


async def test_it_works_without_scripts(harness: AppHarness, windows: Windows) -> None:
    window = await windows.of("root", scripts=False)
    await drop(window, scripts=False)
    await window.tab.click("button:has-text('Import the chosen channels')")
    while not await window.tab.locator("text=new messages").count():
        await window.open("/admin/import")
    assert len(await messages(harness)) > 20
