"""The Discord server for tests, seen by the real discord.py: it behaves as the real service does."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import discord
import pytest
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.support.discord.gateway import MESSAGE_CONTENT
from tests.support.discord.model import REPLY, THREAD_STARTER, Channel, Guild, Permission, User
from tests.support.discord.server import DiscordServer
from tests.support.waiting import TIMEOUT_SECONDS

MESSAGES = "POST /channels/{channel_id}/messages"


class Recorder(discord.AutoShardedClient):
    """A client that records what the library dispatched and does not wait 5 s before it identifies again."""

    def __init__(self, **options: Any) -> None:
        intents = options.pop("intents", discord.Intents.all())
        options = {"guild_ready_timeout": 0.1, "chunk_guilds_at_startup": False, "shard_count": 1} | options
        self.seen: list[tuple[str, tuple[Any, ...]]] = []
        self._more = asyncio.Event()
        super().__init__(intents=intents, **options)
        self.tree = app_commands.CommandTree(self)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        pass

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        self.seen.append((event, args))
        self._more.set()
        super().dispatch(event, *args, **kwargs)

    def all(self, event: str) -> list[Any]:
        return [args[0] if args else None for name, args in self.seen if name == event]

    async def saw(self, event: str, fits: Callable[[Any], bool] = lambda _: True) -> Any:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (found := [x for x in self.all(event) if fits(x)]):
                self._more.clear()
                await self._more.wait()
        return found[0]

    def texts(self) -> list[str]:
        return [m.content for m in self.all("message")]

    async def saw_text(self, text: str) -> discord.Message:
        message = await self.saw("message", lambda m: m.content == text)
        assert isinstance(message, discord.Message)
        return message

    def room(self, channel: Channel) -> discord.TextChannel:
        found = self.get_channel(channel.id)
        assert isinstance(found, discord.TextChannel)
        return found


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        monkeypatch.setattr(Route, "BASE", made.api)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(made.gateway_url))
        yield made


@pytest.fixture
async def guild(server: DiscordServer) -> Guild:
    return await server.add_guild()


@pytest.fixture
async def room(server: DiscordServer, guild: Guild) -> Channel:
    return await server.add_channel(guild, "general")


@pytest.fixture
async def ada(server: DiscordServer, guild: Guild) -> User:
    return await server.add_member(guild, "Ada")


@asynccontextmanager
async def connected(
    server: DiscordServer, setup: Callable[[Recorder], Awaitable[object]] | None = None, **options: Any
) -> AsyncIterator[Recorder]:
    client = Recorder(**options)
    await client.login(server.token)
    if setup:
        await setup(client)
    running = asyncio.create_task(client.connect())
    ready = asyncio.create_task(client.saw("ready"))
    await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        ready.cancel()
        running.result()
    try:
        yield client
    finally:
        await client.close()
        with suppress(asyncio.CancelledError):
            await running


# Connecting


async def test_a_client_becomes_ready_and_knows_its_guild(
    server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    thread = await server.add_thread(room, "side", ada)
    async with connected(server) as client:
        seen = client.get_guild(guild.id)
        assert seen
        assert [c.name for c in seen.text_channels] == ["general"]
        assert [t.id for t in seen.threads] == [thread.id]
        assert seen.me.id == server.bot.id
        assert abs((discord.utils.utcnow() - seen.created_at).total_seconds()) < 60
        opened = next(details for _, what, details in server.gateway.log if what == "connected")
        assert opened == {"path": "/", "compress": "zlib-stream"}


# Losing the connection


@pytest.mark.parametrize("how", ["abrupt", "4000", "4009 ends the session", "reconnect", "invalid but resumable"])
async def test_messages_missed_while_disconnected_are_replayed_once(
    server: DiscordServer, room: Channel, ada: User, how: str
) -> None:
    async with connected(server) as client:
        await server.post(room, ada, "before")
        await client.saw_text("before")
        match how.split()[0]:
            case "abrupt":
                await server.disconnect(abrupt=True)
            case "reconnect":
                await server.ask_to_reconnect()
            case "invalid":
                await server.invalidate(resumable=True)
            case code:
                await server.disconnect(code=int(code))
        await server.post(room, ada, "missed")
        if "ends" in how:
            await server.wait_for("identify", 2)
        else:
            await client.saw("resumed")
            await client.saw_text("missed")
            assert [d["path"] for _, what, d in server.gateway.log if what == "connected"] == ["/", "/resume"]
        await server.post(room, ada, "after")
        await client.saw_text("after")
        assert client.texts() == ["before", "after"] if "ends" in how else ["before", "missed", "after"]


# Messages


async def test_two_posts_with_one_nonce_make_one_message(server: DiscordServer, room: Channel, ada: User) -> None:
    async with connected(server) as client:
        asked = await server.post(room, ada, f"{server.bot.mention} hello")
        heard = await client.saw("message")
        assert (heard.id, heard.content, heard.mentions[0].id) == (asked.id, asked.content, server.bot.id)
        sent = [await heard.reply("hi", nonce="turn-1", mention_author=False) for _ in range(2)]
        assert sent[0].id == sent[1].id
        reply, *more = server.messages(room, server.bot)
        assert not more
        assert (reply.kind, reply.referenced, reply.mentions, reply.nonce) == (REPLY, asked, [], "turn-1")
        assert (await client.saw_text("hi")).nonce == "turn-1"
        assert (await client.room(room).fetch_message(reply.id)).nonce is None  # history does not show it
        assert (await client.room(room).send("hi", nonce="turn-2")).id != reply.id


async def test_rate_limits_are_announced_and_enforced_as_by_discord(server: DiscordServer, room: Channel) -> None:
    server.use_real_limits()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {server.token}"}) as session:
        url = f"{server.api}/channels/{room.id}/messages"
        answers = [await session.post(url, json={"content": "x"}) for _ in range(6)]
        assert [a.status for a in answers] == [200] * 5 + [429]
        assert [a.headers["X-RateLimit-Remaining"] for a in answers] == ["4", "3", "2", "1", "0", "0"]
        assert {a.headers["Content-Type"] for a in answers} == {"application/json"}
        assert len({a.headers["X-RateLimit-Bucket"] for a in answers}) == 1
        last = answers[-1].headers
        assert (last["Via"], last["X-RateLimit-Scope"]) == ("1.1 google", "user")
        body = await answers[-1].json()
        assert 0 < body["retry_after"] <= 5
        assert body["global"] is False
        assert int(last["Retry-After"]) >= body["retry_after"]
        assert float(last["X-RateLimit-Reset"]) > time.time()


@pytest.mark.parametrize(("answer", "effect"), [(502, True), (502, False), ("reset", True), ("reset", False)])
async def test_a_request_can_fail_before_or_after_its_effect(
    server: DiscordServer, room: Channel, answer: Any, effect: bool
) -> None:
    async with connected(server) as client:
        server.fail(MESSAGES, answer, effect=effect)
        if answer == 502:
            await client.room(room).send("hi", nonce="n")  # the library retries by itself
        else:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await client.room(room).send("hi", nonce="n")
            assert len(server.messages(room)) == effect
            await client.room(room).send("hi", nonce="n")
        assert [c.status for c in server.calls(MESSAGES)] == [answer, 200]
        assert len(server.messages(room)) == 1


async def test_errors_have_discords_codes(server: DiscordServer, guild: Guild, room: Channel, ada: User) -> None:
    theirs = await server.post(room, ada, "mine")
    quiet = await server.add_channel(guild, "announcements")
    quiet.overwrites[guild.id] = (0, Permission(0), Permission.SEND_MESSAGES)
    hidden = await server.add_channel(guild, "hidden", only=[ada])
    hidden.overwrites.pop(server.bot.id)
    async with connected(server) as client:
        http = client.room(room)
        ada.dms_closed = True
        dm = await client.create_dm(discord.Object(ada.id))
        attempts: list[tuple[int, int, Awaitable[object]]] = [
            (400, 50035, http.send("x" * 2001)),
            (400, 50006, http.send(" ")),
            (404, 10008, http.fetch_message(1)),
            (403, 50005, http.get_partial_message(theirs.id).edit(content="yours")),
            (403, 50013, http.get_partial_message(theirs.id).delete()),
            (403, 50013, client.room(quiet).send("x")),
            (403, 50001, client.fetch_channel(hidden.id)),
            (404, 10003, client.fetch_channel(1)),
            (404, 10013, client.fetch_user(1)),
            (404, 0, client.fetch_sticker(1)),
            (403, 50007, dm.send("x")),
            (400, 50035, http.send("x", reference=discord.MessageReference(message_id=1, channel_id=room.id))),
            (404, 10007, client.guilds[0].fetch_member((await server.add_guild()).owner.id)),
        ]
        for status, code, attempt in attempts:
            with pytest.raises(discord.HTTPException) as caught:
                await attempt
            assert (caught.value.status, caught.value.code) == (status, code)


# Who sees what


async def test_without_the_message_content_intent_only_dms_and_mentions_have_text(
    server: DiscordServer, room: Channel, ada: User
) -> None:
    server.gateway.allowed_intents &= ~MESSAGE_CONTENT
    intents = discord.Intents.default()
    async with connected(server, intents=intents) as client:
        await server.post(room, ada, "secret", files={"a.txt": b"secret"})
        await server.post(room, ada, f"{server.bot.mention} open")
        await server.post(server.dm(ada), ada, "direct")
        await client.saw_text("direct")
        assert client.texts() == ["", f"{server.bot.mention} open", "direct"]
        assert client.all("message")[0].attachments == []
        assert [m.content async for m in client.room(room).history()] == [f"{server.bot.mention} open", ""]


async def test_private_threads_are_visible_only_to_their_members(
    server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with connected(server) as client:
        question = await server.post(room, ada, "a question")
        await client.saw_text("a question")
        made = await client.room(room).get_partial_message(question.id).create_thread(name="answer")
        assert made.id == question.id
        await made.send("in the thread")
        thread = server.world.channels[made.id]
        assert [m.kind for m in server.messages(thread)] == [THREAD_STARTER, 0]
        secret = await server.add_thread(room, "secret", ada, private=True)
        await server.post(secret, ada, "before the bot came")
        await server.join_thread(secret, server.bot)
        await client.saw("thread_join", lambda t: t.id == secret.id)
        heard = await server.post(secret, ada, "with the bot")
        message = await client.saw("message", lambda m: m.id == heard.id)
        assert message.channel.type is discord.ChannelType.private_thread
        assert "before the bot came" not in client.texts()
        bob = await server.add_member(guild, "Bob")
        await server.join_thread(secret, bob)
        await client.saw("thread_member_join", lambda m: m.id == bob.id)
        assert {m.id for m in await message.channel.fetch_members()} == {ada.id, bob.id, server.bot.id}
        assert {t.id for t in await client.guilds[0].active_threads()} == {made.id, secret.id}
        await server.archive(secret)
        archived = client.room(room).archived_threads(private=True, joined=True)
        assert [t.id async for t in archived] == [secret.id]
        await message.channel.send("wakes it")
        assert not secret.archived
        await server.leave_thread(secret, server.bot)
        await client.saw("thread_remove")
        with pytest.raises(discord.Forbidden):
            await message.channel.send("still here?")


# Commands


async def register(client: Recorder) -> None:
    group = app_commands.Group(name="nexus", description="The agent")

    @group.command(name="memory", description="What is remembered here")
    @app_commands.choices(
        mode=[app_commands.Choice(name="On", value="on"), app_commands.Choice(name="Off", value="off")]
    )
    async def memory(interaction: discord.Interaction, mode: str, who: discord.Member | None = None) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        with pytest.raises(discord.InteractionResponded):
            await interaction.response.send_message("twice")
        await interaction.followup.send(f"memory {mode} {who.display_name if who else 'all'}")
        await interaction.followup.send("for all to see")

    @group.command(name="forget", description="Forget something")
    async def forget(interaction: discord.Interaction, what: str) -> None:
        view = discord.ui.View()
        view.add_item(discord.ui.Button(label="Yes", custom_id="yes"))
        await interaction.response.send_message(f"Forget {what}?", view=view)
        await interaction.edit_original_response(content=f"Forget {what}, really?")

    @forget.autocomplete("what")
    async def suggest(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=current + end, value=current + end) for end in ("a", "b")]

    client.tree.add_command(group)
    await client.tree.sync()


async def test_an_interaction_is_answered_once_and_in_time(server: DiscordServer, room: Channel, ada: User) -> None:
    async with connected(server, register) as client:
        await server.autocomplete("nexus forget", room, ada, "what", what="te")
        asked = await server.post(room, ada, "x")
        clicked = await server.click(asked, "late", ada)
        late = await client.saw("interaction", lambda i: i.id == clicked.id)
        server.rest.answer_within = -1.0
        with pytest.raises(discord.NotFound) as unknown:
            await late.response.send_message("sorry")
        assert unknown.value.code == 10062
        with pytest.raises(discord.NotFound) as webhook:
            await late.followup.send("sorry")
        assert webhook.value.code == 10015
        server.rest.answer_within = 3.0
        await late.response.defer(ephemeral=True, thinking=True)
        late.response._response_type = None  # as a second process would that does not know of the first
        with pytest.raises(discord.HTTPException) as twice:
            await late.response.send_message("twice")
        assert twice.value.code == 40060
