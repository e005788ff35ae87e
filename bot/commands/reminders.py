"""remind: have oneself or a conversation reminded of something, list one's reminders, and cancel one."""

from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, require_unopened
from bot.commands.command import PREFIX, Call, Command, CommandAnswer
from composer import visibility
from composer.errors import Refused
from composer.memory.reminding import (
    MAX_REMINDER_AHEAD,
    MAX_REMINDER_CHARS,
    NewReminder,
    check_reminder,
    store_reminder,
    when_phrase,
    where_phrase,
)
from composer.model import Agent, ConversationKind, derived_id
from composer.people.own_reminders import cancel_reminder, own_reminders
from composer.repositories.reminders import Reminder
from composer.rights.table import Act
from composer.text.cleaning import clean_line, shorten
from composer.text.dates.when import Unreadable, When, read_when, why_unread
from composer.text.notices import SHORT_ID_CHARS

MAX_REMINDER_SHOWN_CHARS: Final = 80  # of a text in the list
_FORMS: Final = (
    "Write when, and then what: in 20 minutes, at 14:00, tomorrow 3 p.m., on Friday at 14:00, on 4 May, "
    "2026-05-04 09:00, every weekday at 9:30, every month on the 1st at 9:00."
)
_UNREAD: Final = {
    None: "I don't see when that is.",
    Unreadable.ABSENT: "There is no such day or hour.",
    Unreadable.OVER: "That has passed: name a time that is still to come.",
    Unreadable.FAR: "That is too far away: a reminder may be at most two years ahead.",
    Unreadable.PART: "I understand only a part of when that is, and I would rather ask than guess.",
    Unreadable.TWO_DAYS: "That may be two days: write the month as a word, or the day as 2026-02-01.",
    Unreadable.ZONE: "I don't know for sure which time zone that is: write it like Europe/London, or UTC.",
    Unreadable.REPEAT: "I can repeat it on each day, weekday, or named day of the week, and on a day of each month.",
}
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
        if not in_dm:
            require_unopened(call, access)
        new = NewReminder(
            id=derived_id("reminder", call.event_id),
            when=when,
            text=text,
            author=call.incoming.user_name,
            agent=_agent(call),
            in_dm=in_dm,
        )
        reminder = await store_reminder(tx, access, new, call.now)
    cancel = f"To cancel: {PREFIX} remind cancel {reminder.id.hex[:SHORT_ID_CHARS]}"
    said = f"I will remind {where_phrase(access, in_dm=in_dm)} {_when(call, reminder)}: {_shown(text)}"
    return CommandAnswer(" ".join(filter(None, (said, when.note, cancel))))


def _read(call: Call) -> tuple[When, str]:
    """Raises BadInput, with what can be written, for a time that is unknown, over or too far away, and for no text or
    too long a one."""
    zone = call.zone
    found = read_when(call.arguments[_WHAT], call.now, zone)
    if found is None:
        why = why_unread(call.arguments[_WHAT], call.now, zone, MAX_REMINDER_AHEAD)
        raise call.command.usage_error(f"{_UNREAD[why]} {_FORMS}")
    when, text = found[0], clean_line(found[1], MAX_REMINDER_CHARS + 1)
    if not text:
        raise call.command.usage_error(f"I don't see what to remind of. {_FORMS}")
    check_reminder(when, text, call.now, zone)
    return when, text


def _shown(text: str) -> str:
    """A reminder's text as the end of a sentence."""
    shown = shorten(text, MAX_REMINDER_SHOWN_CHARS)
    return shown if shown[-1:] in ".!?\u2026\u3002" else f"{shown}."


def _agent(call: Call) -> Agent:
    return next((agent for agent in call.agents if agent.id == call.conversation.agent_id), call.agents[0])


async def _list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        found = await own_reminders(tx, owned, call.presence)
    if not found:
        return CommandAnswer(f"You have no reminders. To add one: {PREFIX} remind me in 20 minutes stretch")
    lines = [
        f"{each.reminder.id.hex[:SHORT_ID_CHARS]}  {_when(call, each.reminder)}, in {each.place.name}: "
        + shorten(each.reminder.text, MAX_REMINDER_SHOWN_CHARS)
        for each in found
    ]
    return CommandAnswer("\n".join((*lines, f"To cancel one: {PREFIX} remind cancel ID")))


async def _cancel(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        ended = await cancel_reminder(tx, owned, call.arguments[_ID], listed_by=f"{PREFIX} remind list")
    return CommandAnswer(f"Cancelled: {shorten(ended.text, MAX_REMINDER_SHOWN_CHARS)}")


def _when(call: Call, reminder: Reminder) -> str:
    return when_phrase(reminder, call.zone)


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
    Command("remind list", (), "List your reminders", _list, "remind list", act=Act.SEE_OWN, names_rooms=True),
    Command("remind cancel", (_ID,), "Cancel one of your reminders", _cancel, "remind cancel 3f2a91bc", act=Act.REMIND),
)
