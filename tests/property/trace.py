"""The events of a world, as plain values that both the product and the reference read."""

import re
from dataclasses import dataclass
from typing import Final

MAIN: Final = "main"
OTHER: Final = "other"
CANARY: Final = re.compile(r"zx\d+q")
TERMINAL: Final = "console"
# Whose account is on which platform, in one workspace each, and which rooms are there; all others are in the terminal.
ELSEWHERE: Final = {"uma": "slack", "vic": "slack", "gus": "slack", "zed": "discord", "xan": "slack", "rob": "slack"}
ROOMS_ELSEWHERE: Final = {"lobby": "slack", "den": "slack"}  # Discord has a den too, in which nobody writes
ROOM_ADMINS_ELSEWHERE: Final = ("uma", "gus")  # as the platform says
UNTRUSTED: Final = {"gus": "guest", "rob": "tool"}


def canaries(text: str) -> frozenset[str]:
    """Return the unique words by which a text is found wherever it appears."""
    return frozenset(CANARY.findall(text))


def mentioned(text: str) -> tuple[str, ...]:
    """Return the names that a text mentions with @, in order."""
    return tuple(dict.fromkeys(w.lstrip("@").rstrip(".,:;!?)").lower() for w in text.split() if w.startswith("@")))


def platform_of(user: str) -> str:
    """Return the platform that an account is on."""
    return ELSEWHERE.get(user, TERMINAL)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place: a room, a thread of one, the speaker's DM with an agent (`name`), or a session of theirs."""

    kind: str
    name: str
    thread: str | None = None
    agent: str = "nexus"

    def __str__(self) -> str:
        thread = f"/{self.thread}" if self.thread else ""
        return f"{self.kind}:{self.name}{thread}" + (f"@{self.agent}" if self.kind == "session" else "")

    def may_be_named_by(self, user: str) -> bool:
        """Whether there is such a place where an account is: rooms are of one platform, sessions of the terminal."""
        if self.kind in ("room", "thread"):
            return ROOMS_ELSEWHERE.get(self.name, TERMINAL) == platform_of(user)
        return self.kind == "dm" or platform_of(user) == TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event. `n` identifies it and everything made from it; `at` is in seconds from the start."""

    n: int
    at: int
    user: str = ""
    tenant: str = MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(Event):
    """A message. `private` is what the platform reports of the room; `answer` whether mentioned agents answer
    (not to imported history); `again` delivers the message of an earlier event once more.
    `shared`: whether people of other organisations read the room, as the platform reports."""

    spot: Spot
    text: str
    private: bool | None = None
    answer: bool = True
    attachment: str = ""
    again: int | None = None
    shared: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Import(Say):
    """A message of a room comes with a file of history, in the terminal. `into` is the room that takes what was said in
    all others, if any; `closed`: a new room of which the file says nothing is private."""

    into: str = ""
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember(Event):
    """/nexus remember; `scope` is here, everywhere, project or global."""

    spot: Spot
    text: str
    scope: str = "here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFact(Event):
    """/nexus fact set."""

    spot: Spot
    key: str
    text: str
    scope: str = "here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin(Event):
    """/nexus landmark add."""

    spot: Spot
    text: str
    scope: str = "here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget(Event):
    """/nexus forget: `words`, or `message` (an event's number), or whole (here, everything)."""

    spot: Spot
    words: str = ""
    message: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProject(Event):
    """/nexus project create."""

    spot: Spot
    slug: str
    isolated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Event):
    """/nexus project assign."""

    spot: Spot
    slug: str
    pool: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unassign(Event):
    """/nexus project unassign."""

    spot: Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Event):
    """/nexus project member add or remove."""

    spot: Spot
    slug: str
    who: str
    role: str | None  # None removes


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept(Event):
    """/nexus project accept, or decline."""

    spot: Spot
    slug: str
    declined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(Event):
    """/nexus project leave."""

    spot: Spot
    slug: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move(Event):
    """The platform reports that someone joined or left a room."""

    room: str
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUnheard(Event):
    """Someone joins or leaves a room of their platform, and Nexus does not hear of it."""

    room: str
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage(Event):
    """The platform of `user` does not say any more who is in its rooms (it `fails`, or says nothing), or does again."""

    begins: bool
    fails: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(Event):
    """A message is edited on its platform."""

    target: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Event):
    """A message is deleted on its platform."""

    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin(Event):
    """A person becomes an admin of the tenant, or no longer is one."""

    admin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Opt(Event):
    """/nexus opt-out or opt-in."""

    spot: Spot
    out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRooms(Event):
    """/nexus rooms on or off, in a DM."""

    spot: Spot
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Event):
    """/nexus link with the code that the account `other` got in its DM with the same agent. `late`: the code has
    expired; without `confirmed` nothing is done yet."""

    spot: Spot
    other: str
    late: bool = False
    confirmed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlink(Event):
    """/nexus unlink."""

    spot: Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Event):
    """/nexus memory approve or reject: what waits of the event `target`, with the word `canary` in it."""

    spot: Spot
    target: int
    canary: str
    approve: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Event):
    """/nexus memory on, mentions or off: which messages of a room are stored."""

    spot: Spot
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseRoom(Event):
    """/nexus erase room."""

    spot: Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseUser(Event):
    """/nexus erase user."""

    spot: Spot
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseProject(Event):
    """/nexus erase project."""

    spot: Spot
    slug: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Event):
    """/nexus share: file the memory, fact or landmark of the event `target` here, everywhere, for the project or
    globally. `written` is when that was, in seconds; nothing is shared twice."""

    spot: Spot
    target: int
    written: int
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise(Event):
    """A summary of a conversation, from messages and lower summaries (numbers of events)."""

    spot: Spot
    tier: str
    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep(Event):
    """A memory entry as a tool or the dashboard writes it. `where` is here (with `spot`), profile, global or
    project:SLUG; `vendors` may read it; it expires after `lasts` seconds."""

    where: str
    text: str
    visibility: str = "private"
    vendors: tuple[str, ...] = ("*",)
    spot: Spot | None = None
    lasts: int | None = None


Trace = tuple[Event, ...]


def message_id(n: int) -> str:
    """Return the platform's id of the message of an event."""
    return f"m{n}"
