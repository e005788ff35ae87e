"""A person's own time zone: their days and hours are read in it, it moves with them, and nobody else is told of it."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import pytest

from composer.errors import BadInput
from composer.memory.reminding import follow_zone
from composer.model import CONSOLE, Trust, user_id
from composer.repositories.people import StatedTrust
from composer.settings import Settings, TenantSettings
from composer.visibility import owned_by_user
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness, open_harness
from tests.support.tool_office import Office, call, opened

ROOM: Final[dict[str, Any]] = {"room": "general"}
DM: Final[dict[str, Any]] = {"dm": "nexus"}
NEW_YORK, BERLIN, TOKYO = "America/New_York", "Europe/Berlin", "Asia/Tokyo"


@pytest.fixture
async def settings(settings: Settings) -> Settings:
    """The organisation is in Berlin. It is Monday, 11:00 there, and 05:00 in New York."""
    acme = TenantSettings(workspaces=("acme",), timezone=BERLIN)
    return settings.model_copy(update={"tenants": {"acme": acme}, "requests_per_minute": 10_000})


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings) as harness:
        yield harness


async def moves(harness: AppHarness, user: str, zone: str) -> None:
    """The platform says in which zone somebody is now."""
    here, now = harness.workspace(), harness.clock.tick()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        said = {user: StatedTrust(Trust.MEMBER, now, zone)}
        for moved in await tx.people.set_trust(CONSOLE, here.name, said):
            await follow_zone(tx, here.tenant_id, moved, now, harness.app.directory.zone(here.tenant_id))


async def due(harness: AppHarness) -> list[str]:
    """When the open reminders of alice are due, in UTC."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        owned = owned_by_user(harness.workspace().tenant_id, user_id(harness.workspace(), "alice"), ())
        return [f"{each.due_at.astimezone(UTC):%Y-%m-%d %H:%M}" for each in await tx.reminders.open(owned)]


async def posted(harness: AppHarness, at: datetime) -> list[str]:
    """What has been posted when it is that time."""
    harness.clock.tick((at - harness.clock.now()).total_seconds())
    before = len(harness.delivery.replies)
    await harness.app.due_posts.post_due()
    await harness.app.turns.settle()
    return [reply.text for reply in harness.delivery.replies[before:]]


async def test_hours_are_read_in_the_zone_of_the_platform_and_the_zone_is_named(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    of_berlin = await harness.command("alice", "/nexus remind me tomorrow 3 p.m. call Tom", **DM)
    assert "Tue 2026-05-05 at 15:00 (Europe/Berlin)" in of_berlin.text
    await moves(harness, "alice", NEW_YORK)
    answer = await harness.command("alice", "/nexus remind me tomorrow 3 p.m. call Tom", **DM)
    assert "Tue 2026-05-05 at 15:00 (America/New_York): call Tom." in answer.text
    assert await due(harness) == ["2026-05-05 13:00", "2026-05-05 19:00"]


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "PST", "../../etc/passwd", "localtime"])
async def test_a_zone_that_is_none_counts_as_not_said(harness: AppHarness, zone: str) -> None:
    await harness.say("alice", "hello", **ROOM)
    await moves(harness, "alice", zone)
    answer = await harness.command("alice", "/nexus remind me tomorrow 9:00 stretch", **DM)
    assert "at 09:00 (Europe/Berlin)" in answer.text


async def test_what_a_person_sets_counts_more_than_what_the_platform_says_until_they_take_it_back(
    harness: AppHarness,
) -> None:
    await harness.say("alice", "hello", **ROOM)
    await moves(harness, "alice", NEW_YORK)
    assert (
        "Your time zone is Asia/Tokyo, as you set it." in (await harness.command("alice", "/timezone tokyo", **DM)).text
    )
    await moves(harness, "alice", BERLIN)
    answer = await harness.command("alice", "/nexus remind me tomorrow 9:00 stretch", **ROOM)
    assert "at 09:00 (Asia/Tokyo)" in answer.text
    back = await harness.command("alice", "/nexus timezone off", **DM)
    assert "Your time zone is Europe/Berlin, as your profile says." in back.text
    with pytest.raises(BadInput, match="Did you mean Europe/Berlin"):
        await harness.command("alice", "/nexus timezone Berln", **DM)


async def test_a_reminder_that_repeats_keeps_its_hour_when_the_clocks_change(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus timezone America/New_York", **DM)
    await harness.command("alice", "/nexus remind me every sunday 9:00 water the plants", **DM)
    winter = datetime(2026, 10, 25, 13, 0, tzinfo=UTC)  # in Berlin the clocks have changed, in New York not yet
    assert len(await posted(harness, winter)) == 1
    assert await due(harness) == ["2026-11-01 14:00"], "09:00 in New York, where it is winter from that day on"


async def test_a_reminder_that_repeats_moves_with_its_person_and_that_of_a_room_stays(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await moves(harness, "alice", BERLIN)
    await harness.command("alice", "/nexus remind me every day 9:30 take the pills", **DM)
    await harness.command("alice", "/nexus remind me every day 9:30 UTC look at the logs", **DM)
    await harness.command("alice", "/nexus remind here every day 9:30 stand-up", **ROOM)
    await harness.command("alice", "/nexus remind me tomorrow 12:00 call Tom", **DM)
    assert await due(harness) == ["2026-05-04 09:30", "2026-05-05 07:30", "2026-05-05 07:30", "2026-05-05 10:00"]
    await moves(harness, "alice", NEW_YORK)
    assert await due(harness) == ["2026-05-04 09:30", "2026-05-04 13:30", "2026-05-05 07:30", "2026-05-05 10:00"]
    await harness.command("alice", "/nexus timezone tokyo", **DM)
    assert await due(harness) == ["2026-05-04 09:30", "2026-05-05 00:30", "2026-05-05 07:30", "2026-05-05 10:00"]
    listed = (await harness.command("alice", "/nexus remind list", **DM)).text
    assert "Tue 2026-05-05 at 09:30 (Asia/Tokyo), then every day at 09:30" in listed
    assert "then every day at 09:30 (Europe/Berlin)" in listed, "that of the room"
    assert len(await posted(harness, datetime(2026, 5, 5, 7, 31, tzinfo=UTC))) == 3
    assert await due(harness) == ["2026-05-05 09:30", "2026-05-05 10:00", "2026-05-06 00:30", "2026-05-06 07:30"]


async def test_yesterday_is_that_of_who_asks(harness: AppHarness) -> None:
    """At 02:30 UTC on Tuesday it is still Monday in New York."""
    for user in ("alice", "bob"):
        await harness.say(user, "hello", **ROOM)
    await harness.say("alice", "hello", **DM)
    await moves(harness, "alice", NEW_YORK)
    harness.clock.tick((datetime(2026, 5, 5, 2, 30, tzinfo=UTC) - harness.clock.now()).total_seconds())
    answers = {
        user: await harness.command(user, "/nexus forget here --since today --until today", **ROOM)
        for user in ("alice", "bob")
    }
    assert "2026-05-04" in answers["alice"].text
    assert "2026-05-05" in answers["bob"].text
    mine = (await harness.compose("alice", "what happened yesterday?", **DM)).prompt.as_text()
    assert (
        "Today is Monday, 2026-05-04 in America/New_York; times are UTC, in the text of summaries Europe/Berlin."
        in mine
    )


async def test_nobody_else_is_told_of_it(settings: Settings) -> None:
    async with opened(settings) as office:
        harness = office.harness
        await harness.say("alice", "hello", **ROOM)
        await moves(harness, "alice", NEW_YORK)
        remind = call("remind", when="tomorrow 3 pm", text="call Tom")
        reply = await office.ask("alice", "@nexus remind me tomorrow 3 pm to call Tom", remind, **ROOM)
        assert "on Tue 2026-05-05 at 15:00 (your time): call Tom." in reply.text
        assert "New_York" not in json.dumps([each.body for each in office.server.requests])
        everyday = call("remind", when="every day 9:30", text="stand-up")
        reply = await office.ask("alice", "@nexus remind us every day 9:30 stand-up", everyday, **ROOM)
        assert "at 09:30 (your time), then every day at 09:30: stand-up." in reply.text
        worked_out = call("remind", when="2026-05-04 13:30", text="call Tom")  # in Berlin, which it was told
        reply = await office.ask("alice", "@nexus remind me in 2 hours to call Tom", worked_out, **ROOM)
        assert "on Mon 2026-05-04 at 07:" in reply.text
        past = call("remind", when="2026-05-04 04:00", text="call Tom")
        await office.ask("alice", "@nexus remind me 2026-05-04 04:00 to call Tom", past, **ROOM)
        assert "(your time) is over" in office.last_results[-1]
        assert await _mentions(office) == 0
        reply = await office.ask("alice", "remind me tomorrow 3 pm to call Tom", remind, **DM)
        assert "on Tue 2026-05-05 at 15:00 (America/New_York): call Tom." in reply.text


async def _mentions(office: Office) -> int:
    found = await office.rows(
        "SELECT count(*) FROM messages WHERE text LIKE '%New\\_York%'"
        " UNION ALL SELECT count(*) FROM turns WHERE prompt::text LIKE '%New\\_York%'"
    )
    return sum(row[0] for row in found)


async def test_it_is_exported_and_goes_with_the_person(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await moves(harness, "alice", NEW_YORK)
    await harness.command("alice", "/nexus timezone tokyo", **DM)
    file = (await harness.command("alice", "/nexus export", **DM)).file
    assert file is not None
    document = json.loads(file.text)
    assert [each["timezone"] for each in document["identities"]] == [NEW_YORK]
    assert [each["timezone"] for each in document["settings"]] == [TOKYO]
    await harness.command("alice", "/nexus forget everything --yes", **DM)
    assert "that of the organisation" in (await harness.command("alice", "/nexus timezone", **DM)).text


async def test_of_who_opted_out_a_new_zone_is_not_stored(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus opt-out", **DM)
    await moves(harness, "alice", NEW_YORK)
    assert "that of the organisation" in (await harness.command("alice", "/nexus timezone", **DM)).text


async def test_it_is_set_over_the_api_and_holds_in_chat(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    for wrong in ("berlin", "PST", 3):
        refused = await client.patch("/v1/settings", json={"timezone": wrong}, headers=bearer(key))
        assert refused.status_code == 422, wrong
    answer = await client.patch("/v1/settings", json={"timezone": TOKYO}, headers=bearer(key))
    assert answer.json()["timezone"] == TOKYO
    assert "Asia/Tokyo, as you set it" in (await harness.command("alice", "/nexus timezone", **ROOM)).text


async def test_a_repeating_reminder_of_a_room_stays_when_its_person_first_says_their_zone(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus remind here every day 9:30 stand-up", **ROOM)
    await harness.command("alice", "/nexus remind me every day 9:30 take the pills", **DM)
    await harness.command("alice", "/nexus timezone tokyo", **DM)
    assert await due(harness) == ["2026-05-05 00:30", "2026-05-05 07:30"], "the stand-up stays at 09:30 in Berlin"
    assert len(await posted(harness, datetime(2026, 5, 5, 7, 31, tzinfo=UTC))) == 2
    assert await due(harness) == ["2026-05-06 00:30", "2026-05-06 07:30"]


async def test_who_asks_for_their_reminders_in_a_room_tells_nobody_their_zone(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus timezone tokyo", **DM)
    await harness.command("alice", "/nexus remind here every day 9:30 stand-up", **ROOM)
    await harness.command("alice", "/nexus remind here every day 9:40 Europe/London look at the logs", **ROOM)
    answer = (await harness.ask("alice", "@nexus what are my reminders?", **ROOM)).text
    assert "stand-up" in answer
    assert "Tokyo" not in answer
