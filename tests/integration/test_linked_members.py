"""Membership of a project and consent belong to the person, whichever of their accounts is named."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from composer.errors import Conflict, NotFound, Refused
from composer.settings import Settings, TenantSettings
from tests.support.harness import AppHarness, open_harness


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """Two workspaces of one tenant, and the project apollo with alice as its admin and the room #team."""
    tenants = {"acme": TenantSettings(workspaces=("home", "annex"))}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        object.__setattr__(harness, "name", "home")
        for user in ("alice", "bob", "carol"):
            await harness.say(user, "hello", room="team")
        await harness.say("bob2", "hello", room="lobby", workspace="annex")
        await in_team(harness, "alice", "project create apollo")
        await in_team(harness, "alice", "project assign apollo --yes")
        yield harness


async def in_team(harness: AppHarness, user: str, text: str) -> str:
    return (await harness.command(user, f"/nexus {text}", room="team")).text


async def in_annex(harness: AppHarness, user: str, text: str, **place: str) -> str:
    place = place or {"dm": "nexus"}
    return (await harness.command(user, f"/nexus {text}", workspace="annex", **place)).text


async def link(harness: AppHarness, user: str, other: str) -> str:
    found = re.search(r"link ([A-Z0-9]{8})", (await harness.command(user, "/nexus link", dm="nexus")).text)
    assert found is not None
    return await in_annex(harness, other, f"link {found[1]} --yes")


async def prompt(harness: AppHarness, user: str, text: str, **place: str) -> str:
    return "\n".join(s.text for s in (await harness.compose(user, text, **place)).prompt.sections)


async def test_who_is_removed_is_removed_with_all_accounts(harness: AppHarness) -> None:
    await link(harness, "bob", "bob2")
    await harness.say("alice", "the apollo budget is zqbudget", room="team")
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    await in_annex(harness, "bob2", "project member add apollo bob2 admin")  # a second row of the same person
    await in_annex(harness, "bob2", "project assign apollo --yes")
    there = {"dm": "nexus", "workspace": "annex"}
    assert "zqbudget" in await prompt(harness, "bob2", "what is the apollo budget?", **there)
    answer = await in_team(harness, "alice", "project member remove apollo bob")
    assert answer == "bob is no longer in apollo, or invited to it, with none of their accounts."
    assert "bob" not in await in_team(harness, "alice", "project member list apollo")
    assert "zqbudget" not in await prompt(harness, "bob2", "what is the apollo budget?", **there)
    with pytest.raises(NotFound):
        await in_annex(harness, "bob2", "project member list apollo")
    await in_annex(harness, "bob2", "unlink")
    with pytest.raises(NotFound):
        await in_annex(harness, "bob2", "project member list apollo")


async def test_who_is_demoted_is_demoted_with_all_accounts(harness: AppHarness) -> None:
    await link(harness, "bob", "bob2")
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    await in_annex(harness, "bob2", "project member add apollo bob2 admin")
    await in_team(harness, "alice", "project member add apollo bob read")
    for user in ("bob", "bob2"):
        place = {"dm": "nexus", "workspace": "annex" if user == "bob2" else "home"}
        with pytest.raises(Refused, match="Only an admin of apollo"):
            await harness.command(user, "/nexus project member remove apollo alice", **place)
    assert await in_team(harness, "alice", "project member list apollo") == "alice  admin\nbob (also bob2)  read"
    assert "your role: read; 2 members" in await in_annex(harness, "bob2", "project list")
    await in_annex(harness, "bob2", "unlink")
    assert "your role: read; 3 members" in await in_annex(harness, "bob2", "project list")


async def test_of_two_accounts_with_different_roles_the_better_one_counts(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    await link(harness, "bob", "bob2")
    await harness.say("dora", "hello", room="lobby", workspace="annex")
    await in_annex(harness, "bob2", "project member add apollo dora admin")
    await in_annex(harness, "dora", "project accept apollo")
    await in_team(harness, "alice", "project member add apollo carol read")
    await in_team(harness, "carol", "project accept apollo")
    with pytest.raises(Refused, match="Only an admin of apollo"):
        await in_team(harness, "carol", "project member remove apollo bob")
    await link(harness, "carol", "dora")
    assert "no longer" in await in_team(harness, "carol", "project member remove apollo bob")


async def test_unlinking_leaves_each_account_what_it_was_given_by_name(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob write")
    await in_team(harness, "bob", "project accept apollo")
    await link(harness, "bob", "bob2")
    assert "your role: write; 2 members" in await in_annex(harness, "bob2", "project list")
    await in_annex(harness, "bob2", "unlink")
    assert "your role: write; 2 members" in await in_team(harness, "bob", "project list")
    assert "You are in no project" in await in_annex(harness, "bob2", "project list")


async def test_a_session_of_any_account_of_a_member_is_pooled_and_only_as_long(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob write")
    await in_team(harness, "bob", "project accept apollo")
    await link(harness, "bob", "bob2")
    await in_annex(harness, "bob2", "project assign apollo --yes", session="s1")
    await harness.say("bob2", "the session secret is zqsession", session="s1", workspace="annex")
    asked = "@nexus what is the session secret?"
    assert "zqsession" in await prompt(harness, "alice", asked, room="team")
    await in_team(harness, "alice", "project member remove apollo bob")
    assert "zqsession" not in await prompt(harness, "alice", asked, room="team")


async def test_a_dm_of_a_linked_account_is_read_unless_it_is_in_an_isolated_project(harness: AppHarness) -> None:
    await link(harness, "bob", "bob2")
    await harness.say("bob2", "the vault is behind zqvault", dm="nexus", workspace="annex")
    assert "zqvault" in await prompt(harness, "bob", "where is the vault?", dm="nexus")
    await in_annex(harness, "bob2", "project create ares --isolated")
    await in_annex(harness, "bob2", "project assign ares --yes")
    assert "zqvault" not in await prompt(harness, "bob", "where is the vault?", dm="nexus")
    there = {"dm": "nexus", "workspace": "annex"}
    assert "zqvault" in await prompt(harness, "bob2", "where is the vault?", **there)


async def test_a_member_of_another_workspace_is_named_as_the_list_names_them(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    await link(harness, "bob", "bob2")
    await harness.say("dora", "hello", room="lobby", workspace="annex")
    await harness.say("carol", "hello", room="lobby", workspace="annex")
    await in_annex(harness, "bob2", "project member add apollo dora write")
    await in_annex(harness, "dora", "project accept apollo")
    changed = await in_team(harness, "alice", "project member add apollo dora read")
    assert changed == "dora is in apollo with the role read."
    await in_team(harness, "alice", "project member remove apollo dora")
    with pytest.raises(NotFound, match="There is no user 'dora' here"):
        await in_team(harness, "alice", "project member remove apollo dora")
    await in_annex(harness, "bob2", "project member add apollo carol write")
    await in_annex(harness, "carol", "project accept apollo")
    assert "no longer" in await in_team(harness, "alice", "project member remove apollo carol")
    with pytest.raises(NotFound, match="carol is not in apollo"):
        await in_team(harness, "alice", "project member remove apollo carol")


async def test_the_last_admin_is_neither_removed_nor_demoted(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob write")
    await in_team(harness, "bob", "project accept apollo")
    for text in ("remove apollo alice", "add apollo alice read"):
        with pytest.raises(Conflict, match="alice is the only admin of apollo: "):
            await in_team(harness, "alice", f"project member {text}")
    assert "alice  admin" in await in_team(harness, "alice", "project member list apollo")
    await in_team(harness, "alice", "project member add apollo alice admin")  # changes nothing
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "alice", "project member remove apollo alice")


async def test_two_accounts_of_the_last_admin_are_one_admin(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    await link(harness, "bob", "bob2")
    await in_annex(harness, "bob2", "project member add apollo bob2 admin")
    await in_team(harness, "alice", "project member remove apollo alice")
    with pytest.raises(Conflict, match="only admin"):
        await in_team(harness, "bob", "project member remove apollo bob")


async def test_two_admins_who_leave_at_once_leave_one(harness: AppHarness) -> None:
    await in_team(harness, "alice", "project member add apollo bob admin")
    await in_team(harness, "bob", "project accept apollo")
    for _ in range(3):
        done = await asyncio.gather(
            *(in_team(harness, user, f"project member remove apollo {user}") for user in ("alice", "bob")),
            return_exceptions=True,
        )
        assert sorted(isinstance(each, Conflict) for each in done) == [False, True], done
        one, other = ("alice", "bob") if isinstance(done[0], Conflict) else ("bob", "alice")
        await in_team(harness, one, f"project member add apollo {other} admin")
        await in_team(harness, other, "project accept apollo")


@pytest.mark.parametrize("who", ["bob", "bob2"])
async def test_who_opted_out_with_one_account_has_opted_out_with_all(harness: AppHarness, who: str) -> None:
    place = {"dm": "nexus", "workspace": "annex" if who == "bob2" else "home"}
    await harness.command(who, "/nexus opt-out", **place)
    assert "nothing is stored of either" in await link(harness, "bob", "bob2")

    async def is_stored() -> bool:
        said = await harness.say("bob2", "my other secret is zqsecret", room="lobby", workspace="annex")
        here = await harness.say("bob", "my other secret is zqsecret", room="team")
        assert bool(said.new) == bool(here.new)
        return bool(said.new)

    assert not await is_stored()
    await in_annex(harness, "bob2", "unlink")
    assert not await is_stored(), "unlinking stores nothing again"
    await link(harness, "bob", "bob2")
    await in_annex(harness, "bob2", "opt-in")
    assert await is_stored()


# docs/api.md: nothing opens the memory of who is disabled. The key of an account that was linked only then did.
async def test_no_account_is_linked_with_one_of_who_is_disabled(harness: AppHarness) -> None:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        bob = await tx.people.find_user("console", "home", "bob")
        assert bob is not None
        await tx.people.set_disabled(bob.id, harness.clock.now())
    with pytest.raises(Refused, match="disabled this person"):
        await link(harness, "bob", "bob2")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_disabled(bob.id, None)
    assert "Linked with bob" in await link(harness, "bob", "bob2")
