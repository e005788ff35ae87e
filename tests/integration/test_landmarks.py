"""Landmarks: found in talk and proposed, settled by people, pinned wherever they may be read, never just lost."""

from typing import Any

import pytest

from composer.errors import BadInput, NotFound, Refused
from tests.conftest import Stage

pytestmark = pytest.mark.integration

ROOM: dict[str, Any] = {"room": "general"}


async def pinned(stage: Stage, **where: Any) -> str:
    prompt = (await stage.compose("bob", "@nexus what holds?", **where)).prompt
    return next(section.text for section in prompt.sections if section.name == "LANDMARKS")


async def listed(stage: Stage, flags: str = "", **where: Any) -> list[str]:
    text = (await stage.command("bob", f"/nexus landmark list {flags}", **where)).text
    return text.split("\n")


async def test_a_decision_is_proposed_and_pinned_with_who_when_and_where_it_was_said(stage: Stage) -> None:
    await stage.say("alice", "We decided to use Postgres for everything.", id="d1", **ROOM)
    assert "- 2026-05-04 alice (proposed): We decided to use Postgres" in await pinned(stage, **ROOM)
    (line,) = await listed(stage, **ROOM)
    assert line.endswith("[message d1]")
    assert await listed(stage, room="other") == ["There are no landmarks here."]
    assert await pinned(stage, room="other") == ""


async def test_accept_amend_and_retire_take_the_ids_that_the_list_shows(stage: Stage) -> None:
    await stage.say("alice", "We decided to use Postgres for everything.", **ROOM)
    first = (await listed(stage, **ROOM))[0].split()[0]
    await stage.command("bob", f"/nexus landmark accept {first}", **ROOM)
    assert "(proposed)" not in await pinned(stage, **ROOM)
    with pytest.raises(BadInput, match="pinned already"):
        await stage.command("bob", f"/nexus landmark accept {first}", **ROOM)
    await stage.command("bob", f"/nexus landmark amend {first} We use Postgres 18 for everything", **ROOM)
    text = await pinned(stage, **ROOM)
    assert "bob: We use Postgres 18" in text
    assert "We decided" not in text
    (now,) = await listed(stage, **ROOM)
    assert now.split()[0] != first
    old, new = await listed(stage, "--retired", **ROOM)
    assert "(amended by bob)" in old
    assert new == now
    await stage.command("alice", f"/nexus landmark retire {now.split()[0]}", **ROOM)
    assert await pinned(stage, **ROOM) == ""
    assert len(await listed(stage, "--retired", **ROOM)) == 2
    with pytest.raises(NotFound):
        await stage.command("alice", f"/nexus landmark retire {now.split()[0]}", **ROOM)


async def test_what_one_may_not_read_can_not_be_settled_and_looks_like_nothing(stage: Stage) -> None:
    await stage.command("alice", "/nexus landmark add the vault opens at nine", room="cave", private=True)
    text = (await stage.command("alice", "/nexus landmark list", room="cave", private=True)).text
    id = text.split()[0]
    refusals = []
    for name in (id, "00000000"):
        with pytest.raises(NotFound) as refused:
            await stage.command("bob", f"/nexus landmark retire {name}", **ROOM)
        refusals.append(str(refused.value).replace(name, "ID"))
    assert refusals[0] == refusals[1]


async def test_what_holds_for_everyone_is_settled_by_who_may_write_there(stage: Stage) -> None:
    await stage.say("alice", "hello", **ROOM)
    here = stage.workspace()
    async with stage.app.database.transaction(here.tenant_id) as tx:
        found = await tx.people.find_user("console", here.name, "alice")
        assert found is not None
        await tx.people.set_admin(found.id, True)
    await stage.command("alice", "/nexus landmark add no meetings on Mondays --global", **ROOM)
    id = (await listed(stage, **ROOM))[0].split()[0]
    with pytest.raises(Refused):
        await stage.command("bob", f"/nexus landmark retire {id}", **ROOM)
    assert "no meetings" in await pinned(stage, **ROOM)


async def test_a_message_that_is_erased_takes_its_landmark_and_every_version_of_it_along(stage: Stage) -> None:
    await stage.say("alice", "We decided to use Postgres for everything.", id="d1", **ROOM)
    id = (await listed(stage, **ROOM))[0].split()[0]
    await stage.command("bob", f"/nexus landmark amend {id} We use Postgres 18", **ROOM)
    await stage.change("d1", None)
    assert await listed(stage, "--retired", **ROOM) == ["There are no landmarks here."]
