"""Several agents in one deployment: each with its own persona, model and window, and its own conversations."""

from pathlib import Path

import pytest

from composer.errors import BadInput, NotFound
from composer.model import agent_id
from composer.prompt.budget import budget_of
from composer.settings import Settings, load_settings
from tests.support.harness import AppHarness, open_harness

CONFIG = """
[[agents]]
slug = "nexus"
name = "Nexus"
persona = "You keep the minutes."

[[agents]]
slug = "scout"
name = "Scout"
persona = "You look things up."
window = 8000
system_role = false
reply_tokens = 500
"""


@pytest.fixture
def two_agents(settings: Settings, tmp_path: Path) -> Settings:
    """The settings of a nexus.toml with two agents."""
    (tmp_path / "nexus.toml").write_text(CONFIG, encoding="utf-8")
    environment = {
        "NEXUS_HOME": str(tmp_path),
        "NEXUS_DATABASE_URL": settings.database_url or "",
        "NEXUS_REDIS_URL": settings.redis_url or "",
        "NEXUS_EMBEDDER": settings.embedder or "",
    }
    return load_settings(environment, tmp_path)


def shown(harness: AppHarness) -> str:
    """The prompt of the last answer."""
    prompt = harness.delivery.replies[-1].prompt
    assert prompt is not None
    return prompt


async def test_dms_and_sessions_of_different_agents_share_nothing(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        for where in ({"dm": "nexus"}, {"session": "s1", "agent": "nexus"}, {"session": "s1"}):
            await harness.say("bob", f"the vault code is zqorchid, told to {where}", **where)
        await harness.command("bob", "/nexus remember the vault code is zqorchid", dm="nexus")
        await harness.command("bob", '/nexus fact set vault "zqorchid"', dm="nexus")
        await harness.command("bob", "/nexus landmark add the vault code is zqorchid", dm="nexus")
        for where in ({"dm": "scout"}, {"session": "s1", "agent": "scout"}, {"session": "s2", "agent": "scout"}):
            await harness.say("bob", "what is the vault code?", **where)
            assert "zqorchid" not in shown(harness), where
        await harness.say("bob", "what is the vault code?", dm="nexus")
        assert "zqorchid" in shown(harness)
        await harness.say("bob", "what is the vault code?", session="s1", agent="nexus")
        assert "told to {'session': 's1', 'agent': 'nexus'}" in shown(harness)
        assert "told to {'dm'" not in shown(harness)


async def test_a_session_without_an_agent_belongs_to_the_first_agent(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        await harness.say("bob", "my cat is called Minka", session="s1")
        await harness.say("bob", "what is my cat called?", session="s1", agent="nexus")
        assert "Minka" in shown(harness)


async def test_a_room_addresses_agents_by_their_slugs_and_each_answers_once(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        agents = {agent.id: agent.slug for agent in harness.app.directory.agents(harness.workspace().tenant_id)}

        async def answered_by(text: str) -> list[str]:
            before = len(harness.delivery.replies)
            await harness.say("alice", text, room="general")
            return sorted(agents[reply.turn.agent_id] for reply in harness.delivery.replies[before:])

        assert await answered_by("good morning, nexus and scout") == []
        assert await answered_by("@scout look this up") == ["scout"]
        assert await answered_by("hello @NEXUS.") == ["nexus"]
        assert await answered_by("@scout and @nexus, and @scout again: who is faster?") == ["nexus", "scout"]
        assert await answered_by("@scouts @nexus2 x@nexus.org") == []


async def test_in_a_room_each_agent_sees_the_other_as_a_speaker(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        first = await harness.ask("alice", "@nexus hello", room="general")
        await harness.ask("alice", "@scout what did Nexus say?", room="general")
        prompt = (await harness.compose("alice", "@scout and now?", room="general")).prompt
        history = [(m.role, m.content) for m in prompt.role_messages[2:-1]]
        assert history[0][0] == "user"
        assert "\nNexus (2026-05-04 09:01): " in history[0][1]
        assert first.text.splitlines()[0] in history[0][1]
        assert [role for role, _ in history] == ["user", "assistant"]


async def test_each_agent_has_its_persona_its_window_and_its_role(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        await harness.say("alice", "hello", room="general")
        nexus, scout = [
            (await harness.compose("alice", f"@{slug} hi", room="general")).prompt for slug in ("nexus", "scout")
        ]
        assert nexus.sections[0].text.startswith("You keep the minutes.")
        assert scout.sections[0].text.startswith("You look things up.")
        assert (nexus.window, scout.window) == (128_000, 8_000)
        assert (nexus.role_messages[0].role, scout.role_messages[0].role) == ("system", "user")
        agents = harness.app.directory.agents(harness.workspace().tenant_id)
        assert [budget_of(agent) for agent in agents] == [int(128_000 * 0.7), int(8_000 * 0.7)]


async def test_an_agent_that_is_not_configured_is_refused_by_name(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        for where in ({"dm": "nobody"}, {"session": "s1", "agent": "nobody"}):
            for act in (harness.say, harness.command, harness.compose):
                with pytest.raises(
                    (BadInput, NotFound), match=r"There is no agent 'nobody': choose one of nexus, scout"
                ):
                    await act("bob", "/nexus help", **where)
        assert harness.delivery.replies == []
        assert harness.delivery.delays == []


async def test_a_turn_for_an_agent_that_is_no_longer_configured_fails_with_the_reason(
    two_agents: Settings, settings: Settings
) -> None:
    async with open_harness(two_agents) as harness:
        harness.app.turns._adapters.clear()
        await harness.say("alice", "@scout are you there?", room="general")
        assert harness.delivery.replies == []
    async with open_harness(settings) as later:
        await later.app.take_over()
        await later.app.turns.settle()
        assert later.delivery.delays == [
            "This agent is no longer configured. /nexus agents lists those that you can ask."
        ]
        assert later.delivery.replies == []


async def test_agents_with_one_slug_in_two_tenants_are_different(two_agents: Settings) -> None:
    async with open_harness(two_agents) as harness:
        acme, other = harness.workspace("acme").tenant_id, harness.workspace("other").tenant_id
        assert agent_id(acme, "nexus") != agent_id(other, "nexus")
        await harness.say("bob", "my cat is called Minka", dm="nexus", workspace="acme")
        await harness.say("bob", "what is my cat called?", dm="nexus", workspace="other")
        assert "Minka" not in shown(harness)


async def test_what_another_agent_was_asked_gives_way_to_what_was_said(two_agents: Settings) -> None:
    room = {"room": "general"}
    async with open_harness(two_agents) as harness:
        await harness.say("bob", "@scout is the heron released from the harbour on Friday or on Saturday?", **room)
        await harness.say("bob", "The heron goes on Monday, says the harbour.", **room)
        await harness.say_all("carol", [f"nothing new {number}" for number in range(60)], **room)
        composed = await harness.compose("alice", "@nexus when is the heron released from the harbour?", **room)
        (recall,) = [section for section in composed.prompt.sections if section.name == "RECALL"]
        texts = [source.text for source in recall.sources]
        assert texts[0] == "The heron goes on Monday, says the harbour."
        assert not any("@scout" in text for text in texts), "it ranks below what is noise beside the answer"
