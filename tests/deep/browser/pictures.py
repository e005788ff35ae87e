"""The pictures of docs/web: every page with the sample company, as `make web` shows it. `make pictures` takes them."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

from composer.app import open_app
from composer.model import CONSOLE
from composer.ports.models import WorkKind
from composer.repositories.usage import Figures, LedgerKey
from composer.settings.loading import load_settings
from tests.deep.browser.conftest import CHROMIUM, NODE

ROOT: Final = Path(__file__).parents[3]
PICTURES: Final = ROOT / "docs" / "web"
LINK: Final = re.compile(r"http://\S+/login\?code=\S+")
THINGS: Final = [
    *(
        "I prefer aisle seats on trains.",
        "My flight to Lisbon leaves at seven.",
        "The hotel in Porto has a late check-in.",
    ),
    *("I take the night train to Vienna.", "My passport expires next summer.", "I get a window seat on flights."),
    *("We use pnpm for all packages.", "Postgres runs version 18 in production.", "The cache is never a store."),
    *("Deploys happen on Tuesdays.", "The staging cluster is rebuilt every Monday.", "The old API ends in March."),
    *(
        "Headings use Inter, weight 650.",
        "The logo keeps eight pixels of space around it.",
        "Colours come from the palette.",
    ),
    *(
        "We hire two backend engineers.",
        "Interviews are done in pairs.",
        "The candidate portal moves to a new address.",
    ),
    *("I am allergic to peanuts.", "Dinner with the Oslo team is at the harbour.", "I drink no coffee after noon."),
    *(
        "The relaunch costs 40,000 euros.",
        "The press kit is due a week before the launch.",
        "The app store needs two days.",
    ),
]
WIDE: Final = {"width": 1280, "height": 800}
NARROW: Final = {"width": 390, "height": 800}
WORK: Final = (
    (WorkKind.ANSWER, "gpt-5"),
    (WorkKind.ANSWER, "gpt-5-mini"),
    (WorkKind.EXTRACTION, "gpt-5-mini"),
    (WorkKind.EMBEDDING, "text-embedding-3-small"),
)


def main() -> int:
    """Take all pictures; returns 1 where there is no browser."""
    if CHROMIUM is None:
        print("There is no Chromium here: make browser installs it.", file=sys.stderr)
        return 1
    sys.path.append(str(NODE))
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it is in .node, for deep tests alone

    home = Path(tempfile.mkdtemp(prefix="nexus-pictures-"))
    home.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"NEXUS_HOME": str(home), "NEXUS_WEB_PORT": str(port), "NEXUS_TIMEZONE": "Europe/Berlin"}
    command = [sys.executable, "-m", "bot.console.main", "web", "--sample"]
    served = subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        link = next(line.strip() for line in served.stdout if LINK.match(line))
        asyncio.run(_use_models(os.environ | settings))
        PICTURES.mkdir(exist_ok=True)
        with sync_playwright() as playwright:
            flags = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            _take(browser, link)
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(30)
        shutil.rmtree(home, ignore_errors=True)
    return 0


async def _use_models(environment: Mapping[str, str]) -> None:
    """Let alice be an admin, and record what models would have used in a month: the sample company has none."""
    settings = load_settings(environment, ROOT)
    random = Random(7)
    async with open_app(settings, index=False) as app:
        here = app.directory.workspace(CONSOLE, "sample")
        agent, today = app.directory.agents(here.tenant_id)[0], app.clock.now().date()
        async with app.database.transaction(here.tenant_id) as tx:
            found = await tx.people.find_user_ids(CONSOLE, here.name, ["alice", "bob", "carol"])
            await tx.people.set_admin(found["alice"], True)
            for days_ago, user, (kind, model) in product(range(40), found.values(), WORK):
                day, calls = today - timedelta(days=days_ago), random.randint(1, 7)
                if day.weekday() < 5 and random.random() < 0.7:
                    read, written = calls * random.randint(700, 3_000), calls * random.randint(60, 300)
                    key = LedgerKey(day, kind, agent.id, None, user, model)
                    await tx.usage.add(key, Figures(calls=calls, prompt_tokens=read, completion_tokens=written), 0)


def _take(browser: Any, link: str) -> None:
    context = browser.new_context(viewport=WIDE, locale="en-GB")
    page, base = context.new_page(), link.partition("/login")[0]
    page.goto(link)
    page.click("button")
    page.goto(f"{base}/ask")
    page.select_option("select[name=project]", label="In project launch")
    page.fill("#text", "when is the launch, and why was it moved?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".agent .answer")
    page.reload()
    _picture(page, "ask")
    page.goto(f"{base}/waiting")
    _picture(page, "waiting")
    page.click(".waits li:has-text('leave from 7 December') button:has-text('Accept')")
    page.wait_for_selector("text=Accepted")
    page.goto(f"{base}/memory")
    page.click(".list a:has-text('leave from 7 December')")
    page.wait_for_selector("#detail .memory")
    _picture(page, "memory")
    page.emulate_media(color_scheme="dark")
    page.reload()
    _picture(page, "memory-dark")
    page.emulate_media(color_scheme="light")
    page.reload()
    page.click("text=Forget…")
    page.wait_for_selector("text=Forget this for good?")
    _picture(page, "forget")
    for tool in ("claude", "cursor"):
        page.goto(f"{base}/tools")
        page.fill("#vendor", tool)
        page.click(".making button")
        page.wait_for_selector(".copied.key")
    page.goto(f"{base}/tools")
    _picture(page, "tools")
    page.goto(f"{base}/usage?whose=everyone")
    _picture(page, "usage")
    page.goto(f"{base}/admin")
    page.click("text=run now >> nth=0")
    page.wait_for_url("**/admin#jobs")
    page.goto(f"{base}/admin")
    _picture(page, "admin")
    page.goto(f"{base}/rooms")
    page.click(".places a:has-text('general')")
    page.wait_for_selector(".month")
    _picture(page, "room")
    page.goto(f"{base}/rooms")
    page.click("a[href^='/projects/']:has-text('launch')")
    page.wait_for_selector(".place h1")
    _picture(page, "project")
    _remember(page, base)
    page.goto(f"{base}/memory/map")
    while page.locator("svg.points circle").count() < len(THINGS):  # they are being indexed
        page.wait_for_timeout(500)
        page.reload()
    page.click(".points-list a >> nth=1")
    page.wait_for_selector("#detail .memory")
    _picture(page, "map")
    page.goto(f"{base}/memory/timeline?month=2026-11")
    _picture(page, "timeline")
    page.keyboard.press("Control+k")
    page.keyboard.type("launch")
    page.wait_for_selector("#found a:has-text('launch')")
    _picture(page, "find")

    page.goto(f"{base}/team")
    page.fill("#new input[name=name]", "Operations")
    page.click("#new button")
    page.wait_for_selector(".place h1")
    page.goto(f"{base}/team")
    _picture(page, "team")
    for name in ("privacy", "rooms"):
        page.goto(f"{base}/{name}")
        _picture(page, name)
    page.set_viewport_size(NARROW)
    page.goto(f"{base}/memory")
    _picture(page, "memory-390")


def _remember(page: Any, base: str) -> None:
    """Bring in some more of what somebody may have stored in three weeks."""
    kinds = ("preference", "note", "fact", "decision")
    entries = [
        {"content": text, "kind": kinds[n % 4], "created_at": f"2026-11-{1 + n * n % 13:02}T{8 + n % 9:02}:15:00Z"}
        for n, text in enumerate(THINGS)
    ]
    document = {"format": "nexus-entries", "version": 1, "entries": entries}
    page.goto(f"{base}/memory/import")
    file = {"name": "entries.json", "mimeType": "application/json", "buffer": json.dumps(document).encode()}
    page.set_input_files("input[type=file]", file)
    page.click("form.filling button")
    page.wait_for_selector("text=Brought in")


def _picture(page: Any, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=str(PICTURES / f"{name}.png"))


if __name__ == "__main__":
    raise SystemExit(main())
