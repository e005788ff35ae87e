"""Teams: who is in one reads what is shared with it, and nobody else does."""

import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from composer.entries import teams
from composer.entries.access import access_for_writing
from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.model import EVERY_VENDOR, TeamRole, team_namespace
from composer.visibility import Grants
from tests.support.entries import OF_PERSON, Hub


async def manage(
    hub: Hub, name: str, act: Callable[..., Awaitable[Any]], *given: Any, vendor: str = EVERY_VENDOR
) -> Any:
    """Do something with a team as a person."""
    user, tenant = await hub.user(name), hub.harness.workspace().tenant_id
    async with hub.harness.app.database.transaction(tenant, "alone") as tx:
        access = await access_for_writing(tx, tenant, user, vendor, OF_PERSON)
        return await act(tx, access, *given, hub.harness.clock.tick())


async def team_of(hub: Hub, *names: str) -> uuid.UUID:
    """A team that the first of these people made, and the others joined."""
    first, *others = names
    team: uuid.UUID = await manage(hub, first, teams.create, "Core", f"of {first}")
    for name in others:
        await manage(hub, first, teams.invite, team, await hub.user(name), f"for {name}")
        await manage(hub, name, teams.accept, team)
    return team


async def names_in(hub: Hub, name: str, team: uuid.UUID) -> list[tuple[tuple[str, ...], str]]:
    return [(each.names, str(each.role)) for each in await manage(hub, name, teams.members, team)]


async def test_who_makes_a_team_is_its_admin_and_who_accepts_is_a_member(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    assert await names_in(hub, "bob", team) == [(("alice",), "admin"), (("bob",), "member")]
    (own,) = await manage(hub, "bob", lambda tx, access, now: teams.teams(tx, access))
    assert (own.id, own.name, own.role, own.members) == (team, "Core", TeamRole.MEMBER, 2)
    assert await manage(hub, "bob", teams.invites) == []


async def test_a_team_that_one_is_not_in_looks_like_none(hub: Hub) -> None:
    team, bob = await team_of(hub, "alice"), await hub.user("bob")
    carol = await hub.user("carol")
    acts: list[tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]]] = [
        (teams.members, ()),
        (teams.accept, ()),
        (teams.decline, ()),
        (teams.invite, (carol, "x")),
        (teams.remove, (bob,)),
        (teams.set_role, (bob, TeamRole.ADMIN)),
        (teams.unshare_of_former, (uuid.uuid4(),)),
    ]
    for act, given in acts:
        for id in (team, uuid.uuid4()):
            with pytest.raises(NotFound, match=r"There is no such team\."):
                await manage(hub, "bob", act, id, *given)


async def test_only_admins_change_who_is_in_a_team(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob", "carol")
    alice, bob, carol = [await hub.user(name) for name in ("alice", "bob", "carol")]
    for act, given in (
        (teams.invite, (alice, "x")),
        (teams.remove, (carol,)),
        (teams.set_role, (bob, TeamRole.ADMIN)),
    ):
        with pytest.raises(Refused, match="Only an admin of this team"):
            await manage(hub, "bob", act, team, *given)
    await manage(hub, "alice", teams.set_role, team, bob, TeamRole.ADMIN)
    await manage(hub, "bob", teams.remove, team, carol)
    assert await names_in(hub, "bob", team) == [(("alice",), "admin"), (("bob",), "admin")]
    with pytest.raises(NotFound):
        await manage(hub, "carol", teams.members, team)


async def test_the_last_admin_can_neither_leave_nor_become_a_member(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    alice, bob = await hub.user("alice"), await hub.user("bob")
    for act, given in ((teams.remove, (alice,)), (teams.set_role, (alice, TeamRole.MEMBER))):
        with pytest.raises(Conflict, match="only admin"):
            await manage(hub, "alice", act, team, *given)
    await manage(hub, "alice", teams.set_role, team, bob, TeamRole.ADMIN)
    await manage(hub, "alice", teams.remove, team, alice)
    assert await names_in(hub, "bob", team) == [(("bob",), "admin")]


async def test_an_invitation_is_for_one_person_for_two_weeks_and_can_be_declined(hub: Hub) -> None:
    team, bob = await team_of(hub, "alice"), await hub.user("bob")
    await manage(hub, "alice", teams.invite, team, bob, "1")
    (open_,) = await manage(hub, "bob", teams.invites)
    assert (open_.team, open_.place, open_.by) == (team, "Core", "alice")
    assert await manage(hub, "carol", teams.invites) == []
    with pytest.raises(NotFound):
        await manage(hub, "carol", teams.accept, team)
    with pytest.raises(Refused, match="Only a member"):
        await manage(hub, "bob", teams.members, team)
    await manage(hub, "bob", teams.decline, team)
    with pytest.raises(NotFound):
        await manage(hub, "bob", teams.accept, team)
    hub.harness.clock.tick(timedelta(days=29).total_seconds())
    with pytest.raises(Conflict, match="has declined an invitation to it within the last 30 days"):
        await manage(hub, "alice", teams.invite, team, bob, "2")
    hub.harness.clock.tick(timedelta(days=1).total_seconds())
    await manage(hub, "alice", teams.invite, team, bob, "2")
    hub.harness.clock.tick(timedelta(days=15).total_seconds())
    assert await manage(hub, "bob", teams.invites) == []
    with pytest.raises(NotFound):
        await manage(hub, "bob", teams.accept, team)
    with pytest.raises(BadInput, match="member of this team already"):
        await manage(hub, "alice", teams.invite, team, await hub.user("alice"), "3")
    with pytest.raises(NotFound, match="no such user"):
        await manage(hub, "alice", teams.invite, team, uuid.uuid4(), "4")


async def test_no_tool_changes_who_is_in_a_team(hub: Hub) -> None:
    with pytest.raises(Refused, match="A tool may not"):
        await manage(hub, "alice", teams.create, "Core", "x", vendor="claude")


async def test_membership_belongs_to_the_person_with_all_their_accounts(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    bob, bert = await hub.user("bob"), await hub.user("bert")
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id, "alone") as tx:
        await tx.people.link(bert, bob)
    id = (await hub.write("alice", "zqshared")).entry.id
    await hub.share("alice", id, team)
    assert await hub.titles("bert") == ["zqshared"]
    alice = await hub.user("alice")
    await manage(hub, "alice", teams.set_role, team, bert, TeamRole.ADMIN)
    await manage(hub, "bert", teams.remove, team, alice)
    assert await names_in(hub, "bob", team) == [(("bob",), "admin")]
    with pytest.raises(Conflict):
        await manage(hub, "bob", teams.remove, team, bert)


async def test_what_is_shared_is_read_by_the_team_and_their_tools_alone(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    id = (await hub.write("alice", "zqshared", "claude")).entry.id
    for name in ("bob", "carol"):
        with pytest.raises(NotFound):
            await hub.get(name, id)
    shared = await hub.share("alice", id, team)
    assert (shared.version, shared.former) == (2, False)
    assert await hub.titles("bob") == ["zqshared"]
    assert await hub.titles("bob", "cursor", page={"team": team}) == ["zqshared"]
    assert await hub.titles("carol") == []
    with pytest.raises(NotFound):
        await hub.titles("carol", page={"team": team})
    for act in (hub.change("bob", id, content="x"), hub.trash("bob", id)):
        with pytest.raises(Refused, match="another person's"):
            await act
    with pytest.raises(NotFound):
        await hub.share("bob", id, None)
    await hub.change("alice", id, vendors=["claude"])
    assert await hub.titles("bob", "cursor") == []
    assert await hub.titles("bob") == ["zqshared"]
    await hub.trash("alice", id)
    for trashed in (False, True):
        assert await hub.titles("bob", trashed=trashed) == []
    with pytest.raises(NotFound):
        await hub.get("bob", id)
    await hub.restore("alice", id)
    await hub.share("alice", id, None)
    assert await hub.titles("bob") == []
    assert await hub.titles("alice") == ["zqshared"]


async def test_only_a_member_shares_with_a_team_and_only_their_own(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    id = (await hub.write("carol", "hers")).entry.id
    for name in ("carol", "alice"):
        with pytest.raises(NotFound):
            await hub.share(name, id, team)


async def test_what_a_former_member_shared_stays_until_they_or_an_admin_end_it(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob", "carol")
    bob = await hub.user("bob")
    ids = [(await hub.write("bob", f"by bob {n}")).entry.id for n in range(2)]
    for id in ids:
        await hub.share("bob", id, team)
    with pytest.raises(Refused, match="only they may unshare"):
        await manage(hub, "alice", teams.unshare_of_former, team, ids[0])
    await manage(hub, "bob", teams.remove, team, bob)
    assert [(e.title, e.former) for e in await hub.find("alice")] == [("by bob 1", True), ("by bob 0", True)]
    assert len(await hub.titles("bob")) == 2
    with pytest.raises(Refused, match="Only an admin"):
        await manage(hub, "carol", teams.unshare_of_former, team, ids[0])
    await manage(hub, "alice", teams.unshare_of_former, team, ids[0])
    await hub.share("bob", ids[1], None)
    assert await hub.titles("alice") == []
    assert {(e.title, e.former) for e in await hub.find("bob")} == {("by bob 0", False), ("by bob 1", False)}


async def test_every_change_of_a_team_is_in_the_audit_log(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    id = (await hub.write("alice", "x")).entry.id
    await hub.share("alice", id, team)
    await manage(hub, "alice", teams.remove, team, await hub.user("bob"))
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        found = [event.act for event in await tx.audit.find(limit=50)]
    for act in ("team.created", "team.invited", "team.member", "memory.reach", "team.member_removed"):
        assert act in found


async def test_an_entry_with_a_key_that_was_shared_has_no_second_one_beside_it(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    of_person, of_tool = await hub.write("alice", "v1", key="k"), await hub.write("alice", "v1", "claude", key="k")
    for shared in (of_person, of_tool):
        await hub.share("alice", shared.entry.id, team)
    again = await hub.write("alice", "v2", key="k")
    assert (again.created, again.entry.id, again.entry.namespace) == (False, of_person.entry.id, team_namespace(team))
    with pytest.raises(Conflict, match="shared with a team by its person"):
        await hub.write("alice", "v2", "claude", key="k")
    narrow = OF_PERSON - {Grants.WRITE_TEAMS}  # it may change the entry by its id, too
    assert not (await hub.write("alice", "v3", key="k", grants=narrow)).created
    assert sorted(await hub.titles("bob")) == ["v1", "v3"]
    assert sorted(await hub.titles("alice")) == ["v1", "v3"]
    assert (await hub.write("alice", "other", "cursor", key="k")).created, "another tool's key is another one"
    assert (await hub.write("alice", "other", "claude", key="k2")).created
    await hub.share("alice", of_tool.entry.id, None)
    assert not (await hub.write("alice", "v2 by claude", "claude", key="k")).created


async def test_a_shared_entry_that_a_tool_may_not_read_is_not_told_to_it(hub: Hub) -> None:
    team = await team_of(hub, "alice")
    first = await hub.write("alice", "v1", "claude", key="k")
    await hub.change("alice", first.entry.id, vendors=["cursor"])
    await hub.share("alice", first.entry.id, team)
    assert (await hub.write("alice", "v2", "claude", key="k")).created
