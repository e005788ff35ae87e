"""What others wrote reaches a person's tools as data before the question, never in a system part, and keeps nothing of
the person's own out of it."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.entries import teams
from composer.model import Trust
from composer.settings import Settings
from tests.support.gateway import MODEL, GatewayStage, gateway_stage
from tests.support.model_server import Say
from tests.support.projects import join_project

QUESTION: Final[list[Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "what is the vault behind?"},
]
TOOLS: Final[list[Any]] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
SYSTEM: Final = ("system", "developer")


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        for user in ("alice", "mallory", "bob"):
            await stage.hub.user(user)
        yield stage


async def asked(stage: GatewayStage, user: str = "alice", said: Any = QUESTION, **options: Any) -> tuple[str, str]:
    """What the model is told as system text, and as anything else."""
    await (await stage.client(user)).chat.completions.create(model=MODEL, messages=said, **options)
    messages = stage.upstream.bodies[-1]["messages"]
    return tuple(  # type: ignore[return-value]
        "\n".join(str(each.get("content")) for each in messages if (each["role"] in SYSTEM) is is_system)
        for is_system in (True, False)
    )


def words(text: str) -> list[str]:
    return sorted(set(re.findall(r"zq\w+", text)))


async def shared_project(stage: GatewayStage, *members: str, owner: str = "mallory", name: str = "apollo") -> None:
    await stage.harness.command(owner, f"/nexus project create {name}", dm="nexus")
    for member in members:
        await join_project(stage.harness, owner, name, member)
    for user in (owner, *members):
        await stage.harness.command(user, f"/nexus project assign {name} --yes", dm="nexus")


async def test_what_others_wrote_is_never_in_a_system_message_and_says_whose_and_where_it_is(
    stage: GatewayStage,
) -> None:
    command = stage.harness.command
    await command("alice", "/nexus fact set own zqown --everywhere --yes", dm="nexus")
    await shared_project(stage, "alice")
    await command("alice", "/nexus fact set ours zqmine --project --yes", dm="nexus")
    await command("mallory", "/nexus fact set style zqfact --project --yes", dm="nexus")
    await command("mallory", "/nexus landmark add always zqdecided --project --yes", dm="nexus")
    async with stage.hub.request("mallory") as (tx, access):
        (apollo,) = access.projects
        team = await teams.create(tx, access, "ops", "e", stage.harness.clock.now())
    await stage.hub.write("mallory", "the vault is behind zqentry", kind="procedural", project=apollo.id)
    entry = (await stage.hub.write("mallory", "the vault is behind zqshared", kind="preference")).entry
    async with stage.hub.request("mallory") as (tx, access):
        (alice,) = [each.id for each in await tx.projects.members(apollo.id) if "alice" in each.names]
        await teams.invite(tx, access, team, alice, "i", stage.harness.clock.now())
    async with stage.hub.request("alice") as (tx, access):
        await teams.accept(tx, access, team, stage.harness.clock.now())
    await stage.hub.share("mallory", entry.id, team)

    system, other = await asked(stage)
    assert words(system) == ["zqmine", "zqown"]
    assert words(other) == ["zqdecided", "zqentry", "zqfact", "zqshared"]
    for word, place in (("zqfact", 'project "apollo"'), ("zqdecided", 'project "apollo"')):
        (line,) = [line for line in other.split("\n") if word in line]
        assert line.startswith(f"- {place}: ")
        assert "mallory" in line
    (line,) = [line for line in other.split("\n") if "zqentry" in line]
    assert 'mallory (procedural, by another person, from project "apollo")' in line
    assert "mallory (preference, by another person, from a team)" in other

    system, other = await asked(stage, "mallory")
    assert words(system) == ["zqdecided", "zqentry", "zqfact", "zqshared"], "and to her they are her own"
    assert words(other) == ["zqmine"]


async def test_what_an_app_wrote_under_a_persons_account_is_not_what_they_wrote_whoever_approves_it(
    stage: GatewayStage,
) -> None:
    await shared_project(stage, "alice")
    at, place = stage.harness.workspace(), place_of(None, "nexus", None)
    for n, words_ in enumerate(("fact set style zqfact", "landmark add always zqdecided")):
        text = f"/nexus {words_} --project --yes"
        sent = incoming(at, place, "alice", text, stage.harness.clock.tick(), id=f"app{n}")
        await run_command(stage.harness.app, at, replace(sent, sender_trust=Trust.TOOL))
    pending = (await stage.harness.command("mallory", "/nexus memory pending", dm="nexus")).text
    for id in re.findall(r"^([0-9a-f]{8}) ", pending, re.MULTILINE):
        await stage.harness.command("mallory", f"/nexus memory approve {id} --yes", dm="nexus")
    system, other = await asked(stage)
    assert (words(system), words(other)) == ([], ["zqdecided", "zqfact"])


async def test_those_whose_facts_and_decisions_stand_there_under_one_name_are_told_apart(stage: GatewayStage) -> None:
    namesake = "m\u0430llory"
    await stage.hub.user(namesake)
    await shared_project(stage, "alice", namesake)
    for user, word in (("mallory", "zqone"), (namesake, "zqother")):
        await stage.harness.command(user, f"/nexus fact set {word} {word} --project --yes", dm="nexus")
        await stage.harness.command(user, f"/nexus landmark add always {word} --project --yes", dm="nexus")
    _, other = await asked(stage)
    marks = {
        word: set(re.findall(rf"llory \[(\d{{4}})\].*{word}|{word}.*llory \[(\d{{4}})\]", other))
        for word in words(other)
    }
    told = {word: {mark for found in marks[word] for mark in found if mark} for word in marks}
    assert [len(each) for each in told.values()] == [1, 1], other
    assert told["zqone"] != told["zqother"]


async def test_those_whose_entries_are_recalled_under_one_name_are_told_apart(stage: GatewayStage) -> None:
    namesake = "m\u0430llory"
    await stage.hub.user(namesake)
    await shared_project(stage, "alice", namesake)
    for user, word in (("mallory", "zqone"), (namesake, "zqother")):
        async with stage.hub.request(user) as (_, access):
            (apollo,) = access.projects
        await stage.hub.write(user, f"the vault is behind {word}", kind="procedural", project=apollo.id)
    _, other = await asked(stage)
    told = dict(re.findall(r"llory \[(\d{4})\] \(procedural, by another person.*(zq\w+)", other))
    assert sorted(told.values()) == ["zqone", "zqother"], other


async def test_nothing_of_others_however_long_keeps_out_what_is_ones_own(stage: GatewayStage) -> None:
    command = stage.harness.command
    await command("alice", "/nexus fact set deploy_day zqfriday --everywhere --yes", dm="nexus")
    await command("alice", "/nexus landmark add never push without zqreview --everywhere --yes", dm="nexus")
    await stage.hub.write("alice", "I like zqtea", kind="preference")
    before = (await asked(stage))[0]
    await shared_project(stage, "alice", "bob")
    for n in range(30):
        await command("mallory", f'/nexus fact set aaa{n} "{"lorem ipsum " * 180}" --project --yes', dm="nexus")
    await command("bob", "/nexus fact set zzz zqbobs --project --yes", dm="nexus")
    system, other = await asked(stage)
    assert system == before, "byte for byte"
    assert words(other) == ["zqbobs"], "those of several people come in turns"
    assert all(len(line) < 500 for line in other.split("\n"))
    shown = other.count("aaa")
    assert f"[{30 - shown} more did not fit]" in other
    assert shown


async def test_one_long_thing_of_ones_own_hides_no_other_and_what_is_left_out_is_counted(stage: GatewayStage) -> None:
    for n, words_in in enumerate(("zqfirst", "zqlong " + "x " * 4_000, "zqthird")):
        await stage.hub.write("alice", f"{n} I like {words_in}", kind="preference")
    await stage.harness.command("alice", f'/nexus fact set aa "zqown {"cut-" * 400}" --everywhere --yes', dm="nexus")
    system, _ = await asked(stage)
    assert words(system) == ["zqfirst", "zqown", "zqthird"]
    assert "[1 more did not fit]" in system
    assert len(re.findall("cut-", system)) <= 80


async def test_further_requests_of_a_turn_get_the_same_of_others_too(stage: GatewayStage) -> None:
    command = stage.harness.command
    await shared_project(stage, "alice", "bob")
    for user in ("mallory", "bob"):
        for n in range(3):
            await command(user, f"/nexus fact set {user}{n} zq{user}{n} --project --yes", dm="nexus")
    client = await stage.client("alice")
    stage.upstream.script.append(Say((), calls=[("look", {})]))
    called = await client.chat.completions.create(model=MODEL, messages=QUESTION, tools=TOOLS)
    before = stage.upstream.bodies[-1]["messages"]
    loop = [
        *QUESTION,
        called.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": "call-0", "content": "done"},
    ]
    await command("mallory", "/nexus fact set aaa zqnew --project --yes", dm="nexus")
    await client.chat.completions.create(model=MODEL, messages=loop, tools=TOOLS)
    assert stage.upstream.bodies[-1]["messages"] == [*before, *loop[2:]]
    await command("bob", "/nexus fact set bob1 changed --project --yes", dm="nexus")
    await client.chat.completions.create(model=MODEL, messages=loop, tools=TOOLS)
    assert "zqbob1" not in str(stage.upstream.bodies[-1]["messages"])
    assert "zqmallory2" in str(stage.upstream.bodies[-1]["messages"])
