"""Words outside the main text of a message are stored, recalled and answered, on both platforms."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from composer.settings import Settings
from tests.support.discord.harness import Discord
from tests.support.discord.model import Channel, User
from tests.support.slack.harness import Office, office_on

CARD = {"type": "rich", "title": "[FIRING] DiskFull", "description": "Disk of db-7 is full.", "fields": []}


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


async def test_an_alert_of_an_app_is_stored_and_answers_nobody_on_slack(office: Office) -> None:
    async with office.socket() as running:
        card = {"title": "[FIRING] DiskFull", "text": f"<@{office.team.bot_user}> db-7 is full"}
        await office.slack.post_as_other_bot(office.general, "", attachments=[card])
        await running.settle()
        assert "[FIRING] DiskFull\nnexus db-7 is full" in await running.stored()
        assert office.answers() == []


async def test_a_forward_alone_in_a_dm_is_answered_on_slack(office: Office) -> None:
    dm = await office.slack.add_im(office.team, office.alice)
    shared = [{"is_share": True, "author_name": "Zoe", "text": "The backup server moves to Rotterdam."}]
    async with office.socket() as running:
        await office.slack.post(dm, office.alice, "", attachments=shared, blocks=[])
        await office.answered(1, dm)
        await running.settle()
        assert "Zoe wrote: The backup server moves to Rotterdam." in office.model.prompts[0]


async def test_an_alert_in_an_embed_is_stored_and_answers_nobody_on_discord(
    here: Discord, room: Channel, ada: User
) -> None:
    posted = await here.server.post_by_webhook(room, "Alertmanager", "", embeds=[CARD])
    assert posted.embeds
    await here.stored("[FIRING] DiskFull\nDisk of db-7 is full.")
    await here.settled()
    assert here.answers(room) == []


async def test_a_forward_alone_in_a_dm_is_answered_on_discord(here: Discord, ada: User) -> None:
    dm = here.server.dm(ada)
    forwarded: dict[str, Any] = {"content": "The server moves to Rotterdam.", "embeds": [CARD], "attachments": []}
    forwarded |= {"type": 0, "flags": 0, "timestamp": "2026-05-01T09:00:00+00:00", "edited_timestamp": None}
    more = {"message_snapshots": [{"message": forwarded | {"mentions": [], "mention_roles": []}}]}
    await here.answer(await here.server.post(dm, ada, "", more=more))
    assert "> The server moves to Rotterdam." in here.model.shown[0]
    assert "> Disk of db-7 is full." in here.model.shown[0]


@pytest.mark.parametrize("may_read", [True, False])
async def test_a_user_group_has_its_name_on_slack_or_is_a_group(office: Office, may_read: bool) -> None:
    office.team.groups |= {"S0PS": "ops", "S0NEXUS": "nexus"}
    if not may_read:  # the app was installed before it asked for the scope
        office.slack.world.tokens[office.team.bot_token].scopes.discard("usergroups:read")
    async with office.socket() as running:
        await office.slack.post(
            office.general, office.alice, "<!subteam^S0PS> and <!subteam^S0NEXUS>, the disk is full"
        )
        await running.settle()
        named = "@ops and nexus" if may_read else "@a group and @a group"
        assert f"{named}, the disk is full" in await running.stored()
        assert office.answers() == [], "the name of a group addresses no agent"
