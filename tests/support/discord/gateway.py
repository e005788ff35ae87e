"""Discord's gateway, version 10, in JSON: sessions that outlive their connections, and what each is told."""

import asyncio
import json
import secrets
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.support.discord.model import DM, JSON, Channel, Event, Guild, Message
from tests.support.discord.world import World

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, RECONNECT, MEMBERS, INVALID, HELLO, ACK = (
    *range(5),
    *range(6, 12),
)

GUILDS, GUILD_MEMBERS, GUILD_PRESENCES, MESSAGE_CONTENT = 1 << 0, 1 << 1, 1 << 8, 1 << 15
PRIVILEGED = GUILD_MEMBERS | GUILD_PRESENCES | MESSAGE_CONTENT
ALL_INTENTS = (1 << 26) - 1

# The first that fits the event's name decides which intent it takes: in guilds, in DMs.
INTENTS = (
    ("INTERACTION_", 0, 0),
    ("MESSAGE_REACTION_", 1 << 10, 1 << 13),
    ("MESSAGE_", 1 << 9, 1 << 12),
    ("TYPING_", 1 << 11, 1 << 14),
    ("GUILD_MEMBER_", GUILD_MEMBERS, 0),
    ("", GUILDS, 0),
)


def reset(transport: asyncio.BaseTransport | None) -> None:
    """End a TCP connection with RST: what was not sent is lost, and nobody says goodbye."""
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if isinstance(transport, asyncio.Transport):
        transport.abort()


@dataclass(eq=False)
class Connection:
    """One WebSocket. Everything goes out in the order it was put in, by one writer."""

    ws: web.WebSocketResponse
    transport: asyncio.BaseTransport | None
    deflate: "zlib._Compress | None"  # of zlib-stream: one context for the whole connection
    session: "Session | None" = None
    queue: asyncio.Queue[JSON | int] = field(default_factory=asyncio.Queue)  # payloads, or a code to close with

    def send(self, op: int, data: object = None, seq: int | None = None, name: str | None = None) -> None:
        self.queue.put_nowait({"op": op, "d": data, "s": seq, "t": name})

    def close(self, code: int) -> None:
        self.queue.put_nowait(code)

    async def write(self) -> None:
        while True:
            item = await self.queue.get()
            if isinstance(item, int):
                await self.ws.close(code=item)
                return
            text = json.dumps(item)
            if self.deflate is None:
                await self.ws.send_str(text)
            else:
                packed = self.deflate.compress(text.encode()) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
                await self.ws.send_bytes(packed)


@dataclass(eq=False)
class Session:
    """What Discord keeps of a client between its connections: intents, shard, and all events for the replay."""

    id: str
    intents: int
    shard: tuple[int, int]
    events: list[tuple[str, JSON]] = field(default_factory=list)  # the first has sequence number 1
    connection: Connection | None = None

    def dispatch(self, name: str, data: JSON) -> None:
        self.events.append((name, data))
        if self.connection:
            self.connection.send(DISPATCH, data, len(self.events), name)


class Gateway:
    """Sessions and connections. Settings are plain fields, to be changed by tests at any time."""

    def __init__(self, world: World, token: str, changed: Callable[[], None]) -> None:
        self.world, self.token, self._changed = world, token, changed
        self.allowed_intents = ALL_INTENTS  # as switched on in the developer portal
        self.heartbeat_interval = 41_250  # milliseconds
        self.acknowledge_heartbeats = True  # off: a zombie connection, which clients must notice
        self.refuse = 0  # so many handshakes are answered with 503
        self.down = False
        self.replay_extra = 0  # a resume also repeats so many events that the client has had
        self.resume_url = ""
        self.shards = 1  # as recommended to clients that ask
        self.sessions: dict[str, Session] = {}
        self.connections: list[Connection] = []
        self.log: list[tuple[float, str, JSON]] = []  # (monotonic seconds, what happened, details), oldest first
        self._held: list[Event] | None = None

    def note(self, what: str, **details: object) -> None:
        self.log.append((time.monotonic(), what, details))
        self._changed()

    def count(self, what: str) -> int:
        return sum(1 for _, name, _ in self.log if name == what)

    # Events out

    def emit(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        for session in list(self.sessions.values()):
            data = self.shown_to(session, event)
            if data is not None:
                session.dispatch(event.name, data)
        self._changed()

    @contextmanager
    def rearranged(self, how: Callable[[list[Event]], list[Event]]) -> Iterator[None]:
        """What happens inside reaches clients as `how` arranges it: twice, in another order, in part or not at all."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for event in how(held):
                self.emit(event)

    def shown_to(self, session: Session, event: Event) -> JSON | None:
        """The event's data as this session gets it, or None if it does not."""
        bot, number, of = self.world.bot, *session.shard
        if ((event.guild.id >> 22) % of if event.guild else 0) != number:
            return None
        if event.guild and bot.id not in event.guild.members and event.name != "GUILD_DELETE":
            return None
        own = str(event.data.get("user", {}).get("id")) == str(bot.id)  # one's own GUILD_MEMBER_UPDATE needs no intent
        in_guild, in_dm = next((a, b) for prefix, a, b in INTENTS if event.name.startswith(prefix))
        needed = in_guild if event.guild else in_dm
        if needed and not session.intents & needed and not (own and event.name == "GUILD_MEMBER_UPDATE"):
            return None
        listed = event.name.startswith(("CHANNEL_", "INTERACTION_", "THREAD_DELETE"))  # whether or not it can be read
        if event.channel and not listed and not self.world.sees(event.channel):
            return None
        if event.channel and event.name.startswith("MESSAGE_") and not self.world.reads(event.channel):
            return None
        if event.name == "THREAD_MEMBERS_UPDATE" and not session.intents & GUILD_MEMBERS:
            concerned = [m["user_id"] for m in event.data.get("added_members", [])]
            if str(bot.id) not in [*concerned, *event.data.get("removed_member_ids", [])]:
                return None
        if event.channel and event.name in ("CHANNEL_CREATE", "CHANNEL_UPDATE"):
            return self.listed(event.channel)
        if event.message and not session.intents & MESSAGE_CONTENT:
            return self.blanked(event.message, event.data)
        return event.data

    def blanked(self, message: Message, data: JSON) -> JSON:
        """A message as applications without the message-content intent see it: bare, unless it is for them."""
        data = dict(data)
        if data.get("referenced_message") and message.referenced:
            data["referenced_message"] = self.blanked(message.referenced, data["referenced_message"])
        bot = self.world.bot
        if message.channel.kind == DM or message.author is bot or bot in message.mentions:
            return data
        return data | {"content": "", "attachments": [], "embeds": [], "components": []}

    # Connections in

    async def accept(self, request: web.Request) -> web.WebSocketResponse:
        if self.down or self.refuse:
            if self.down:
                reset(request.transport)  # aiohttp's client tries again at once, on its own, hence the 503 for one
            self.refuse = max(0, self.refuse - 1)
            self.note("refused")
            raise web.HTTPServiceUnavailable
        compress = request.query.get("compress")
        if compress not in (None, "zlib-stream"):
            raise web.HTTPBadRequest(text=f"This server does not speak {compress}.")
        ws = web.WebSocketResponse(compress=False)
        await ws.prepare(request)
        connection = Connection(ws, request.transport, zlib.compressobj() if compress else None)
        self.connections.append(connection)
        writer = asyncio.create_task(connection.write())
        self.note("connected", path=request.path, compress=compress)
        if (request.query.get("v"), request.query.get("encoding")) != ("10", "json"):
            connection.close(4012)
        connection.send(HELLO, {"heartbeat_interval": self.heartbeat_interval})
        try:
            async for frame in ws:
                if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    self.receive(connection, frame.data)
        finally:
            writer.cancel()
            self.connections.remove(connection)
            session = connection.session
            if session and session.connection is connection:
                session.connection = None
                if ws.close_code in (1000, 1001):
                    self.sessions.pop(session.id, None)  # a client that closes so has no more use for its session
            self.note("disconnected", code=ws.close_code)
        return ws

    def receive(self, connection: Connection, text: str | bytes) -> None:
        try:
            payload = json.loads(text)
            op, data = payload["op"], payload.get("d")
        except (ValueError, KeyError, TypeError):
            return connection.close(4002)
        if op not in (HEARTBEAT, IDENTIFY, RESUME) and connection.session is None:
            return connection.close(4003)
        match op:
            case 1:
                self.note("heartbeat", seq=data)
                if self.acknowledge_heartbeats:
                    connection.send(ACK)
            case 2:
                self.identify(connection, data)
            case 3:
                self.note("presence", **data)
            case 4:
                pass  # voice is not spoken here
            case 6:
                self.resume(connection, data)
            case 8:
                self.send_members(connection, data)
            case _:
                connection.close(4001)
        return None

    def identify(self, connection: Connection, data: JSON) -> None:
        number, of = data.get("shard", (0, 1))
        self.note("identify", shard=(number, of), intents=data["intents"])
        refusals = (
            (4005, connection.session is not None),
            (4004, data["token"] != self.token),
            (4010, not 0 <= number < of),
            (4013, data["intents"] & ~ALL_INTENTS),
            (4014, data["intents"] & PRIVILEGED & ~self.allowed_intents),
        )
        problem = next((code for code, holds in refusals if holds), None)
        if problem:
            return connection.close(problem)
        session = Session(secrets.token_hex(16), data["intents"], (number, of), connection=connection)
        connection.session = self.sessions[session.id] = session
        world = self.world
        mine = [g for g in world.guilds.values() if world.bot.id in g.members and (g.id >> 22) % of == number]
        ready = {
            "v": 10,
            "user": world.bot.json() | {"verified": True, "mfa_enabled": False, "email": None, "flags": 0},
            "guilds": [{"id": str(g.id), "unavailable": True} for g in mine],
            "session_id": session.id,
            "resume_gateway_url": self.resume_url,
            "shard": [number, of],
            "application": {"id": str(world.application_id), "flags": 0},
        }
        session.dispatch("READY", ready)
        for guild in mine if session.intents & GUILDS else ():
            session.dispatch("GUILD_CREATE", self.whole(guild) | {"unavailable": False})
        return None

    def whole(self, guild: Guild) -> JSON:
        """GUILD_CREATE. Of the members only the bot itself: the others come by request, or with presences."""
        world = self.world
        rooms = [c for c in world.channels.values() if c.guild is guild]
        return guild.json() | {
            "joined_at": guild.members[world.bot.id].json()["joined_at"],
            "large": False,
            "member_count": len(guild.members),
            "members": [guild.members[world.bot.id].json()],
            "channels": [self.listed(c) for c in rooms if not c.is_thread],
            "threads": [c.json(world.bot) for c in rooms if c.is_thread and not c.archived and world.sees(c)],
            **{key: [] for key in ("presences", "voice_states", "stage_instances", "guild_scheduled_events")},
            "soundboard_sounds": [],
        }

    def listed(self, channel: Channel) -> JSON:
        """A channel in the list of its guild, which has those that the bot may not view, too."""
        return channel.json(self.world.bot) if self.world.sees(channel) else channel.hidden_json(self.world.bot)

    def resume(self, connection: Connection, data: JSON) -> None:
        session = self.sessions.get(data["session_id"])
        self.note("resume", seq=data["seq"], known=session is not None)
        if data["token"] != self.token:
            return connection.close(4004)
        if session is None:
            return connection.send(INVALID, False)
        if not 0 <= data["seq"] <= len(session.events):
            del self.sessions[session.id]
            return connection.close(4007)
        connection.session, session.connection = session, connection
        start = max(0, data["seq"] - self.replay_extra)
        for seq, (name, event) in enumerate(session.events[start:], start + 1):
            connection.send(DISPATCH, event, seq, name)
        session.dispatch("RESUMED", {})
        return None

    def send_members(self, connection: Connection, data: JSON) -> None:
        """GUILD_MEMBERS_CHUNK, a thousand at a time; the whole list takes the intent for members."""
        assert connection.session
        guild = self.world.guilds[int(data["guild_id"])]
        self.note("request members", **data)
        members, missing = list(guild.members.values()), []
        if wanted := data.get("user_ids"):
            ids = [int(i) for i in (wanted if isinstance(wanted, list) else [wanted])]
            members = [guild.members[i] for i in ids if i in guild.members]
            missing = [str(i) for i in ids if i not in guild.members]
        elif query := data.get("query"):
            members = [m for m in members if m.user.name.lower().startswith(query.lower())][: data["limit"]]
        elif not connection.session.intents & GUILD_MEMBERS:
            members = []
        chunks = [members[i : i + 1000] for i in range(0, len(members), 1000)] or [[]]
        for index, chunk in enumerate(chunks):
            body: JSON = {"guild_id": str(guild.id), "members": [m.json() for m in chunk], "not_found": missing}
            body |= {"chunk_index": index, "chunk_count": len(chunks)}
            body |= {"nonce": data["nonce"]} if "nonce" in data else {}
            connection.session.dispatch("GUILD_MEMBERS_CHUNK", body)

    # What befalls connections

    def cut(self, code: int = 1000, *, abrupt: bool = False) -> None:
        """End every connection: with a close code, or without a word. From now on their sessions only store events."""
        for connection in list(self.connections):
            session = connection.session
            if session and session.connection is connection:
                session.connection = None
            if abrupt:
                reset(connection.transport)
                continue
            if session and code in (4007, 4009):
                self.sessions.pop(session.id, None)
            connection.close(code)

    def tell(self, op: int, data: object = None) -> None:
        """Send a payload that is no event to every client: RECONNECT, or HEARTBEAT to ask for one."""
        for connection in self.connections:
            connection.send(op, data)

    def invalidate(self, *, resumable: bool) -> None:
        """Invalid session. If it is not resumable, the client has to identify again and has missed what happens now."""
        if not resumable:
            self.sessions.clear()
        self.tell(INVALID, resumable)
