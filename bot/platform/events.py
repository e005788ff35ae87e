"""What happens on a chat platform, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from composer.model import Incoming, Place, Trust


@dataclass(frozen=True, slots=True)
class RoomPrivacyChanged:
    """A room is private or public since `at` (None: it is so now). `create`: store the room even if no message of it is
    stored yet."""

    room: str
    private: bool
    create: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RoomShared:
    """People of other organisations read a room too, from now on."""

    room: str


@dataclass(frozen=True, slots=True)
class MessageChanged:
    """A message was edited (`text` is the new text) or deleted (`text` is None).

    `user` is the author, in a DM the person, not the bot. `attached` are the addresses of the files that are still
    attached (None: unknown), `addressed_agents` the agents that the new text addresses (None: as before), and
    `was_addressed` whether the text before addressed one. `before` is that text, and `quoted` are words outside the new
    one, until an inbox has read them.
    """

    channel: str
    message_id: str
    place: Place
    user: str
    text: str | None
    mentions: tuple[str, ...] = ()
    edited_at: datetime | None = None
    attached: tuple[str, ...] | None = None
    addressed_agents: tuple[str, ...] | None = None
    was_addressed: bool = False
    before: str = ""
    quoted: str = ""


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """Who may (True) and may not (False) view which rooms, by room and user id, since `at` (None: since now)."""

    rooms: Mapping[str, Mapping[str, bool]]
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ThreadArchived:
    """A public thread of a room was archived at a time, or (None) is open again."""

    room: str
    thread: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class RoomDeleted:
    """A room was deleted on its platform with all of its threads, or one public thread of it, at a time (None: now). A
    private thread is a room."""

    room: str
    thread: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PersonLeft:
    """Somebody has left the workspace, or their account there was closed, at a time (None: now). Who comes back is in
    none of its private rooms."""

    user: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TrustStated:
    """What people are to the workspace, members or guests, by user id, since `at` (None: it is so now). `zones`: the
    names of their time zones, where the platform says these."""

    people: Mapping[str, Trust]
    at: datetime | None = None
    zones: Mapping[str, str] = field(default_factory=dict)


RoomEvent = RoomPrivacyChanged | RoomShared | MembersChanged | ThreadArchived | RoomDeleted | PersonLeft | TrustStated
PlatformEvent = Incoming | MessageChanged | RoomEvent
