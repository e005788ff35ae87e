"""`/nexus share`: the owner of a memory, fact or landmark changes who may read it, and everything follows at once."""

import re
from typing import Any

import pytest

from composer.errors import BadInput, NotFound, Refused
from tests.support.harness import AppHarness

ROOM, OTHER, DM = {"room": "general"}, {"room": "rocket"}, {"dm": "nexus"}


async def said(harness: AppHarness, user: str, text: str, **place: Any) -> str:
    return (await harness.command(user, f"/nexus {text}", **place)).text


async def id_of(harness: AppHarness, user: str, words: str) -> str:
    listed = await said(harness, user, "share", **DM)
    return next(line.split()[0] for line in listed.splitlines() if words in line)


async def note(harness: AppHarness) -> str:
    """A private note of alice about the heron, and both people in both rooms; returns its id."""
    for user in ("alice", "bob"):
        for place in (ROOM, OTHER, DM):
            await harness.say(user, "good morning", **place)
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    return await id_of(harness, "alice", "heron")


async def test_widening_says_first_who_will_read_it_and_changes_nothing(harness: AppHarness) -> None:
    id = await note(harness)
    asked = await said(harness, "alice", f"share {id} everywhere", **DM)
    assert "Readers now: you, in your DMs with @nexus." in asked
    assert "Readers then: everyone, wherever you take part or are mentioned" in asked
    assert f"To confirm: /nexus share {id} everywhere --yes" in asked
    assert "nothing about that" in await said(harness, "alice", "recall heron vault", **ROOM)


async def test_a_memory_is_recalled_where_its_owner_moves_it_and_nowhere_else(harness: AppHarness) -> None:
    id = await note(harness)
    await said(harness, "alice", f"share {id} here --yes", **ROOM)
    assert "heron" in await said(harness, "bob", "recall heron vault", **ROOM)
    assert "nothing about that" in await said(harness, "alice", "recall heron vault", **DM)
    assert "nothing about that" in await said(harness, "bob", "recall heron vault", **OTHER)
    taken_back = await said(harness, "alice", f"share {id} here", **DM)
    assert taken_back.startswith("Moved to your DM with @nexus"), "what becomes private needs no confirmation"
    assert "nothing about that" in await said(harness, "bob", "recall heron vault", **ROOM)
    assert "heron" in await said(harness, "alice", "recall heron vault", **DM)


async def test_an_earlier_answer_is_explained_without_what_was_taken_back(harness: AppHarness) -> None:
    id = await note(harness)
    await said(harness, "alice", f"share {id} here --yes", **ROOM)
    await harness.ask("bob", "@nexus what of the heron in the vault?", **ROOM)
    assert "likes the vault" in await said(harness, "bob", "why", **ROOM)
    await said(harness, "alice", f"share {id} here", **DM)
    assert "likes the vault" not in (await said(harness, "bob", "why", **ROOM))
    prompt = (await harness.command("bob", "/nexus why --prompt", **ROOM)).file
    assert prompt is not None
    assert "likes the vault" not in prompt.text
    assert "what of the heron" in prompt.text


async def test_what_is_no_id_is_refused(harness: AppHarness) -> None:
    for word in ("heron", "xyz", "0123"):
        with pytest.raises(BadInput, match=f"'{word}' is no id of an item"):
            await said(harness, "alice", f"share {word} here", **ROOM)


async def test_a_memory_that_was_extracted_keeps_its_lineage(harness: AppHarness) -> None:
    await harness.say("alice", "I prefer the heron.", id="told", **ROOM)
    id = await id_of(harness, "alice", "heron")
    await said(harness, "alice", f"share {id} everywhere --yes", **DM)
    assert "from alice's profile" in await said(harness, "alice", "recall which bird is preferred, heron", **OTHER)
    await harness.change("told", None)
    assert "profile" not in await said(harness, "alice", "recall heron", **OTHER), "erased with its message"
    assert "heron" not in await said(harness, "alice", "share", **DM)


async def test_a_fact_replaces_the_one_of_its_key_where_it_is_moved(harness: AppHarness) -> None:
    await said(harness, "bob", "fact set day Monday", **ROOM)
    await said(harness, "alice", "fact set day Friday", **DM)
    id = await id_of(harness, "alice", "Friday")
    assert "A fact of the same key there is replaced" in await said(harness, "alice", f"share {id} here", **ROOM)
    await said(harness, "alice", f"share {id} here --yes", **ROOM)
    assert re.findall(r'"(\w+)"', await said(harness, "bob", "fact get day", **ROOM)) == ["Friday"]
    assert re.findall(r'"(\w+)"', await said(harness, "bob", "fact history day", **ROOM)) == ["Monday", "Friday"]
    assert "no fact" in await said(harness, "alice", "fact get day", **DM)


async def test_a_landmark_is_moved_with_its_owner_alone_deciding(harness: AppHarness) -> None:
    await said(harness, "alice", "landmark add feed the heron", **ROOM)
    id = await id_of(harness, "alice", "feed the heron")
    for place in (ROOM, DM):
        with pytest.raises(NotFound, match=f"You have no (message, )?memory, fact or landmark '{id}'"):
            await said(harness, "bob", f"share {id} here --yes", **place)
    await said(harness, "alice", f"share {id} here", **DM)
    assert "heron" not in await said(harness, "bob", "landmark list", **ROOM)
    assert "heron" in await said(harness, "alice", "landmark list", **DM)


async def test_nothing_leaves_an_isolated_project(harness: AppHarness) -> None:
    await note(harness)
    await said(harness, "alice", "project create ares --isolated", **OTHER)
    await said(harness, "alice", "project assign ares --yes", room="mars")
    await said(harness, "alice", "remember the osprey nests on mars", room="mars")
    id = await id_of(harness, "alice", "osprey")
    for where, place in (("everywhere", DM), ("here", DM), ("here", ROOM)):
        with pytest.raises(Refused, match="isolated project"):
            await said(harness, "alice", f"share {id} {where} --yes", **place)
    await said(harness, "alice", f"share {id} project --yes", room="mars")
    with pytest.raises(Refused, match="isolated"):
        await said(harness, "alice", f"share {id} everywhere --yes", room="mars")


async def test_nothing_leaves_an_isolated_project_by_way_of_a_dm(harness: AppHarness) -> None:
    await note(harness)
    await said(harness, "bob", "project create ares --isolated", room="mars")
    await said(harness, "bob", "project assign ares --yes", room="mars")
    await harness.say("alice", "good morning", room="mars")
    await said(harness, "bob", "project member add ares alice write", room="mars")
    await said(harness, "alice", "project accept ares", room="mars")
    await said(harness, "bob", "project create apollo", room="mars")
    await said(harness, "bob", "project member add apollo alice write", room="mars")
    await said(harness, "alice", "project accept apollo", room="mars")
    for line in (
        "remember the osprey nests",
        "fact set launch osprey --project --yes",
        "landmark add we follow the osprey",
    ):
        await said(harness, "alice", line, room="mars")
    listed = await said(harness, "alice", "share", **DM)
    ids = [line.split()[0] for line in listed.splitlines() if "osprey" in line]
    assert len(ids) == 3
    taken = await said(harness, "alice", "project assign ares", **DM)
    assert "only its admins take a conversation out of it again" in taken
    await said(harness, "alice", "remember the kite was bought", **DM)
    for line in (*(f"share {id} here --yes" for id in ids), "project unassign", "project assign apollo"):
        with pytest.raises(Refused, match="isolated"):
            await said(harness, "alice", line, **DM)
    for id in (*ids, await id_of(harness, "alice", "kite")):
        with pytest.raises(Refused, match="isolated"):
            await said(harness, "alice", f"share {id} here --yes", **ROOM)
    await said(harness, "bob", "project member remove ares alice", room="mars")
    for line in ("project unassign", f"share {ids[0]} everywhere --yes"):
        with pytest.raises(Refused, match="isolated"):
            await said(harness, "alice", line, **DM)


async def test_who_may_not_write_there_is_refused_before_anything_is_looked_up(harness: AppHarness) -> None:
    id = await note(harness)
    for typed in (id, "00000000"):
        with pytest.raises(Refused, match="Only an admin of the workspace"):
            await said(harness, "alice", f"share {typed} global --yes", **DM)
    with pytest.raises(BadInput, match="filed there already"):
        await said(harness, "alice", f"share {id} here --yes", **DM)
    with pytest.raises(BadInput, match="write here, everywhere, project or global"):
        await said(harness, "alice", f"share {id} nowhere", **DM)
