"""The page Ask in a real browser: an answer is stopped, a question asked again, conversations found, at two sizes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from composer.settings import AgentSettings, Settings
from tests.deep.browser.conftest import SIZES, Windows
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    changed = {"agents": (AgentSettings(model="gpt-4o"),)}
    async with open_harness(settings.model_copy(update=changed), model=model) as harness:
        await harness.say("alice", "hello", room="general")
        model.gate = asyncio.Event()
        yield harness
        model.gate.set()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_answer_is_stopped_and_the_question_asked_again(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    window = await windows.of("alice", size=size, scheme=scheme)
    await window.open("/ask")
    await window.tab.fill("#text", "where is the heron?")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".agent .stop")
    assert await window.violations() == []
    await window.tab.click(".agent .stop")
    await window.tab.wait_for_selector(".agent .alert:has-text('Stopped')")
    await window.tab.click("text=Edit and ask again")
    await window.tab.wait_for_selector(".acts")
    assert await window.tab.input_value("#text") == "where is the heron?"
    assert await window.tab.evaluate("document.activeElement.id") == "text"
    assert await window.violations() == []
    await window.open("/ask/conversations")
    await window.tab.keyboard.press("/")
    await window.tab.keyboard.type("vault")
    await window.tab.wait_for_selector("text=No conversation has these words")
    assert await window.violations() == []
    await window.tab.fill("#q", "heron")
    await window.tab.wait_for_selector(".list a")
    wide = await window.tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    assert await window.violations() == []
    assert window.faults == []


async def test_why_an_answer_was_given_is_led_to_on_a_telephone(model: Model, windows: Windows) -> None:
    window = await windows.of("alice", size=SIZES[1])
    assert model.gate is not None
    model.gate.set()
    await window.open("/ask")
    await window.tab.fill("#text", "where is the heron? " * 100)
    await window.tab.keyboard.press("Enter")
    why = window.tab.locator("text=Why this answer?")
    await why.wait_for()
    top = "document.querySelector('#sources h2').getBoundingClientRect().top"
    assert await window.tab.evaluate(f"() => {{ scrollTo(0, 0); return {top}; }}") > SIZES[1][1]
    await window.tab.emulate_media(reduced_motion="reduce")  # then the way there takes no time
    await why.evaluate("link => link.click()")
    await window.tab.wait_for_selector("#sources h2:focus")
    assert 0 <= await window.tab.evaluate(top) < SIZES[1][1] - 100
    assert window.faults == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
async def test_who_reads_a_new_conversation_is_said_of_the_project_that_is_chosen(
    harness: AppHarness, model: Model, windows: Windows, size: tuple[int, int]
) -> None:
    """By the list, by a link, and without scripts."""
    await harness.command("alice", "/nexus project create launch", dm="nexus")
    alone = ("Only you see this", "For you alone, you are answered")
    chosen = ("In a project you are answered from what its rooms",)
    for is_script in (True, False):
        window = await windows.of("alice", size=size, scheme="dark", scripts=is_script)
        await window.open("/ask")
        assert [await window.tab.is_visible(f"text={each}") for each in alone] == [True, True]
        assert not await window.tab.is_visible(".badge >> text=In a project")
        await window.tab.select_option("select[name=project]", label="In project launch")
        project = await window.tab.input_value("select[name=project]")
        for _ in ("by the list", "by a link"):
            assert [await window.tab.is_visible(f"text={each}") for each in alone] == [False, False]
            assert await window.tab.is_visible(".badge >> text=In a project")
            assert [await window.tab.is_visible(f"text={each}") for each in chosen] == [True]
            await window.open(f"/ask?project={project}")
        await window.tab.select_option("select[name=project]", value="")
        assert [await window.tab.is_visible(f"text={each}") for each in alone] == [True, True]
        assert window.faults == []
