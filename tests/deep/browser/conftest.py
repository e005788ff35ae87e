"""A real Chromium (Debian's, `make browser`), driven by Playwright, on pages that this process serves."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from tests.support.api import cookie_of
from tests.support.harness import AppHarness
from tests.support.web import served_at

NODE: Final = Path(__file__).parents[3] / ".node"
AXE: Final = NODE / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
RULES: Final = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
SIZES: Final = ((1280, 860), (390, 844))
MISPLACED: Final = """() => {
  const found = [], within = '.visually-hidden, .scrolled, .scrolls';
  const shown = each => each.getClientRects().length && !each.closest(within);
  const named = each => each.outerHTML.replace(/\\s+/g, ' ').slice(0, 160);
  for (const card of document.querySelectorAll('.card')) {
    const edge = card.getBoundingClientRect(), style = getComputedStyle(card);
    const [left, right] = [edge.left + parseFloat(style.paddingLeft), edge.right - parseFloat(style.paddingRight)];
    for (const each of card.querySelectorAll(':scope > *, :scope > header > *, li > *')) {
      const box = each.getBoundingClientRect();
      if (shown(each) && box.width > 1 && (box.right > right + 2 || box.left < left - 2)) found.push(named(each));
    }
  }
  for (const row of document.querySelectorAll('li')) {
    const parts = [...row.children].filter(shown).map(each => [each, each.getBoundingClientRect()]);
    for (const [n, [each, box]] of parts.entries()) for (const [, other] of parts.slice(n + 1)) {
      const width = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      if (width > 2 && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 2) found.push(named(each));
    }
  }
  return found;
}"""


@dataclass
class Window:
    """A page of one person in the browser. `faults` are errors of the console and of scripts, and what the policy of
    the page has blocked."""

    tab: Any
    url: str
    faults: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        """Open a page, and wait until it has loaded."""
        await self.tab.goto(f"{self.url}{path}")
        await self.tab.wait_for_load_state("networkidle")

    async def violations(self) -> list[str]:
        """What axe finds against WCAG 2.2 AA on the page as it is now."""
        await self.tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = await self.tab.evaluate("rules => axe.run({runOnly: rules})", RULES)
        return [f"{each['id']}: {node['html'][:160]}" for each in found["violations"] for node in each["nodes"]]

    async def misplaced(self) -> list[str]:
        """What reaches out of the card that it stands in, and what of a row lies on something else of it."""
        return list(await self.tab.evaluate(MISPLACED))


class Windows:
    """Opens windows of people."""

    def __init__(self, browser: Any, url: str, harness: AppHarness) -> None:
        self._browser, self._url, self._harness = browser, url, harness

    async def of(
        self,
        name: str,
        *,
        size: tuple[int, int] = SIZES[0],
        scheme: str = "light",
        locale: str = "en-GB",
        scripts: bool = True,
    ) -> Window:
        """A window of somebody who is signed in."""
        context = await self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            locale=locale,
            java_script_enabled=scripts,
        )
        cookie = {"name": COOKIE_ON_LOCALHOST, "value": await cookie_of(self._harness, name), "url": self._url}
        await context.add_cookies([cookie])
        tab = await context.new_page()
        window = Window(tab, self._url)
        tab.on("console", lambda said: window.faults.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: window.faults.append(str(error)))
        return window


@pytest.fixture
async def windows(harness: AppHarness) -> AsyncIterator[Windows]:
    if CHROMIUM is None:
        pytest.skip("There is no Chromium here: make browser installs it.")
    sys.path.append(str(NODE))
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - it is in .node, for deep tests alone
    finally:
        sys.path.remove(str(NODE))
    served = web_app(harness.app, Metrics([]), {}, None)
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with served_at(served) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield Windows(browser, url.replace("127.0.0.1", "localhost"), harness)
        await browser.close()
