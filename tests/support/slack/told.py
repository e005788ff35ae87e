"""What Slack tells of a message, as the adapter reads it."""

from typing import Any, Final

from bot.platform.events import MessageChanged
from bot.slack.reading import BotIdentity, read_message
from composer.model import Incoming

OTHER: Final = BotIdentity("T_OTHER", "U_OTHER", "B_OTHER")  # nothing is its own


def told(channel: str, ts: str, user: str, text: str, thread: str | None = None, *, direct: bool = False) -> Incoming:
    """A message in a public channel, or in a DM."""
    read = _read({"ts": ts, "user": user, "text": text, "thread_ts": thread}, channel, direct=direct)
    assert isinstance(read, Incoming)
    return read


def edited(channel: str, ts: str, user: str, text: str, at: str, *, before: str = "") -> MessageChanged:
    """An edit in a public channel at a time (Slack's `ts`)."""
    event = {
        "subtype": "message_changed",
        "ts": at,
        "message": {"ts": ts, "user": user, "text": text},
        "previous_message": {"ts": ts, "user": user, "text": before},
    }
    read = _read(event, channel)
    assert isinstance(read, MessageChanged)
    return read


def deleted(channel: str, ts: str, user: str, at: str, *, direct: bool = False) -> MessageChanged:
    """A deletion at a time (Slack's `ts`)."""
    event = {"subtype": "message_deleted", "ts": at, "deleted_ts": ts, "previous_message": {"ts": ts, "user": user}}
    read = _read(event, channel, direct=direct)
    assert isinstance(read, MessageChanged)
    return read


def _read(event: dict[str, Any], channel: str, *, direct: bool = False) -> object:
    return read_message(event, channel, "im" if direct else "channel", OTHER)
