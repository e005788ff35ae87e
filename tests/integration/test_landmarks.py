"""Landmarks: extracted and proposed, changed by people, pinned wherever they may be read, and never lost."""

from datetime import timedelta
from typing import Any

import pytest

from composer.errors import BadInput, NotFound, Refused
from tests.support.harness import AppHarness

ROOM: dict[str, Any] = {"room": "general"}


async def pinned(harness: AppHarness, **where: Any) -> str:
    prompt = (await harness.compose("bob", "@nexus what holds?", **where)).prompt
    return next(section.text for section in prompt.sections if section.name == "LANDMARKS")


async def listed(harness: AppHarness, flags: str = "", **where: Any) -> list[str]:
    text = (await harness.command("bob", f"/nexus landmark list {flags}", **where)).text
    return text.split("\n")


async def test_a_decision_is_proposed_and_pinned_with_its_author_date_and_message(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to use Postgres for everything.", id="d1", **ROOM)
    assert "- 2026-05-04 alice (proposed): We decided to use Postgres" in await pinned(harness, **ROOM)
    (line,) = await listed(harness, **ROOM)
    assert line.endswith("[message d1]")
    assert await listed(harness, room="other") == [
        "There are no landmarks here. To pin a decision: /nexus landmark add TEXT"
    ]
    assert await pinned(harness, room="other") == ""


async def test_accept_amend_and_retire_take_the_ids_that_the_list_shows(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to use Postgres for everything.", **ROOM)
    first = (await listed(harness, **ROOM))[0].split()[0]
    await harness.command("bob", f"/nexus landmark accept {first}", **ROOM)
    assert "(proposed)" not in await pinned(harness, **ROOM)
    with pytest.raises(BadInput, match="pinned already"):
        await harness.command("bob", f"/nexus landmark accept {first}", **ROOM)
    with pytest.raises(Refused, match="another person's"):
        await harness.command("bob", f"/nexus landmark amend {first} We use MySQL", **ROOM)
    await harness.command("alice", f"/nexus landmark amend {first} We use Postgres 18 for everything", **ROOM)
    text = await pinned(harness, **ROOM)
    assert "alice: We use Postgres 18" in text
    assert "We decided" not in text
    (current,) = await listed(harness, **ROOM)
    assert current.split()[0] != first
    old, new = await listed(harness, "--retired", **ROOM)
    assert "(amended by alice)" in old
    assert new == current
    with pytest.raises(Refused, match="another person's"):
        await harness.command("bob", f"/nexus landmark retire {current.split()[0]}", **ROOM)
    await harness.command("alice", f"/nexus landmark retire {current.split()[0]}", **ROOM)
    assert await pinned(harness, **ROOM) == ""
    assert len(await listed(harness, "--retired", **ROOM)) == 2
    with pytest.raises(NotFound):
        await harness.command("alice", f"/nexus landmark retire {current.split()[0]}", **ROOM)


async def test_an_unreadable_landmark_cannot_be_changed_and_looks_like_a_missing_one(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus landmark add the vault opens at nine", room="cave", private=True)
    text = (await harness.command("alice", "/nexus landmark list", room="cave", private=True)).text
    id = text.split()[0]
    refusals = []
    for name in (id, "00000000"):
        with pytest.raises(NotFound) as refused:
            await harness.command("bob", f"/nexus landmark retire {name}", **ROOM)
        refusals.append(str(refused.value).replace(name, "ID"))
    assert refusals[0] == refusals[1]


async def test_a_global_landmark_is_retired_only_by_those_who_may_write_it(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        found = await tx.people.find_user("console", workspace.name, "alice")
        assert found is not None
        await tx.people.set_admin(found.id, True)
    await harness.command("alice", "/nexus landmark add no meetings on Mondays --global --yes", **ROOM)
    id = (await listed(harness, **ROOM))[0].split()[0]
    with pytest.raises(Refused):
        await harness.command("bob", f"/nexus landmark retire {id}", **ROOM)
    assert "no meetings" in await pinned(harness, **ROOM)


async def test_erasing_a_message_erases_every_version_of_its_landmark(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to use Postgres for everything.", id="d1", **ROOM)
    id = (await listed(harness, **ROOM))[0].split()[0]
    await harness.command("bob", f"/nexus landmark amend {id} We use Postgres 18", **ROOM)
    await harness.change("d1", None)
    assert await listed(harness, "--retired", **ROOM) == [
        "There are no landmarks here. To pin a decision: /nexus landmark add TEXT"
    ]


async def test_only_the_plain_decisions_of_a_group_are_proposed(harness: AppHarness) -> None:
    await harness.say("alice", "I guess I'll stick to my xbox for gaming", **ROOM)
    await harness.say("alice", "I'll go with the window seat.", **ROOM)
    await harness.say("alice", "Let's use Terraform for the cluster.", **ROOM)
    assert await pinned(harness, **ROOM) == ""
    await harness.say("alice", "The team decided to use Terraform for the cluster.", **ROOM)
    assert "(proposed): The team decided to use Terraform" in await pinned(harness, **ROOM)


async def test_at_most_five_proposals_are_pinned_and_the_latest_count(harness: AppHarness) -> None:
    for number in range(7):
        await harness.say("alice", f"We decided to rename server {number}{number}.", **ROOM)
    await harness.say("bob", "We decided to paint the office green.", room="other")
    text = await pinned(harness, **ROOM)
    assert [f"server {n}{n}" in text for n in range(7)] == [False, False, True, True, True, True, True]
    assert "office green" in await pinned(harness, room="other")
    lines = await listed(harness, "--retired", **ROOM)
    assert ["(lapsed)" in line for line in lines] == [True, True, False, False, False, False, False]
    for line in await listed(harness, **ROOM):
        await harness.command("bob", f"/nexus landmark accept {line.split()[0]}", **ROOM)
    assert len(await listed(harness, **ROOM)) == 7, "an accepted one makes room for an earlier proposal"


async def test_nobodys_many_proposals_keep_anothers_out(harness: AppHarness) -> None:
    await harness.say("bob", "We decided to paint the office green.", **ROOM)
    await harness.say("carol", "We decided to plant a tree in May.", **ROOM)
    for number in range(7):
        await harness.say("alice", f"We decided to rename server {number}{number}.", **ROOM)
    text = await pinned(harness, **ROOM)
    assert "office green" in text
    assert "plant a tree" in text
    assert [f"server {n}{n}" in text for n in range(7)] == [False, False, False, False, True, True, True]


async def test_a_proposal_lapses_after_fourteen_days_and_an_accepted_one_does_not(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to use Postgres for everything.", **ROOM)
    await harness.say("alice", "We agreed to freeze the main branch.", **ROOM)
    kept, lapsing = await listed(harness, **ROOM)
    assert "(proposed: lapses on 2026-05-18 unless accepted)" in lapsing
    await harness.command("bob", f"/nexus landmark accept {kept.split()[0]}", **ROOM)
    harness.clock.tick(timedelta(days=13, hours=23).total_seconds())
    assert "freeze" in await pinned(harness, **ROOM)
    harness.clock.tick(timedelta(hours=2).total_seconds())
    text = await pinned(harness, **ROOM)
    assert "Postgres" in text
    assert "freeze" not in text
    with pytest.raises(NotFound):
        await harness.command("bob", f"/nexus landmark accept {lapsing.split()[0]}", **ROOM)
