"""Reminders on Discord and Slack: where they are posted, and that they ping nobody."""

import json

import asyncpg

from composer.app import App
from composer.settings import Settings
from tests.support.discord.harness import Discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import office_on


async def make_due(app: App) -> None:
    """Let every reminder be due now, and post it."""
    connection = await asyncpg.connect(app.settings.database_url)
    try:
        assert await connection.execute("UPDATE reminders SET due_at = now()") == "UPDATE 2"
    finally:
        await connection.close()
    assert await app.due_posts.post_due() == 2
    await app.turns.settle()


async def test_on_discord_a_reminder_goes_to_the_dm_or_the_room_and_pings_nobody(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    await server.post(room, ada, "hello")
    await here.stored("hello")
    for where in ("me", "here"):
        text = f"in 20 minutes tell @everyone and {ada.mention}"
        asked = await server.invoke(f"nexus remind {where}", room, ada, reminder=text)
        await server.until(lambda asked=asked: asked.original and asked.original.content)  # type: ignore[misc]
    await make_due(here.app)
    (in_room,) = here.answers(room)
    (in_dm,) = server.messages(server.dm(ada), server.bot)
    assert in_room.content == f'Reminder from Ada: "tell @everyone and {ada.mention}"'
    assert in_dm.content == f'Reminder: "tell @everyone and {ada.mention}"'
    for post in (in_room, in_dm):
        assert (post.mentions, post.mention_everyone, post.reference) == ([], False, None)


async def test_on_slack_a_reminder_goes_to_the_dm_or_the_channel_and_pings_nobody(settings: Settings) -> None:
    async with office_on(settings) as office, office.socket() as running:
        im = await office.slack.add_im(office.team, office.alice)
        for where in ("me", "here"):
            await office.slack.command(office.general, office.alice, f"remind {where} in 20 minutes tell <!channel>")
        await running.settle()
        await make_due(running.app)
        (in_room,), (in_dm,) = office.answers(), office.answers(im)
        assert in_room["text"] == 'Reminder from alice: "tell @channel"'
        assert in_dm["text"] == 'Reminder: "tell @channel"'
        assert "thread_ts" not in in_room
        assert "thread_ts" not in in_dm


async def test_on_discord_a_reminder_opens_an_archived_thread_and_leaves_a_locked_one(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    threads = [await server.add_thread(room, name, ada) for name in ("old", "locked")]
    for thread in threads:
        await server.post(thread, ada, f"hello {thread.name}")
        await here.stored(f"hello {thread.name}")
        asked = await server.invoke("nexus remind here", thread, ada, reminder="in 20 minutes stretch")
        await server.until(lambda asked=asked: asked.original and asked.original.content)  # type: ignore[misc]
        thread.locked = thread is threads[1]
        await server.archive(thread)
    await make_due(here.app)
    assert await here.app.due_posts.post_due() == 1, "the refusal is told in the DM"
    await here.app.turns.settle()
    old, locked = threads
    assert [post.content for post in here.answers(old)] == ['Reminder from Ada: "stretch"']
    assert not old.archived
    assert (here.answers(locked), locked.archived) == ([], True)
    (told,) = server.messages(server.dm(ada), server.bot)
    assert "could not post" in told.content


async def test_on_slack_a_reminder_is_refused_where_nexus_is_not(settings: Settings) -> None:
    async with office_on(settings) as office, office.socket():
        side = await office.slack.add_channel(office.team, "side", [office.alice])
        await office.slack.leave(side, office.team.bot_user)
        answer = await office.slack.command(side, office.alice, "remind here in 20 minutes stretch")
        assert "add me to this channel" in str(answer)
        await office.slack.join(side, office.team.bot_user)
        assert "I will remind" in str(
            await office.slack.command(side, office.alice, "remind here in 20 minutes stretch")
        )


async def test_on_discord_a_catch_up_is_for_its_caller_alone_and_links_the_messages(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    said = await server.post(room, bob, f"{ada.mention} the crane needs a cable")
    await here.stored("@Ada the crane needs a cable")
    asked = await server.invoke("nexus room catch-up", room, ada, since="2 hours")
    await server.until(lambda: asked.original and asked.original.content)
    assert asked.original is not None
    assert asked.original.ephemeral
    assert f"https://discord.com/channels/{guild.id}/{room.id}/{said.id}" in asked.original.content
    assert here.answers(room) == []


async def test_on_slack_a_catch_up_is_for_its_caller_alone_and_links_the_messages(settings: Settings) -> None:
    async with office_on(settings) as office, office.socket() as running:
        ts = await office.slack.post(office.general, office.bob, f"<@{office.alice}> the crane needs a cable")
        await running.settle()
        answered = await office.slack.command(office.general, office.alice, "catch-up 2 hours")
        shown = "".join([answered.ack.get("text", ""), *(e["text"] for e in office.slack.ephemerals(office.alice))])
        assert f"/archives/{office.general}/p{ts.replace('.', '')}" in shown
        assert "```" not in shown, "in a block of code no link works"
        assert office.answers() == []


async def test_on_slack_hours_are_read_in_the_zone_of_the_persons_profile(settings: Settings) -> None:
    async with office_on(settings) as office, office.socket() as running:

        async def remind(zone: str) -> str:
            """What is answered to somebody who is in a zone now, and has not written since."""
            office.slack.world.users[office.alice]["tz"] = zone
            office.slack.world.tell(
                office.team, {"type": "user_change", "user": office.slack.world.users[office.alice]}, scope="users:read"
            )
            await running.settle()
            answer = await office.slack.command(office.general, office.alice, "remind me tomorrow 9:00 stretch")
            await running.settle()
            return json.dumps((answer.ack, answer.responses))

        for zone in ("America/New_York", "Asia/Kolkata", "Europe/Berlin"):
            assert f"at 09:00 ({zone}): stretch." in await remind(zone)
        assert "at 09:00 (UTC): stretch." in await remind("Mars/Olympus"), "as the organisation has it"
