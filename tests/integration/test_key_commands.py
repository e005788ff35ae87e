"""The commands keys and login, of chats and of the program: made in private, shown once, erased with their person."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from bot.commands.table import run_command
from bot.console import keys as operator
from bot.console.keys import NamedPerson
from bot.script.places import incoming, place_of
from composer.errors import BadInput, NotFound, Refused
from composer.model import Trust
from composer.people.credentials.issuing import KeyRequest
from composer.people.credentials.keys import digest
from composer.people.credentials.principal import TOOL_PERMISSIONS, KeyPermission
from composer.repositories.audit import AuditAct
from composer.visibility import Grants
from jobs import work
from tests.integration.test_credentials import new_key, person, redeem, resolve, signed_in
from tests.support.harness import AppHarness


async def dm(harness: AppHarness, text: str, user: str = "alice") -> str:
    return (await harness.command(user, f"/nexus {text}", dm="nexus")).text


def key_in(text: str) -> str:
    found = re.findall(r"^nx_\S+$", text, re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


async def test_a_person_lets_a_tool_use_their_entries_once_they_know_what_that_opens(harness: AppHarness) -> None:
    shown = await harness.command("alice", "/nexus keys create claude", dm="nexus")
    assert shown.opens.startswith("Whoever has that key can then read, as that tool, your entries")
    assert "ask models through the gateway" in shown.opens, "which whoever runs Nexus pays for"
    assert shown.confirm == "/nexus keys create claude --yes"
    assert "nx_" not in shown.text
    assert "no key" in await dm(harness, "keys list"), "nothing is made before the yes"
    made = await dm(harness, "keys create Claude --expires 90d --yes")
    text = key_in(made)
    found = await resolve(harness, text)
    assert found is not None
    assert (found.user, found.vendor, found.permissions) == ((await person(harness)).id, "claude", TOOL_PERMISSIONS)
    listed = await dm(harness, "keys list")
    assert text[:-56] in listed
    assert text not in listed
    assert "never used" not in listed or "last used" not in listed
    assert found.id.hex[:8] in listed
    await dm(harness, f"keys revoke {found.id.hex[:8]}")
    since = f"{harness.clock.now():%Y-%m-%d %H:%M}"
    assert await resolve(harness, text) is None
    assert "(revoked)" in await dm(harness, "keys list")
    with pytest.raises(NotFound, match=rf"^The key nx_.*… is revoked already, since {since} UTC: it opens nothing\.$"):
        await dm(harness, f"keys revoke {found.id.hex[:8]}")
    with pytest.raises(NotFound, match=r"^There is no key, web session or login"):
        await dm(harness, f"keys revoke {found.id.hex[:8]}", "bob")


async def test_nobody_sees_or_ends_what_opens_anothers_memory(harness: AppHarness) -> None:
    made = key_in(await dm(harness, "keys create claude --yes"))
    found = await resolve(harness, made)
    assert found is not None
    assert "no key" in await dm(harness, "keys list", "bob")
    for id in (found.id.hex[:8], "00000000"):
        with pytest.raises(NotFound, match=rf"^There is no key, web session or login '{id}'\.$"):
            await dm(harness, f"keys revoke {id}", "bob")
    assert await resolve(harness, made) is not None


async def test_keys_are_the_persons_with_all_their_accounts(harness: AppHarness) -> None:
    made, bob = key_in(await dm(harness, "keys create claude --yes")), await person(harness, "bob")
    alice = await person(harness)
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await tx.people.link(bob.id, alice.id)
    found = await resolve(harness, made)
    assert found is not None
    assert found.id.hex[:8] in await dm(harness, "keys list", "bob")
    await dm(harness, f"keys revoke {found.id.hex[:8]}", "bob")
    assert await resolve(harness, made) is None


@pytest.mark.parametrize("place", [{"room": "general"}, {"session": "s1"}])
async def test_a_key_and_a_link_are_shown_in_a_dm_alone(harness: AppHarness, place: dict[str, Any]) -> None:
    for text in ("keys create claude --yes", "keys list", "keys revoke 00000000", "login"):
        with pytest.raises(BadInput, match=r"works only in a DM\. Write to me directly"):
            await harness.command("alice", f"/nexus {text}", **place)


async def test_a_guest_gets_no_key_and_no_link(harness: AppHarness) -> None:
    at = harness.workspace()
    for text in ("keys create claude", "keys create claude --yes", "login"):
        message = incoming(at, place_of(None, "nexus", None), "gast", f"/nexus {text}", harness.clock.tick(), id=text)
        with pytest.raises(Refused, match="Guests have no keys"):
            await run_command(harness.app, at, replace(message, sender_trust=Trust.GUEST))


async def test_a_link_from_a_dm_signs_its_person_in(harness: AppHarness) -> None:
    text = await dm(harness, "login")
    link = re.findall(r"^http://localhost:8080/login\?code=(nxl_\S+)$", text, re.MULTILINE)
    assert len(link) == 1
    assert "this link opens only on the machine that Nexus runs on" in text
    _, cookie = await redeem(harness, link[0])
    found = await resolve(harness, None, cookie)
    assert found is not None
    assert found.user == (await person(harness)).id
    assert "web session, Firefox" in await dm(harness, "keys list")


@pytest.mark.parametrize("command", ["forget everything --yes", "erase user alice --yes"])
async def test_erasing_a_person_ends_what_opens_their_memory(harness: AppHarness, command: str) -> None:
    made, cookie, bobs = await new_key(harness), await signed_in(harness), await new_key(harness, "bob")
    root = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(root.id, True)
    link = re.findall(r"code=(\S+)", await dm(harness, "login"))[0]
    part = f"{command.removesuffix(' --yes')} --since 2026-01-01 --until 2026-01-02 --yes"
    who = "alice" if command.startswith("forget") else "root"
    await dm(harness, part, who)
    assert await resolve(harness, made.text) is not None, "some days of a person are not the person"
    receipt = await dm(harness, command, who)
    assert "1 key" in receipt
    assert "1 web session" in receipt
    assert await resolve(harness, made.text) is None
    assert await resolve(harness, None, cookie) is None
    with pytest.raises(NotFound):
        await redeem(harness, link)
    assert await resolve(harness, bobs.text) is not None
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        acts = [event.act for event in await tx.audit.find(limit=100)]
    assert AuditAct.KEY_REVOKED in acts
    assert AuditAct.SIGNED_OUT in acts


async def test_ended_keys_and_unused_links_are_deleted_by_a_job(harness: AppHarness) -> None:
    old, kept, cookie = await new_key(harness), await new_key(harness), await signed_in(harness)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.api_keys.revoke([old.entry.id], harness.clock.now())
    await dm(harness, "login")
    harness.clock.tick(31 * 24 * 3600)
    run = work.JobRun(harness.app, harness.clock.now(), lambda *_: None)
    await work.expire(run)
    assert run.failed == 0
    assert await resolve(harness, None, cookie) is None
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        alice = await person(harness)
        assert [key.id for key in await tx.api_keys.of([alice.id])] == [kept.entry.id]
        assert await tx.web_sessions.of(None, harness.clock.now()) == []
        connection = tx.messages._sql._connection  # type: ignore[attr-defined]
        assert await connection.fetchval("SELECT count(*) FROM one_time_codes") == 0


# --- for whoever runs Nexus ------------------------------------------------------------------------------------------


ALICE = NamedPerson("console", "acme", "alice")


async def test_an_operator_makes_lists_and_ends_keys(harness: AppHarness) -> None:
    await person(harness)
    made = await operator.create(harness.app, ALICE, KeyRequest(None, "laptop"), (), ())
    found = await resolve(harness, made.text)
    assert found is not None
    assert found.vendor is None
    assert KeyPermission.ADMIN not in found.permissions
    listed = [
        json.dumps(operator.as_json(key, at))
        async for at, keys in operator.credentials_by_tenant(harness.app)
        for key in keys
    ]
    assert len(listed) == 1
    assert made.text[-64:] not in listed[0]
    shown = json.loads(listed[0])
    assert (shown["tenant"], shown["prefix"], shown["title"]) == ("acme", made.entry.prefix, "laptop")
    ended = await operator.revoke(harness.app, made.entry.id.hex[:8])
    assert ended.user_name == "alice"
    assert await resolve(harness, made.text) is None
    for wrong, error in (("00000000", NotFound), ("", BadInput), ("xyz", BadInput)):
        with pytest.raises(error):
            await operator.revoke(harness.app, wrong)
    with pytest.raises(NotFound, match=r"no user 'nobody'.* Create one with nexus chat --as NAME\."):
        await operator.create(harness.app, NamedPerson("console", "acme", "nobody"), KeyRequest(None), (), ())
    with pytest.raises(NotFound, match=r"There is no user 'bob'.* Give their id on the platform"):
        await operator.create(harness.app, NamedPerson("discord", "1", "bob"), KeyRequest(None), (), ())


async def test_a_key_for_a_project_opens_that_project_of_all(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("bob", "/nexus project create ares", room="general")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        apollo = (await tx.projects.find_for((await person(harness)).id))[0].id
    made = await operator.create(harness.app, ALICE, KeyRequest("claude"), ["apollo:read"], ())
    own = Grants.of_project(apollo, "read")
    assert set(made.entry.permissions) == {*(TOOL_PERMISSIONS - {Grants.READ_PROJECTS}), own}
    only = await operator.create(harness.app, ALICE, KeyRequest("claude"), ["apollo:write"], ["teams:read"])
    assert set(only.entry.permissions) == {"teams:read", Grants.of_project(apollo, "write")}
    wrongs = (("ares:read", NotFound), ("nosuch:read", NotFound), ("apollo", BadInput), ("apollo:admin", BadInput))
    for wrong, error in wrongs:
        with pytest.raises(error):
            await operator.create(harness.app, ALICE, KeyRequest("claude"), [wrong], ())


async def test_the_owner_is_meant_where_nobody_is_named(harness: AppHarness) -> None:
    with pytest.raises(BadInput, match=r"Name the person \(nexus keys create --user alice, nexus login alice\)"):
        NamedPerson.of(harness.app, "console", "default", "")
    assert NamedPerson.of(harness.app, "console", "acme", "@Alice") == ALICE
    link = await operator.login(
        harness.app, NamedPerson.of(harness.app, "console", "acme", (await person(harness)).name)
    )
    _, cookie = await redeem(harness, link.partition("code=")[2])
    assert await resolve(harness, None, cookie) is not None


async def test_an_export_and_the_report_name_what_opens_a_memory_and_hold_nothing_that_does(
    harness: AppHarness,
) -> None:
    made, cookie, bobs = await new_key(harness), await signed_in(harness), await new_key(harness, "bob")
    assert "1 key and 1 web session. /nexus keys list" in await dm(harness, "privacy")
    answer = await harness.command("alice", "/nexus export", dm="nexus")
    assert answer.file is not None
    document = json.loads(answer.file.text)
    assert [each["prefix"] for each in document["keys"]] == [made.entry.prefix]
    assert [each["browser"] for each in document["web_sessions"]] == ["Firefox"]
    for secret in (made.text, cookie, digest(made.text).hex(), digest(cookie).hex(), bobs.entry.prefix):
        assert secret not in answer.file.text
