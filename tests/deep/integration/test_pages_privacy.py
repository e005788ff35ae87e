"""The page Privacy: what is stored of a person, opting out, taking all of it out, and having all of it forgotten."""

import re
from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from composer.memory import portions
from composer.settings import Settings
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
GERMAN = {"Accept-Language": "de"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        await harness.say("alice", "the heron flies in March", **ROOM)
        await harness.command("alice", "remember my leave begins in May", **DM)
        await harness.command("alice", 'fact set colour "red" --yes', **ROOM)
        await harness.say("bob", "the ibis of bob", **ROOM)
        yield harness


@pytest.fixture
async def alice(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    person = Person(client, await cookie_of(harness, "alice"))
    await person.page("/ask")
    return person


def rows(shown: str) -> list[tuple[str, str, str]]:
    """Of the table of what is stored: where, what, and who can be answered from it."""
    found = re.findall(r'<tr><th scope="row"[^>]*>(.*?)</th><td>(.*?)</td><td[^>]*>(.*?)</td>', shown)
    return [(where, what, who) for where, what, who in found]


async def confirmed(person: Person) -> dict[str, str]:
    """What the form that forgets everything sends."""
    found = re.search(r'name="confirm" value="(\d+)"', await person.page("/privacy/forget"))
    assert found is not None
    return {"confirm": found[1], "sure": "true"}


async def test_what_is_stored_where_and_who_can_be_answered_from_it(alice: Person) -> None:
    shown = rows(await alice.page("/privacy"))
    assert ("#general", "1 fact, 1 message", "everyone in the room") in shown
    assert ("your DM with @nexus", "1 memory", "you, in your DMs with @nexus") in shown
    german = (await alice.get("/privacy", **GERMAN)).text
    assert ("deine Direktnachrichten mit @nexus", "1 Erinnerung") in [row[:2] for row in rows(german)]
    assert ("#general", "1 Fakt, 1 Nachricht", "alle im Raum") in rows(german)


async def test_everybody_sees_when_the_audit_log_was_verified_and_whether_it_was_whole(
    harness: AppHarness, alice: Person
) -> None:
    assert "It was not verified yet." in await alice.page("/privacy")
    tenant = harness.workspace().tenant_id
    await harness.app.audit.seal(tenant)
    assert (await harness.app.audit.verify_noted(tenant)).whole
    shown = await alice.page("/privacy")
    assert ("Last verified" in shown, "nothing of it was changed or cut." in shown) == (True, True)
    database = await asyncpg.connect(harness.app.settings.database_url)
    try:
        async with database.transaction():
            await database.execute("SET LOCAL session_replication_role = replica")
            await database.execute("UPDATE audit_events SET at = at + interval '1 hour'")
    finally:
        await database.close()
    harness.clock.tick(3_700)
    assert not (await harness.app.audit.verify_noted(tenant)).whole
    assert "something of it was changed or cut. Ask your admins." in await alice.page("/privacy")


async def test_names_are_no_markup(harness: AppHarness, alice: Person) -> None:
    for bite in BITES[:3]:
        await harness.say("alice", "hello", room=f"r{bite.replace('/', '')}")
        shown = await alice.page("/privacy") + (await alice.get("/memory", **GERMAN)).text
        assert bite.replace("/", "") not in shown


async def test_sessions_that_the_same_people_read_are_one_row(alice: Person) -> None:
    for text in ("one?", "two?", "three?"):
        assert (await alice.press("/ask", text=text)).status_code == 303
    shown = rows(await alice.page("/privacy"))
    assert ("3 sessions of yours", "3 answers to you, 3 messages", "you, in that session") in shown


async def test_who_opts_out_is_stored_no_more_until_they_opt_in(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "remind me tomorrow to feed the heron", **DM)
    assert (await alice.press("/privacy/opt-out", out="true")).status_code == 303
    shown = await alice.page("/privacy")
    assert "opted out" in shown
    assert "reminder" not in "".join(what for _, what, _ in rows(shown)), "reminders ended"
    await harness.say("alice", "not to be stored", **ROOM)
    assert ("#general", "1 fact, 1 message", "everyone in the room") in rows(await alice.page("/privacy"))
    assert (await alice.press("/privacy/opt-out", out="false")).status_code == 303
    assert "opted out" not in await alice.page("/privacy")
    await harness.say("alice", "to be stored", **ROOM)
    assert ("#general", "1 fact, 2 messages", "everyone in the room") in rows(await alice.page("/privacy"))


async def test_all_of_it_is_taken_out_as_a_file_and_that_is_recorded(harness: AppHarness, alice: Person) -> None:
    taken = await alice.get("/privacy/export")
    assert taken.headers["content-disposition"] == 'attachment; filename="nexus-export.json"'
    assert "no-store" in taken.headers["cache-control"]
    document = taken.json()
    assert [each["text"] for each in document["messages"]] == ["the heron flies in March"]
    assert "ibis" not in taken.text
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        assert len(await tx.audit.find(act="exported", limit=10)) == 1


@pytest.mark.parametrize("in_portions", [False, True])
async def test_everything_is_forgotten_after_it_was_shown_how_much_that_is(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch, in_portions: bool
) -> None:
    if in_portions:
        monkeypatch.setattr(portions, "PORTION", 1)
    key = bearer(await key_of(harness, "alice"))
    shown = await alice.page("/privacy/forget")
    assert "1 message that you wrote, anywhere" in shown
    sent = await confirmed(alice)
    unsure = await alice.press("/privacy/forget", confirm=sent["confirm"], sure="false")
    assert (unsure.status_code, unsure.headers["location"]) == (303, "/privacy/forget")
    assert (await Person(client, alice.cookie, "0" * 32).press("/privacy/forget", **sent)).status_code == 403
    gone = await alice.press("/privacy/forget", **sent)
    assert gone.status_code == 200, gone.text
    assert "Receipt: " in gone.text
    assert "You are signed out everywhere." in gone.text
    assert (await alice.get("/privacy")).headers["location"] == "/login"
    assert (await client.get("/v1/entries", headers=key)).status_code == 401
    again = Person(client, await cookie_of(harness, "alice"))
    assert rows(await again.page("/privacy")) == []
    bob = Person(client, await cookie_of(harness, "bob"))
    assert ("#general", "1 message", "everyone in the room") in rows(await bob.page("/privacy"))


async def test_more_than_was_shown_is_not_forgotten(harness: AppHarness, alice: Person) -> None:
    sent = await confirmed(alice)
    await harness.say("alice", "and one more", **ROOM)
    refused = await alice.press("/privacy/forget", **sent)
    assert refused.status_code == 409
    assert "More was stored of you" in refused.text
    assert ("#general", "1 fact, 2 messages", "everyone in the room") in rows(await alice.page("/privacy"))


async def test_the_api_says_what_the_page_does(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    key = bearer(await key_of(harness, "alice"))
    told = (await client.get("/v1/privacy", headers=key)).json()
    assert {"place": "#general", "readers": "everyone in the room", "counts": {"message": 1, "fact": 1}} in told[
        "stored"
    ]
    assert (told["opted_out"], told["audit_verified"], told["browsers"]) == (False, None, 1)
    await harness.app.audit.verify_noted(harness.workspace().tenant_id)
    told = (await client.get("/v1/privacy", headers=key)).json()
    assert told["audit_verified"]["whole"] is True
    assert "ibis" not in str(told)
    tool = bearer(await key_of(harness, "alice", "claude"))
    assert (await client.get("/v1/privacy", headers=tool)).status_code == 403
