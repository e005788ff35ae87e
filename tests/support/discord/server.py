"""A Discord server for end-to-end tests: the real client library talks to it over real sockets, tests drive it.

    async with DiscordServer() as server:
        guild = await server.add_guild()
        room, ada = await server.add_channel(guild, "general"), await server.add_member(guild, "Ada")
        ... point the client at server.api (discord.http.Route.BASE) and server.gateway_url (DEFAULT_GATEWAY) ...
        question = await server.post(room, ada, f"{server.bot.mention} hello")
        reply = await server.wait_for_message(lambda m: m.author is server.bot)

What it speaks: gateway v10 in JSON with zlib-stream, REST v10, the CDN for attachments. Not voice, zstd or etf.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.support.discord.gateway import RECONNECT, Gateway
from tests.support.discord.model import (
    CROSSPOST,
    DM,
    EVERYDAY,
    JSON,
    NOTHING,
    SOURCE_DELETED,
    TEXT,
    VOICE,
    Channel,
    Event,
    Guild,
    Interaction,
    Member,
    Message,
    Permission,
    Role,
    User,
)
from tests.support.discord.rest import API, MAX_UPLOAD, Answer, Call, Fault, Rest
from tests.support.discord.routes import ROUTES
from tests.support.discord.world import World
from tests.support.waiting import TIMEOUT_SECONDS

T = TypeVar("T")

# Requests and seconds, a little simplified; Discord announces the real ones only in its headers.
REAL_LIMITS = {
    "POST /channels/{channel_id}/messages": (5, 5.0),
    "PATCH /channels/{channel_id}/messages/{message_id}": (5, 5.0),
    "DELETE /channels/{channel_id}/messages/{message_id}": (5, 1.0),
    "POST /channels/{channel_id}/typing": (5, 5.0),
    "PUT /channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me": (1, 0.25),
}


class DiscordServer:
    """Discord on a loopback port. People act through its methods; the client's doings are in its records."""

    def __init__(self, token: str = "discord-test-token", now: Callable[[], float] = time.time) -> None:
        """`now`: Unix seconds, by which ids are given."""
        self.token = token
        self.world = World(lambda event: self.gateway.emit(event), now)
        self._change = asyncio.Event()
        self.gateway = Gateway(self.world, token, self._changed)
        self.rest = Rest(self.world, self.gateway, self._changed)
        self.bot = self.world.bot
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=4 * MAX_UPLOAD)
        app.add_routes(self.rest.serve(ROUTES))
        app.add_routes([web.get("/", self.gateway.accept), web.get("/resume", self.gateway.accept)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        for _ in range(2):  # the gateway is another host: on one port, clients would reuse their connections
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        rest, gateway = (address[1] for address in self._runner.addresses)
        self.world.cdn = f"http://127.0.0.1:{rest}"
        self.api, self.gateway_url = f"{self.world.cdn}{API}", f"ws://127.0.0.1:{gateway}/"
        self.gateway.resume_url = f"{self.gateway_url}resume"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.rest.closing.set()
        self.gateway.cut(abrupt=True)
        if self._runner:
            await self._runner.cleanup()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    # Waiting and looking

    async def until(self, found: Callable[[], T | None], timeout: float = TIMEOUT_SECONDS) -> T:  # noqa: ASYNC109
        """The first true value of `found`, asked after each event and request. TimeoutError says what came last."""
        try:
            async with asyncio.timeout(timeout):
                while not (value := found()):
                    await self._change.wait()
        except TimeoutError:
            calls = [f"{c.route} -> {c.status}" for c in self.rest.calls[-8:]]
            gateway = [what for _, what, _ in self.gateway.log[-8:]]
            raise TimeoutError(f"Waited {timeout} s; last requests {calls}; gateway {gateway}") from None
        return value

    async def wait_for_message(self, fits: Callable[[Message], bool], timeout: float = TIMEOUT_SECONDS) -> Message:  # noqa: ASYNC109
        """The first message, old or new, ephemeral ones included, that fits."""
        return await self.until(lambda: next(filter(fits, self.all_messages()), None), timeout)

    async def wait_for(self, what: str, times: int = 1) -> None:
        """Until the gateway's log has so many of: connected, identify, resume, heartbeat, disconnected, refused."""
        await self.until(lambda: self.gateway.count(what) >= times)

    def all_messages(self) -> Iterator[Message]:
        for channel in list(self.world.channels.values()):
            yield from self.messages(channel)
        for interaction in list(self.world.interactions.values()):
            yield from (m for m in interaction.messages if m.ephemeral and not m.deleted)

    def messages(self, channel: Channel, author: User | None = None) -> list[Message]:
        """Oldest first."""
        found = channel.newest_first()[::-1]
        return found if author is None else [m for m in found if m.author is author]

    def calls(self, route: str) -> list[Call]:
        """The requests so far, oldest first, whose route starts so: "POST /channels/{channel_id}/messages"."""
        return [c for c in self.rest.calls if c.route.startswith(route)]

    # Guilds and people

    async def add_guild(self, name: str = "Analytical Engines", *, shard: tuple[int, int] = (0, 1)) -> Guild:
        """A guild with the bot in it and an owner; `shard` says on which of how many shards clients find it."""
        owner = self.world.add_user(f"Owner of {name}")
        guild = Guild(self.world.ids.on_shard(*shard), name, owner)
        guild.roles[guild.id] = Role(guild.id, "@everyone", EVERYDAY)
        guild.members = {u.id: Member(u) for u in (owner, self.bot)}
        self.world.guilds[guild.id] = guild
        self.world.emit(Event("GUILD_CREATE", self.gateway.whole(guild), guild))
        return guild

    async def add_role(self, guild: Guild, name: str, permissions: Permission = NOTHING) -> Role:
        role = Role(self.world.ids.next(), name, permissions)
        guild.roles[role.id] = role
        self.world.emit(Event("GUILD_ROLE_CREATE", {"guild_id": str(guild.id), "role": role.json()}, guild))
        return role

    async def remove_role(self, guild: Guild, role: Role) -> None:
        """Delete a role: whoever had it has it no more, without an event for each of them."""
        del guild.roles[role.id]
        for member in guild.members.values():
            member.roles = [each for each in member.roles if each is not role]
        self.world.emit(Event("GUILD_ROLE_DELETE", {"guild_id": str(guild.id), "role_id": str(role.id)}, guild))

    async def add_member(self, guild: Guild, who: str | User, *roles: Role) -> User:
        """Someone joins: a new person by name, or one who exists."""
        user = self.world.add_user(who) if isinstance(who, str) else who
        member = guild.members[user.id] = Member(user, list(roles))
        if user is self.bot:
            self.world.emit(Event("GUILD_CREATE", self.gateway.whole(guild), guild))
        else:
            self.world.emit(Event("GUILD_MEMBER_ADD", member.json() | {"guild_id": str(guild.id)}, guild))
        return user

    async def remove_member(self, guild: Guild, user: User) -> None:
        """Someone leaves, is kicked, or, if it is the bot, is thrown out of the guild."""
        del guild.members[user.id]
        for channel in self.world.channels.values():
            if channel.guild is guild:
                channel.thread_members.pop(user.id, None)
        if user is self.bot:
            self.world.emit(Event("GUILD_DELETE", {"id": str(guild.id)}, guild))
        else:
            gone = {"guild_id": str(guild.id), "user": user.json()}
            self.world.emit(Event("GUILD_MEMBER_REMOVE", gone, guild))

    async def start_outage(self, guild: Guild) -> None:
        """Nothing is told of a guild any more, while the connections stay."""
        self.world.emit(Event("GUILD_DELETE", {"id": str(guild.id), "unavailable": True}, guild))

    async def end_outage(self, guild: Guild) -> None:
        self.world.emit(Event("GUILD_CREATE", self.gateway.whole(guild), guild))

    async def set_roles(self, guild: Guild, user: User, *roles: Role) -> None:
        member = guild.members[user.id]
        member.roles = list(roles)
        self.world.emit(Event("GUILD_MEMBER_UPDATE", member.json() | {"guild_id": str(guild.id)}, guild))

    # Rooms

    async def add_channel(self, guild: Guild, name: str, *, only: Iterable[User | Role] | None = None) -> Channel:
        """A text channel for everyone, or for some only, in which case the bot is let in as well."""
        channel = Channel(self.world.ids.next(), TEXT, name, guild)
        self.world.channels[channel.id] = channel
        if only is not None:
            self._close_to(channel, [*only, self.bot])
        self.world.update_channel(channel, "CHANNEL_CREATE")
        return channel

    async def add_voice_channel(self, guild: Guild, name: str, *, only: Iterable[User | Role]) -> Channel:
        """A voice channel that everyone may view. Some only may connect to it, and so read its text chat."""
        channel = Channel(self.world.ids.next(), VOICE, name, guild)
        channel.overwrites = {guild.id: (0, NOTHING, Permission.CONNECT)}
        for one in (*only, self.bot):
            channel.overwrites[one.id] = (int(isinstance(one, User)), Permission.CONNECT, NOTHING)
        self.world.channels[channel.id] = channel
        self.world.update_channel(channel, "CHANNEL_CREATE")
        return channel

    def _close_to(self, channel: Channel, only: Iterable[User | Role]) -> None:
        assert channel.guild
        channel.overwrites = {channel.guild.id: (0, NOTHING, Permission.VIEW_CHANNEL)}
        for one in only:
            channel.overwrites[one.id] = (int(isinstance(one, User)), Permission.VIEW_CHANNEL, NOTHING)

    async def make_private(self, channel: Channel, only: Iterable[User | Role]) -> None:
        """@everyone may no longer view it; some may, and the bot only if it is among them."""
        self._close_to(channel, only)
        self.world.update_channel(channel)

    async def make_public(self, channel: Channel) -> None:
        channel.overwrites = {}
        self.world.update_channel(channel)

    async def delete_channel(self, channel: Channel) -> None:
        """A channel, with its threads, or a thread."""
        for thread in [c for c in self.world.channels.values() if c.parent is channel]:
            del self.world.channels[thread.id]
        self.world.update_channel(channel, "THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE")
        del self.world.channels[channel.id]

    async def add_thread(
        self, parent: Channel, name: str, owner: User, *, private: bool = False, on: Message | None = None
    ) -> Channel:
        return self.world.start_thread(parent, name, owner, private=private, on=on)

    async def join_thread(self, thread: Channel, user: User) -> None:
        self.world.change_thread_member(thread, user, join=True)

    async def leave_thread(self, thread: Channel, user: User) -> None:
        self.world.change_thread_member(thread, user, join=False)

    async def archive(self, thread: Channel) -> None:
        self.world.archive(thread)

    def dm(self, user: User) -> Channel:
        return self.world.dm(user)

    # Messages of people

    async def post(
        self,
        channel: Channel,
        author: User,
        content: str = "",
        *,
        reply_to: Message | None = None,
        files: dict[str, bytes] | None = None,
        at: datetime | None = None,
        kind: int = 0,
        more: JSON | None = None,
    ) -> Message:
        """Someone writes; `at` puts the message in the past, `more` are other fields of it. ValueError if the author
        cannot see the room."""
        if not self.world.reads(channel, author):
            raise ValueError(f"{author.name} does not see {channel.name or 'this DM'}")
        message = Message(self.world.ids.next(at), channel, author, content, kind, via=more or {})
        message.attachments = self.world.attach(channel, (files or {}).items())
        return self.world.post(channel, message, reply_to=reply_to)

    async def post_by_webhook(
        self, channel: Channel, name: str, content: str, *, followed: bool = False, embeds: Iterable[JSON] = ()
    ) -> Message:
        """What a webhook posts under a name, as Discord's documentation shows it: the author has the webhook's id, and
        is nobody. `followed`: it comes from an announcement channel of another server."""
        webhook = User(self.world.ids.next(), name)
        message = Message(self.world.ids.next(), channel, webhook, content, flags=CROSSPOST if followed else 0)
        message.via, message.embeds = {"webhook_id": str(webhook.id)}, list(embeds)
        return self.world.post(channel, message)

    async def delete_source(self, message: Message) -> None:
        """The message of another server that was posted here is deleted there."""
        message.content, message.flags = "[Original Message Deleted]", message.flags | SOURCE_DELETED
        self.world.emit_message("MESSAGE_UPDATE", message)

    async def edit(self, message: Message, content: str) -> None:
        self.world.edit(message, content)

    async def unfurl(self, message: Message) -> None:
        """Discord adds the preview of a link: an update in which nobody edited anything."""
        message.embeds = [{"type": "link", "url": "https://example.org/", "title": "Example"}]
        self.world.emit_message("MESSAGE_UPDATE", message)

    async def delete(self, *messages: Message) -> None:
        """One, or several of one channel in bulk."""
        self.world.delete(list(messages))

    async def react(self, message: Message, user: User, emoji: str, *, add: bool = True) -> None:
        self.world.react(message, user, emoji, add=add)

    async def type(self, channel: Channel, user: User) -> None:
        guild = channel.guild
        data: JSON = {"channel_id": str(channel.id), "user_id": str(user.id), "timestamp": int(time.time())}
        data |= {"guild_id": str(guild.id), "member": guild.members[user.id].json()} if guild else {}
        self.world.emit(Event("TYPING_START", data, guild, channel))

    # Commands, clicks, modals

    async def invoke(self, command: str, channel: Channel, user: User, /, **options: Any) -> Interaction:
        """Use a registered slash command, "nexus memory". LookupError if there is none, or an option does not fit."""
        return self._interact(2, channel, user, self._command_data(command, channel, options))

    async def autocomplete(
        self, command: str, channel: Channel, user: User, focused: str, /, **options: Any
    ) -> Interaction:
        """What the client asks while someone is still typing the option `focused`."""
        return self._interact(4, channel, user, self._command_data(command, channel, options, focused))

    async def click(self, message: Message, custom_id: str, user: User) -> Interaction:
        data = {"custom_id": custom_id, "component_type": 2}
        return self._interact(3, message.channel, user, data, message)

    async def answer_to(self, interaction: Interaction) -> Message:
        """The message that an interaction was answered with, once it has a text."""
        await self.until(lambda: interaction.original and interaction.original.content)
        assert interaction.original is not None
        return interaction.original

    async def submit(self, asked: Interaction, **values: str) -> Interaction:
        """Fill in and send the modal that an interaction was answered with."""
        assert asked.modal
        fields = [{"type": 4, "custom_id": key, "value": value} for key, value in values.items()]
        rows = [{"type": 1, "components": [one]} for one in fields]
        data = {"custom_id": asked.modal["custom_id"], "components": rows}
        return self._interact(5, asked.channel, asked.user, data, asked.message)

    def _command_data(self, path: str, channel: Channel, given: JSON, focused: str | None = None) -> JSON:
        name, *inner = path.split()
        guild_id = channel.guild.id if channel.guild else None
        known = [*self.world.commands.get(guild_id, []), *self.world.commands[None]]
        node: JSON | None = next((c for c in known if c["name"] == name), None)
        if node is None:
            raise LookupError(f"No command {name!r} is registered here")
        data: JSON = {"id": node["id"], "name": name, "type": 1, "options": []}
        data |= {"guild_id": str(guild_id)} if "guild_id" in node else {}
        level = data
        for part in inner:
            node = next((o for o in node.get("options", []) if o["name"] == part and o["type"] in (1, 2)), None)
            if node is None:
                raise LookupError(f"{path!r} is not registered")
            level["options"] = [{"name": part, "type": node["type"], "options": []}]
            level = level["options"][0]
        options = {o["name"]: o for o in node.get("options", [])}
        if unknown := given.keys() - options.keys():
            raise LookupError(f"{path!r} has no options {sorted(unknown)}")
        for key, option in options.items():
            if key not in given:
                if option.get("required") and focused is None:
                    raise LookupError(f"{path!r} needs {key!r}")
                continue
            value, allowed = given[key], [c["value"] for c in option.get("choices", [])]
            if allowed and value not in allowed:
                raise LookupError(f"{value!r} is none of {allowed}")
            if isinstance(value, User | Channel | Role):
                self._resolve(data, channel, value)
                value = str(value.id)
            level["options"].append({"name": key, "type": option["type"], "value": value})
            if key == focused:
                level["options"][-1]["focused"] = True
        return data

    def _resolve(self, data: JSON, channel: Channel, value: User | Channel | Role) -> None:
        resolved: JSON = data.setdefault("resolved", {})
        kind = {User: "users", Channel: "channels", Role: "roles"}[type(value)]
        body = value.json(self.bot) if isinstance(value, Channel) else value.json()
        if isinstance(value, Channel):
            body |= {"permissions": str(int(EVERYDAY))}
        resolved.setdefault(kind, {})[str(value.id)] = body
        if isinstance(value, User) and channel.guild and value.id in channel.guild.members:
            member = channel.guild.members[value.id].json(user=False)
            resolved.setdefault("members", {})[str(value.id)] = member | {"permissions": "0"}

    def _interact(
        self, kind: int, channel: Channel, user: User, data: JSON, message: Message | None = None
    ) -> Interaction:
        guild, world = channel.guild, self.world
        interaction = Interaction(world.ids.next(), secrets.token_urlsafe(32), kind, channel, user, message)
        world.interactions[interaction.token] = interaction
        bits = {u: str(int(world.permissions(channel, u))) for u in (user, self.bot)}
        event: JSON = {
            "id": str(interaction.id),
            "application_id": str(world.application_id),
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "channel_id": str(channel.id),
            "channel": _partial(channel.json(self.bot)) | {"permissions": bits[user]},
            "locale": "en-US",
            "app_permissions": bits[self.bot],
            "entitlements": [],
            "authorizing_integration_owners": {"0": str(guild.id if guild else 0)},
            "context": 1 if channel.kind == DM else 0,
            "attachment_size_limit": MAX_UPLOAD,
        }
        if guild:
            place = {"id": str(guild.id), "locale": "en-US", "features": []}
            event |= {"guild_id": str(guild.id), "guild": place, "guild_locale": "en-US"}
            event |= {"member": guild.members[user.id].json() | {"permissions": bits[user]}}
        else:
            event |= {"user": user.json()}
        if message:
            event |= {"message": message.json(self.bot)}
        world.emit(Event("INTERACTION_CREATE", event, guild, channel))
        return interaction

    # Faults

    def fail(self, route: str, answer: Answer = 502, *, times: int = 1, **more: Any) -> None:
        """The next requests whose route starts so get `answer` (a status, "reset", "hang", "hangup"); for the rest see
        Fault."""
        self.rest.faults += [(route, Fault(answer, **more))] * times

    def use_real_limits(self) -> None:
        self.rest.limits = dict(REAL_LIMITS)

    @contextmanager
    def rearranged(self, how: Callable[[list[Event]], list[Event]]) -> Iterator[None]:
        """Events of the block arrive as `how` says: `lambda e: e[::-1]`, `lambda e: e * 2`, `lambda e: []`."""
        with self.gateway.rearranged(how):
            yield

    async def disconnect(self, *, abrupt: bool = False, code: int = 1000) -> None:
        """End the connections; sessions wait for a resume, and keep what happens until then."""
        self.gateway.cut(code, abrupt=abrupt)

    async def ask_to_reconnect(self) -> None:
        self.gateway.tell(RECONNECT)

    async def invalidate(self, *, resumable: bool) -> None:
        self.gateway.invalidate(resumable=resumable)

    async def go_down(self, *, rest: bool = False) -> None:
        """No gateway and no memory of sessions: what happens now is in history only. With `rest`, no API either."""
        self.gateway.down, self.rest.down = True, rest
        self.gateway.cut(abrupt=True)
        self.gateway.sessions.clear()

    async def come_back(self) -> None:
        self.gateway.down = self.rest.down = False


def _partial(channel: JSON) -> JSON:
    """A channel as an interaction tells of it: not who may view it."""
    return {key: value for key, value in channel.items() if key != "permission_overwrites"}
