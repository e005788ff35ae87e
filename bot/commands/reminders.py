"""remind: have oneself or a conversation reminded of something, list one's reminders, and cancel one."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import PREFIX, Call, Command, CommandAnswer
from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.model import Agent, ConversationKind, Place, Visibility, derived_id, dm_namespace
from composer.people.places import named, room_ids
from composer.repositories.conversations import NewConversation
from composer.repositories.database import Transaction
from composer.repositories.reminders import Reminder
from composer.rights import Act
from composer.text.cleaning import clean_line, shorten
from composer.text.when import Repeat, When, read_when
from composer.visibility import AccessContext
from composer.workspace import conversation_id

MAX_OPEN: Final = 50  # reminders of one person
MAX_TEXT_CHARS: Final = 1_000
MAX_AHEAD: Final = timedelta(days=2 * 366)
MAX_SHOWN_CHARS: Final = 80  # of a text in the list
ID_CHARS: Final = 8  # of an id in the list
_FORMS: Final = (
    "Write when, and then what: in 20 minutes, at 14:00, tomorrow 9:00, on Friday at 14:00, on 4 May, "
    "2026-05-04 09:00, every weekday at 9:30."
)
_WHAT: Final = parameters.text(
    "reminder",
    "when (in 20 minutes; tomorrow 9:00; on Friday at 14:00; 2026-05-04 09:00; every weekday at 9:30), and what",
    label="WHEN WHAT",
)
_ID: Final = parameters.word("id", f"the id of the reminder, as {PREFIX} remind list shows it", parameters.item_id)


async def _remind_me(call: Call) -> CommandAnswer:
    return await _add(call, in_dm=True)


async def _remind_here(call: Call) -> CommandAnswer:
    if not call.incoming.may_post:
        raise Refused(f"I can't post here: add me to this channel first, or use {PREFIX} remind me.")
    return await _add(call, in_dm=call.conversation.kind is ConversationKind.DM)


async def _add(call: Call, *, in_dm: bool) -> CommandAnswer:
    when, text = _read(call)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        count, opted_out = await tx.reminders.standing(access.linked_users(call.user))
        if opted_out:
            raise Refused(
                f"You have opted out of being stored, so I can't keep a reminder. To change that: {PREFIX} opt-in"
            )
        if count >= MAX_OPEN:
            raise Refused(f"You have {count} reminders, and there may be {MAX_OPEN}. Cancel one: {PREFIX} remind list")
        place = await _own_dm(tx, call, access) if in_dm else (call.conversation.id, access.conversation.namespace)
        reminder = Reminder(
            id=derived_id("reminder", call.event_id),
            user_id=call.user,
            conversation_id=place[0],
            namespace=place[1],
            visibility=Visibility.PRIVATE if in_dm else call.conversation.visibility,
            author=call.incoming.user_name,
            text=text,
            made_at=call.now,
            due_at=when.at,
            repeats=None if when.repeat is None else str(when.repeat),
        )
        await tx.reminders.add(reminder)
    where = "you, in our DM," if in_dm else _here(call)
    cancel = f"To cancel: {PREFIX} remind cancel {reminder.id.hex[:ID_CHARS]}"
    return CommandAnswer(f"I will remind {where} {_when(call, reminder)}. {cancel}")


def _here(call: Call) -> str:
    room = call.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    return f"#{call.conversation.name}, in your name," if room else "you here"


def _read(call: Call) -> tuple[When, str]:
    """Raises BadInput, with what can be written, for a time that is unknown, over or too far away, and for no text or
    too long a one."""
    found = read_when(call.arguments[_WHAT], call.now, call.app.settings.zone_of(call.workspace.tenant))
    if found is None:
        raise call.command.usage_error(f"I don't see when that is. {_FORMS}")
    when, text = found[0], clean_line(found[1], MAX_TEXT_CHARS + 1)
    if not text:
        raise call.command.usage_error(f"I don't see what to remind of. {_FORMS}")
    if len(text) > MAX_TEXT_CHARS:
        raise BadInput(f"The text is too long; the limit is {MAX_TEXT_CHARS:,} characters: shorten it.")
    if when.at <= call.now:
        raise BadInput(f"{_local(call, when.at)} is over: name a time that is still to come.")
    if when.at > call.now + MAX_AHEAD:
        raise BadInput(f"{_local(call, when.at)} is more than two years away: name an earlier time.")
    return when, text


async def _own_dm(tx: Transaction, call: Call, access: AccessContext) -> tuple[uuid.UUID, str]:
    """The id and namespace of the caller's DM with the agent of this conversation, else the first. It may be new.
    Raises Refused where nothing may be written outside an isolated project."""
    agent = _agent(call)
    id = conversation_id(call.workspace, Place(ConversationKind.DM, agent.slug), call.user, agent.id)
    if id != call.conversation.id:
        visibility.require_way_out(access, f"Use {PREFIX} remind here.")
    namespace = dm_namespace(call.user, agent.id)
    new = NewConversation(id, ConversationKind.DM, agent.slug, namespace, user_id=call.user, agent_id=agent.id)
    await tx.conversations.ensure(call.workspace.platform, call.workspace.name, [new], call.now)
    return id, namespace


def _agent(call: Call) -> Agent:
    return next((agent for agent in call.agents if agent.id == call.conversation.agent_id), call.agents[0])


async def _list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        reminders = await tx.reminders.open(owned)
        namespaces = {reminder.namespace for reminder in reminders}
        places = await tx.own_data.places(owned, room_ids(namespaces))
        projects = await tx.own_data.projects(owned)
    if not reminders:
        return CommandAnswer(f"You have no reminders. To add one: {PREFIX} remind me in 20 minutes stretch")
    names = {namespace: named(namespace, places, projects, owned.users).name for namespace in namespaces}
    lines = [
        f"{each.id.hex[:ID_CHARS]}  {_when(call, each)}, in {names[each.namespace]}: "
        + shorten(each.text, MAX_SHOWN_CHARS)
        for each in reminders
    ]
    return CommandAnswer("\n".join((*lines, f"To cancel one: {PREFIX} remind cancel ID")))


async def _cancel(call: Call) -> CommandAnswer:
    beginning = call.arguments[_ID]
    async with call.changing() as tx:
        found = await tx.reminders.open(visibility.owned_by(await access_context(tx, call)), beginning)
        if not found:
            raise NotFound(
                f"There is no reminder '{beginning}' of yours; {PREFIX} remind list shows those that you have."
            )
        if len(found) > 1:
            raise BadInput(f"Several of yours begin with '{beginning}'; write more of the id: {found[0].id.hex}")
        await tx.reminders.end([found[0].id])
    return CommandAnswer(f"Cancelled: {shorten(found[0].text, MAX_SHOWN_CHARS)}")


def _when(call: Call, reminder: Reminder) -> str:
    """ "on Mon 2026-05-04 at 09:00 (Europe/Berlin)", and how it repeats."""
    repeats = "" if reminder.repeats is None else f", then {Repeat.of(reminder.repeats).words}"
    return f"on {_local(call, reminder.due_at)}{repeats}"


def _local(call: Call, at: datetime) -> str:
    zone = call.app.settings.zone_of(call.workspace.tenant)
    return f"{at.astimezone(zone):%a %Y-%m-%d at %H:%M} ({zone.key})"


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "remind me",
        (_WHAT,),
        "Get reminded of something, in your DM with me",
        _remind_me,
        "remind me tomorrow 9:00 call the printer",
        act=Act.REMIND,
    ),
    Command(
        "remind here",
        (_WHAT,),
        "Have this conversation reminded of something, in your name",
        _remind_here,
        "remind here every weekday at 9:30 stand-up",
        act=Act.REMIND,
    ),
    Command("remind list", (), "List your reminders", _list, "remind list", act=Act.SEE_OWN),
    Command("remind cancel", (_ID,), "Cancel one of your reminders", _cancel, "remind cancel 3f2a91bc", act=Act.REMIND),
)
