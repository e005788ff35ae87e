"""Check and clean a message before it is stored. Pure."""

import re
from dataclasses import replace
from datetime import UTC
from typing import Final

from composer.errors import BadInput
from composer.model import Attachment, Incoming

MAX_MESSAGE_CHARS: Final = 2_000_000
MAX_NAME_CHARS: Final = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


def validate_message(incoming: Incoming) -> Incoming:
    """The same message as it can be stored: its texts made storable, its time in UTC.

    Raises BadInput, with one sentence, for a time without a zone, a message without text and files, a text that is too
    long, or a name that is empty, too long or not storable.
    """
    if incoming.at.tzinfo is None:
        raise BadInput("The time of a message needs a time zone, for example 2026-05-04T09:00:00Z.")
    text = storable_text(incoming.text)
    if not text.strip() and not incoming.attachments:
        raise BadInput("The message is empty: write some text, or attach a file.")
    if len(text) > MAX_MESSAGE_CHARS:
        raise BadInput(
            f"The message has {len(text):,} characters; the limit is {MAX_MESSAGE_CHARS:,}: split it, or attach a file."
        )
    for what, name in (("room, agent or session", incoming.place.name), ("user", incoming.user), ("id", incoming.id)):
        if not name.strip() or len(name) > MAX_NAME_CHARS or storable_text(name) != name:
            raise BadInput(f"The name of the {what} must have 1 to {MAX_NAME_CHARS} ordinary characters.")
    attachments = tuple(_storable_attachment(attachment) for attachment in incoming.attachments)
    return replace(incoming, text=text, at=incoming.at.astimezone(UTC), attachments=attachments)


def storable_text(text: str) -> str:
    """A text with U+FFFD in place of what a Postgres text column refuses: NUL and lone surrogates."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _SURROGATE.sub("\ufffd", text)
    return text


def _storable_attachment(attachment: Attachment) -> Attachment:
    return replace(
        attachment,
        name=storable_text(attachment.name)[:MAX_NAME_CHARS],
        type=storable_text(attachment.type)[:MAX_NAME_CHARS],
        text=storable_text(attachment.text),
        address=storable_text(attachment.address),
    )
