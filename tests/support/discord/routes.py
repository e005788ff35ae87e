"""The routes of Discord's REST API, version 10, that a bot which talks, listens and takes commands may use."""

import math
import time
from collections.abc import Callable
from typing import Any

from tests.support.discord.gateway import GUILD_MEMBERS, GUILD_PRESENCES, MESSAGE_CONTENT
from tests.support.discord.model import (
    COMMAND_ANSWER,
    EPHEMERAL,
    JSON,
    LOADING,
    NO_EMBEDS,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    SILENT,
    ApiError,
    Channel,
    Interaction,
    Message,
    Permission,
    bad_field,
    iso,
)
from tests.support.discord.rest import Call, Handler, Rest

ROUTES: dict[str, Handler] = {}


def on(*routes: str) -> Callable[[Handler], Handler]:
    """Register a handler for "METHOD /path/{name}", written as in Discord's documentation."""

    def register(handler: Handler) -> Handler:
        ROUTES.update(dict.fromkeys(routes, handler))
        return handler

    return register


# Who the bot is


@on("GET /gateway")
def get_gateway(rest: Rest, call: Call) -> JSON:
    return {"url": rest.gateway.resume_url.rsplit("/", 1)[0]}


@on("GET /gateway/bot")
def get_gateway_bot(rest: Rest, call: Call) -> JSON:
    left = 1000 - rest.gateway.count("identify")
    starts = {"total": 1000, "remaining": left, "reset_after": 86_400_000, "max_concurrency": 1}
    return get_gateway(rest, call) | {"shards": rest.gateway.shards, "session_start_limit": starts}  # type: ignore[no-any-return]


@on("GET /users/@me")
def get_me(rest: Rest, call: Call) -> JSON:
    return rest.world.bot.json() | {
        "verified": True,
        "mfa_enabled": False,
        "email": None,
        "flags": 0,
        "locale": "en-US",
    }


@on("GET /oauth2/applications/@me", "GET /applications/@me")
def get_application(rest: Rest, call: Call) -> JSON:
    bits = ((GUILD_PRESENCES, 13), (GUILD_MEMBERS, 15), (MESSAGE_CONTENT, 19))  # the "limited" flags of small bots
    flags = sum(1 << bit for intent, bit in bits if rest.gateway.allowed_intents & intent)
    owner = next(iter(rest.world.users.values()))
    return {
        "id": str(rest.world.application_id),
        "name": rest.world.bot.name,
        "icon": None,
        "description": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "owner": owner.json(),
        "bot": rest.world.bot.json(),
        "team": None,
        "verify_key": "0" * 64,
        "flags": flags,
        "interactions_endpoint_url": None,
        "approximate_guild_count": len(rest.world.guilds),
    }


@on("GET /users/@me/guilds")
def list_my_guilds(rest: Rest, call: Call) -> list[JSON]:
    return [g.json() for g in rest.world.guilds.values() if rest.world.bot.id in g.members]


@on("GET /users/{user_id}")
def get_user(rest: Rest, call: Call) -> JSON:
    return rest.user(call.path["user_id"]).json()


@on("POST /users/@me/channels")
def open_dm(rest: Rest, call: Call) -> JSON:
    user = rest.user(call.form["recipient_id"])
    if user is rest.world.bot:
        raise ApiError(400, 50033, "Invalid Recipient(s)")
    return rest.world.dm(user).json(rest.world.bot)


# Guilds


@on("GET /guilds/{guild_id}")
def get_guild(rest: Rest, call: Call) -> JSON:
    count = len(rest.guild(call).members)
    return rest.guild(call).json() | {"approximate_member_count": count, "approximate_presence_count": count}


@on("GET /guilds/{guild_id}/channels")
def list_channels(rest: Rest, call: Call) -> list[JSON]:
    guild, world = rest.guild(call), rest.world
    mine = [c for c in world.channels.values() if c.guild is guild and not c.is_thread]
    return [c.json(world.bot) for c in mine if world.sees(c)]


@on("GET /guilds/{guild_id}/roles")
def list_roles(rest: Rest, call: Call) -> list[JSON]:
    return [r.json() for r in rest.guild(call).roles.values()]


@on("GET /guilds/{guild_id}/members")
def list_members(rest: Rest, call: Call) -> list[JSON]:
    guild, after = rest.guild(call), int(call.query.get("after", 0))
    if not rest.gateway.allowed_intents & GUILD_MEMBERS:
        raise ApiError(403, 50001, "Missing Access")
    return [guild.members[i].json() for i in sorted(guild.members) if i > after][: call.limit(1, 1000)]


@on("GET /guilds/{guild_id}/members/{user_id}")
def get_member(rest: Rest, call: Call) -> JSON:
    user, guild = rest.user(call.path["user_id"]), rest.guild(call)
    if user.id not in guild.members:
        raise ApiError(404, 10007, "Unknown Member")
    return guild.members[user.id].json()


@on("GET /guilds/{guild_id}/threads/active")
def list_active_threads(rest: Rest, call: Call) -> JSON:
    guild, world = rest.guild(call), rest.world
    return threads_json(
        rest,
        [c for c in world.channels.values() if c.guild is guild and c.is_thread and not c.archived and world.sees(c)],
    )


# Channels and threads


@on("GET /channels/{channel_id}")
def get_channel(rest: Rest, call: Call) -> JSON:
    return rest.channel(call).json(rest.world.bot)


@on("PATCH /channels/{channel_id}")
def edit_channel(rest: Rest, call: Call) -> JSON:
    channel = rest.channel(call)
    needed = Permission.MANAGE_THREADS if channel.is_thread else Permission.MANAGE_CHANNELS
    opens = channel.is_thread and call.form == {"archived": False} and not channel.locked
    if opens:  # by anybody who may write in it
        rest.channel(call, Permission.SEND_MESSAGES_IN_THREADS)
    elif channel.owner is not rest.world.bot:
        rest.channel(call, needed)
    channel.name = call.form.get("name", channel.name)
    channel.locked = call.form.get("locked", channel.locked)
    if channel.is_thread:
        rest.world.archive(channel, archived=call.form.get("archived", channel.archived))
    else:
        rest.world.update_channel(channel)
    return channel.json(rest.world.bot)


def threads_json(rest: Rest, threads: list[Channel], *, more: bool = False) -> JSON:
    bot = rest.world.bot
    members = [t.thread_member_json(bot.id) for t in threads if bot.id in t.thread_members]
    return {"threads": [t.json(bot) for t in threads], "members": members, "has_more": more}


@on(
    "GET /channels/{channel_id}/threads/archived/public",
    "GET /channels/{channel_id}/threads/archived/private",
    "GET /channels/{channel_id}/users/@me/threads/archived/private",
)
def list_archived_threads(rest: Rest, call: Call) -> JSON:
    """Latest archived first; `before` is a time, or an id in the list of what the bot has joined."""
    joined, private = "@me" in call.route, call.route.endswith("private")
    parent = rest.channel(
        call, Permission.MANAGE_THREADS if private and not joined else Permission.READ_MESSAGE_HISTORY
    )
    bot, kind = rest.world.bot, PRIVATE_THREAD if private else PUBLIC_THREAD
    found = [c for c in rest.world.channels.values() if c.parent is parent and c.archived and c.kind == kind]
    found = sorted((c for c in found if not joined or bot.id in c.thread_members), key=lambda c: -c.archived_at)
    if before := call.query.get("before"):
        found = [c for c in found if (c.id < int(before) if before.isdigit() else iso(c.archived_at) < before)]
    limit = call.limit(50, 100)
    return threads_json(rest, found[:limit], more=len(found) > limit)


@on("POST /channels/{channel_id}/messages/{message_id}/threads")
def start_thread_on_message(rest: Rest, call: Call) -> JSON:
    message = rest.message(call, Permission.CREATE_PUBLIC_THREADS)
    if message.thread:
        raise ApiError(400, 160004, "A thread has already been created for this message")
    thread = rest.world.start_thread(message.channel, call.form["name"], rest.world.bot, on=message)
    return thread.json(rest.world.bot)


@on("POST /channels/{channel_id}/threads")
def start_thread(rest: Rest, call: Call) -> JSON:
    private = call.form.get("type", PRIVATE_THREAD) == PRIVATE_THREAD
    needed = Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS
    thread = rest.world.start_thread(rest.channel(call, needed), call.form["name"], rest.world.bot, private=private)
    return thread.json(rest.world.bot)


@on("GET /channels/{channel_id}/thread-members")
def list_thread_members(rest: Rest, call: Call) -> list[JSON]:
    thread = rest.channel(call)
    if not rest.gateway.allowed_intents & GUILD_MEMBERS:
        raise ApiError(403, 50001, "Missing Access")
    return [thread.thread_member_json(i) for i in thread.thread_members]


@on("GET /channels/{channel_id}/thread-members/{user_id}")
def get_thread_member(rest: Rest, call: Call) -> JSON:
    thread, user_id = rest.channel(call), int(call.path["user_id"])
    if user_id not in thread.thread_members:
        raise ApiError(404, 10007, "Unknown Member")
    return thread.thread_member_json(user_id)


@on("PUT /channels/{channel_id}/thread-members/{user_id}", "DELETE /channels/{channel_id}/thread-members/{user_id}")
def change_thread_member(rest: Rest, call: Call) -> None:
    who = call.path["user_id"]
    user = rest.world.bot if who == "@me" else rest.user(who)
    rest.world.change_thread_member(rest.channel(call), user, join=call.route.startswith("PUT"))


# Messages


@on("GET /channels/{channel_id}/messages")
def list_messages(rest: Rest, call: Call) -> list[JSON]:
    """Newest first, always; `after` means the next ones after it, not the last ones of all."""
    channel = rest.channel(call)
    rest.require_reading(channel)
    limit = call.limit(50, 100)
    if Permission.READ_MESSAGE_HISTORY not in rest.world.permissions(channel, rest.world.bot):
        return []
    found = channel.newest_first()
    if around := call.query.get("around"):
        older = [m for m in found if m.id <= int(around)][: limit // 2 + 1]
        newer = [m for m in found if m.id > int(around)][-(limit // 2) :]
        found = [*newer, *older]
    elif after := call.query.get("after"):
        found = [m for m in found if m.id > int(after)][-limit:]
    elif before := call.query.get("before"):
        found = [m for m in found if m.id < int(before)]
    return [rest.shown(m) for m in found[:limit]]


@on("GET /channels/{channel_id}/messages/{message_id}")
def get_message(rest: Rest, call: Call) -> JSON:
    return rest.shown(rest.message(call, Permission.READ_MESSAGE_HISTORY))


@on("POST /channels/{channel_id}/messages")
def create_message(rest: Rest, call: Call) -> JSON:
    channel, form, world = rest.channel(call), call.form, rest.world
    rest.channel(call, Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES)
    if call.files:
        rest.channel(call, Permission.ATTACH_FILES)
    if any(u.dms_closed for u in channel.recipients):
        raise ApiError(403, 50007, "Cannot send messages to this user")
    nonce = form.get("nonce")
    if nonce is not None and len(str(nonce)) > 25:
        raise bad_field("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    at, first = rest.nonces.get(str(nonce), (-math.inf, None))
    if first and form.get("enforce_nonce") and time.monotonic() - at < rest.nonce_window:
        return first.json(world.bot) | {"nonce": nonce}
    reference = form.get("message_reference")
    replied = channel.messages.get(int(reference["message_id"])) if reference else None
    if reference and replied is None and reference.get("fail_if_not_exists", True):
        raise bad_field("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
    message = rest.compose(channel, form, call.files, nonce=nonce, flags=form.get("flags", 0) & (NO_EMBEDS | SILENT))
    if nonce is not None:
        rest.nonces[str(nonce)] = (time.monotonic(), message)
    world.post(channel, message, reply_to=replied, allowed=form.get("allowed_mentions"))
    return message.json(world.bot) | ({"nonce": nonce} if nonce is not None else {})


@on("PATCH /channels/{channel_id}/messages/{message_id}")
def edit_message(rest: Rest, call: Call) -> JSON:
    message = rest.message(call)
    if message.author is not rest.world.bot:
        raise ApiError(403, 50005, "Cannot edit a message authored by another user")
    if message.channel.archived:
        raise ApiError(400, 50083, "Thread is archived")
    return rest.rewrite(message, call)


@on("DELETE /channels/{channel_id}/messages/{message_id}")
def delete_message(rest: Rest, call: Call) -> None:
    message = rest.message(call)
    if message.author is not rest.world.bot:
        rest.channel(call, Permission.MANAGE_MESSAGES)
    rest.world.delete([message])


@on("POST /channels/{channel_id}/messages/bulk-delete")
def delete_messages(rest: Rest, call: Call) -> None:
    channel = rest.channel(call, Permission.MANAGE_MESSAGES)
    if not 2 <= len(call.form["messages"]) <= 100:
        raise ApiError(
            400, 50016, "Provided too few or too many messages to delete. Must provide at least 2 and at most 100."
        )
    if found := [channel.messages[i] for i in map(int, call.form["messages"]) if i in channel.messages]:
        rest.world.delete(found)


@on("POST /channels/{channel_id}/typing")
def start_typing(rest: Rest, call: Call) -> None:
    rest.typing.append((call.at, rest.channel(call, Permission.VIEW_CHANNEL).id))


@on("GET /channels/{channel_id}/messages/{message_id}/reactions/{emoji}")
def list_reactions(rest: Rest, call: Call) -> list[JSON]:
    return [u.json() for u in rest.message(call).reactions.get(call.path["emoji"], [])]


@on(
    "PUT /channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me",
    "DELETE /channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me",
)
def change_reaction(rest: Rest, call: Call) -> None:
    message = rest.message(call, Permission.ADD_REACTIONS)
    rest.world.react(message, rest.world.bot, call.path["emoji"], add=call.route.startswith("PUT"))


# Commands and interactions


def check_command(command: JSON, where: str = "commands") -> None:
    options = command.get("options", [])
    named = 1 <= len(command.get("name", "")) <= 32 and (1 <= len(command.get("description", "?")) <= 100)
    if not named or len(options) > 25 or len(command.get("choices", [])) > 25:
        raise bad_field(where, "APPLICATION_COMMAND_INVALID", f"{command.get('name')} breaks the rules for commands.")
    for option in options:
        check_command(option, f"{where}.{command['name']}")


COMMANDS = ("/applications/{application_id}/commands", "/applications/{application_id}/guilds/{guild_id}/commands")


@on(*(f"{method} {path}" for path in COMMANDS for method in ("GET", "PUT", "POST")))
def change_commands(rest: Rest, call: Call) -> Any:
    """GET lists, PUT replaces all, POST adds one or replaces the one of that name."""
    if int(call.path["application_id"]) != rest.world.application_id:
        raise ApiError(403, 20012, "You are not authorized to perform this action on this application")
    guild_id = rest.guild(call).id if "guild_id" in call.path else None
    known = rest.world.commands.setdefault(guild_id, [])
    if call.route.startswith("GET"):
        return known
    sent = call.body if isinstance(call.body, list) else [call.form]
    ids = {"application_id": str(rest.world.application_id)} | ({"guild_id": str(guild_id)} if guild_id else {})
    defaults: JSON = {
        "type": 1,
        "description": "",
        "options": [],
        "default_member_permissions": None,
        "nsfw": False,
        **ids,
    }
    old = {c["name"]: c["id"] for c in known}
    made = []
    for command in sent:
        check_command(command)
        version = str(rest.world.ids.next())
        made.append(defaults | command | {"id": old.get(command["name"], version), "version": version})
    kept = [] if call.route.startswith("PUT") else [c for c in known if c["name"] != sent[0]["name"]]
    rest.world.commands[guild_id] = [*kept, *made]
    return made if isinstance(call.body, list) else made[0]


def respond_with(rest: Rest, interaction: Interaction, call: Call, form: JSON, flags: int = 0) -> Message:
    """The bot's answer, original or follow-up. Ephemeral ones are shown to one person and are in no history."""
    flags |= form.get("flags", 0) & EPHEMERAL
    world, user = rest.world, interaction.user.json()
    metadata = {"id": str(interaction.id), "type": interaction.kind, "user": user, "authorizing_integration_owners": {}}
    via = dict.fromkeys(("webhook_id", "application_id"), str(world.application_id)) | {
        "interaction_metadata": metadata
    }
    extra: JSON = {"flags": flags, "kind": COMMAND_ANSWER, "via": via}
    channel = interaction.channel
    if flags & LOADING:
        message = Message(world.ids.next(), channel, world.bot, "", **extra)
    else:
        message = rest.compose(channel, form, call.files, **extra)
    interaction.messages.append(message)
    return world.post(channel, message, allowed=form.get("allowed_mentions"))


@on("POST /interactions/{interaction_id}/{token}/callback")
def answer_interaction(rest: Rest, call: Call) -> JSON | None:
    interaction = rest.world.interactions.get(call.path["token"])
    if interaction is None or str(interaction.id) != call.path["interaction_id"]:
        raise ApiError(404, 10062, "Unknown interaction")
    if interaction.answer is not None:
        raise ApiError(400, 40060, "Interaction has already been acknowledged.")
    if time.monotonic() - interaction.made > rest.answer_within:
        raise ApiError(404, 10062, "Unknown interaction")
    kind, form = call.form["type"], call.form.get("data") or {}
    fitting = {2: (4, 5, 9), 3: (4, 5, 6, 7, 9), 4: (8,), 5: (4, 5, 6, 7)}[interaction.kind]
    if kind not in fitting:
        raise bad_field("type", "INTERACTION_RESPONSE_TYPE_INVALID", f"{interaction.kind} is not answered with {kind}.")
    if kind == 4:
        interaction.original = respond_with(rest, interaction, call, form)
    elif kind == 5:
        interaction.original = respond_with(rest, interaction, call, form, LOADING)
    elif kind in (6, 7):
        interaction.original = interaction.message
        if kind == 7 and interaction.message:
            inner = Call(call.at, call.route, {}, {}, form, call.files)
            rest.rewrite(interaction.message, inner)
    elif kind == 8:
        if len(form["choices"]) > 25:
            raise bad_field("choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        interaction.choices = form["choices"]
    else:
        interaction.modal = form
    interaction.answer, interaction.acknowledged = kind, time.monotonic()
    if call.query.get("with_response") not in ("1", "true"):
        return None
    body: JSON = {"interaction": {"id": str(interaction.id), "type": interaction.kind}}
    if original := interaction.original:
        loading = {"response_message_loading": bool(original.flags & LOADING)}
        body["interaction"] |= {"response_message_id": str(original.id), **loading}
        body["interaction"] |= {"response_message_ephemeral": original.ephemeral}
        body["resource"] = {"type": kind, "message": original.json(rest.world.bot)}
    return body


def answered(rest: Rest, call: Call) -> Interaction:
    interaction = rest.world.interactions.get(call.path["token"])
    if (
        interaction is None
        or interaction.answer is None
        or call.path["application_id"] != str(rest.world.application_id)
    ):
        raise ApiError(404, 10015, "Unknown Webhook")
    return interaction


@on("POST /webhooks/{application_id}/{token}")
def follow_up(rest: Rest, call: Call) -> JSON:
    """The first follow-up after a deferral takes the place of "thinking…", and is as ephemeral as that was."""
    interaction = answered(rest, call)
    if interaction.original and interaction.original.flags & LOADING:
        return rest.rewrite(interaction.original, call)
    return respond_with(rest, interaction, call, call.form).json(rest.world.bot)


@on(
    *(
        f"{method} /webhooks/{{application_id}}/{{token}}/messages/{{message_id}}"
        for method in ("GET", "PATCH", "DELETE")
    )
)
def change_answer(rest: Rest, call: Call) -> JSON | None:
    interaction, wanted = answered(rest, call), call.path["message_id"]
    mine = [interaction.original] if wanted == "@original" else [m for m in interaction.messages if str(m.id) == wanted]
    message = mine[0] if mine else None
    if message is None or message.deleted:
        raise ApiError(404, 10008, "Unknown Message")
    if call.route.startswith("PATCH"):
        return rest.rewrite(message, call)
    if call.route.startswith("DELETE"):
        rest.world.delete([message])
        return None
    return message.json(rest.world.bot)
