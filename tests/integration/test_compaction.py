"""Compaction of a long conversation: the view shrinks, the log stays, and nobody sees what they may not read."""

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from composer.errors import BadInput, Refused, Unavailable
from composer.model import Agent
from composer.ports.models import ChatMessage, Chunk
from composer.prompt.budget import budget_of
from composer.prompt.sections import COMPACTION, WORKING
from composer.settings import Settings, load_settings
from tests.support.embedder import HashedWords
from tests.support.harness import AppHarness, open_harness

CONFIG = """
[[agents]]
slug = "nexus"
name = "Nexus"
window = 4000
reply_tokens = 500
model = "{model}"

[[agents]]
slug = "scout"
name = "Scout"
window = 1000000
"""
SUBJECTS = ("backups", "the harbour crane", "invoices", "the garden", "databases", "lunch", "trains", "the printer")
ROOM: dict[str, Any] = {"room": "general"}


def configured(settings: Settings, folder: Path, model: str = "") -> Settings:
    (folder / "nexus.toml").write_text(CONFIG.format(model=model), encoding="utf-8")
    environment = {
        "NEXUS_HOME": str(folder),
        "NEXUS_DATABASE_URL": settings.database_url or "",
        "NEXUS_REDIS_URL": settings.redis_url or "",
    }
    return load_settings(environment, folder)


@pytest.fixture
async def small(settings: Settings, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """A harness with one agent of a small window and one of a very large window; embeddings are hashed words."""
    async with open_harness(configured(settings, tmp_path), embedder=HashedWords()) as harness:
        yield harness


def sentence(number: int, words: int = 60) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    filling = " ".join(f"detail{number}x{n}" for n in range(words // 4))
    return f"How do we go on with {subject}, point {number}? {filling}"


async def add_messages(harness: AppHarness, numbers: range, words: int = 60, **where: Any) -> None:
    for number in numbers:
        await harness.say(("alice", "bob", "carol")[number % 3], sentence(number, words), id=f"t{number}", **where)


def summaries(prompt: Any) -> list[Any]:
    section = next(section for section in prompt.sections if section.name == "SUMMARIES")
    return [item for item in section.sources if item.kind == COMPACTION]


def view(prompt: Any) -> list[str]:
    section = next(section for section in prompt.sections if section.name == "WORKING")
    return [item.messages[0] for item in section.sources]


async def rows(settings: Settings, query: str) -> list[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetch(query)
    finally:
        await connection.close()


async def test_a_full_window_is_compacted_into_a_summary_and_the_log_stays(
    small: AppHarness, settings: Settings
) -> None:
    await small.command("alice", "/nexus landmark add we keep backups for a year", **ROOM)
    await add_messages(small, range(30), **ROOM)
    log = "SELECT md5(string_agg(text || seq || at, ',' ORDER BY seq)) FROM messages WHERE external_id LIKE 't%'"
    before = await rows(settings, log)
    await small.ask("alice", "@nexus what now?", **ROOM)
    (made,) = await rows(settings, "SELECT * FROM compactions")
    budget = budget_of(small.app.directory.agents(small.workspace().tenant_id)[0])
    assert made["after_tokens"] < budget / 2 < made["before_tokens"]
    assert await rows(settings, log) == before
    composed = await small.compose("bob", "@nexus and then?", **ROOM)
    (item,) = summaries(composed.prompt)
    assert item.id == str(made["id"])
    shown = view(composed.prompt)
    assert shown[0] == f"t{made['messages']}", "the view continues where the summary ends"
    assert composed.prompt.tokens <= 0.7 * 4000
    assert "we keep backups for a year" in composed.prompt.as_text()
    assert len(await rows(settings, "SELECT 1 FROM compactions")) == 1
    why = (await small.command("alice", "/nexus why --details", **ROOM)).text
    assert f"its oldest {made['messages']} messages are a summary now" in why
    sizes = (
        f"WORKING had {made['before_tokens']:,} tokens then, and {made['after_tokens']:,} after it: the prompt, with"
    )
    assert sizes in why


async def test_compactions_are_at_least_ten_messages_apart(small: AppHarness, settings: Settings) -> None:
    for number in range(60):
        await small.say("alice", sentence(number, 120), **ROOM)
        await small.ask("bob", f"@nexus {sentence(number, 200)}", **ROOM)
        assert small.delivery.replies[-1].prompt is not None
    made = await rows(settings, "SELECT made_seq, through_seq, messages FROM compactions ORDER BY made_seq")
    assert len(made) > 2
    assert all(later["made_seq"] - earlier["made_seq"] >= 10 for earlier, later in pairwise(made))
    assert all(later["messages"] > earlier["messages"] for earlier, later in pairwise(made))


async def test_each_agent_compacts_only_its_own_view(small: AppHarness, settings: Settings) -> None:
    await add_messages(small, range(40), **ROOM)
    await small.say("alice", "@nexus @scout what now?", **ROOM)
    prompts = {str(reply.turn.agent_id): reply.prompt or "" for reply in small.delivery.replies}
    agents = small.app.directory.agents(small.workspace().tenant_id)
    nexus, scout = (prompts[str(agent.id)] for agent in agents)
    assert COMPACTION in nexus
    assert COMPACTION not in scout
    assert "point 1?" in scout
    assert {row["agent_id"] for row in await rows(settings, "SELECT agent_id FROM compactions")} == {agents[0].id}


@pytest.mark.parametrize("change", ["forget", "edit"])
async def test_a_forgotten_or_edited_message_is_in_no_summary(
    small: AppHarness, settings: Settings, change: str
) -> None:
    await add_messages(small, range(23), **ROOM)
    await small.say("alice", "We decided that the vault opens with quokka7.", id="secret", **ROOM)
    await add_messages(small, range(23, 30), **ROOM)
    await small.ask("alice", "@nexus what now?", **ROOM)
    assert "quokka7" in (await rows(settings, "SELECT text FROM compactions"))[0]["text"]
    if change == "edit":
        await small.change("secret", "That is for later.")
    else:
        receipt = await small.command("alice", "/nexus forget quokka7 --yes", **ROOM)
        assert "compaction" not in receipt.text, "their number tells how much was said after the message"
    assert await rows(settings, "SELECT 1 FROM compactions") == []
    assert await rows(settings, "SELECT 1 FROM landmarks") == []
    await small.ask("alice", "@nexus what now?", **ROOM)
    (made,) = await rows(settings, "SELECT text FROM compactions")
    assert made["text"]
    assert "quokka7" not in made["text"]


async def test_a_compaction_of_a_private_room_is_not_shown_after_the_room_becomes_public(
    small: AppHarness, settings: Settings
) -> None:
    await add_messages(small, range(30), room="cave", private=True)
    await small.ask("alice", "@nexus what now?", room="cave", private=True)
    assert len(await rows(settings, "SELECT 1 FROM compactions")) == 1
    await small.say("alice", "hello all", room="cave", private=False)
    composed = await small.compose("dave", "@nexus what was said?", room="cave")
    assert summaries(composed.prompt) == []
    assert "point" not in composed.prompt.as_text()
    assert "compacted" not in (await small.command("alice", "/nexus why --details", room="cave")).text


async def test_composing_shows_the_compacted_view_and_stores_nothing(small: AppHarness, settings: Settings) -> None:
    await add_messages(small, range(30), **ROOM)
    composed = await small.compose("alice", "@nexus what now?", **ROOM)
    assert summaries(composed.prompt)
    assert await rows(settings, "SELECT 1 FROM compactions") == []


async def test_only_room_admins_may_compact_and_the_answer_shows_before_and_after(
    small: AppHarness, settings: Settings
) -> None:
    await add_messages(small, range(20), 20, **ROOM)
    with pytest.raises(Refused, match="Only an admin"):
        await small.command("bob", "/nexus compact", **ROOM)
    before = await small.compose("alice", "@nexus what now?", **ROOM)
    answer = (await small.command("alice", "/nexus compact", **ROOM)).text
    after = await small.compose("alice", "@nexus what now?", **ROOM)
    for when, composed in (("before", before), ("after", after)):
        (working,) = (section for section in composed.prompt.sections if section.name == WORKING)
        assert f"{when}: {working.tokens:,} tokens in WORKING" in answer.splitlines(), "as /nexus why counts it"
    assert (await rows(settings, "SELECT requested FROM compactions"))[0]["requested"]
    assert "nothing to compact" in (await small.command("alice", "/nexus compact", **ROOM)).text
    composed = await small.compose("bob", "@nexus and then?", **ROOM)
    assert len(view(composed.prompt)) == 10
    assert "nothing to compact" in (await small.command("carol", "/nexus compact", dm="nexus")).text
    for place in ({"dm": "nexus"}, ROOM):
        with pytest.raises(BadInput, match="There is no agent 'nobody' here: choose one of nexus"):
            await small.command("alice", "/nexus compact nobody", **place)


class ScriptedModel:
    """A chat model that chooses given sentences, or fails; it records the requests for summaries."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.requests: list[Sequence[ChatMessage]] = []

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        summarising = "stays in view of a conversation" in messages[0].content
        if summarising:
            self.requests.append(messages)
            if self.answer is None:
                raise Unavailable("The model does not answer.")
        yield Chunk(self.answer or "fine" if summarising else "fine")


@pytest.mark.parametrize("answer", ["3, 1", None])
async def test_a_model_chooses_the_sentences_with_an_extractive_fallback(
    settings: Settings, tmp_path: Path, answer: str | None
) -> None:
    model = ScriptedModel(answer)
    async with open_harness(configured(settings, tmp_path, "gpt-4o"), model=model) as harness:
        await add_messages(harness, range(27), **ROOM)
        reply = await harness.ask("alice", "@nexus what now?", **ROOM)
    assert reply.text == "fine"
    (made,) = await rows(settings, "SELECT text, model FROM compactions")
    assert made["model"] == ("extractive" if answer is None else "gpt-4o")
    shown = [line.partition("): ")[2] for line in model.requests[0][1].content.splitlines()]
    assert "point 0?" in shown[0]
    if answer is None:
        assert made["text"]
        assert len(model.requests) == 1
    else:
        told = [line.partition(": ")[2] for line in made["text"].splitlines() if line != "\u2026"]
        assert told == [line for line in shown if line in told]  # with what each person said last of the same
        assert shown[2] in told
        assert shown[1] not in told


async def test_a_prompt_reuses_the_prefix_of_the_previous_one(small: AppHarness, settings: Settings) -> None:
    await add_messages(small, range(12), 20, **ROOM)
    for _ in range(3):
        await small.ask("alice", "@nexus what now?", **ROOM)
    found = await rows(settings, "SELECT reused_tokens, counted_tokens FROM turns ORDER BY queued_at")
    assert found[0]["reused_tokens"] == 0
    assert all(0 < row["reused_tokens"] <= row["counted_tokens"] for row in found[1:])
