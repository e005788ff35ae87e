"""What prompts begin with: a mark of the organisation. A model's provider keeps the beginnings of prompts for all who
use one key; so nobody's prompt begins as one of another organisation does, and one's own begin alike."""

import re
from collections.abc import AsyncIterator
from itertools import takewhile
from typing import Final

import pytest

from composer.app.composition import prompt_mark
from composer.model import tenant_id
from composer.settings import AgentSettings, Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.audit_keys import AuditKeyRing
from tests.support.harness import AppHarness, open_harness
from tests.support.model_server import ModelServer

OTHER: Final = "umbrella"
MARK: Final = re.compile(r"\A\[[0-9a-f]{16}\]\n")


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def harness(settings: Settings, server: ModelServer) -> AsyncIterator[AppHarness]:
    given = {"openai_base_url": ServerUrl(server.url), "model": "m", "agents": (AgentSettings(model="m"),)}
    async with open_harness(settings.model_copy(update=given)) as harness:
        yield harness


def sent(server: ModelServer) -> list[str]:
    """The prompts that the model was sent, each as one text, since the last time."""
    bodies = [each.body for each in server.requests]
    server.requests.clear()
    return ["\n".join(str(each["content"]) for each in body["messages"]) for body in bodies]


def same(one: str, other: str) -> int:
    """How long the beginning is that two texts have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


async def test_prompts_of_two_organisations_have_no_beginning_in_common(
    harness: AppHarness, server: ModelServer
) -> None:
    """The same people say the same in both."""
    prompts = []
    for workspace in (None, OTHER):
        for n in range(3):
            await harness.ask("alice", f"what is the plan, part {n}?", dm="nexus", workspace=workspace)
        await harness.say("alice", "@nexus what is the plan?", room="general", workspace=workspace)
        prompts.append(sent(server))
    ours, theirs = prompts
    assert len(ours) == len(theirs) >= 4
    for one in ours:
        for other in theirs:
            assert same(one, other) < 8
    for each in prompts:
        marks = {match[0] for prompt in each if (match := MARK.match(prompt))}
        assert len(marks) == 1
        assert all(MARK.match(prompt) for prompt in each), "every call of the model has it"
        first, second = each[0], each[1]
        assert same(first, second) > len(first) // 2, "one's own begin alike, turn after turn"


async def test_a_mark_is_that_of_the_installation_and_not_to_be_guessed() -> None:
    one, other = AuditKeyRing(["a" * 64]), AuditKeyRing(["b" * 64])
    acme, umbrella = tenant_id("acme"), tenant_id("umbrella")
    assert prompt_mark(one, acme) == prompt_mark(one, acme)
    assert len({prompt_mark(keys, tenant) for keys in (one, other) for tenant in (acme, umbrella)}) == 4


async def test_nobody_is_shown_the_mark(harness: AppHarness, server: ModelServer) -> None:
    """It is sent, and no part of the prompt that is stored and explained."""
    answer = await harness.ask("alice", "what is the plan?", dm="nexus")
    [mark] = {prompt[:19] for prompt in sent(server)}
    shown = await harness.command("alice", "/nexus why", dm="nexus")
    assert mark[1:17] not in f"{answer}{shown}"
