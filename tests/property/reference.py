"""Who may read what (docs/architecture.md), in a second, simple and slow implementation.

It follows a world's trace event by event and shares nothing with the product: no namespaces, no index, no
cache. For a viewer it returns what may be shown, what must be shown, and whether an event is accepted.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import Final, Self

from tests.property.trace import (
    ROOM_ADMINS_ELSEWHERE,
    TERMINAL,
    UNTRUSTED,
    Accept,
    Admin,
    Assign,
    Delete,
    Edit,
    EraseProject,
    EraseRoom,
    EraseUser,
    Event,
    Forget,
    Import,
    Keep,
    Leave,
    Link,
    Member,
    Move,
    MoveUnheard,
    NewProject,
    Opt,
    Outage,
    Pin,
    ReadRooms,
    Record,
    Remember,
    Review,
    Say,
    SetFact,
    Share,
    Spot,
    Summarise,
    Trace,
    Unassign,
    Unlink,
    canaries,
    mentioned,
    platform_of,
)

AGENTS: Final = ("nexus", "scout")
MAX_PARTICIPANTS: Final = 16
VIEW_SIZES: Final = (40, 59)  # messages in the view, at least and at most; in a quiet conversation the latest ones
BUSY_PEOPLE: Final = 6  # people who make a room busy
BUSY_LATEST: Final = 30  # the latest messages that the view of a busy room always has, at least
BUSY_RELATED: Final = 10  # and this many related ones from before them,
BUSY_SPAN: Final = 199  # out of this many latest messages
NAMELESS: Final = "someone"  # stands where an erased name stood
MAX_PROPOSED: Final = 5  # unconfirmed landmarks that are shown
PROPOSAL_LIFETIME: Final = 14 * 24 * 60 * 60  # seconds
ROLES: Final = ("admin", "write", "read")  # the best first
INVITE_LIFETIME: Final = 14 * 86_400  # seconds
DECLINED_LIFETIME: Final = 30 * 86_400
FOLLOW_UP: Final = 60 * 60  # seconds for which an answer in a thread may be followed up without a mention
MINUTE: Final = 60  # for which an answer of a platform is used again
TIERS: Final = {"week": 4, "day": 7, "session": 2, "thread": 2}

_DECIDED: Final = re.compile(
    r"We decided that the \w+ is zx\d+q"
)  # the sentence with which tests/property/worlds.py states a decision

# The namespace of an entry: ("room", name, generation), ("dm", user, agent), ("session", user, agent, name),
# ("profile", user), ("project", slug), ("global",).
Home = tuple[str, ...]
# A conversation: ("room", name), ("thread", room, thread), ("dm", user, agent), ("session", user, agent, name).
ConversationKey = tuple[str, ...]


@dataclass(slots=True)
class Entry:
    """A message, reply, memory, fact, landmark or summary. `n` is its event; for a reply, that of its question."""

    n: int
    kind: str  # message, reply, memory, fact, landmark, summary
    home: Home
    visibility: str
    owner: str | None
    text: str
    at: int
    conversation_key: ConversationKey = ()
    key: str = ""
    attachment: str = ""
    vendors: tuple[str, ...] = ("*",)
    expires: int | None = None
    sources: tuple[int, ...] = ()
    alive: bool = True
    replaced_by: "Entry | None" = None  # the fact that has superseded this one, until that is erased
    closed_for_good: bool = False  # what superseded this fact was filed elsewhere since
    proposed: bool = False  # a landmark that nobody has confirmed
    pending: bool = False  # of a guest or a tool: until somebody approves it, nobody reads it
    agent: str = ""
    repeated_canaries: frozenset[str] = frozenset()  # canaries that a reply may repeat and that were not erased since
    first_canaries: frozenset[str] = frozenset()  # the same, when the reply was written
    blanked: tuple[str, ...] = ()  # people whom a message mentions under an erased name
    view_digest: str = ""  # a digest of everything that the reply could be made from

    @property
    def closed(self) -> bool:
        """Whether another value has superseded this fact, and still does."""
        return self.closed_for_good or self.replaced_by is not None

    @property
    def canaries(self) -> frozenset[str]:
        return canaries(self.text) | canaries(self.attachment) | self.repeated_canaries


@dataclass(slots=True)
class Room:
    name: str
    private: bool
    generation: int = 0
    members: dict[str, bool] = field(default_factory=dict)  # False: has left
    admins: set[str] = field(default_factory=set)
    project: str | None = None
    pooled: bool = False
    recording: str = "on"  # on, mentions or off
    platform: str = TERMINAL
    outsiders: bool = False  # people of other organisations read it
    left_at: dict[str, int] = field(default_factory=dict)  # of those who have left, as Nexus was told

    @property
    def home(self) -> Home:
        return ("room", self.name, str(self.generation))


@dataclass(slots=True)
class PersonalConversation:
    """A DM or a session, which belongs to one person."""

    conversation_key: ConversationKey
    project: str | None = None
    pooled: bool = False  # a session that was put there in this membership

    @property
    def owner(self) -> str:
        return self.conversation_key[1]


@dataclass(frozen=True, slots=True)
class Invitation:
    role: str
    by: str
    until: int
    raised: bool = False  # an earlier one, which they may have been shown, offered less
    declined: bool = False

    def is_open(self, at: int) -> bool:
        return at < self.until

    def after(self, earlier: Self | None, at: int) -> Self:
        """The same in place of an earlier one, which may have ended lately."""
        if earlier is None or earlier.until + INVITE_LIFETIME <= at:
            return self
        more = ROLES.index(self.role) < ROLES.index(earlier.role)
        return replace(self, raised=earlier.raised or more)


@dataclass(slots=True)
class Project:
    key: str  # the slug, of the first project that has it; no name for one (in a name an id follows the colon)
    slug: str
    isolated: bool
    members: dict[str, str] = field(default_factory=dict)
    invited: dict[str, Invitation] = field(default_factory=dict)  # by account
    made_by: str = ""


@dataclass(slots=True)
class Tenant:
    rooms: dict[str, Room] = field(default_factory=dict)
    threads: set[ConversationKey] = field(default_factory=set)
    personal_conversations: dict[ConversationKey, PersonalConversation] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)
    admins: set[str] = field(default_factory=set)
    opted_out: set[str] = field(default_factory=set)
    read_rooms: set[str] = field(default_factory=set)  # whose DMs read the rooms that they are in
    nameless: set[str] = field(default_factory=set)  # who had everything erased and has not been heard since
    entries: list[Entry] = field(default_factory=list)
    linked: dict[str, frozenset[str]] = field(default_factory=dict)  # all accounts of a person, by each of them
    inside: set[tuple[str, str]] = field(
        default_factory=set
    )  # (account, room): who is in a room, as its platform knows
    outages: set[str] = field(default_factory=set)  # platforms that do not say it
    answers: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)  # the latest one, by account

    def accounts(self, user: str) -> frozenset[str]:
        """Return the accounts of the person behind one."""
        return self.linked.get(user, frozenset({user}))

    def role(self, project: Project, user: str) -> str | None:
        """Return the best role that a person was given, with any account."""
        given = {project.members.get(account) for account in self.accounts(user)}
        return next((role for role in ROLES if role in given), None)

    def manages(self, project: Project, user: str) -> bool:
        """Say whether a person may do what an admin may: who is one, and every member where there is none."""
        role = self.role(project, user)
        return role == "admin" or (role is not None and "admin" not in project.members.values())

    def invites(self, project: Project, user: str, at: int) -> dict[str, Invitation]:
        """Return the open invitations of a person to a project, by account."""
        accounts = self.accounts(user)
        return {who: each for who, each in project.invited.items() if who in accounts and each.is_open(at)}


@dataclass(frozen=True, slots=True)
class View:
    """What a viewer may be shown in a conversation. `sure` must be shown, `possible` may be: they differ only
    where the view of a long conversation can begin at several messages."""

    conversation_key: ConversationKey
    home: Home
    private: bool
    project: str | None
    isolated: bool
    log: tuple[Entry, ...]
    people: tuple[str, ...]
    nameless: tuple[str, ...]  # of the people and the authors, those whose names are erased
    sure: tuple[Entry, ...]
    possible: tuple[Entry, ...]
    summaries: tuple[Entry, ...]

    @property
    def canaries(self) -> frozenset[str]:
        """Return every canary that a prompt for this viewer may contain."""
        return frozenset().union(*(entry.canaries for entry in (*self.possible, *self.log)))

    def fingerprint(self) -> tuple[object, ...]:
        """Return a comparable form: two worlds with equal fingerprints are indistinguishable to this viewer."""
        return (
            self.conversation_key,
            self.private,
            self.project,
            self.isolated,
            self.people,
            self.nameless,
            tuple(_comparable(entry) for entry in self.log),
            tuple(sorted((_comparable(entry) for entry in self.possible), key=repr)),
            tuple(_comparable(entry) for entry in self.summaries),
        )


def _comparable(entry: Entry) -> tuple[object, ...]:
    made_of = entry.sources if entry.kind == "summary" else ()
    return (
        entry.n,
        entry.kind,
        entry.home,
        entry.visibility,
        entry.owner,
        entry.text,
        entry.attachment,
        entry.at,
        entry.key,
        entry.agent,
        entry.closed,
        made_of,
        entry.view_digest,
    )


def _proposed(said: Entry) -> list[Entry]:
    """Return the landmarks that are made from the lines of a message with decisions, in the message's namespace."""
    found = [line for line in said.text.splitlines() if _DECIDED.search(line)]
    made = Entry(said.n, "landmark", said.home, said.visibility, said.owner, "", said.at, sources=(said.n,))
    made.proposed, made.pending = True, said.owner in UNTRUSTED
    return [replace(made, text=text) for text in found]


def _proposals_before(entry: Entry, entries: tuple[Entry, ...], at: int, *, ties: bool, in_room: bool) -> int:
    """Count the unconfirmed landmarks of the same namespace and owner that are shown before one: the latest of each
    author, then the next of each; all, for one that is too old.

    Which of two of the same second is the later one is not said, nor outside a room whose are the reader's own, which
    come first in a turn: `ties` counts all that may be before it, else those that are.
    """
    if entry.at <= at - PROPOSAL_LIFETIME:
        return MAX_PROPOSED
    private = entry.visibility == "private"
    shown = [
        other
        for other in entries
        if other.proposed
        and other.at > at - PROPOSAL_LIFETIME
        and (other.home, other.visibility) == (entry.home, entry.visibility)
        and (not private or other.owner == entry.owner)
    ]

    def turn(one: Entry, *, latest: bool) -> int:
        """How many of the same author come before it, at most or (`latest`) at least."""
        return sum(
            each is not one and each.owner == one.owner and (each.at > one.at if latest else each.at >= one.at)
            for each in shown
        )

    def is_before(other: Entry) -> bool:
        if other.owner == entry.owner:
            return other.at >= entry.at if ties else other.at > entry.at
        theirs, ours = turn(other, latest=ties), turn(entry, latest=not ties)
        if theirs != ours:
            return theirs < ours
        return (other.at >= entry.at or not in_room) if ties else (other.at > entry.at and in_room)

    return sum(other is not entry and is_before(other) for other in shown)


def may_be_busy(conversation_key: ConversationKey, log: list[Entry] | tuple[Entry, ...]) -> bool:
    """Return whether the view may have gaps: many people write in the room, and it has more messages than fit."""
    people = {entry.owner for entry in log[-VIEW_SIZES[1] :] if entry.kind == "message"}
    return conversation_key[0] == "room" and len(log) > VIEW_SIZES[0] and len(people) >= BUSY_PEOPLE


class Reference:
    """The state of a world after some events."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.erased: dict[str, set[str]] = {}  # canaries that may be stored nowhere any more, by tenant
        self.accepted: list[bool] = []
        self.of_opted_out: set[int] = set()  # messages that were not recorded: of people who had opted out, for example
        self.unrecorded: set[int] = set()  # edits that erased their message, since it would not be recorded now
        self.follow_ups = 0  # messages that an agent answered without a mention

    @classmethod
    def after(cls, trace: Trace) -> "Reference":
        reference = cls()
        for event in trace:
            reference.apply(event)
        return reference

    def tenant(self, name: str) -> Tenant:
        if name not in self.tenants:
            self.tenants[name] = Tenant()
        return self.tenants[name]

    def apply(self, event: Event) -> bool:
        """Apply an event; return whether it is accepted."""
        self.accepted.append(self._on(event))
        return self.accepted[-1]

    # --- participants -------------------------------------------------------------------------------------

    def conversation_key(self, tenant: str, user: str, spot: Spot, private: bool | None = None) -> ConversationKey:
        """Return the conversation that a person addresses by a place."""
        if spot.kind == "dm":
            return ("dm", user, spot.name)
        if spot.kind == "session":
            return ("session", user, spot.agent, spot.name)
        if spot.kind == "thread":
            rooms, own = self.tenant(tenant).rooms, f"{spot.name}/{spot.thread}"
            closed_in_open = private and not (spot.name in rooms and rooms[spot.name].private)
            if own in rooms or closed_in_open:  # a private thread is a room of its own, permanently
                return ("room", own)
            return ("thread", spot.name, str(spot.thread))
        return ("room", spot.name)

    def _enter(
        self, event: Event, spot: Spot, private: bool | None = None, *, history: bool = False, heard: bool = True
    ) -> ConversationKey | None:
        """Record a message at a place, which is created if it is new; None if its author had left a private room, or
        never joined one that the message does not state to be private.
        Imported `history` is never refused. Neither is a message that is not `heard` (its author opted out), but it
        only creates the place and makes its author no member."""
        tenant = self.tenant(event.tenant)
        conversation_key = self.conversation_key(event.tenant, event.user, spot, private)
        if conversation_key[0] in ("dm", "session"):
            tenant.personal_conversations.setdefault(conversation_key, PersonalConversation(conversation_key))
            self._hear(event)
            return conversation_key
        room = tenant.rooms.get(conversation_key[1])
        closes = private if room is not None and conversation_key[0] == "room" else None
        would_be_private = closes if closes is not None else (room.private if room is not None else False)
        left = room is not None and room.members.get(event.user) is False
        elsewhere = platform_of(event.user) != TERMINAL  # a platform vouches for who speaks in its rooms
        vouched = elsewhere or (private and conversation_key[0] == "room")  # a private thread does not for its room
        never = room is not None and room.members != {} and event.user not in room.members and not vouched
        if (left or never) and would_be_private and heard and not history:
            return None
        if room is None:
            closed = elsewhere if private is None else private
            room = tenant.rooms[conversation_key[1]] = Room(conversation_key[1], closed)
            room.platform = platform_of(event.user)
            room.admins.update(ROOM_ADMINS_ELSEWHERE if elsewhere else ())
        elif closes is not None and closes != room.private:
            room.private = closes
            room.generation += 0 if closes else 1
            room.pooled = room.pooled and closes
        if conversation_key[0] == "thread":
            tenant.threads.add(conversation_key)
        self._hear(event)
        if not heard:
            return conversation_key
        if not room.members and not elsewhere:
            room.admins.add(event.user)
        room.members[event.user] = True
        room.left_at.pop(event.user, None)
        return conversation_key

    def _hear(self, event: Event) -> None:
        """Know a person, by name again if it was erased."""
        here = self.tenant(event.tenant)
        here.people.add(event.user)
        if event.user not in here.opted_out:
            here.nameless.discard(event.user)

    def _room(self, tenant: str, conversation_key: ConversationKey) -> Room | None:
        return self.tenant(tenant).rooms.get(conversation_key[1]) if conversation_key[0] in ("room", "thread") else None

    def home(self, tenant: str, conversation_key: ConversationKey) -> Home:
        """Return the current namespace of a conversation; a thread has that of its room."""
        room = self._room(tenant, conversation_key)
        return conversation_key if room is None else room.home

    def may_take_part(self, tenant: str, user: str, conversation_key: ConversationKey) -> bool:
        """Return whether the conversation exists and this person may take part in it."""
        here = self.tenant(tenant)
        if conversation_key[0] in ("dm", "session"):
            return conversation_key in here.personal_conversations and conversation_key[1] == user
        room = here.rooms.get(conversation_key[1])
        if room is None or (conversation_key[0] == "thread" and conversation_key not in here.threads):
            return False
        if room.platform != platform_of(user):
            return False
        return not room.private or room.members.get(user) is True

    def exists(self, tenant: str, conversation_key: ConversationKey) -> bool:
        """Return whether there is such a conversation, whoever may take part in it."""
        here = self.tenant(tenant)
        if conversation_key[0] in ("dm", "session"):
            return conversation_key in here.personal_conversations
        return (
            conversation_key in here.threads if conversation_key[0] == "thread" else conversation_key[1] in here.rooms
        )

    def assigned(self, tenant: str, conversation_key: ConversationKey) -> Project | None:
        """Return the project that a conversation is assigned to."""
        here = self.tenant(tenant)
        room = self._room(tenant, conversation_key)
        key = (
            room.project
            if room is not None
            else here.personal_conversations[conversation_key].project
            if conversation_key in here.personal_conversations
            else None
        )
        return None if key is None else here.projects[key]

    def project(self, tenant: str, user: str, conversation_key: ConversationKey) -> Project | None:
        """Return the project whose rows may be read: for a DM or session only while its user is a member."""
        project = self.assigned(tenant, conversation_key)
        if project is None or conversation_key[0] in ("room", "thread") or self.tenant(tenant).role(project, user):
            return project
        return None

    # --- what may be read ---------------------------------------------------------------------------------

    def view(self, tenant: str, user: str, spot: Spot, question: str, at: int) -> View | None:
        """Return what may be shown when `user` asks `question` at a place; None if they may not take part."""
        conversation_key = self.conversation_key(tenant, user, spot)
        return self._view(tenant, user, conversation_key, question, at, before=None)

    def _view(
        self, tenant: str, user: str, conversation_key: ConversationKey, question: str, at: int, before: int | None
    ) -> View | None:
        if not self.may_take_part(tenant, user, conversation_key):
            return None
        if conversation_key[0] == "dm" and user in self.tenant(tenant).read_rooms:
            self._ask(tenant, user, at)
        home, project, room = (
            self.home(tenant, conversation_key),
            self.project(tenant, user, conversation_key),
            self._room(tenant, conversation_key),
        )
        log = [
            e
            for e in self.tenant(tenant).entries
            if e.conversation_key == conversation_key and e.kind in ("message", "reply")
        ]
        log = [e for e in log if e.alive and e.home == home and not (e.n == before and e.kind == "message")]
        least = BUSY_LATEST if may_be_busy(conversation_key, log) else VIEW_SIZES[0]
        people = [self._people(room, user, question, log[-most:]) for most in (least, VIEW_SIZES[1])]
        sure, possible = (
            tuple(
                e
                for e in self.tenant(tenant).entries
                if self._may(tenant, user, conversation_key, home, project, who, e, at)
            )
            for who in people
        )
        if before is not None:
            sure, possible = (tuple(e for e in some if e.n != before) for some in (sure, possible))
        in_room = room is not None
        sure, possible = (
            tuple(
                e
                for e in some
                if not e.proposed or _proposals_before(e, possible, at, ties=ties, in_room=in_room) < MAX_PROPOSED
            )
            for some, ties in ((sure, True), (possible, False))
        )
        own = [e for e in possible if e.kind == "summary" and e.home == home]
        latest = [e for tier, most in TIERS.items() for e in [s for s in own if s.key == tier][-most:]]
        return View(
            conversation_key,
            home,
            room.private if room is not None else True,
            None if project is None else project.slug,
            project is not None and project.isolated,
            tuple(log),
            tuple(people[0]),
            self._nameless(tenant, [*people[1], *(entry.owner or "" for entry in log)]),
            sure,
            possible,
            tuple(sorted(latest, key=lambda e: e.at)),
        )

    def _nameless(self, tenant: str, people: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(self.tenant(tenant).nameless.intersection(people)))

    def _people(self, room: Room | None, user: str, question: str, log: list[Entry]) -> list[str]:
        """Return the participants whose profiles are read. In a room: the asker, then people in the question,
        then authors and mentioned people of the view, latest first, 16 at most, none who left. Else the user's."""
        if room is None or user in UNTRUSTED:
            return [user]
        order = [user, *self._named(room, question)]
        for entry in reversed(log):
            if entry.kind == "message":
                order += [entry.owner or "", *self._named(room, entry.text), *entry.blanked]
        chosen = list(dict.fromkeys(order))[:MAX_PARTICIPANTS]
        return [person for person in chosen if room.members.get(person) is not False]

    def _named(self, room: Room, text: str) -> list[str]:
        """Return the accounts that are named: of the room's platform, or such as nothing is known of."""
        return [name if platform_of(name) == room.platform else f"{room.platform}:{name}" for name in mentioned(text)]

    def _may(
        self,
        tenant: str,
        user: str,
        conversation_key: ConversationKey,
        home: Home,
        project: Project | None,
        people: list[str],
        entry: Entry,
        at: int,
    ) -> bool:
        """Return whether one entry may be shown ("Who may read what" in docs/architecture.md, line by line)."""
        if not entry.alive or entry.closed or entry.pending or entry.kind == "reply" or entry.at > at:
            return False
        if entry.expires is not None and entry.expires <= at:
            return False
        if "*" not in entry.vendors and "nexus" not in entry.vendors:
            return False
        here, in_room = self.tenant(tenant), conversation_key[0] in ("room", "thread")
        own = here.accounts(user)
        shared = entry.visibility in ("public", "shared") if in_room else entry.visibility == "shared"
        marked = shared or (not in_room and entry.visibility == "private" and entry.owner in own)
        if entry.home == home:
            return marked
        room = self._room(tenant, conversation_key)
        apart = (project is not None and project.isolated) or (room is not None and room.outsiders)
        if entry.home[0] == "profile":
            known = {account for person in people for account in here.accounts(person)}
            return marked and entry.home[1] in known and not apart
        if conversation_key[0] == entry.home[0] == "dm" and entry.home[1] in own:
            left_there = self.assigned(tenant, entry.home)  # what is in an isolated project stays there
            isolated = [each for each in (project, left_there) if each is not None and each.isolated]
            return marked and entry.home[2] == conversation_key[2] and not isolated
        if entry.home[0] == "global":
            return marked and user not in UNTRUSTED and not apart
        recalled = entry.kind in ("message", "memory", "summary")
        if recalled and entry.visibility != "private" and self._opened(tenant, user, conversation_key, entry.home, at):
            return True
        if project is None:
            return False
        if entry.home[0] == "project":
            return marked and entry.home[1] == project.key
        return recalled and self._pooled(tenant, project, entry.home)

    def _opened(self, tenant: str, user: str, conversation_key: ConversationKey, home: Home, at: int) -> bool:
        """Whether what belongs there is read in a DM whose person said so: the rooms that they are in, as they are now.
        Nothing enters or leaves an isolated project."""
        here = self.tenant(tenant)
        if conversation_key[0] != "dm" or user not in here.read_rooms or home[0] != "room":
            return False
        return any(room.home == home for room in self._rooms_in(tenant, user, conversation_key, at))

    def _ask(self, tenant: str, user: str, at: int) -> dict[str, tuple[int, frozenset[str]]]:
        """Ask the platforms of someone's accounts in which of their rooms these are. Return each answer that is given,
        with its time: it is used again for a minute."""
        here, given = self.tenant(tenant), dict[str, tuple[int, frozenset[str]]]()
        for account in sorted(here.accounts(user)):
            asked_at, rooms = here.answers.get(account, (at - MINUTE - 1, frozenset[str]()))
            if platform_of(account) == TERMINAL:
                continue
            if at - asked_at > MINUTE:
                if platform_of(account) in here.outages:
                    continue
                asked_at, rooms = at, frozenset(room for who, room in here.inside if who == account)
                here.answers[account] = asked_at, rooms
            given[account] = asked_at, rooms
        return given

    def _is_in(self, tenant: str, user: str, room: Room, at: int) -> bool:
        """Whether someone is in a room with one of their accounts: of a private room elsewhere its platform says it,
        and nothing later was told."""
        here = self.tenant(tenant)
        if not room.private or room.platform == TERMINAL:
            return any(room.members.get(account) is True for account in here.accounts(user))
        given = self._ask(tenant, user, at)
        first = min((asked_at for asked_at, _ in given.values()), default=at)
        if any(room.left_at.get(account, first) > first for account in here.accounts(user)):
            return False
        return any(
            platform_of(account) == room.platform and room.name in rooms for account, (_, rooms) in given.items()
        )

    def reads_private_elsewhere(self, tenant: str, user: str, at: int) -> bool:
        """Whether someone is in a private room of a chat platform, which says so."""
        rooms = self.tenant(tenant).rooms.values()
        return any(r.private and r.platform != TERMINAL and self._is_in(tenant, user, r, at) for r in rooms)

    def _rooms_in(self, tenant: str, user: str, conversation_key: ConversationKey, at: int) -> list[Room]:
        """Return the rooms that someone's DM reads, or would."""
        here, project = self.tenant(tenant), self.project(tenant, user, conversation_key)
        joined = [room for room in here.rooms.values() if self._is_in(tenant, user, room, at)]
        joined = [room for room in joined if room.platform == TERMINAL or user not in UNTRUSTED]
        if project is not None and project.isolated:
            return [room for room in joined if room.project == project.key]
        return [room for room in joined if room.project is None or not here.projects[room.project].isolated]

    def _pooled(self, tenant: str, project: Project, home: Home) -> bool:
        """Whether what belongs there is for all of a project: its rooms, private ones if their admin said so, and the
        sessions of its members who may write in it. A DM never."""
        here = self.tenant(tenant)
        if home[0] == "room":
            room = here.rooms[home[1]]
            return room.home == home and room.project == project.key and (room.pooled or not room.private)
        if home[0] == "session":
            session = here.personal_conversations[home]
            is_in = session.project == project.key and session.pooled
            return is_in and here.role(project, home[1]) in ("write", "admin")
        return False

    def history(self, tenant: str, user: str, spot: Spot, at: int) -> tuple[object, ...]:
        """Return all values of facts, also superseded ones, that may be listed here (of no profile but the asker's)."""
        conversation_key = self.conversation_key(tenant, user, spot)
        home, project = self.home(tenant, conversation_key), self.project(tenant, user, conversation_key)
        facts = [
            replace(e, replaced_by=None, closed_for_good=False) for e in self.tenant(tenant).entries if e.kind == "fact"
        ]
        found = [e for e in facts if self._may(tenant, user, conversation_key, home, project, [user], e, at)]
        return tuple((e.n, e.home, e.key, e.text) for e in found)

    def projects(self, tenant: str, user: str, at: int) -> tuple[object, ...]:
        """Return the projects of a person, with members and the rooms that they may see."""
        here = self.tenant(tenant)
        return tuple(
            (
                p.slug,
                p.isolated,
                tuple(sorted((sorted(here.accounts(who) & p.members.keys()), role) for who, role in p.members.items())),
                self._nameless(tenant, p.members),
                tuple(self._rooms_of(tenant, p.key, user, at)),
                tuple(sorted((who, i.role) for who, i in p.invited.items() if i.is_open(at)))
                if here.manages(p, user)
                else (),
            )
            for p in sorted(here.projects.values(), key=lambda p: p.key)
            if here.role(p, user)
        ) + tuple(
            (p.slug, p.isolated, [(i.role, i.by) for i in here.invites(p, user, at).values()])
            for p in sorted(here.projects.values(), key=lambda p: p.key)
            if here.invites(p, user, at)
        )

    def _rooms_of(self, tenant: str, project: str, user: str, at: int) -> Iterator[str]:
        for room in sorted(self.tenant(tenant).rooms.values(), key=lambda r: r.name):
            if room.project == project and (not room.private or self._is_in(tenant, user, room, at)):
                yield room.name

    def surroundings(self, tenant: str, user: str, spot: Spot, question: str, at: int) -> tuple[object, ...]:
        """Return everything that this person can find out at this place, by question or by command."""
        view = self.view(tenant, user, spot, question, at)
        conversation_key = self.conversation_key(tenant, user, spot)
        here, room = self.tenant(tenant), self._room(tenant, conversation_key)
        return (
            None if view is None else view.fingerprint(),
            self.history(tenant, user, spot, at) if view is not None else (),
            self.projects(tenant, user, at),
            user in here.people,
            user in here.admins,
            user in here.opted_out,
            sorted(here.accounts(user)),
            self._listed_rooms(tenant, user, conversation_key, at),
            () if view is None else sorted(map(_comparable, self.waiting(tenant, user, conversation_key)), key=repr),
            None if room is None or view is None else sorted(room.members.items()),
            None if room is None else user in room.admins,
            None if room is None or view is None else room.recording,
            None if view is None else self.assigned(tenant, conversation_key),
            () if view is None else self._explained(tenant, user, conversation_key),
        )

    def waiting(self, tenant: str, user: str, conversation_key: ConversationKey) -> list[Entry]:
        """Return what waits for the approval of somebody in a conversation: in a room that they are an admin of, in the
        project of the conversation that they are an admin of, or in their own DM. A guest reviews the last alone."""
        here, room = self.tenant(tenant), self._room(tenant, conversation_key)
        project, home = self.project(tenant, user, conversation_key), self.home(tenant, conversation_key)
        trusted = user not in UNTRUSTED
        homes = set[Home]()
        if conversation_key[0] == "dm" or (room is not None and user in room.admins and trusted):
            homes.add(home)
        if project is not None and trusted and here.manages(project, user):
            homes.add(("project", project.key))
        return [e for e in here.entries if e.pending and e.alive and e.home in homes]

    def _listed_rooms(self, tenant: str, user: str, conversation_key: ConversationKey, at: int) -> tuple[object, ...]:
        """Return whether the rooms that someone is in are read in their DM, which these are, and which platforms do not
        say it."""
        if conversation_key[0] != "dm" or not self.may_take_part(tenant, user, conversation_key):
            return ()
        here, rooms = self.tenant(tenant), self._rooms_in(tenant, user, conversation_key, at)
        said = {platform_of(account) for account in self._ask(tenant, user, at)}
        platforms = {platform_of(account) for account in here.accounts(user)} - {TERMINAL}
        return (user in here.read_rooms, sorted((room.name, room.private) for room in rooms), platforms - said)

    def _explained(self, tenant: str, user: str, conversation_key: ConversationKey) -> tuple[object, ...]:
        """Return the replies that someone may have explained, each with a digest of what it could be made from."""
        return tuple((e.n, e.agent, e.view_digest) for e in self.answers_to(tenant, user, conversation_key))

    def answers_to(self, tenant: str, user: str, conversation_key: ConversationKey) -> list[Entry]:
        """Return the replies of agents that someone has seen in a conversation: the current ones and those to them."""
        home, entries = self.home(tenant, conversation_key), self.tenant(tenant).entries
        accounts = self.tenant(tenant).accounts(user)
        own = {e.n for e in entries if e.kind == "message" and e.owner in accounts}
        return [
            e
            for e in entries
            if e.kind == "reply" and e.conversation_key == conversation_key and (e.home == home or e.n in own)
        ]

    # --- events --------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _on(self, event: Event) -> bool:
        raise TypeError(f"no rule for {type(event).__name__}")

    @_on.register
    def _(self, event: Say) -> bool:
        if event.again is not None:  # the message is already stored, or was erased: nothing of it changes
            self._hear(event)
            return True
        own = event.spot.kind in ("dm", "session")
        asked = event.answer and (own or bool({*AGENTS}.intersection(mentioned(event.text))))
        gone = not self._recorded(event.tenant, event.user, self._place_of(event), asked=asked)
        heard = not gone or asked
        conversation_key = self._enter(event, event.spot, event.private, history=not event.answer, heard=heard)
        if conversation_key is None:
            return False
        if event.answer and conversation_key[0] == "dm" and event.user in self.tenant(event.tenant).read_rooms:
            self._ask(event.tenant, event.user, event.at)
        room = self._room(event.tenant, conversation_key)
        if room is not None and event.shared is not None:
            room.outsiders = event.shared
        if gone:  # one that is answered is erased with its reply
            self._record_erased(event.tenant, canaries(event.text) | canaries(event.attachment))
            self.of_opted_out.add(event.n)
            return True
        visibility = "public" if conversation_key[0] in ("room", "thread") else "private"
        home = self.home(event.tenant, conversation_key)
        entries = self.tenant(event.tenant).entries
        said = Entry(event.n, "message", home, visibility, event.user, event.text, event.at, conversation_key)
        said.attachment = event.attachment
        entries.append(said)
        entries += _proposed(said)
        if event.answer:
            called = (
                [conversation_key[2]]
                if conversation_key[0] in ("dm", "session")
                else [a for a in AGENTS if a in mentioned(event.text)] or self._followed(event.tenant, said)
            )
            for agent in called:
                view = self._view(event.tenant, event.user, conversation_key, event.text, event.at, before=event.n)
                repeated_canaries = frozenset() if view is None else view.canaries | said.canaries
                view_digest = "" if view is None else hashlib.sha256(repr(view.fingerprint()).encode()).hexdigest()
                reply = Entry(
                    event.n,
                    "reply",
                    home,
                    visibility,
                    None,
                    "",
                    event.at,
                    conversation_key,
                    agent=agent,
                    repeated_canaries=repeated_canaries,
                )
                entries.append(replace(reply, first_canaries=repeated_canaries, view_digest=view_digest))
        return True

    def _followed(self, tenant: str, said: Entry) -> list[str]:
        """Return the agent whose answer in a thread a message follows up, without a mention."""
        others = said.text.lstrip().startswith("@") or (said.text.split()[1:2] and said.text.split()[1].startswith("@"))
        if said.conversation_key[0] != "thread" or others or UNTRUSTED.get(said.owner or "") == "tool":
            return []
        here = [e for e in self.tenant(tenant).entries if e.conversation_key == said.conversation_key]
        here = [e for e in here if e.kind in ("message", "reply") and e.home == said.home and e is not said]
        here = sorted((e for e in here if e.alive and e.at <= said.at), key=lambda e: e.at)
        asked = {e.n: e for e in here if e.kind == "message"}
        last = here[-1] if here else None
        if last is None or last.kind != "reply" or said.at - last.at > FOLLOW_UP or last.n not in asked:
            return []  # every question was answered before the next message
        question = asked[last.n]
        own = [asked[e.n] for e in here if e.kind == "reply" and e.agent == last.agent and e.n in asked]
        named = any(agent in mentioned(question.text) for agent in AGENTS)
        may = question.owner == said.owner or (named and any(e.owner == said.owner for e in own))
        self.follow_ups += may
        return [last.agent] if may else []

    def _place_of(self, event: Say) -> ConversationKey:
        return self.conversation_key(event.tenant, event.user, event.spot, event.private)

    def _recorded(self, tenant: str, user: str, conversation_key: ConversationKey, *, asked: bool) -> bool:
        """Return whether a message is stored for good, as its author and its room want it now. `asked`: it addresses an
        agent."""
        room = self._room(tenant, conversation_key)
        policy = "on" if room is None else room.recording
        return user not in self.tenant(tenant).opted_out and (policy == "on" or (policy == "mentions" and asked))

    @_on.register
    def _(self, event: Record) -> bool:
        conversation_key = self._enter(event, event.spot)
        room = None if conversation_key is None else self._room(event.tenant, conversation_key)
        if room is None or event.user not in room.admins:
            return False
        room.recording = event.policy
        return True

    @_on.register
    def _(self, event: EraseRoom) -> bool:
        conversation_key = self._enter(event, event.spot)
        room = None if conversation_key is None else self._room(event.tenant, conversation_key)
        if room is None or event.user not in room.admins:
            return False
        self._erase_places(event.tenant, [("room", room.name), ("thread", room.name)])
        return True

    def _erase_places(self, tenant: str, places: list[tuple[str, ...]]) -> None:
        """Erase what was said in these places, and what is filed there. Each is the beginning of conversations' keys,
        or of homes."""
        here = self.tenant(tenant)
        found = [
            e
            for e in here.entries
            if e.alive
            and any(
                (e.kind == "message" and e.conversation_key[: len(place)] == place)
                or (e.kind in ("memory", "fact", "landmark") and e.home[: len(place)] == place)
                for place in places
            )
        ]
        self._erase(tenant, self._made_from(here, found))

    @_on.register
    def _(self, event: EraseUser) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        if conversation_key is None or event.user not in here.admins or event.who not in here.people:
            return False
        self._forget_all(event.tenant, here.accounts(event.who))
        return True

    @_on.register
    def _(self, event: EraseProject) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        named = [project.key for project in here.projects.values() if project.slug == event.slug]
        if conversation_key is None or event.user not in here.admins or len(named) != 1:
            return False
        rooms = [room.name for room in here.rooms.values() if room.project == named[0]]
        sessions = [
            key
            for key, conversation in here.personal_conversations.items()
            if key[0] == "session" and conversation.project == named[0]
        ]
        places = [(kind, name) for name in rooms for kind in ("room", "thread")]
        self._erase_places(event.tenant, [*places, *sessions, ("project", named[0])])
        return True

    def _forget_all(self, tenant: str, accounts: frozenset[str]) -> None:
        """Erase all that a person said and stored, and their names, also those of projects that are theirs alone."""
        here = self.tenant(tenant)
        for project in here.projects.values():
            with_rooms = any(room.project == project.key for room in here.rooms.values())
            if project.made_by in accounts and project.members.keys() <= accounts and not with_rooms:
                project.slug = "unnamed"
        found = [e for e in here.entries if e.alive and e.owner in accounts and e.kind not in ("summary", "reply")]
        for account in sorted(accounts):
            self._blank(tenant, account)
        self._erase(tenant, self._made_from(here, found))

    @_on.register
    def _(self, event: Share) -> bool:
        conversation_key = self._enter(event, event.spot)
        filed = None if conversation_key is None else self._access_tag(event, conversation_key, event.scope)
        here = self.tenant(event.tenant)
        entries, accounts = here.entries, here.accounts(event.user)
        own = [e for e in entries if e.n == event.target and e.owner in accounts and e.alive and not e.closed]
        own = [e for e in own if e.kind in ("memory", "fact", "landmark") and not e.proposed and not e.pending]
        if conversation_key is None or filed is None or not own or event.user in UNTRUSTED:
            return False
        entry, (home, visibility) = own[0], filed
        inside = self._isolated_around(event.tenant, entry.home)
        into_dm = home[0] == "dm" and entry.home != home  # a DM may leave the project later
        if inside is not None and (into_dm or self.project(event.tenant, event.user, conversation_key) is not inside):
            return False
        if (entry.home, entry.visibility) == (home, visibility):
            return False
        for other in entries:
            same = (other.home, other.visibility, other.key) == (home, visibility, entry.key)
            if other.replaced_by is entry:
                other.replaced_by, other.closed_for_good = None, True
            current = other.alive and not other.closed and not other.pending
            if entry.kind == other.kind == "fact" and same and current:
                other.replaced_by, entry.at = entry, event.at
        entry.home, entry.visibility, entry.owner = home, visibility, event.user
        return True

    def _isolated_around(self, tenant: str, home: Home) -> Project | None:
        """Return the isolated project that a namespace lies in: its own, or that of its conversation."""
        slug: str | None = None
        here = self.tenant(tenant)
        if home[0] == "project":
            slug = home[1]
        elif home[0] == "room":
            slug = here.rooms[home[1]].project
        elif home in here.personal_conversations:
            slug = here.personal_conversations[home].project
        project = None if slug is None else here.projects[slug]
        return project if project is not None and project.isolated else None

    @_on.register
    def _(self, event: Opt) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        if conversation_key is None:
            return False
        for account in here.accounts(event.user):
            (here.opted_out.add if event.out else here.opted_out.discard)(account)
        return True

    @_on.register
    def _(self, event: Link) -> bool:
        """Two people of two places become one, each from a DM; who had opted out with one account has so with all."""
        here = self.tenant(event.tenant)
        self._enter(replace(event, user=event.other), replace(event.spot, kind="dm", name="nexus"))
        if self._enter(event, event.spot) is None or event.spot.kind != "dm" or event.late:
            return False
        one, other = here.accounts(event.user), here.accounts(event.other)
        if {platform_of(account) for account in one} & {platform_of(account) for account in other}:
            return False
        if event.confirmed:
            for account in one | other:
                here.linked[account] = one | other
            if (one | other) & here.opted_out:
                here.opted_out |= one | other
        return True

    @_on.register
    def _(self, event: Review) -> bool:
        """What is approved is as if a member had written it; a fact holds from then on."""
        conversation_key = self._enter(event, event.spot)
        if conversation_key is None:
            return False
        may = self.waiting(event.tenant, event.user, conversation_key)
        found = [e for e in may if e.n == event.target and event.canary in canaries(e.text)]
        for entry in found[:1]:
            if not event.approve and entry.proposed:  # the message that says so stays
                entry.alive = False
            elif not event.approve:
                self._erase(event.tenant, [entry])
            elif entry.kind == "fact":
                entry.at = event.at
                self._supersede(event.tenant, entry)
            entry.pending = False
        return bool(found)

    @_on.register
    def _(self, event: Unlink) -> bool:
        """Each account keeps what it was given by name: roles in projects, and consent."""
        here = self.tenant(event.tenant)
        if self._enter(event, event.spot) is None or len(here.accounts(event.user)) == 1:
            return False
        accounts = here.accounts(event.user)
        others = accounts - {event.user}
        here.linked[event.user] = frozenset({event.user})
        for account in others:
            here.linked[account] = others
        self._leave_projects(here, accounts)
        return True

    @_on.register
    def _(self, event: ReadRooms) -> bool:
        if event.spot.kind != "dm":
            return False
        here = self.tenant(event.tenant)
        self._enter(event, event.spot)
        (here.read_rooms.add if event.on else here.read_rooms.discard)(event.user)
        self._ask(event.tenant, event.user, event.at)
        return True

    @_on.register
    def _(self, event: Move) -> bool:
        here = self.tenant(event.tenant)
        room = here.rooms.get(event.room)
        if room is None and not event.joined:
            return False
        here.people.add(event.user)
        if room is None:
            room = here.rooms[event.room] = Room(event.room, False)
        if event.joined and not room.members:
            room.admins.add(event.user)
        if not event.joined and room.platform == TERMINAL:
            room.admins.discard(event.user)
        if event.joined:
            room.left_at.pop(event.user, None)
        elif room.members.get(event.user) is not False:
            room.left_at[event.user] = event.at
        room.members[event.user] = event.joined
        self._move(here, event.user, event.room, joined=event.joined)
        return True

    @_on.register
    def _(self, event: MoveUnheard) -> bool:
        self._move(self.tenant(event.tenant), event.user, event.room, joined=event.joined)
        return True

    def _move(self, here: Tenant, user: str, room: str, *, joined: bool) -> None:
        (here.inside.add if joined else here.inside.discard)((user, room))

    @_on.register
    def _(self, event: Outage) -> bool:
        outages = self.tenant(event.tenant).outages
        (outages.add if event.begins else outages.discard)(platform_of(event.user))
        return True

    @_on.register
    def _(self, event: Admin) -> bool:
        here = self.tenant(event.tenant)
        if event.user not in here.people:
            return False
        (here.admins.add if event.admin else here.admins.discard)(event.user)
        return True

    def _access_tag(self, event: Event, conversation_key: ConversationKey, scope: str) -> tuple[Home, str] | None:
        """Return the namespace and visibility of what a person writes; None if they may not write with this scope."""
        here, project = self.tenant(event.tenant), self.project(event.tenant, event.user, conversation_key)
        if scope == "here":
            return self.home(event.tenant, conversation_key), "public" if conversation_key[0] in (
                "room",
                "thread",
            ) else "private"
        if scope == "project":
            may = project is not None and here.role(project, event.user) in ("write", "admin")
            return (("project", project.key), "shared") if project is not None and may else None
        if project is not None and project.isolated:
            return None
        if scope == "everywhere":
            return ("profile", event.user), "shared"
        return (("global",), "shared") if event.user in here.admins else None

    def _write(self, event: Remember | SetFact | Pin, kind: str, key: str = "") -> bool:
        conversation_key = self._enter(event, event.spot)
        filed = None if conversation_key is None else self._access_tag(event, conversation_key, event.scope)
        untrusted = event.user in UNTRUSTED
        if filed is None or (untrusted and event.scope in ("everywhere", "global")):
            return False
        home, visibility = filed
        written = Entry(event.n, kind, home, visibility, event.user, event.text, event.at, key=key)
        written.pending = untrusted
        if not untrusted:
            self._supersede(event.tenant, written)
        self.tenant(event.tenant).entries.append(written)
        return True

    def _supersede(self, tenant: str, written: Entry) -> None:
        """End the value that a key has in the same namespace. It holds again when this one is erased."""
        for entry in self.tenant(tenant).entries if written.kind == "fact" else ():
            same = (entry.home, entry.visibility, entry.key) == (written.home, written.visibility, written.key)
            current = entry.alive and not entry.closed and not entry.pending and entry is not written
            if entry.kind == "fact" and same and current:
                entry.replaced_by = written

    @_on.register
    def _(self, event: Import) -> bool:
        rooms, spot, private = self.tenant(event.tenant).rooms, event.spot, event.private
        if event.into not in ("", spot.name):  # what was said in private enters no other room
            if private or (spot.name in rooms and rooms[spot.name].private):
                return False
            spot, private = Spot("room", event.into), None
        if private is None and event.closed and spot.name not in rooms:
            private = True
        said = Say(n=event.n, at=event.at, user=event.user, tenant=event.tenant, spot=spot, text=event.text)
        return self._on(replace(said, private=private, answer=False))

    @_on.register
    def _(self, event: Remember) -> bool:
        return self._write(event, "memory")

    @_on.register
    def _(self, event: SetFact) -> bool:
        return self._write(event, "fact", event.key)

    @_on.register
    def _(self, event: Pin) -> bool:
        return self._write(event, "landmark")

    @_on.register
    def _(self, event: Keep) -> bool:
        home: Home = ("profile", event.user) if event.where == "profile" else ("global",)
        if event.where.startswith("project:"):
            home = ("project", event.where.removeprefix("project:"))
        elif event.where == "here" and event.spot is not None:
            conversation_key = self.conversation_key(event.tenant, event.user, event.spot)
            if not self.exists(event.tenant, conversation_key):
                return False
            home = self.home(event.tenant, conversation_key)
        entry = Entry(
            event.n, "memory", home, event.visibility, event.user, event.text, event.at, vendors=event.vendors
        )
        entry.expires = None if event.lasts is None else event.at + event.lasts
        self.tenant(event.tenant).entries.append(entry)
        return True

    @_on.register
    def _(self, event: Summarise) -> bool:
        conversation_key = self.conversation_key(event.tenant, event.user, event.spot)
        if not self.exists(event.tenant, conversation_key):
            return False
        in_room = conversation_key[0] in ("room", "thread")
        home, visibility = self.home(event.tenant, conversation_key), "public" if in_room else "private"
        owner = None if in_room else event.user
        entry = Entry(event.n, "summary", home, visibility, owner, event.text, event.at, key=event.tier)
        entry.sources = event.sources
        self.tenant(event.tenant).entries.append(entry)
        return True

    @_on.register
    def _(self, event: Edit) -> bool:
        here = self.tenant(event.tenant)
        found = [e for e in here.entries if e.n == event.target and e.kind == "message" and e.alive]
        for entry in found:
            asked = bool({*AGENTS}.intersection(mentioned(f"{entry.text} {event.text}")))
            if not self._recorded(event.tenant, entry.owner or "", entry.conversation_key, asked=asked):
                self._erase(event.tenant, self._made_from(here, [entry]))  # it would not be stored if it were sent now
                self._record_erased(event.tenant, canaries(event.text))
                self.unrecorded.add(event.n)
                continue
            made = [s for s in self._made_from(here, [entry]) if s is not entry]
            self._erase(event.tenant, made, still_said=canaries(event.text))
            self._record_erased(event.tenant, canaries(entry.text) - canaries(event.text))
            entry.text = event.text
            here.entries += _proposed(entry)
        return bool(found)

    @_on.register
    def _(self, event: Delete) -> bool:
        here = self.tenant(event.tenant)
        found = [e for e in here.entries if e.n == event.target and e.kind == "message" and e.alive]
        self._erase(event.tenant, self._made_from(here, found))
        return bool(found)

    @_on.register
    def _(self, event: Forget) -> bool:
        conversation_key = self._enter(event, event.spot)
        if conversation_key is None:
            return False
        here = self.tenant(event.tenant)
        accounts = here.accounts(event.user)
        own = [e for e in here.entries if e.alive and e.owner in accounts and e.kind not in ("summary", "reply")]
        if event.message is not None:
            platform = platform_of(event.user)  # where the message has this id
            found = [e for e in own if e.kind == "message" and e.n == event.message]
            found = [e for e in found if platform_of(e.owner or "") == platform]
            if not found:
                return False
        elif event.words == "here":
            found = self._here(event.tenant, own, conversation_key)
        elif event.words == "everything":
            self._forget_all(event.tenant, accounts)
            return True
        else:
            words = re.compile(rf"(?<![^\W_]){re.escape(event.words.lower())}(?![^\W_])")
            found = [e for e in own if any(words.search(part.lower()) for part in (e.text, e.key, e.attachment))]
        self._erase(event.tenant, self._made_from(here, found))
        return True

    def _blank(self, tenant: str, user: str) -> None:
        """Erase a person's name, also where others mention them: that is an edit, so what was made of it is made
        anew, of what the others still say."""
        here = self.tenant(tenant)
        here.nameless.add(user)
        name = re.compile(rf"@{re.escape(user)}(?![^\W_])")
        mentions = [e for e in here.entries if e.kind == "message" and e.alive and name.search(e.text)]
        for entry in [e for e in mentions if platform_of(e.owner or "") == platform_of(user)]:
            made = [e for e in self._made_from(here, [entry]) if e is not entry]
            self._erase(tenant, made, still_said=canaries(entry.text))
            entry.text, entry.blanked = name.sub(f"@{NAMELESS}", entry.text), (*entry.blanked, user)
            here.entries += _proposed(entry)

    def _here(self, tenant: str, own: list[Entry], conversation_key: ConversationKey) -> list[Entry]:
        """Return those of a person's entries that are in a conversation or its threads, or filed there; what is filed
        in a room counts for the room, not for its threads."""
        room = conversation_key[1] if conversation_key[0] == "room" else None
        home = self.home(tenant, conversation_key)
        messages = [
            e
            for e in own
            if e.kind == "message"
            and (e.conversation_key == conversation_key or e.conversation_key[:2] == ("thread", room))
        ]
        if conversation_key[0] == "thread":
            return messages
        return messages + [e for e in own if e.kind != "message" and (e.home == home or e.home[:2] == ("room", room))]

    def _made_from(self, here: Tenant, found: list[Entry]) -> list[Entry]:
        """Return entries and everything that was made from them, over any number of steps."""
        gone = list(found)
        while True:
            numbers = {entry.n for entry in gone}
            more = [e for e in here.entries if e not in gone and e.alive and numbers.intersection(e.sources)]
            if not more:
                return gone
            gone += more

    def _erase(self, tenant: str, entries: list[Entry], still_said: frozenset[str] = frozenset()) -> None:
        """Erase entries; their words are erased too, but for those that their message still has."""
        for entry in entries:
            entry.alive = False
            self._record_erased(tenant, entry.canaries - still_said)
            for other in self.tenant(tenant).entries:
                if other.replaced_by is entry:
                    other.replaced_by, other.closed_for_good = entry.replaced_by, entry.closed_for_good

    def _record_erased(self, tenant: str, words: frozenset[str]) -> None:
        self.erased.setdefault(tenant, set()).update(words)
        for entry in self.tenant(tenant).entries:
            entry.repeated_canaries -= words

    @_on.register
    def _(self, event: NewProject) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        if conversation_key is None or self._own_projects(event, event.slug):
            return False
        key = event.slug if event.slug not in here.projects else f"{event.slug}:{event.n}"
        here.projects[key] = Project(key, event.slug, event.isolated, {event.user: "admin"}, made_by=event.user)
        return True

    def _own_projects(self, event: Event, slug: str) -> list[Project]:
        """Return the projects of this name that this person is in. Others may have the same name."""
        here = self.tenant(event.tenant)
        return [p for p in here.projects.values() if p.slug == slug and here.role(p, event.user)]

    def _known(self, event: Event, slug: str) -> Project | None:
        """Return the one project of this name that this person may see, or None."""
        own = self._own_projects(event, slug)
        return own[0] if len(own) == 1 else None

    @_on.register
    def _(self, event: Assign) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        project = self._known(event, event.slug)
        if conversation_key is None or project is None:
            return False
        room, left = self._room(event.tenant, conversation_key), self.assigned(event.tenant, conversation_key)
        writes = here.role(project, event.user) in ("write", "admin")
        if room is not None and not (writes and event.user in room.admins):
            return False
        if event.pool and not (room is not None and room.private):
            return False
        if left is not project and not self._may_leave(event.tenant, left, event.user):
            return False
        if room is not None:
            room.project, room.pooled = project.key, event.pool
        else:
            personal = here.personal_conversations[conversation_key]
            personal.project, personal.pooled = project.key, conversation_key[0] == "session"
        return True

    @_on.register
    def _(self, event: Unassign) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        project = None if conversation_key is None else self.assigned(event.tenant, conversation_key)
        if conversation_key is None or project is None:
            return False
        room = self._room(event.tenant, conversation_key)
        if not self._may_leave(event.tenant, project, event.user):
            return False
        if room is None:
            here.personal_conversations[conversation_key].project = None
            return True
        if not here.manages(project, event.user) and event.user not in room.admins:
            return False
        room.project, room.pooled = None, False
        return True

    def _may_leave(self, tenant: str, left: Project | None, user: str) -> bool:
        """Only an admin of an isolated project takes a conversation out of it, while it has any."""
        return (
            left is None
            or not left.isolated
            or "admin" not in left.members.values()
            or self.tenant(tenant).role(left, user) == "admin"
        )

    @_on.register
    def _(self, event: Member) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        project = self._known(event, event.slug)
        if conversation_key is None or project is None:
            return False
        accounts = here.accounts(event.who)
        manages = here.manages(project, event.user)
        if not manages and not (event.role is None and event.user in accounts):
            return False
        known = event.who in here.people and platform_of(event.who) == platform_of(event.user)
        if not known and event.who not in project.members:
            return False
        admins = {here.accounts(member) for member, role in project.members.items() if role == "admin"}
        if admins == {accounts} and event.role != "admin":
            return False  # nobody could take a room out of it again
        named = accounts & project.members.keys()
        if event.role is None:
            for account in named:
                del project.members[account]
            self._leave_projects(here, accounts)
            ended = {self._end(project, account, event.at) for account in accounts}
            return True in ended or bool(named)
        opens_sessions = here.role(project, event.who) == "read" and event.role != "read"
        if not named or (opens_sessions and event.user not in accounts):
            earlier = [project.invited[account] for account in accounts & project.invited.keys()]
            if any(each.declined and event.at < each.until + DECLINED_LIFETIME for each in earlier):
                return False
            new = Invitation(event.role, event.user, event.at + INVITE_LIFETIME)
            project.invited[event.who] = new.after(project.invited.get(event.who), event.at)
            return True
        self._end(project, event.who, event.at)
        for account in named | {event.who}:
            project.members[account] = event.role
        return True

    @_on.register
    def _(self, event: Accept) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        own = [p for p in here.projects.values() if p.slug == event.slug and here.invites(p, event.user, event.at)]
        if conversation_key is None or len(own) != 1:
            return False
        (project,) = own
        invites = here.invites(project, event.user, event.at)
        if not event.declined and any(each.raised for each in invites.values()):
            return False  # it names no role
        for account in here.accounts(event.user):
            if event.declined:
                self._end(project, account, event.at, declined=True)
            else:
                project.invited.pop(account, None)
        if not event.declined:
            offered = {here.role(project, event.user), *(each.role for each in invites.values())}
            role = next(role for role in ROLES if role in offered)
            named = here.accounts(event.user) & project.members.keys()
            for account in named | invites.keys():
                project.members[account] = role
        return True

    @_on.register
    def _(self, event: Leave) -> bool:
        conversation_key, here = self._enter(event, event.spot), self.tenant(event.tenant)
        project = self._known(event, event.slug)
        if conversation_key is None or project is None:
            return False
        for account in here.accounts(event.user):
            project.members.pop(account, None)
            self._end(project, account, event.at, declined=True)
        self._leave_projects(here, here.accounts(event.user))
        return True

    def _end(self, project: Project, account: str, at: int, *, declined: bool = False) -> bool:
        """End an open invitation, which stays known for a while."""
        invitation = project.invited.get(account)
        if invitation is None or not invitation.is_open(at):
            return False
        project.invited[account] = replace(invitation, until=at, declined=declined)
        return True

    def _leave_projects(self, here: Tenant, accounts: Iterable[str]) -> None:
        """Take DMs and sessions out of projects that their person is not in; isolated ones keep but don't pool them."""
        for conversation in here.personal_conversations.values():
            if conversation.project is None or conversation.owner not in accounts:
                continue
            project = here.projects[conversation.project]
            if here.role(project, conversation.owner) is None:
                conversation.pooled = False
                conversation.project = project.key if project.isolated else None
