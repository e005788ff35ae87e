"""Ask for a reminder: what a time must be, how many somebody may have, and where it is posted. The command `remind` and
the tool of the same name store reminders by it; composer/turn/scheduled/reminders.py posts them."""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final

from composer import visibility
from composer.errors import BadInput, Refused
from composer.model import (
    API,
    EVERY_VENDOR,
    ROOM_KINDS,
    Agent,
    Conversation,
    ConversationKind,
    Visibility,
    dm_id,
    dm_namespace,
)
from composer.repositories.database import Transaction
from composer.repositories.reminders import Reminder
from composer.text.dates.repeats import Repeat
from composer.text.dates.when import When
from composer.visibility import AccessContext

MAX_OPEN: Final = 50  # reminders of one person
MAX_REMINDER_CHARS: Final = 1_000
MAX_REMINDER_AHEAD: Final = timedelta(days=2 * 366)
YOUR_TIME: Final = "your time"  # a person's own zone, where others may read along


@dataclass(frozen=True, slots=True)
class NewReminder:
    """A reminder to store: its id, what to remind of and when, the name of who asks, and the agent that posts it.
    `in_dm`: in the DM of who asks with that agent; else in the conversation where they ask."""

    id: uuid.UUID
    when: When
    text: str
    author: str
    agent: Agent
    in_dm: bool


def check_reminder(when: When, text: str, now: datetime, zone: tzinfo, called: str = "") -> None:
    """Raises BadInput for a text that is too long, and for a time that is over or too far away. `called`: what the zone
    is called (default: its name)."""
    if len(text) > MAX_REMINDER_CHARS:
        raise BadInput(f"The text is too long; the limit is {MAX_REMINDER_CHARS:,} characters: shorten it.")
    if when.at <= now:
        raise BadInput(f"{local_time(when.at, zone, called)} is over: name a time that is still to come.")
    if when.at > now + MAX_REMINDER_AHEAD:
        raise BadInput(f"{local_time(when.at, zone, called)} is more than two years away: name an earlier time.")


async def store_reminder(tx: Transaction, access: AccessContext, new: NewReminder, now: datetime) -> Reminder:
    """Store a reminder of the asker. The same one is stored once. Raises Refused for somebody who has opted out or has
    too many, and for a DM outside an isolated project."""
    users = access.linked_users(access.asker)
    await tx.people.serialize(users)
    if await tx.people.has_opted_out(users):
        raise Refused("You have opted out of being stored, so I can't keep a reminder. To change that: /nexus opt-in")
    count = len(await tx.reminders.open(visibility.owned_by(access)))
    if count >= MAX_OPEN:
        raise Refused(f"You have {count} reminders, and there may be {MAX_OPEN}. Cancel one: /nexus remind list")
    here, repeat = access.conversation, new.when.repeat
    if repeat is not None and access.zone is not None and not new.in_dm and here.kind in ROOM_KINDS:
        repeat = replace(repeat, zone=repeat.zone or str(access.zone))  # a room does not move with the person
    place = await _own_dm(tx, access, new.agent, now) if new.in_dm else (here.id, here.namespace)
    reminder = Reminder(
        id=new.id,
        user_id=access.asker,
        conversation_id=place[0],
        namespace=place[1],
        visibility=Visibility.PRIVATE if new.in_dm else here.visibility,
        author=new.author,
        text=new.text,
        made_at=now,
        due_at=new.when.at,
        repeats=None if repeat is None else str(repeat),
    )
    await tx.reminders.add(reminder)
    return reminder


async def _own_dm(tx: Transaction, access: AccessContext, agent: Agent, now: datetime) -> tuple[uuid.UUID, str]:
    """The id and namespace of the asker's DM with an agent. It may be new. Raises Refused where nothing may be written
    outside an isolated project."""
    here = access.conversation
    dm = new_dm(here.tenant_id, access.asker, agent)
    if dm.id != here.id:
        visibility.require_way_out(access, "Use /nexus remind here.")
    platform, workspace = await tx.conversations.workspace_of(here.id)
    if platform == API:  # nobody has a DM there
        platform, workspace = await tx.people.home(access.asker) or (platform, workspace)
    await tx.conversations.ensure(platform, workspace, [dm], now)
    return dm.id, dm.namespace


async def follow_zone(tx: Transaction, tenant: uuid.UUID, user: uuid.UUID, now: datetime, default: tzinfo) -> None:
    """Have the reminders of a user that repeat come at the same hours of the zone that is theirs now. Those of a room,
    and those whose zone was named, stay. `default` is the tenant's zone."""
    access = await tx.people.entry_access(tenant, user, EVERY_VENDOR, frozenset())
    zone = default if access is None or access.zone is None else access.zone
    for reminder in await tx.reminders.open(visibility.owned_by_user(tenant, user, ())):
        repeat = None if reminder.repeats is None else Repeat.of(reminder.repeats)
        in_room = reminder.visibility is not Visibility.PRIVATE
        if repeat is not None and not (repeat.zone or in_room) and reminder.due_at > now:
            await tx.reminders.move(reminder.id, repeat.after(now, zone))


def new_dm(tenant: uuid.UUID, user: uuid.UUID, agent: Agent) -> Conversation:
    """The DM of a person with an agent, to be made unless it is there."""
    return Conversation(
        dm_id(tenant, user, agent.id),
        tenant,
        ConversationKind.DM,
        agent.slug,
        dm_namespace(user, agent.id),
        user_id=user,
        agent_id=agent.id,
    )


def where_phrase(access: AccessContext, *, in_dm: bool) -> str:
    """Who is reminded, and where: "you, in our DM,"."""
    if in_dm:
        return "you, in our DM,"
    room = access.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    return f"#{access.conversation.name}, in your name," if room else "you here"


def when_phrase(reminder: Reminder, zone: tzinfo, called: str = "") -> str:
    """ "on Mon 2026-05-04 at 09:00 (Europe/Berlin)", and how it repeats. `called` is as in `check_reminder`."""
    if reminder.repeats is None:
        return f"on {local_time(reminder.due_at, zone, called)}"
    repeat = Repeat.of(reminder.repeats)
    if repeat.zone == str(zone):  # which is said before
        repeat = replace(repeat, zone="")
    return f"on {local_time(reminder.due_at, zone, called)}, then {repeat.words}"


def local_time(at: datetime, zone: tzinfo, called: str = "") -> str:
    """A time for people: "Mon 2026-05-04 at 09:00 (Europe/Berlin)". `called` is as in `check_reminder`."""
    return f"{at.astimezone(zone):%a %Y-%m-%d at %H:%M} ({called or zone})"
