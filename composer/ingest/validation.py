"""Check and clean what people send before it is used: one message, one command. Pure.

Every text is cleaned by composer/text/cleaning.py. A message that a platform has delivered must not be lost, so what
can't be stored of it is replaced; a command is refused instead, so that nothing else is done than what was meant.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from composer.errors import BadInput
from composer.memory.remember import UNSTORABLE
from composer.model import Agent, Attachment, Incoming, Place
from composer.text.cleaning import MAX_NAME_CHARS, REPLACEMENT, clean_line, clean_text, is_storable
from composer.text.moments import moment
from composer.text.names import NOBODY, app_name, person_name

MAX_MESSAGE_CHARS: Final = 2_000_000
MAX_COMMAND_CHARS: Final = 200_000


def validate_message(incoming: Incoming, agents: Sequence[Agent]) -> Incoming:
    """The same message as it is stored: its texts and names cleaned, its time in UTC.

    Raises BadInput, with one sentence, for a time without a zone or outside the years 1970 to 2200, a message without
    text and files, a text that is too long, or an id that is empty, too long or not storable.
    """
    at = moment(incoming.at)
    size = len(incoming.text)
    if size > MAX_MESSAGE_CHARS:
        raise BadInput(
            f"The message has {size:,} characters; the limit is {MAX_MESSAGE_CHARS:,}: split it, or attach a file."
        )
    text = message_text(incoming.text)
    if not text.strip() and not incoming.attachments:
        raise BadInput("The message is empty: write some text, or attach a file.")
    attachments = tuple(clean_attachment(attachment) for attachment in incoming.attachments)
    return replace(_with_clean_names(incoming, agents), text=text, at=at, attachments=attachments)


def validate_command(incoming: Incoming, agents: Sequence[Agent]) -> Incoming:
    """The same command with its text and names cleaned. Raises BadInput as `validate_message`, and for a text that
    can't be stored as it is."""
    if not is_storable(incoming.text):
        raise BadInput(f"The command {UNSTORABLE}")
    if len(incoming.text) > MAX_COMMAND_CHARS:
        raise BadInput(
            f"The command has {len(incoming.text):,} characters; the limit is {MAX_COMMAND_CHARS:,}: shorten it."
        )
    return replace(_with_clean_names(incoming, agents), text=clean_text(incoming.text))


def message_text(text: str) -> str:
    """A message's text as it is stored: cleaned. One of nothing but hidden characters is stored as U+FFFD."""
    cleaned = clean_text(text)
    return REPLACEMENT if text.strip() and not cleaned.strip() else cleaned


def author_name(name: str, user: str, agents: Sequence[Agent], *, by_tool: bool = False) -> str:
    """The name that the words of a person or an app are stored under: their own, else their id on the platform."""
    taken = [word for agent in agents for word in (agent.name, agent.slug)]
    own = next(filter(clean_line, (name, user)), NOBODY)
    return app_name(own, taken) if by_tool else person_name(own, taken)


def clean_mentions(mentions: Sequence[str]) -> tuple[str, ...]:
    """The ids that somebody can have: a typed mention may be anything."""
    return tuple(id for id in mentions if _is_id(id))


def clean_attachment(attachment: Attachment) -> Attachment:
    """An attachment with its name, type and text cleaned. Its address is an id and only made storable."""
    return replace(
        attachment,
        name=clean_line(attachment.name),
        type=clean_line(attachment.type),
        text=clean_text(attachment.text),
        note=clean_line(attachment.note),
        address=attachment.address if is_storable(attachment.address) else "",
    )


def _with_clean_names(incoming: Incoming, agents: Sequence[Agent]) -> Incoming:
    """Check the ids, and clean the names. Ids that a message only refers to are left out when they can't exist."""
    place = incoming.place
    for what, id in (("room, agent or session", place.name), ("user", incoming.user), ("id", incoming.id)):
        _check_id(what, id)
    if place.thread is not None:
        _check_id("thread", place.thread)
    reply_to = incoming.reply_to
    name = author_name(incoming.user_name, incoming.user, agents, by_tool=incoming.by_tool)
    return replace(
        incoming,
        place=_titled(place),
        user_name=name,
        mentions=clean_mentions(incoming.mentions),
        reply_to=reply_to if reply_to is not None and _is_id(reply_to) else None,
    )


def _titled(place: Place) -> Place:
    return place if place.title is None else replace(place, title=clean_line(place.title) or None)


def _is_id(id: str) -> bool:
    return bool(id.strip()) and len(id) <= MAX_NAME_CHARS and is_storable(id)


def _check_id(what: str, id: str) -> None:
    if not _is_id(id):
        raise BadInput(f"The name of the {what} must have 1 to {MAX_NAME_CHARS} ordinary characters.")
