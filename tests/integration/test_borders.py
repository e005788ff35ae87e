"""What crosses a border into a conversation is marked in the prompt, in its sources and in `/nexus why`."""

import json
import re

from tests.support.harness import AppHarness

ROOM = {"room": "general"}
OTHER = {"room": "rocket"}


async def sources(harness: AppHarness, question: str) -> dict[str, str]:
    """Where each recalled or structured source of an answer came from, by its namespace's kind."""
    reply = await harness.ask("alice", f"@nexus {question}", **ROOM)
    assert reply.prompt is not None
    sections = json.loads(reply.prompt)["sections"]
    return {
        f"{section['name']} {source['namespace'].partition(':')[0]}": source["from"]
        for section in sections
        for source in section["sources"]
    }


async def test_every_crossing_of_a_border_is_named(harness: AppHarness) -> None:
    await harness.say("alice", "the heron nests in the vault", **ROOM)
    await harness.say("bob", "the heron sleeps in the vault", **OTHER)
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    for place in (ROOM, OTHER):
        await harness.command("alice" if place is ROOM else "bob", "/nexus help", **place)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await harness.command("alice", "/nexus project member add apollo bob write", **ROOM)
    await harness.command("bob", "/nexus project accept apollo", **ROOM)
    await harness.command("bob", "/nexus project assign apollo --yes", **OTHER)
    await harness.command("alice", "/nexus remember the heron of alice likes the vault --everywhere --yes", dm="nexus")
    await harness.command("alice", "/nexus remember the heron of apollo guards the vault --project --yes", **ROOM)
    await harness.command("alice", "/nexus fact set heron 1 --everywhere --yes", dm="nexus")
    await harness.command("alice", "/nexus landmark add feed the heron --project --yes", **ROOM)
    await harness.command("alice", "/nexus landmark add ask the heron", **ROOM)

    found = await sources(harness, "what of the heron in the vault?")
    why = (await harness.command("alice", "/nexus why --details", **ROOM)).text
    recalled = (await harness.command("alice", "/nexus recall heron vault", **ROOM)).text

    assert found["RECALL profile"] == "from alice's profile"
    assert found["FACTS profile"] == "from alice's profile"
    assert found["RECALL project"] == found["LANDMARKS project"] == "from project apollo"
    assert found["RECALL room"] in ("", 'from "#rocket" of project apollo')
    assert found["WORKING room"] == found["LANDMARKS room"] == ""
    for text in (re.sub(r", (?:newer|older) than s\d+\)", ")", each) for each in (why, recalled)):
        assert "note, from alice's profile): the heron of alice" in text
        assert "note, from project apollo): the heron of apollo" in text
        assert 'bob (from "#rocket" of project apollo): the heron sleeps' in text
    assert "alice (from project apollo): feed the heron" in why
    assert "alice: ask the heron" in why
