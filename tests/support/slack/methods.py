"""The methods of Slack's Web API that an app which talks, listens and takes commands may call."""

import json
import math
import uuid
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.support.slack.model import FAMILY, Channel, Json, SlackError, Stream, Team, Token
from tests.support.slack.request import METHODS, Args, cursor_to
from tests.support.slack.world import World


class WebApi:
    """What an app may call: each `do_…` is one method, with its documented errors."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.stream_seconds = 300.0  # Slack ends a stream then, whether text still comes or not
        self.page_max: dict[str, int] = {}  # 15 for conversations.history is what unlisted distributed apps get
        self.streams: list[Stream] = []
        self.updates: list[tuple[str, str, str]] = []
        self.ephemerals: list[Json] = []
        self.views: dict[str, Json] = {}
        self.homes: dict[str, Json] = {}
        self.statuses: list[tuple[str, Json]] = []
        self.triggers: dict[str, float] = {}
        self.socket_url: Callable[[], str] = str
        self.url = ""  # of this server

    def answer(self, method: str, secret: str, args: Args) -> Json:
        if method not in METHODS:
            return {"ok": False, "error": "unknown_method", "req_method": method}
        try:
            token = self._token(method, secret)
            said: Json = getattr(self, "do_" + method.replace(".", "_"))(token, token.team, args)
            return {"ok": True, **deepcopy(said)}
        except SlackError as error:
            return error.body

    def _token(self, method: str, secret: str) -> Token:
        if not (token := self.world.tokens.get(secret)):
            raise SlackError("invalid_auth" if secret else "not_authed")
        if token.dead:
            raise SlackError(token.dead)
        if method != "auth.test" and (method == "apps.connections.open") != (token.kind == "app"):
            raise SlackError("not_allowed_token_type")
        self._scope(token, METHODS[method][0])
        return token

    def _scope(self, token: Token, needed: str) -> None:
        if needed and not token.scopes & set(needed.split(",")):
            raise SlackError("missing_scope", needed=needed, provided=",".join(sorted(token.scopes)))

    def _channel(self, token: Token, team: Team, name: str, right: str = "", *, member: bool = False) -> Channel:
        """The conversation, if it is there for this app; `right` is the scope's second half."""
        found = self.world.channels.get(name)
        if not found or found.team is not team:
            raise SlackError("channel_not_found")
        if right:
            self._scope(token, f"{FAMILY[found.kind]}:{right}")
        if team.bot_user not in found.members and (found.kind != "channel" or member):
            raise SlackError("not_in_channel" if found.kind == "channel" else "channel_not_found")
        return found

    def _writable(self, token: Token, team: Team, a: Args) -> Channel:
        (name,) = a.need("channel")
        if self.world.users.get(name, {}).get("team_id") == team.id:
            name = self.world.im(team, name).id
        found = self._channel(token, team, name, member="chat:write.public" not in token.scopes)
        if found.archived:
            raise SlackError("is_archived")
        return found

    def _message(self, channel: Channel, ts: str, not_own: str = "") -> Json:
        message = channel.messages.get(ts)
        if not message or message.get("subtype") == "tombstone":
            raise SlackError("message_not_found")
        if not_own and message.get("bot_id") != channel.team.bot_id:
            raise SlackError(not_own)
        return message

    def _content(self, a: Args) -> Json:
        """The text and blocks of a message, within Slack's limits (40,000 characters are kept, 50 blocks)."""
        blocks, markdown = a.get("blocks"), str(a.get("markdown_text") or "")
        text = str(a.get("text") or "") or markdown
        if markdown and (a.get("text") or blocks):
            raise SlackError("markdown_text_conflict")
        if not (text or blocks or a.get("attachments")):
            raise SlackError("no_text")
        if blocks is not None and not (
            isinstance(blocks, list) and all(isinstance(b, dict) and "type" in b for b in blocks)
        ):
            raise SlackError("invalid_blocks_format")
        sizes = [len(b["text"]["text"]) for b in blocks or [] if b["type"] == "section" and b.get("text")]
        if len(blocks or []) > 50 or max(sizes, default=0) > 3000:
            raise SlackError(
                "invalid_blocks", response_metadata={"messages": ["[ERROR] must be less than 3001 characters"]}
            )
        if sum(sizes) > 13_200:
            raise SlackError("msg_blocks_too_long")
        written = [b["text"] for b in blocks or [] if b["type"] == "markdown"]
        if len(markdown) > 12_000 or sum(map(len, written)) > 12_000:
            raise SlackError("msg_too_long")
        kept = {"blocks": blocks, "attachments": a.get("attachments"), "metadata": a.get("metadata")}
        return {"text": text[:40_000], **{key: value for key, value in kept.items() if value}}

    def _as_bot(self, team: Team, a: Args) -> Json:
        profile = {"id": team.bot_id, "name": "nexus", "app_id": self.world.app_id, "team_id": team.id}
        own = {"user": team.bot_user, "bot_id": team.bot_id, "app_id": self.world.app_id, "bot_profile": profile}
        return (
            {"subtype": "bot_message", "bot_id": team.bot_id, "username": a["username"]} if a.get("username") else own
        )

    def do_auth_test(self, token: Token, team: Team | None, a: Args) -> Json:
        if not team:
            return {"app_id": self.world.app_id, "app_name": "nexus"}
        who = {"user": "nexus", "user_id": team.bot_user, "bot_id": team.bot_id, "is_enterprise_install": False}
        return {"url": f"https://{team.name}.slack.com/", "team": team.name, "team_id": team.id, **who}

    def do_apps_connections_open(self, token: Token, team: None, a: Args) -> Json:
        return {"url": self.socket_url()}

    def do_team_info(self, token: Token, team: Team, a: Args) -> Json:
        return {"team": {"id": team.id, "name": team.name, "domain": team.name, "email_domain": "", "icon": {}}}

    def do_bots_info(self, token: Token, team: Team, a: Args) -> Json:
        if a.get("bot") != team.bot_id:
            raise SlackError("bot_not_found")
        bot = {"id": team.bot_id, "name": "nexus", "deleted": False, "app_id": self.world.app_id}
        return {"bot": {**bot, "user_id": team.bot_user, "icons": {}}}

    def _seen(self, token: Token, user: Json) -> Json:
        """A user without the address, unless the token may know it."""
        shown = deepcopy(user)
        if "users:read.email" not in token.scopes:
            shown["profile"].pop("email", None)
        return shown

    def do_users_info(self, token: Token, team: Team, a: Args) -> Json:
        (name,) = a.need("user")
        user = self.world.users.get(name)
        met = any(name in channel.members for channel in self.world.channels.values() if channel.team is team)
        if not user or (user["team_id"] != team.id and not met):
            raise SlackError("user_not_found")
        return {"user": self._seen(token, user)}

    def do_usergroups_list(self, token: Token, team: Team, a: Args) -> Json:
        return {"usergroups": [{"id": id, "team_id": team.id, "handle": name} for id, name in team.groups.items()]}

    def do_users_lookupByEmail(self, token: Token, team: Team, a: Args) -> Json:
        (email,) = a.need("email")
        for user in self.world.users.values():
            if user["team_id"] == team.id and user["profile"].get("email") == email:
                return {"user": deepcopy(user)}
        raise SlackError("users_not_found")

    def _paged(self, method: str, key: str, rows: list[Any], a: Args, most: int = 1000) -> Json:
        size, place = a.page(self.page_max.get(method, most))
        start = int(place or 0)
        more = cursor_to(start + size) if len(rows) > start + size else ""
        return {key: rows[start : start + size], "response_metadata": {"next_cursor": more}}

    def do_users_list(self, token: Token, team: Team, a: Args) -> Json:
        rows = [self._seen(token, user) for user in self.world.users.values() if user["team_id"] == team.id]
        return self._paged("users.list", "members", rows, a)

    def _shown(self, channel: Channel, a: Args) -> Json:
        kinds = {f"is_{kind}": channel.kind == kind for kind in FAMILY} | {"is_private": channel.kind != "channel"}
        member = channel.team.bot_user in channel.members
        shown: Json = {"id": channel.id, "created": channel.created, "is_archived": channel.archived, **kinds}
        if channel.kind == "im":
            return {**shown, "user": channel.members[0], "is_open": True}
        shown |= {"name": channel.name, "name_normalized": channel.name, "is_member": member, "is_general": False}
        shown |= {"creator": channel.creator}
        shown |= {
            "topic": {"value": ""},
            "purpose": {"value": ""},
            "context_team_id": channel.team.id,
            "is_shared": channel.external,
            "is_ext_shared": channel.external,
        }
        return shown | ({"num_members": len(channel.members)} if a.flag("include_num_members") else {})

    def _listed(self, method: str, token: Token, team: Team, a: Args, *, mine: bool) -> Json:
        names = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
        kinds = {names[kind.strip()] for kind in str(a.get("types") or "public_channel").split(",")}
        for kind in sorted(kinds):
            self._scope(token, f"{FAMILY[kind]}:read")
        user = a.get("user") if mine else None
        if user and self.world.users.get(user, {}).get("team_id") != team.id:
            raise SlackError("user_not_found")
        rows = [
            self._shown(channel, a)
            for channel in self.world.channels.values()
            if channel.team is team and channel.kind in kinds and not (channel.archived and a.flag("exclude_archived"))
            if team.bot_user in channel.members or (channel.kind == "channel" and not mine)
            if not user or user in channel.members
        ]
        return self._paged(method, "channels", rows, a)

    def do_conversations_list(self, token: Token, team: Team, a: Args) -> Json:
        return self._listed("conversations.list", token, team, a, mine=False)

    def do_users_conversations(self, token: Token, team: Team, a: Args) -> Json:
        return self._listed("users.conversations", token, team, a, mine=True)

    def do_conversations_info(self, token: Token, team: Team, a: Args) -> Json:
        return {"channel": self._shown(self._channel(token, team, a.need("channel")[0], "read"), a)}

    def do_conversations_members(self, token: Token, team: Team, a: Args) -> Json:
        channel = self._channel(token, team, a.need("channel")[0], "read")
        return self._paged("conversations.members", "members", channel.members, a)

    def do_conversations_join(self, token: Token, team: Team, a: Args) -> Json:
        channel = self.world.channels.get(a.need("channel")[0])
        if not channel or channel.team is not team or channel.kind == "group":
            raise SlackError("channel_not_found")
        if channel.kind != "channel" or channel.archived:
            raise SlackError("is_archived" if channel.archived else "method_not_supported_for_channel_type")
        if team.bot_user not in channel.members:
            self.world.enter(channel, team.bot_user)
        return {"channel": self._shown(channel, a)}

    def do_conversations_open(self, token: Token, team: Team, a: Args) -> Json:
        if a.get("channel"):
            return {"channel": {"id": self._channel(token, team, a["channel"]).id}, "no_op": True, "already_open": True}
        people = a.need("users")[0].split(",")
        if any(self.world.users.get(user, {}).get("team_id") != team.id for user in people):
            raise SlackError("user_not_found")
        many = len(people) > 1
        made = (
            self.world.channel(team, "mpdm", "mpim", [*people, team.bot_user])
            if many
            else self.world.im(team, people[0])
        )
        return {"channel": {"id": made.id}}

    def _between(self, method: str, rows: list[Json], a: Args, *, forward: bool) -> tuple[list[Json], Json]:
        """A page of rows (in the order of ts), from the near end, and what the answer says of more."""
        size, place = a.page(self.page_max.get(method, 999))
        oldest, latest, at = str(a.get("oldest") or "0"), str(a.get("latest") or "9" * 10), a.flag("inclusive")
        rows = [m for m in rows if oldest < m["ts"] < latest or (at and m["ts"] in {oldest, latest})]
        if place:
            rows = [m for m in rows if (m["ts"] >= place if forward else m["ts"] <= place)]
        page, rest = (rows[:size], rows[size:]) if forward else (rows[-size:], rows[:-size][::-1])
        page = [{k: v for k, v in m.items() if k != "metadata" or a.flag("include_all_metadata")} for m in page]
        more = {"response_metadata": {"next_cursor": cursor_to(rest[0]["ts"])}} if rest else {}
        return page, {"has_more": bool(rest), **more}

    def do_conversations_history(self, token: Token, team: Team, a: Args) -> Json:
        """Newest first. With `oldest` alone the first page is the one nearest to it, as Slack has it."""
        channel = self._channel(token, team, a.need("channel")[0], "history", member=True)
        tops = [m for m in channel.messages.values() if m.get("thread_ts", m["ts"]) == m["ts"] or "root" in m]
        forward = bool(a.get("oldest")) and not a.get("latest")
        page, more = self._between("conversations.history", tops, a, forward=forward)
        return {"messages": page[::-1], "pin_count": 0, **more}

    def do_conversations_replies(self, token: Token, team: Team, a: Args) -> Json:
        """Oldest first; the first page begins with the parent, whatever `oldest` says."""
        name, ts = a.need("channel", "ts")
        channel = self._channel(token, team, name, "history", member=True)
        if not (asked := channel.messages.get(ts)):
            raise SlackError("thread_not_found")
        replies = [m for m in channel.messages.values() if m.get("thread_ts") == ts != m["ts"]]
        page, more = self._between("conversations.replies", replies, a, forward=True)
        return {"messages": page if a.get("cursor") else [asked, *page], **more}

    def do_chat_postMessage(self, token: Token, team: Team, a: Args) -> Json:
        channel, thread = self._writable(token, team, a), str(a.get("thread_ts") or "")
        fields = self._as_bot(team, a) | self._content(a)
        message = self.world.post(channel, fields, thread, broadcast=a.flag("reply_broadcast"))
        cut = {"warning": "message_truncated"} if len(str(a.get("text") or "")) > 40_000 else {}
        return {"channel": channel.id, "ts": message["ts"], "message": message, **cut}

    def do_chat_postEphemeral(self, token: Token, team: Team, a: Args) -> Json:
        channel, (user,) = self._writable(token, team, a), a.need("user")
        if user not in channel.members:
            raise SlackError("user_not_in_channel")
        said = {"channel": channel.id, "user": user, "ts": self.world.ts(), "thread_ts": a.get("thread_ts")}
        self.ephemerals.append(said | self._content(a))
        return {"message_ts": said["ts"]}

    def do_chat_update(self, token: Token, team: Team, a: Args) -> Json:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        message, content = self._message(channel, ts, "cant_update_message"), self._content(a)
        if any(stream.ts == ts and not self._ended(stream) for stream in self.streams):
            raise SlackError("streaming_state_conflict")
        blocks = None if a.get("text") else message.get("blocks")
        self.updates.append((channel.id, ts, content["text"]))
        self.world.change(channel, message, team.bot_user, **{"blocks": blocks, **content})
        return {"channel": channel.id, "ts": ts, "text": content["text"], "message": message}

    def do_chat_delete(self, token: Token, team: Team, a: Args) -> Json:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        self.world.remove(channel, self._message(channel, ts, "cant_delete_message"))
        return {"channel": channel.id, "ts": ts}

    def _ended(self, stream: Stream) -> str:
        if not stream.dead and self.clock.now() - stream.started >= self.stream_seconds:
            stream.dead = "message_not_in_streaming_state"
        return stream.dead

    def _piece(self, stream: Stream, a: Args) -> bool:
        """Add what the call brings; a stream keeps the mode (text or chunks) that it began with."""
        text, chunks = str(a.get("markdown_text") or ""), a.get("chunks")
        mode = "chunks" if chunks else "text" if text else ""
        if mode and stream.mode and mode != stream.mode:
            raise SlackError("streaming_mode_mismatch")
        piece = text + "".join(chunk.get("text", "") for chunk in chunks or [] if chunk["type"] == "markdown_text")
        if len(piece) > 12_000 or len(stream.text) + len(piece) > 40_000:
            raise SlackError("msg_too_long")
        stream.mode, stream.text = stream.mode or mode, stream.text + piece
        stream.pieces += [piece] if piece else []
        return bool(mode)

    def do_chat_startStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, thread = self._writable(token, team, a), str(a.get("thread_ts") or "")
        if channel.kind == "im" and not thread:
            a.need("thread_ts")
        for name in ("recipient_team_id", "recipient_user_id"):
            if channel.kind != "im" and not a.get(name):
                raise SlackError(f"missing_{name}")
        stream = Stream(channel.id, "", self.clock.now())
        self._piece(stream, a)
        stream.ts = self.world.post(channel, {**self._as_bot(team, a), "text": stream.text}, thread)["ts"]
        self.streams.append(stream)
        return {"channel": channel.id, "ts": stream.ts}

    def _stream(self, token: Token, team: Team, a: Args) -> tuple[Channel, Json, Stream]:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        message = self._message(channel, ts, "message_not_owned_by_app")
        stream = next((s for s in self.streams if s.ts == ts), None)
        if not stream or self._ended(stream):
            raise SlackError(stream.dead if stream else "message_not_in_streaming_state")
        return channel, message, stream

    def do_chat_appendStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, message, stream = self._stream(token, team, a)
        if not self._piece(stream, a):
            raise SlackError("no_text")
        message["text"] = stream.text
        return {"channel": channel.id, "ts": stream.ts}

    def do_chat_stopStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, message, stream = self._stream(token, team, a)
        self._piece(stream, a)
        stream.dead = "message_not_in_streaming_state"
        kept = {key: a[key] for key in ("blocks", "metadata") if a.get(key)}
        self.world.change(channel, message, "", text=stream.text, **kept)
        return {"channel": channel.id, "ts": stream.ts, "message": message}

    def do_views_open(self, token: Token, team: Team, a: Args) -> Json:
        trigger, _ = a.need("trigger_id", "view")
        if trigger not in self.triggers:
            raise SlackError("invalid_trigger_id")
        if self.clock.now() - self.triggers[trigger] > 3:
            raise SlackError("expired_trigger_id")
        self.triggers[trigger] = -math.inf
        view = {**a["view"], "id": self.world.id("V"), "team_id": team.id, "hash": uuid.uuid4().hex}
        self.views[view["id"]] = view
        return {"view": view}

    def do_views_publish(self, token: Token, team: Team, a: Args) -> Json:
        user, _ = a.need("user_id", "view")
        self.homes[user] = {**a["view"], "id": self.world.id("V"), "team_id": team.id}
        return {"view": self.homes[user]}

    def do_reactions_add(self, token: Token, team: Team, a: Args) -> Json:
        name, place, ts = a.need("name", "channel", "timestamp")
        message = self._message(self._channel(token, team, place, member=True), ts)
        if any(reaction["name"] == name for reaction in message.setdefault("reactions", [])):
            raise SlackError("already_reacted")
        message["reactions"].append({"name": name, "users": [team.bot_user], "count": 1})
        return {}

    def do_files_info(self, token: Token, team: Team, a: Args) -> Json:
        if not (found := self.world.files.get(a.need("file")[0])):
            raise SlackError("file_not_found")
        return {"file": found[0], "comments": [], "response_metadata": {"next_cursor": ""}}

    def do_files_delete(self, token: Token, team: Team, a: Args) -> Json:
        """Delete a file; the message that shared it goes with it."""
        file = a.need("file")[0]
        if self.world.files.pop(file, None) is None:
            raise SlackError("file_not_found")
        return {}

    def do_files_getUploadURLExternal(self, token: Token, team: Team, a: Args) -> Json:
        (name, length), file = a.need("filename", "length"), self.world.id("F")
        self.world.uploads[file] = (name, int(length), b"")
        return {"upload_url": f"{self.url}/upload/{file}", "file_id": file}

    def do_files_completeUploadExternal(self, token: Token, team: Team, a: Args) -> Json:
        """Share uploaded files as one message of the app in `channel_id`."""
        sent, shared = a["files"], []
        for each in json.loads(sent) if isinstance(sent, str) else sent:
            name, length, content = self.world.uploads.pop(each["id"], ("", -1, b""))
            if length != len(content):
                raise SlackError("file_not_found")
            about = {"id": each["id"], "name": name, "title": each.get("title", name), "size": length}
            about |= {"mode": "hosted", "user": team.bot_user, "mimetype": "text/plain"}
            self.world.files[each["id"]] = (about, content)
            shared.append(about)
        channel = self._channel(token, team, a.need("channel_id")[0], member=True)
        who = {"user": team.bot_user, "bot_id": team.bot_id}
        self.world.post(channel, who | {"subtype": "file_share", "text": "", "files": shared, "upload": True})
        return {"files": shared}

    def _thread_note(self, token: Token, team: Team, a: Args) -> Json:
        channel = self._channel(token, team, a.need("channel_id")[0], member=True)
        self.statuses.append((channel.id, dict(a)))
        return {}

    do_assistant_threads_setStatus = do_assistant_threads_setTitle = _thread_note
    do_assistant_threads_setSuggestedPrompts = do_agents_sessions_rename = do_agents_sessions_setStatus = _thread_note
