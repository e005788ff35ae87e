"""A Slack for tests: Web API, Socket Mode and signed HTTP over real sockets, and a driver that plays the people.

Times are seconds. Text is Slack's own: `&`, `<` and `>` escaped, people as `<@U…>`.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from tests.support.slack.clock import Clock
from tests.support.slack.methods import WebApi
from tests.support.slack.model import BOT_SCOPES, FAMILY, Answered, Channel, Json, Team, Token, rich_text, user_object
from tests.support.slack.outbox import Envelope, Outbox
from tests.support.slack.request import Call
from tests.support.slack.routes import Breakage, Fault, Routes
from tests.support.slack.world import World
from tests.support.waiting import TIMEOUT_SECONDS


class SlackServer:
    """The running server and its driver: `async with SlackServer() as slack`, then post, edit, click, break things."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.outbox = Outbox(self.clock, self._touch)
        self.world = World(self.clock, self._event)
        self.api = WebApi(self.world)
        self.api.socket_url = self._ticket
        self.routes = Routes(self.api, self.outbox, self._touch)
        self.calls = self.routes.calls
        self.app_token = "xapp-1-A00000001"
        self.world.tokens[self.app_token] = Token("app", {"connections:write"})
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**24)
        app.add_routes(self.routes.table())
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.base_url, self.api.url = f"{self.url}/api/", self.url
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.release_hung()
        self.drop_connections()
        await self.outbox.close()
        await self._runner.cleanup()

    def _touch(self) -> None:
        self._changed.set()

    async def wait_for(self, predicate: Callable[[], Any], within: float = TIMEOUT_SECONDS) -> Any:
        """The predicate's value, as soon as it is true; TimeoutError names what was last called otherwise."""
        end = asyncio.get_running_loop().time() + within
        while not (value := predicate()):
            if asyncio.get_running_loop().time() > end:
                raise TimeoutError(f"nothing came; last calls: {[(c.method, c.answer) for c in self.calls[-5:]]}")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), 0.02)  # what a test watches may be the app's own state
            except TimeoutError:
                continue
        return value

    def _ticket(self) -> str:
        ticket = uuid.uuid4().hex
        self.routes.tickets.add(ticket)
        return f"{self.url.replace('http', 'ws')}/link?ticket={ticket}&app_id={self.world.app_id}"

    def _event(self, team: Team, event: Json) -> None:
        who = {"enterprise_id": None, "team_id": team.id, "user_id": team.bot_user}
        payload: Json = {"token": "verification", "team_id": team.id, "api_app_id": self.world.app_id, "event": event}
        payload |= {"type": "event_callback", "event_id": self.world.id("Ev"), "event_time": int(self.clock.now())}
        payload["authorizations"] = [{**who, "is_bot": True, "is_enterprise_install": False}]
        channel = self.world.channels.get(str(event.get("channel")))
        external = channel is not None and channel.external
        self.outbox.send(payload | {"is_ext_shared_channel": external, "event_context": f"4-{event['type']}"})

    # The driver: the workspace

    async def add_team(self, name: str = "acme", scopes: Iterable[str] = BOT_SCOPES) -> Team:
        """A workspace with the app in it."""
        team = Team(
            self.world.id("T"), name, self.world.id("U"), self.world.id("B"), f"xoxb-{name}-{uuid.uuid4().hex[:8]}"
        )
        self.world.teams[team.id] = team
        self.world.tokens[team.bot_token] = Token("bot", set(scopes), team)
        self.world.users[team.bot_user] = user_object(team, team.bot_user, "nexus", bot=True)
        return team

    async def add_user(self, team: Team, name: str, *, admin: bool = False, **fields: Any) -> str:
        """A person; `fields` (`deleted`, `is_restricted`, `tz`, …) go into the user object as they are."""
        user = self.world.id("U")
        self.world.users[user] = user_object(team, user, name, admin=admin) | fields
        return user

    async def add_channel(
        self, team: Team, name: str, members: Iterable[str] = (), *, private: bool = False, bot: bool = True
    ) -> str:
        people = [*members, team.bot_user] if bot else list(members)
        return self.world.channel(team, name, "group" if private else "channel", people).id

    async def add_im(self, team: Team, *users: str) -> str:
        """A direct channel of the app with one person, or a group one with several."""
        if len(users) == 1:
            return self.world.im(team, users[0]).id
        return self.world.channel(team, "mpdm-" + "--".join(users), "mpim", [*users, team.bot_user]).id

    async def join(self, channel: str, user: str) -> None:
        self.world.enter(self.world.channels[channel], user)

    async def close_account(self, team: Team, user: str) -> None:
        """A person's account is deactivated: they are in no channel any more."""
        self.world.users[user]["deleted"] = True
        for place in self.world.channels.values():
            if user in place.members and place.kind != "im":
                place.members.remove(user)  # of which nothing is told
        self.world.tell(team, {"type": "user_change", "user": self.world.users[user]}, scope="users:read")

    async def open_account(self, team: Team, user: str) -> None:
        """A closed account is activated again, which puts its person into no channel."""
        self.world.users[user]["deleted"] = False
        self.world.tell(team, {"type": "user_change", "user": self.world.users[user]}, scope="users:read")

    async def restrict(self, team: Team, user: str, restricted: bool = True) -> None:
        """A person becomes a guest, or a member again."""
        self.world.users[user]["is_restricted"] = restricted
        self.world.tell(team, {"type": "user_change", "user": self.world.users[user]}, scope="users:read")

    async def leave(self, channel: str, user: str) -> None:
        self.world.exit(self.world.channels[channel], user)

    async def set_private(self, channel: str, private: bool, by: str) -> None:
        """Turn a channel private or public: the id stays, and only a message with a subtype tells of it."""
        place = self.world.channels[channel]
        place.kind = "group" if private else "channel"
        word = "private" if private else "public"
        self.world.note(place, f"channel_convert_to_{word}", by, f"made this channel *{word}*.")

    async def share(self, channel: str) -> None:
        """Share a channel with another organisation."""
        place = self.world.channels[channel]
        place.external = True
        self._event(place.team, {"type": "channel_shared", "connected_team_id": "T0OTHER", "channel": channel})

    async def change_id(self, channel: str, *, told: bool = True, to: str = "", at: str = "") -> str:
        """A private channel gets another id, as when somebody begins to share it outside; returns the new one. It may
        be told later; `at` is the time that is told with it."""
        place = self.world.channels.pop(channel)
        place.id = to or self.world.id("C")
        self.world.channels[place.id] = place
        if told:
            await self.tell_id(channel, place.id, at=at)
        return place.id

    async def tell_id(self, old: str, new: str, *, by_now: str = "", at: str = "") -> None:
        """Tell that a channel has another id, also late, when it has got a third one by now."""
        place = self.world.channels[by_now or new]
        event = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new}
        event["event_ts"] = at or self.world.ts()
        self.world.tell(place.team, event, place, scope="groups:read")

    async def change_history(self, channel: str, *deleted: str, named: bool = True, **texts: str) -> None:
        """Delete and edit messages at once, as by an import of an admin, which is told as one event; `texts` go by
        `ts`. Slack's documentation names no channel in it."""
        place = self.world.channels[channel]
        for ts in deleted:
            del place.messages[ts]
        for ts, text in texts.items():
            place.messages[ts] |= {"text": text, "edited": {"user": place.messages[ts]["user"], "ts": self.world.ts()}}
        kind = {"group": "group", "im": "im"}.get(place.kind, "channel")
        event = {"type": f"{kind}_history_changed", "latest": self.world.ts(), "ts": self.world.ts()}
        self.world.tell(place.team, event | ({"channel": channel} if named else {}), place)

    async def rename(self, channel: str, name: str, by: str) -> None:
        place = self.world.channels[channel]
        place.name = name
        about = {"id": channel, "name": name, "created": place.created}
        self._lifecycle(place, "rename", channel=about)
        self.world.note(place, "channel_name", by, f"has renamed the channel to {name}")

    async def archive(self, channel: str, by: str) -> None:
        place = self.world.channels[channel]
        place.archived = True
        self._lifecycle(place, "archive", channel=channel, user=by)

    def _lifecycle(self, place: Channel, what: str, **fields: Any) -> None:
        event = {"type": f"{'group' if place.kind == 'group' else 'channel'}_{what}", **fields}
        scope = f"{FAMILY[place.kind]}:read"
        self.world.tell(place.team, event, place, scope=scope, anyone=place.kind == "channel")

    async def revoke(self, team: Team, *, uninstall: bool = False) -> None:
        """Take the bot's token away; `uninstall` takes the app out of the workspace as well."""
        self.world.tell(team, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [team.bot_user]}})
        if uninstall:
            self.world.tell(team, {"type": "app_uninstalled"})
        self.world.tokens[team.bot_token].dead = "account_inactive" if uninstall else "token_revoked"

    # The driver: people

    async def post(
        self, channel: str, user: str, text: str, *, thread: str = "", broadcast: bool = False, **more: Any
    ) -> str:
        """A person says something; returns its ts. `more` are other fields of the message."""
        said = {"user": user, "text": text, "client_msg_id": str(uuid.uuid4()), "blocks": rich_text(text), **more}
        return str(self.world.post(self.world.channels[channel], said, thread, broadcast=broadcast)["ts"])

    def post_untold(self, channel: str, user: str, text: str, at: float) -> str:
        """A person says something of which Slack tells nobody, so that a test can; returns its ts."""
        place, ts = self.world.channels[channel], f"{at:.6f}"
        place.messages[ts] = {"type": "message", "user": user, "text": text, "ts": ts, "team": place.team.id}
        return ts

    async def post_as_other_bot(self, channel: str, text: str, *, thread: str = "", **more: Any) -> str:
        said = {"subtype": "bot_message", "bot_id": "B99999999", "username": "deploys", "text": text, **more}
        return str(self.world.post(self.world.channels[channel], said, thread)["ts"])

    async def edit(self, channel: str, ts: str, text: str) -> None:
        place = self.world.channels[channel]
        message = place.messages[ts]
        self.world.change(place, message, message["user"], text=text, blocks=rich_text(text))

    async def delete(self, channel: str, ts: str, *, bare: bool = False) -> None:
        """Delete a message. `bare`: told as in Slack's documentation, without what it was."""
        place = self.world.channels[channel]
        self.world.remove(place, place.messages[ts], bare=bare)

    async def delete_channel(self, channel: str) -> None:
        place = self.world.channels[channel]
        kind = "group_deleted" if place.kind == "group" else "channel_deleted"
        self.world.tell(place.team, {"type": kind, "channel": channel, "event_ts": self.world.ts()}, place)
        del self.world.channels[channel]

    async def upload(
        self,
        channel: str,
        user: str,
        name: str,
        content: bytes,
        mimetype: str = "text/plain",
        *,
        text: str = "",
        thread: str = "",
    ) -> str:
        """Share a file; returns the ts of the message that carries it."""
        file, kind = self.world.id("F"), name.rpartition(".")[2]
        url = f"{self.url}/files/{file}/{name}"
        about = {"id": file, "name": name, "title": name, "mimetype": mimetype, "filetype": kind, "size": len(content)}
        about |= {"mode": "hosted", "user": user, "url_private": url, "url_private_download": url, "permalink": url}
        self.world.files[file] = (about | {"channels": [channel]}, content)
        said = {"subtype": "file_share", "user": user, "text": text, "files": [about], "upload": False}
        return str(self.world.post(self.world.channels[channel], said, thread)["ts"])

    async def start_assistant_thread(self, team: Team, user: str, looking_at: str = "") -> str:
        """A person opens the app's pane, with a channel in sight or not; returns the thread's ts."""
        im = self.world.im(team, user)
        root = self.world.post(im, {"user": team.bot_user, "bot_id": team.bot_id, "text": "New Assistant Thread"})["ts"]
        await self._assistant(team, user, root, looking_at, "assistant_thread_started")
        return str(root)

    async def _assistant(self, team: Team, user: str, thread: str, looking_at: str, kind: str) -> None:
        context = {"channel_id": looking_at, "team_id": team.id, "enterprise_id": None} if looking_at else {}
        place = {"user_id": user, "context": context, "channel_id": self.world.im(team, user).id, "thread_ts": thread}
        self.world.tell(team, {"type": kind, "assistant_thread": place}, scope="assistant:write")

    async def press_stop(self, channel: str, user: str, thread: str) -> None:
        """A person stops the agent: its running streams in the thread end at once."""
        place = self.world.channels[channel]
        mine = [s for s in self.api.streams if not s.dead and place.messages.get(s.ts, {}).get("thread_ts") == thread]
        for stream in mine:
            stream.dead = "stopped_by_user"
        event = {"type": "agent_session_stopped", "channel": channel, "user": user, "thread_ts": thread}
        self.world.tell(place.team, event | {"streaming_message_ts": [stream.ts for stream in mine]}, place)

    async def command(self, channel: str, user: str, text: str, command: str = "/nexus") -> Answered:
        """Run a slash command (never in a thread: there Slack refuses them itself) and return what is answered."""
        place, answered = self.world.channels[channel], Answered()
        name = {"im": "directmessage", "group": "privategroup"}.get(place.kind, place.name)
        payload = {
            "token": "verification",
            "team_id": place.team.id,
            "team_domain": place.team.name,
            "command": command,
        }
        payload |= {"channel_id": channel, "channel_name": name, "user_id": user, "text": text}
        payload |= {"user_name": self.world.users[user]["name"], "api_app_id": self.world.app_id}
        payload |= {"is_enterprise_install": "false", "trigger_id": self._trigger()}
        payload["response_url"] = self._response_url(answered, place, user)
        return await self._ask(payload, "slash_commands", answered, place, user)

    async def click(self, channel: str, user: str, ts: str, action_id: str, **fields: Any) -> Answered:
        """Use an element of a message, seen by all or by this person only; `fields` go into the action."""
        place, answered = self.world.channels[channel], Answered()
        private = next((said for said in self.api.ephemerals if said["ts"] == ts and said["user"] == user), None)
        message = private or place.messages[ts]
        elements = [
            (block, element)
            for block in message.get("blocks", [])
            for element in [*block.get("elements", []), block.get("accessory", {})]
        ]
        block, element = next(pair for pair in elements if pair[1].get("action_id") == action_id)
        action = {**element, "block_id": block.get("block_id", "b1"), "action_ts": self.world.ts(), **fields}
        payload = self._interaction("block_actions", place.team, user) | {"message": message, "actions": [action]}
        container = {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": bool(private)}
        payload |= {"channel": {"id": channel, "name": place.name}, "container": container, "state": {"values": {}}}
        payload["response_url"] = self._response_url(answered, place, user, ts)
        return await self._ask(payload, "interactive", answered, place, user)

    async def submit(self, user: str, view_id: str, values: Json) -> Answered:
        """Send a modal that the app opened; `values` are the view's state."""
        view = self.api.views[view_id]
        team = self.world.teams[view["team_id"]]
        payload = self._interaction("view_submission", team, user) | {"view": view | {"state": {"values": values}}}
        return await self._ask(payload, "interactive", Answered(), self.world.im(team, user), user)

    def _interaction(self, kind: str, team: Team, user: str) -> Json:
        name = self.world.users[user]["name"]
        who = {"id": user, "username": name, "name": name, "team_id": team.id}
        payload = {"type": kind, "user": who, "team": {"id": team.id, "domain": team.name}, "token": "verification"}
        common = {"api_app_id": self.world.app_id, "enterprise": None, "is_enterprise_install": False}
        return payload | common | {"trigger_id": self._trigger()}

    def _trigger(self) -> str:
        self.api.triggers[trigger := uuid.uuid4().hex] = self.clock.now()
        return trigger

    def _response_url(self, answered: Answered, place: Channel, user: str, source: str = "") -> str:
        self.routes.links[link := uuid.uuid4().hex] = (answered, place, user, source, self.clock.now())
        return f"{self.url}/commands/{link}"

    async def _ask(self, payload: Json, kind: Envelope, answered: Answered, place: Channel, user: str) -> Answered:
        """Bring it once (these are never retried), and show what comes back."""
        attempt = await self.outbox.attempt(payload, kind)
        timed_out = attempt.outcome in {"timeout", "http_timeout"} and (self.outbox.urls or self.outbox.connections)
        answered.ack = attempt.answer
        answered.error = "" if attempt.outcome == "acked" else "operation_timeout" if timed_out else "dispatch_failed"
        if kind == "slash_commands":
            self.routes.show(place, user, answered.ack)
        return answered

    # The driver: what there is to see

    def messages(self, channel: str) -> list[Json]:
        """Everything in a conversation, threads too, oldest first."""
        return list(self.world.channels[channel].messages.values())

    def texts(self, channel: str) -> list[str]:
        """What the app said there, oldest first."""
        bot = self.world.channels[channel].team.bot_id
        return [message["text"] for message in self.messages(channel) if message.get("bot_id") == bot]

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def ephemerals(self, user: str) -> list[Json]:
        return [said for said in self.api.ephemerals if said["user"] == user]

    # The driver: what goes wrong, and time

    def fail(self, name: str, kind: Breakage = "http500", *, times: int = 1, **fields: Any) -> None:
        """The next requests of a method (or "files", "response_url", "*" for any) meet a `Fault`."""
        self.routes.faults[name].extend(Fault(kind, **fields) for _ in range(times))

    def release_hung(self) -> None:
        self.routes.free.set()

    def limit(self, method: str, times: int, seconds: float, per: Literal["token", "channel"] = "token") -> None:
        """Answer 429 when a method is called more often than this."""
        self.routes.limits[method] = (times, seconds, per)

    def use_http(self, events: str, commands: str = "", interactivity: str = "") -> None:
        """Deliver by signed HTTP from now on; one address may serve for all."""
        self.outbox.urls = {
            "events_api": events,
            "slash_commands": commands or events,
            "interactive": interactivity or events,
        }

    async def verify_url(self) -> bool:
        """Send the url_verification challenge, as saving the app's settings does; whether it came back."""
        challenge = {"type": "url_verification", "token": "verification", "challenge": uuid.uuid4().hex}
        answer = (await self.outbox.attempt(challenge, "events_api")).answer
        return challenge["challenge"] in {answer.get("challenge"), answer.get("text")}

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        """Send `disconnect` ("warning", "refresh_requested", "link_disabled") to every connection."""
        for connection in list(self.outbox.connections):
            connection.fresh = reason == "warning"
            await connection.socket.send_json(
                {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}
            )

    def drop_connections(self) -> None:
        for connection in list(self.outbox.connections):
            connection.drop()

    async def go_down(self) -> None:
        """Every connection breaks and none is taken; what happens now is in the history only."""
        self.outbox.down = True
        self.drop_connections()

    async def come_back(self) -> None:
        self.outbox.down = False

    def hold(self) -> None:
        """Keep what happens from the app, until `release` brings it in an order of the test's choice."""
        self.outbox.held = []

    async def release(self, order: Callable[[list[Json]], list[Json]] = list) -> None:
        """Bring what was held: `lambda held: held[::-1]` reorders, `lambda held: held * 3` repeats."""
        held, self.outbox.held = self.outbox.held or [], None
        for payload in order(held):
            self.outbox.send(payload)

    async def advance(self, seconds: float) -> None:
        """Move the clock: acknowledgements run out, retries fall due, streams and links die."""
        self.clock.advance(seconds)
        await asyncio.sleep(0)

    async def settled(self) -> None:
        """Until every event was acknowledged, waits for its retry (`advance`), or was given up."""
        await self.wait_for(lambda: self.outbox.idle)
