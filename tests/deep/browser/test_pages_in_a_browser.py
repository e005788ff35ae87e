"""Every page in a real browser: at two sizes, light and dark, with and without scripts; nothing that axe or the console
complains about; and flows by mouse and by keyboard alone."""

import re
from datetime import timedelta
from typing import Final

import pytest

from composer.entries import teams
from composer.model import Trust
from composer.ports.models import WorkKind
from composer.repositories.usage import Figures, LedgerKey
from composer.visibility import Grants
from tests.deep.browser.conftest import SIZES, Window, Windows
from tests.support.api import person
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


async def filled(harness: AppHarness) -> None:
    """Some of everything that alice's pages show."""
    await harness.say("bob", "The launch is on Thursday.", **ROOM)
    await harness.command("alice", "/nexus remember I prefer short answers", **DM)
    await harness.command("alice", "/nexus fact set deploy_day Friday --yes", **ROOM)
    await harness.command("alice", "/nexus landmark add The launch is on Thursday --yes", **ROOM)
    await harness.say("bob", "After a long talk. We decided to keep the old crane.", **ROOM)
    await harness.ask("alice", "what do I prefer?", **DM)
    await Hub(harness).write("alice", "We deploy on Fridays", tags=["ops"], kind="procedural")
    async with Hub(harness).request("alice") as (tx, access):
        await teams.create(tx, access, "Operations", "made", harness.clock.now())
    await proposed(harness)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)


async def proposed(harness: AppHarness) -> None:
    """Something that a tool wrote for a project of alice's, and that waits for her."""
    await harness.command("alice", "/nexus project create apollo", **DM)
    hub = Hub(harness, quarantined={Trust.TOOL})
    async with hub.request("alice") as (_, access):
        (project,) = access.projects
    grants = OF_TOOL | {Grants.WRITE_PROJECTS}
    await hub.write("alice", "We use pnpm for all packages.", "claude", project=project.id, grants=grants)


async def chosen(window: Window) -> None:
    """Choose the first memory of the list."""
    await window.tab.click(".list a >> nth=0")
    await window.tab.wait_for_selector("#detail .memory")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_opens_on_pages_is_for_everybody_s_eyes(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    await filled(harness)
    window = await windows.of("alice", size=size, scheme=scheme)
    await window.open("/memory")
    await chosen(window)
    assert await window.violations() == []
    await window.tab.click("text=Forget…")
    await window.tab.wait_for_selector("text=Forget this for good?")
    assert await window.violations() == []
    await window.open("/ask")
    await window.tab.fill("#text", "what do I prefer?")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".agent .answer")
    assert await window.violations() == []
    await window.open("/tools")
    await window.tab.fill("#vendor", "claude")
    await window.tab.click(".making button")
    await window.tab.wait_for_selector(".connecting")
    await window.tab.click(".copied.key button")
    await window.tab.wait_for_selector(".copied.key button:has-text('Copied')")
    await window.tab.fill("#try [name=question]", "What do I prefer?")
    await window.tab.click("#try button[value=mcp]")
    await window.tab.wait_for_selector("#tried:has-text('The key works')")
    await Hub(harness).write("alice", "I prefer dark roast.")
    await window.tab.click("#try button[value=mcp]")
    await window.tab.wait_for_selector("#tried:has-text('I prefer dark roast.')")
    assert await window.tab.locator("#try button[value=gateway]").count() == 0, "there is none here"
    assert await window.violations() == []
    await window.open("/tools")
    await window.tab.click(".openers a.btn >> nth=0")
    await window.tab.wait_for_selector("text=End this key?")
    assert await window.violations() == []
    assert window.faults == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
async def test_what_a_button_of_a_row_opens_stands_below_the_row(
    harness: AppHarness, windows: Windows, size: tuple[int, int]
) -> None:
    await filled(harness)
    window = await windows.of("alice", size=size)
    await window.open("/waiting")
    buttons, item = (
        window.tab.locator(".waits .acts-of >> nth=0 >> .btn:visible"),
        window.tab.locator(".waits li >> nth=0"),
    )
    before = [await each.bounding_box() for each in await buttons.all()]
    await window.tab.click(".waits .editing summary >> nth=0")
    text = await (await window.tab.wait_for_selector(".waits textarea >> nth=0")).bounding_box()
    after = [await each.bounding_box() for each in await buttons.all()]
    assert after[: len(before)] == before
    assert text["y"] > before[-1]["y"] + before[-1]["height"]
    assert text["width"] > 0.85 * (await item.bounding_box())["width"]
    assert await window.violations() == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_opens_on_pages_of_admins_is_for_everybody_s_eyes(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    await filled(harness)
    root, here = await person(harness, "root"), harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        await tx.people.set_admin(root.id, True)
        for number in range(20):
            day = (harness.clock.now() - timedelta(days=number)).date()
            key = LedgerKey(day, WorkKind.ANSWER, None, None, root.id, "gpt-4o")
            await tx.usage.add(key, Figures(calls=number, prompt_tokens=number * 1_000), 0)
    window = await windows.of("root", size=size, scheme=scheme)
    await window.open(f"/admin/people/{root.id}")
    await window.tab.click("text=Sign out everywhere…")
    assert await window.violations() == []
    await window.open("/usage?whose=everyone")
    assert await window.tab.locator("figure canvas").count() == 1
    await window.tab.click("text=As a table")
    assert await window.violations() == []
    assert window.faults == []


async def test_an_admin_changes_a_setting_and_verifies_the_log_without_scripts(
    harness: AppHarness, windows: Windows
) -> None:
    root = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(root.id, True)
    window = await windows.of("root", scripts=False)
    await window.open("/admin/settings")
    await window.tab.fill("#set-retrieval-top_k", "7")
    await window.tab.click("main form:has(#set-retrieval-top_k) button:has-text('Save')")
    await window.tab.wait_for_selector("text=Take that again")
    await window.open("/admin/audit")
    await window.tab.click("button:has-text('Verify')")
    await window.tab.wait_for_selector("text=The log is whole")
    await window.open("/usage?whose=everyone")
    await window.tab.wait_for_selector("text=No model is set up: agents answer by quoting")


async def test_a_question_is_answered_in_place_and_the_address_is_that_of_the_conversation(
    harness: AppHarness, windows: Windows
) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/ask")
    await window.tab.fill("#text", "hello there")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".agent .answer")
    assert re.search(r"/ask/[0-9a-f-]{36}$", window.tab.url)
    assert await window.tab.input_value("#text") == ""
    await window.tab.fill("#text", "and again")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(":nth-match(.agent .answer, 2)")
    await window.tab.reload()
    assert await window.tab.locator(".turn:not(.agent)").count() == 2, "both are in one conversation"
    assert window.faults == []


async def test_a_search_shows_what_fits_as_one_types(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/memory")
    await window.tab.keyboard.press("/")
    await window.tab.keyboard.type("deploy_day")
    await window.tab.wait_for_url("**/memory?q=deploy_day")
    await window.tab.wait_for_selector("#rows:not(:has(.list li:nth-child(2)))")
    assert await window.tab.locator(".list li").count() == 1
    assert window.faults == []


async def test_filters_narrow_the_list_and_the_address_says_so(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/memory")
    await window.tab.click(".chip:has-text('Facts')")
    await window.tab.wait_for_url("**/memory?shelf=facts")
    await window.tab.wait_for_selector("#rows:not(:has(.list li:nth-child(2)))")
    await window.tab.click(".chip:has-text('All')")
    await window.tab.click(".filters summary")
    await window.tab.select_option("select[name=tag]", "ops")
    await window.tab.wait_for_url("**/memory?tag=ops")
    await window.tab.wait_for_selector("#rows:has-text('We deploy on Fridays')")
    await window.tab.click(".switch label:nth-child(3)")
    await window.tab.wait_for_selector("table")
    await window.tab.check("input[data-all]")
    await window.tab.click("button:has-text('To the trash')")
    await window.tab.wait_for_selector("text=Nothing of yours fits that.")
    await window.tab.click(".chip:has-text('In trash')")
    assert window.faults == []


async def test_two_windows_see_each_other_s_changes(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    here, there = await windows.of("alice"), await windows.of("alice", size=SIZES[1])
    for window in (here, there):
        await window.tab.goto(f"{window.url}/memory")
        await window.tab.wait_for_selector(".list")
    await there.tab.goto(f"{there.url}/memory/add")
    await there.tab.fill("textarea[name=text]", "I own a red Koga.")
    await there.tab.click("text=Remember it")
    await here.tab.wait_for_selector(".list >> text=I own a red Koga.")
    await here.tab.goto(f"{here.url}/memory?view=table&q=Koga")
    await here.tab.check("input[name=id]")
    await there.tab.click(".acts-of button:has-text('To the trash')")
    await here.tab.wait_for_selector("text=Something has changed: show it")
    assert await here.tab.locator("tbody tr").count() == 1, "what is chosen stays"
    await here.tab.click("text=Something has changed: show it")
    await here.tab.wait_for_selector("text=Nothing of yours fits that.")
    assert (here.faults, there.faults) == ([], [])


async def page_of(window: Window, listed: str, name: str) -> str:
    """The address of a place by its name."""
    await window.open(listed)
    return str(await window.tab.locator(f".list.places a:has-text('{name}')").get_attribute("href"))


async def test_two_people_see_each_other_s_changes_where_they_work_together(
    harness: AppHarness, windows: Windows
) -> None:
    """On each page that is live one looks on, and the other acts: what is acted on comes by itself."""
    await filled(harness)
    for command in ("project member add apollo bob admin",):
        await harness.command("alice", f"/nexus {command}", **DM)
    await harness.command("bob", "/nexus project accept apollo", **DM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        for name in ("alice", "bob"):
            await tx.people.set_admin((await person(harness, name)).id, True)
    hers, his = await windows.of("alice"), await windows.of("bob", size=SIZES[1])

    async def looks(path: str) -> None:
        """Bob has a page open, and its stream has begun."""
        async with his.tab.expect_request(lambda asked: "/events?" in asked.url):
            await his.open(path)

    async def sees(words: str, state: str = "visible") -> None:
        await his.tab.wait_for_selector(f"main >> text={words}", state=state)

    project = await page_of(hers, "/rooms", "apollo")
    await looks("/rooms")
    await hers.tab.fill("#new input[name=name]", "zephyr")
    await hers.tab.click("#new button")
    await hers.tab.wait_for_url("**/projects/*")
    zephyr = hers.tab.url.removeprefix(hers.url).partition("?")[0]
    await harness.command("alice", "/nexus project member add zephyr bob read", **DM)
    await sees("invites you to project zephyr")
    await looks(f"{project}?view=decisions")
    await harness.command("alice", "/nexus project assign apollo --yes", **DM)
    await harness.command("alice", "/nexus landmark add we ship zqbirch --project --yes", **DM)
    await sees("we ship zqbirch")
    await looks(f"{project}?view=facts")
    await harness.command("alice", "/nexus fact set zqday Monday --project --yes", **DM)
    await sees("zqday")
    await looks("/rooms")
    await hers.open(f"{zephyr}?view=people")
    await hers.tab.click("button:has-text('Withdraw')")
    await sees("invites you to project zephyr", "hidden")

    await looks("/team")
    await hers.open("/team")
    await hers.tab.fill("#new input[name=name]", "Crew")
    await hers.tab.click("#new button")
    await hers.tab.wait_for_url("**/team/*")
    team = hers.tab.url.removeprefix(hers.url).partition("?")[0]
    await hers.open(f"{team}?view=people&q=bob")
    await hers.tab.click("button:has-text('Invite')")
    await sees("invites you to the team Crew")

    await looks("/tools")
    other = await windows.of("bob")
    await other.open("/tools")
    await other.tab.fill("#vendor", "zqtool")
    await other.tab.click("button:has-text('Make a key')")
    await sees("zqtool")

    await looks("/ask/conversations")
    await other.open("/ask")
    await other.tab.fill("#text", "zqbirch or oak?")
    await other.tab.click(".composer button:has-text('Ask')")
    await sees("zqbirch or oak")
    await looks("/ask")
    await other.open("/ask")
    await other.tab.fill("#text", "zqpine or fir?")
    await other.tab.click(".composer button:has-text('Ask')")
    await his.tab.wait_for_selector("#sessions >> text=zqpine or fir", state="attached")

    await looks("/invitations")
    await hers.open("/invitations")
    await hers.tab.fill("input[name=name]", "Zqdana")
    await hers.tab.click("form button:has-text('link')")
    await sees("Zqdana")
    await looks("/admin/people")
    await harness.say("zqnora", "good morning", room="general")
    await sees("zqnora")
    assert (hers.faults, his.faults, other.faults) == ([], [], [])


async def test_nothing_is_taken_from_under_who_types_or_reads(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice")
    project = await page_of(window, "/rooms", "apollo")

    async def changed(n: int) -> None:
        await harness.command("alice", f"/nexus fact set zqday{n} Monday --project --yes", **DM)

    await harness.command("alice", "/nexus project assign apollo --yes", **DM)
    async with window.tab.expect_request(lambda asked: "/events?" in asked.url):
        await window.open(f"{project}?view=people")
    box = window.tab.locator("#shown input[name=q]")
    await box.fill("bo")
    await changed(1)
    await window.tab.wait_for_selector("text=Something has changed: show it")
    assert await box.input_value() == "bo"
    assert await box.evaluate("each => each === document.activeElement")
    await box.evaluate("each => each.blur()")
    await changed(2)
    assert await box.input_value() == "bo", "what was typed stays, too, once one looks elsewhere"
    await window.tab.click("text=Something has changed: show it")
    await window.tab.wait_for_selector("#shown .chip:has-text('Facts 2')")
    assert window.faults == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
async def test_what_one_may_open_is_found_by_keyboard_from_any_page(
    harness: AppHarness, windows: Windows, size: tuple[int, int]
) -> None:
    await filled(harness)
    window = await windows.of("alice", size=size, scheme="dark")
    await window.open("/privacy")
    await window.tab.keyboard.press("Control+k")
    await window.tab.wait_for_selector("#found a")
    await window.tab.keyboard.type("short answers")
    await window.tab.wait_for_selector("#found a:has-text('I prefer short answers')")
    await window.tab.wait_for_selector("#found:not(:has-text('Privacy'))")
    assert await window.violations() == []
    await window.tab.keyboard.press("ArrowDown")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector("#detail .memory")
    await window.tab.keyboard.press("Control+k")
    await window.tab.wait_for_selector("#find[open]")
    await window.tab.keyboard.press("Escape")
    assert await window.tab.locator("#find[open]").count() == 0
    await window.open("/find?q=general")
    assert await window.violations() == []
    assert window.faults == []


async def test_a_point_of_the_map_opens_beside_it(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/memory/map")
    await window.tab.click(".zoom button >> nth=0")
    assert await window.tab.get_attribute("svg.points", "viewBox") != "0 0 1000 640"
    await window.tab.click(".zoom button >> nth=2")
    await window.tab.click("svg.points circle >> nth=0")
    await window.tab.wait_for_selector("#detail .memory")
    assert await window.violations() == []
    assert window.faults == []


async def test_without_scripts_every_point_of_the_map_is_a_link(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice", scripts=False)
    await window.open("/memory/map")
    points = window.tab.locator("svg.points a")
    assert await points.count() > 1
    assert await window.tab.locator("svg.points a[tabindex='-1']").count() == 0
    await points.last.focus()
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_url("**/memory/*-*")
    assert await window.tab.locator("#detail .memory").count() == 1


async def test_one_memory_is_forgotten_by_keyboard_alone(harness: AppHarness, windows: Windows) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    window = await windows.of("alice")
    await window.open("/memory")

    async def press(label: str) -> None:
        for _ in range(60):
            await window.tab.keyboard.press("Tab")
            if label in await window.tab.evaluate("document.activeElement.textContent"):
                await window.tab.keyboard.press("Enter")
                return
        raise AssertionError(f"{label} is not reached by the keyboard")

    await press("the heron likes the vault")
    await window.tab.wait_for_selector("#detail .memory")
    await press("Forget…")
    await window.tab.wait_for_selector("text=Forget this for good?")
    await press("Forget it for good")
    await window.tab.wait_for_selector("text=Receipt")
    await window.open("/memory")
    assert await window.tab.locator("text=heron").count() == 0
    assert window.faults == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_decisions_are_amended_and_accepted_where_they_are_shown(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    for text in ("After a long talk. We decided to ship on Fridays.", "We decided to use Postgres."):
        await harness.say("bob", text, **ROOM)
    await harness.say("alice", "good morning", **ROOM)
    window = await windows.of("alice", size=size, scheme=scheme)
    await window.open("/waiting")
    await window.tab.click("summary:has-text('Amend…') >> nth=0")
    assert await window.violations() == []
    await window.tab.fill(".waits li:nth-child(1) textarea", "We ship on Mondays.")
    await window.tab.click("button:has-text('Save as the new version') >> nth=0")
    await window.tab.wait_for_selector("text=1 thing waits for you.")
    await window.tab.click(".waits .head-of a")
    await window.tab.wait_for_selector(".column[data-state=current]:has-text('We ship on Mondays.')")
    assert await window.violations() == []
    await window.tab.focus(".column[data-state=proposed] button:has-text('Accept')")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".column[data-state=current]:has-text('We decided to use Postgres.')")
    assert window.faults == []


async def test_everything_works_without_scripts(harness: AppHarness, windows: Windows) -> None:
    await proposed(harness)
    window = await windows.of("alice", scripts=False)
    await window.open("/waiting")
    await window.tab.click("button:has-text('Accept')")
    await window.tab.wait_for_selector("text=Nothing waits for you.")
    await window.open("/tools")
    await window.tab.fill("#vendor", "claude")
    await window.tab.click(".making button")
    await window.tab.wait_for_selector(".copied.key")
    await window.open("/rooms")
    await window.tab.fill("#new input[name=name]", "zeus")
    await window.tab.click("#new button")
    await window.tab.wait_for_selector("h1:has-text('zeus')")
    await window.open("/memory")
    await window.tab.click("a:has-text('Add')")
    await window.tab.fill("textarea[name=text]", "I own a red Koga.")
    await window.tab.click("text=Remember it")
    await window.tab.wait_for_selector("#detail .memory")
    await window.open("/ask")
    await window.tab.fill("#text", "what do I own?")
    await window.tab.click("button:has-text('Ask')")
    await window.tab.wait_for_selector(".agent .answer")


async def test_points_of_the_map_are_reached_and_opened_by_keys_alone(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/memory/map")
    await window.tab.focus(".zoom button >> nth=2")
    await window.tab.keyboard.press("Tab")
    seen = set()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft"):
        await window.tab.keyboard.press(key)
        seen.add(await window.tab.evaluate("document.activeElement.getAttribute('href')"))
        assert await window.tab.locator("svg.points a[tabindex='0']").count() == 1
    assert len(seen) > 1
    assert all(each.startswith("/memory/") for each in seen)
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector("#detail .memory")
    assert await window.violations() == []
    assert window.faults == []


async def test_enter_opens_what_fits_the_words_and_not_what_was_found_before(
    harness: AppHarness, windows: Windows
) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await window.open("/privacy")
    await window.tab.keyboard.press("Control+k")
    await window.tab.wait_for_selector("#found a:has-text('Ask')")
    await window.tab.keyboard.type("short answers")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_url("**/memory/*")
    assert window.faults == []


PINCH: Final = """() => {
  const map = document.querySelector("svg.points"), box = map.getBoundingClientRect();
  const at = (type, pointerId, x) => map.dispatchEvent(new PointerEvent(type, {
    pointerId, pointerType: "touch", bubbles: true, buttons: 1,
    clientX: box.x + box.width / 2 + x, clientY: box.y + box.height / 2,
  }));
  at("pointerdown", 1, -20); at("pointerdown", 2, 20); at("pointermove", 1, -60); at("pointermove", 2, 60);
  at("pointerup", 1, -60); at("pointerup", 2, 60);
  return map.viewBox.baseVal.width;
}"""


async def test_two_fingers_zoom_the_map_and_one_need_not_meet_a_point(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    window = await windows.of("alice", size=SIZES[1])
    await window.open("/memory/map")
    assert await window.tab.evaluate(PINCH) < 400
    await window.tab.evaluate("document.querySelector('[data-zoom=\"\"]').click()")
    point = await window.tab.locator("svg.points circle >> nth=0").bounding_box()
    await window.tab.mouse.click(point["x"] + point["width"] + 8, point["y"] + point["height"] / 2)
    await window.tab.wait_for_selector("#detail .memory")
    assert window.faults == []
