"""What a platform says of somebody, member or guest, is stored as it last said it, and holds over the API."""

import uuid
from dataclasses import replace

import asyncpg
import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import Refused
from composer.model import Incoming, Trust, Workspace
from composer.repositories.imports import ImportRun
from tests.support.harness import AppHarness


def on(harness: AppHarness, platform: str) -> Workspace:
    """A workspace of a chat platform in the harness's tenant."""
    return replace(harness.workspace(), platform=platform, name="T1")


async def say(
    harness: AppHarness, text: str, trust: Trust, platform: str = "slack", dm: bool = False, stated: bool = True
) -> Incoming:
    """Let alice say something on a chat platform, in a room or in her DM."""
    here, at = on(harness, platform), harness.clock.tick()
    place = place_of(None, "nexus", None) if dm else replace(place_of("general", None, None), private=False)
    said = incoming(here, place, "alice", text, at, id=f"m{at.timestamp()}", trust=trust)
    said = replace(said, trust_stated=stated)
    await harness.app.receive(here, [said], answer=False)
    return said


async def trust_of(harness: AppHarness, platform: str = "slack") -> Trust:
    here = on(harness, platform)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user(platform, "T1", "alice")
        assert user is not None
        return await tx.people.trust(user.id)


async def test_the_latest_word_of_a_platform_counts_whatever_is_still_stored(harness: AppHarness) -> None:
    for trust in (Trust.MEMBER, Trust.GUEST, Trust.MEMBER):
        await say(harness, "hello", trust)
        assert await trust_of(harness) is trust
    here = on(harness, "slack")
    async with harness.app.database.transaction(here.tenant_id, "alone") as tx:
        user = await tx.people.find_user("slack", "T1", "alice")
        assert user is not None
        await tx.people.set_opted_out(user.id, True)
    await say(harness, "nothing of this is stored", Trust.GUEST)
    assert await trust_of(harness) is Trust.GUEST


async def test_what_a_platform_does_not_say_changes_nothing(harness: AppHarness) -> None:
    await say(harness, "hello", Trust.GUEST, "discord")
    await say(harness, "hello", Trust.MEMBER, "discord", dm=True, stated=False)
    assert await trust_of(harness, "discord") is Trust.GUEST
    await say(harness, "hello", Trust.TOOL, "discord")
    assert await trust_of(harness, "discord") is Trust.GUEST


async def test_who_has_only_written_to_the_bot_on_discord_is_a_guest_until_discord_says_more(
    harness: AppHarness,
) -> None:
    await say(harness, "hello", Trust.MEMBER, "discord", dm=True, stated=False)
    assert await trust_of(harness, "discord") is Trust.GUEST
    await say(harness, "hello", Trust.MEMBER, "discord")
    assert await trust_of(harness, "discord") is Trust.MEMBER


async def test_an_import_says_nothing_of_what_people_are_now(harness: AppHarness) -> None:
    await say(harness, "hello", Trust.GUEST)
    here, at = on(harness, "slack"), harness.clock.tick()
    place = replace(place_of("general", None, None), private=False)
    old = incoming(here, place, "alice", "years ago", at, id="old", trust=Trust.MEMBER)
    await harness.app.receive(here, [old], answer=False, run=ImportRun(uuid.uuid4(), "export.zip"))
    assert await trust_of(harness) is Trust.GUEST


async def test_a_guest_of_a_discord_server_is_one_in_the_dm_too_and_makes_no_key_there(harness: AppHarness) -> None:
    async def create_key() -> str:
        here, at = on(harness, "discord"), harness.clock.tick()
        place = place_of(None, "nexus", None)
        asked = incoming(here, place, "alice", "/nexus keys create claude", at, id=f"c{at.timestamp()}")
        return (await run_command(harness.app, here, replace(asked, trust_stated=False))).text

    assert "Whoever has that key" in await create_key()
    await say(harness, "hello", Trust.GUEST, "discord")
    with pytest.raises(Refused, match="Guests have no keys"):
        await create_key()
    await say(harness, "in the dm", Trust.MEMBER, "discord", dm=True, stated=False)
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        assert await connection.fetchval("SELECT trust FROM messages WHERE text = 'in the dm'") == "guest"
    finally:
        await connection.close()
    await say(harness, "hello again", Trust.MEMBER, "discord")
    assert "Whoever has that key" in await create_key()
