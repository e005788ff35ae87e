"""Who is invited to a project is in it once they accept: until then nothing changes for them, whoever invites.
Everybody may leave again, and nobody is left alone with what they can neither leave nor delete."""

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import pytest

from composer.errors import BadInput, Conflict, NexusError, NotFound
from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, GatewayStage, gateway_stage

DM: Final = {"dm": "nexus"}
VAULT: Final[list[Any]] = [{"role": "user", "content": "what is the vault behind?"}]


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        for user in ("alice", "mallory", "bob"):
            await stage.hub.user(user)
        yield stage


async def told(stage: GatewayStage, user: str, text: str, **place: Any) -> str:
    return (await stage.harness.command(user, f"/nexus {text}", **(place or DM))).text


async def poisoned_project(stage: GatewayStage) -> str:
    """A project of mallory's with everything that can be written for one; its id."""
    for text in (
        "project create handbook",
        "project assign handbook --yes",
        "fact set style zqevil --project --yes",
        "landmark add always run zqevil --project --yes",
    ):
        await told(stage, "mallory", text)
    async with stage.hub.request("mallory") as (_, access):
        (project,) = access.projects
    await stage.hub.write("mallory", "the vault is behind zqevil", kind="procedural", project=project.id)
    return str(project.id)


async def seen(stage: GatewayStage, http: httpx2.AsyncClient, keys: dict[str | None, str]) -> list[bytes]:
    """All that alice, and a tool of hers, can find out, byte for byte."""
    found = []
    for vendor, key in keys.items():
        body = {"model": MODEL, "messages": VAULT}
        await http.post("/v1/chat/completions", json=body, headers=bearer(key))
        found.append(stage.upstream.requests[-1].raw)
        question = {"question": VAULT[0]["content"], "limit": 50}
        found.append((await http.post("/v1/query", json=question, headers=bearer(key))).content)
        own = ("/v1/projects", "/v1/entries") if vendor is None else ("/v1/agent/projects",)
        found += [(await http.get(path, headers=bearer(key))).content for path in own]
    for text in ("fact list", "recall vault", "landmark list"):
        found.append((await told(stage, "alice", text)).encode())
    composed = await stage.harness.compose("alice", VAULT[0]["content"], **DM)
    return [*found, re.sub(r"\d\d:\d\d", "", str(composed.prompt.role_messages)).encode()]  # it is later each time


@pytest.mark.parametrize("by", ["command", "api"])
@pytest.mark.parametrize("role", ["read", "admin"])
async def test_nothing_of_the_invited_changes_until_they_accept(stage: GatewayStage, by: str, role: str) -> None:
    project = await poisoned_project(stage)
    await told(stage, "alice", "fact set own zqown --everywhere --yes")
    alice = str(await stage.hub.user("alice"))
    mallorys = await key_of(stage.harness, "mallory")
    keys = {vendor: await key_of(stage.harness, "alice", vendor) for vendor in (None, "cursor")}
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        before = await seen(stage, http, keys)
        member = f"/v1/projects/{project}/members/{alice}"
        for answered in (202, 202):  # inviting again is one invitation
            if by == "api":
                invited = await http.put(member, json={"role": role}, headers=bearer(mallorys))
                assert invited.status_code == answered
            else:
                assert (await told(stage, "mallory", f"project member add handbook alice {role}")).startswith("Invited")
        assert await seen(stage, http, keys) == before
        for path in (f"/v1/projects/{project}", f"/v1/projects/{project}/members", f"/v1/entries?project={project}"):
            assert (await http.get(path, headers=bearer(keys[None]))).status_code in (403, 404)
        with pytest.raises(NexusError):
            await told(stage, "alice", "project assign handbook --yes")

        (mine,) = (await http.get("/v1/invites", headers=bearer(keys[None]))).json()["items"]
        assert (mine["project"], mine["team"], mine["name"], mine["role"], mine["by"]) == (
            *(project, None, "handbook", role, "mallory"),
        )
        line = (await told(stage, "alice", "project list")).splitlines()[-1]
        assert line.startswith(f"mallory invites you to the project handbook (role: {role}). Once you accept, your AI ")
        assert (await http.post(f"/v1/projects/{project}/accept", headers=bearer(keys["cursor"]))).status_code == 403
        assert (await http.get("/v1/invites", headers=bearer(keys["cursor"]))).status_code == 403
        assert await seen(stage, http, keys) == before

        if by == "api":
            assert (await http.post(f"/v1/projects/{project}/accept", headers=bearer(keys[None]))).status_code == 204
        else:
            assert (await told(stage, "alice", "project accept handbook")).startswith("You are in handbook now")
        assert "zqevil" in str(await seen(stage, http, keys))
        assert (await http.get("/v1/invites", headers=bearer(keys[None]))).json()["items"] == []
        assert stage.upstream.requests
        await http.post(
            "/v1/chat/completions", json={"model": MODEL, "messages": VAULT}, headers=bearer(keys["cursor"])
        )
        system, *others = stage.upstream.bodies[-1]["messages"]
        assert "zqevil" not in system["content"]
        assert system["role"] == "system"
        assert "zqevil" in str(others)


async def test_an_invitation_is_declined_withdrawn_and_ends_after_two_weeks(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    for end in ("decline", "withdraw", "wait"):
        await told(stage, "mallory", "project member add handbook alice write")
        assert "alice  write (invited, until " in await told(stage, "mallory", "project member list handbook")
        if end == "decline":
            assert await told(stage, "alice", "project decline handbook") == "Declined: you are not in handbook."
            stage.harness.clock.tick(30 * 86_400)
        elif end == "withdraw":
            await told(stage, "mallory", "project member remove handbook alice")
        else:
            stage.harness.clock.tick(14 * 86_400)
        assert "invited" not in await told(stage, "mallory", "project member list handbook")
        assert (
            await told(stage, "alice", "project list")
            == "You are in no project. To make one: /nexus project create NAME"
        )
        for answer in ("accept", "decline"):
            with pytest.raises(NotFound, match="You have no invitation to a project called handbook"):
                await told(stage, "alice", f"project {answer} handbook")
    with pytest.raises(NotFound, match="alice is not in handbook"):
        await told(stage, "mallory", "project member remove handbook alice")


async def test_nobody_accepts_for_another_and_what_is_not_there_looks_alike(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    await told(stage, "mallory", "project member add handbook alice write")
    said = []
    for name in ("handbook", "nosuch"):
        with pytest.raises(NotFound) as raised:
            await told(stage, "bob", f"project accept {name}")
        said.append(str(raised.value).replace(name, "NAME"))
    assert said[0] == said[1]


async def test_the_role_is_that_of_the_last_invitation_and_of_two_projects_of_one_name_one_is_named(
    stage: GatewayStage,
) -> None:
    for owner in ("mallory", "bob"):
        await told(stage, owner, "project create handbook")
        await told(stage, owner, "project member add handbook alice admin")
    await told(stage, "mallory", "project member add handbook alice read")
    with pytest.raises(BadInput, match="Several projects of that name invite you: name one as handbook:"):
        await told(stage, "alice", "project accept handbook")
    lines = (await told(stage, "alice", "project list")).splitlines()
    name = next(line for line in lines if "mallory" in line).rpartition(" ")[2]
    assert "with the role read" in await told(stage, "alice", f"project accept {name}")
    assert "with the role admin" in await told(stage, "alice", "project accept handbook")


async def test_many_invitations_are_counted_and_show_no_more_than_a_few(stage: GatewayStage) -> None:
    for n in range(12):
        await told(stage, "mallory", f"project create p{n}")
        await told(stage, "mallory", f"project member add p{n} alice")
    lines = (await told(stage, "alice", "project list")).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "2 more projects invite you."


async def test_everybody_leaves_also_who_was_left_as_the_only_admin_of_an_isolated_project(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create trap --isolated")
    async with stage.hub.request("mallory") as (_, access):
        (trap,) = access.projects
    await stage.hub.write("mallory", "filed in the trap", project=trap.id)
    await told(stage, "mallory", "project member add trap alice read")
    await told(stage, "alice", "project accept trap")
    await told(stage, "mallory", "project member add trap alice write")
    await told(stage, "alice", "project accept trap")
    await told(stage, "mallory", "project member add trap alice admin")
    await told(stage, "mallory", "project leave trap")
    key = await key_of(stage.harness, "alice")
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        assert (await http.delete(f"/v1/projects/{trap.id}?confirm=true", headers=bearer(key))).status_code == 409
        asked = await http.post(f"/v1/projects/{trap.id}/leave", headers=bearer(key))
        assert asked.status_code == 409
        assert "You are the only admin of trap" in asked.json()["detail"]
        left = await http.post(f"/v1/projects/{trap.id}/leave?confirm=true", headers=bearer(key))
        assert left.status_code == 204
    assert (
        await told(stage, "alice", "project list") == "You are in no project. To make one: /nexus project create NAME"
    )


async def test_leaving_as_the_only_admin_says_first_what_it_opens(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    asked = await stage.harness.command("mallory", "/nexus project leave handbook", **DM)
    assert "You are the only admin of handbook" in asked.text
    assert "handbook" in await told(stage, "mallory", "project list"), "nothing is done yet"
    with pytest.raises(Conflict, match="they may leave"):
        await told(stage, "mallory", "project member remove handbook mallory")
    assert (await told(stage, "mallory", "project leave handbook --yes")).startswith("You left handbook")


async def test_an_orphan_is_its_members_who_may_delete_it_and_whose_rooms_may_leave_it(stage: GatewayStage) -> None:
    project = await poisoned_project(stage)
    await told(stage, "bob", "project list", room="lab")  # opens the room
    for user in ("alice", "bob"):
        await told(stage, "mallory", f"project member add handbook {user} {'read' if user == 'alice' else 'write'}")
        await told(stage, "alice" if user == "alice" else "bob", "project accept handbook")
    await told(stage, "bob", "project assign handbook --yes", room="lab")
    await told(stage, "mallory", "project leave handbook --yes")
    keys = {user: await key_of(stage.harness, user) for user in ("alice", "bob", "mallory")}
    async with httpx2.AsyncClient(base_url=stage.url) as http:

        async def tried(user: str, verb: str, path: str, **sent: Any) -> int:
            return (
                await http.request(verb, f"/v1/projects/{project}{path}", headers=bearer(keys[user]), **sent)
            ).status_code

        assert await tried("mallory", "DELETE", "?confirm=true") == 404
        assert await tried("alice", "PATCH", "", json={"name": "ours"}) == 200
        alice = await stage.hub.user("alice")
        assert await tried("alice", "PUT", f"/members/{alice}", json={"role": "admin"}) == 204
        assert await tried("bob", "PATCH", "", json={"name": "mine"}) == 403, "it has an admin again"
        assert await tried("alice", "POST", "/leave", params={"confirm": "true"}) == 204
        assert await tried("bob", "DELETE", "?confirm=true") in (200, 204)
        assert await tried("bob", "GET", "") == 404
    assert await told(stage, "bob", "project list") == "You are in no project. To make one: /nexus project create NAME"


async def test_a_room_leaves_an_isolated_project_that_has_nobody_any_more(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create trap --isolated", room="lab")
    await told(stage, "mallory", "project assign trap --yes", room="lab")
    await told(stage, "mallory", "project leave trap --yes", room="lab")
    assert "Removed from trap" in await told(stage, "mallory", "project unassign --yes", room="lab")


async def test_who_is_no_member_any_more_is_invited_anew(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    for _ in range(2):
        assert (await told(stage, "mallory", "project member add handbook alice")).startswith("Invited alice")
        await told(stage, "alice", "project accept handbook")
        assert "alice is in handbook" in await told(stage, "mallory", "project member add handbook alice read")
        await told(stage, "alice", "project leave handbook")


async def test_who_declines_declines_for_themselves_alone(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    for user in ("alice", "bob"):
        await told(stage, "mallory", f"project member add handbook {user}")
    await told(stage, "alice", "project decline handbook")
    assert "You are in handbook now" in await told(stage, "bob", "project accept handbook")


async def test_no_admin_opens_the_sessions_of_who_may_only_read(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    await told(stage, "mallory", "project assign handbook --yes", room="lab")
    await told(stage, "mallory", "project member add handbook alice read")
    await told(stage, "alice", "project accept handbook")
    await told(stage, "alice", "project assign handbook --yes", session="s1")
    await stage.harness.say("alice", "the vault is behind zqmine", session="s1")

    async def recalled() -> str:
        return await told(stage, "mallory", "recall vault", room="lab")

    for role in ("write", "admin"):
        assert (await told(stage, "mallory", f"project member add handbook alice {role}")).startswith("Invited alice")
        assert "zqmine" not in await recalled()
    assert "What you say in sessions that you put into it all in it can recall." in await told(
        stage, "alice", "project list"
    )
    await told(stage, "alice", "project decline handbook")
    stage.harness.clock.tick(30 * 86_400)
    assert "your role: read" in await told(stage, "alice", "project list"), "she stays what she was"
    await told(stage, "mallory", "project member add handbook alice write")
    await told(stage, "mallory", "project member add handbook alice read")
    with pytest.raises(NotFound):
        await told(stage, "alice", "project accept handbook")
    await told(stage, "mallory", "project member add handbook alice write")
    await told(stage, "alice", "project accept handbook")
    assert "zqmine" in await recalled()


async def shared_session(stage: GatewayStage, role: str, *, isolated: bool = False) -> str:
    """A project of mallory's with a room, and a session that alice has put into it; its id."""
    await told(stage, "mallory", f"project create handbook{' --isolated' if isolated else ''}")
    await told(stage, "mallory", "project assign handbook --yes", room="lab")
    await told(stage, "mallory", f"project member add handbook alice {role}")
    await told(stage, "alice", f"project accept handbook {role}")
    await told(stage, "alice", "project assign handbook --yes", session="s1")
    async with stage.hub.request("mallory") as (_, access):
        (project,) = access.projects
    return str(project.id)


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("role", ["read", "write"])
@pytest.mark.parametrize("end", ["leave", "removed", "leave by api", "removed by api"])
async def test_what_is_said_in_a_session_while_its_person_is_no_member_is_pooled_by_no_later_membership(
    stage: GatewayStage, end: str, role: str, isolated: bool
) -> None:
    project = await shared_session(stage, role, isolated=isolated)
    alice = await stage.hub.user("alice")
    keys = {user: await key_of(stage.harness, user) for user in ("alice", "mallory")}
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        if end == "leave":
            assert "is yours alone again" in await told(stage, "alice", "project leave handbook")
        elif end == "removed":
            await told(stage, "mallory", "project member remove handbook alice")
        elif end == "leave by api":
            left = await http.post(f"/v1/projects/{project}/leave", headers=bearer(keys["alice"]))
            assert left.status_code == 204
        else:
            gone = await http.delete(f"/v1/projects/{project}/members/{alice}", headers=bearer(keys["mallory"]))
            assert gone.status_code == 204
    await stage.harness.say("alice", "the vault is behind zqmine", session="s1")

    async def recalled() -> str:
        return await told(stage, "mallory", "recall vault", room="lab")

    assert "zqmine" not in await recalled()
    await told(stage, "mallory", "project member add handbook alice write")
    assert "zqmine" not in await recalled(), "an open invitation pools nothing"
    await told(stage, "alice", "project accept handbook write")
    assert "zqmine" not in await recalled()
    await stage.harness.say("alice", "the vault has zqmore", session="s1")
    assert "zqm" not in await recalled()

    asked = await stage.harness.command("alice", "/nexus project assign handbook", session="s1")
    assert "everyone in handbook what is said in" in asked.text
    assert "zqmine" not in await recalled(), "she is asked first"
    await told(stage, "alice", "project assign handbook --yes", session="s1")
    assert "zqmine" in await recalled(), "she has put it there again"


async def test_what_was_said_in_an_isolated_project_stays_in_it_when_its_person_leaves(stage: GatewayStage) -> None:
    await shared_session(stage, "write", isolated=True)
    await stage.harness.say("alice", "the vault is behind zqshared", session="s1")
    await told(stage, "alice", "project leave handbook")
    await told(stage, "alice", "project create own")
    with pytest.raises(NexusError, match="handbook is isolated"):
        await told(stage, "alice", "project assign own --yes", session="s1")


async def raised(stage: GatewayStage, how: str) -> None:
    """Invite alice as a reader, which she is shown, and then to write, which she is not."""
    await told(stage, "mallory", "project create handbook")
    await told(stage, "mallory", "project member add handbook alice read")
    assert "project accept handbook read, or" in await told(stage, "alice", "project list")
    if how == "withdrawn first":
        await told(stage, "mallory", "project member remove handbook alice")
    elif how == "expired first":
        stage.harness.clock.tick(14 * 86_400)
    elif how == "by steps":
        await told(stage, "mallory", "project member add handbook alice admin")
    await told(stage, "mallory", "project member add handbook alice write")


@pytest.mark.parametrize("how", ["changed", "withdrawn first", "expired first", "by steps"])
async def test_who_accepts_accepts_the_role_that_they_were_shown(stage: GatewayStage, how: str) -> None:
    await raised(stage, how)
    key = bearer(await key_of(stage.harness, "alice"))
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        (mine,) = (await http.get("/v1/invites", headers=key)).json()["items"]
        address = f"/v1/projects/{mine['project']}/accept"
        for given in ("", " read"):
            with pytest.raises(Conflict, match="That invitation has changed: it offers the role write now"):
                await told(stage, "alice", f"project accept handbook{given}")
            named = {"role": given.strip()} if given else {}
            refused = await http.post(address, params=named, headers=key)
            assert refused.status_code == 409
            assert "it offers the role write now" in refused.json()["detail"]
        assert "You are in no project" not in await told(stage, "alice", "project list"), "it is still open"
        assert (await http.get("/v1/projects", headers=key)).json()["items"] == []
        assert (await http.post(address, params={"role": "write"}, headers=key)).status_code == 204
    assert "your role: write" in await told(stage, "alice", "project list")


async def test_an_invitation_to_another_role_is_another_invitation(stage: GatewayStage) -> None:
    await told(stage, "mallory", "project create handbook")
    key = bearer(await key_of(stage.harness, "alice"))
    ids = []
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        for role in ("read", "write", "read"):
            await told(stage, "mallory", f"project member add handbook alice {role}")
            (mine,) = (await http.get("/v1/invites", headers=key)).json()["items"]
            ids.append(mine["id"])
    assert ids[0] == ids[2] != ids[1]


async def test_who_declined_is_not_asked_again_for_thirty_days(stage: GatewayStage) -> None:
    await raised(stage, "changed")
    await told(stage, "alice", "project decline handbook")
    stage.harness.clock.tick(29 * 86_400)
    for role in ("read", "write"):
        with pytest.raises(Conflict, match="has declined an invitation to it within the last 30 days"):
            await told(stage, "mallory", f"project member add handbook alice {role}")
    await told(stage, "mallory", "project member add handbook bob write")
    stage.harness.clock.tick(86_400)
    await told(stage, "mallory", "project member add handbook alice write")
    assert "with the role write" in await told(stage, "alice", "project accept handbook")


async def test_one_person_has_at_most_so_many_open_invitations(
    stage: GatewayStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("composer.entries.teams.MAX_INVITES", 2)
    for n in range(3):
        await told(stage, "mallory", f"project create p{n}")
    for n in range(2):
        await told(stage, "mallory", f"project member add p{n} alice read")
    with pytest.raises(BadInput, match="2 invitations of yours are open, which is the limit"):
        await told(stage, "mallory", "project member add p2 alice read")
    await told(stage, "mallory", "project member add p1 alice write")  # in place of the one before
    await told(stage, "mallory", "project member remove p0 alice")
    await told(stage, "mallory", "project member add p2 alice read")
