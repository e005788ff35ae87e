"""Decide who may read what. Only this module decides it, and only this module can make a `Readable`.

Facts come first: an `AccessContext` is gathered as of this moment. Pure functions then judge it. When a fact is missing
the answer is no, and "no" looks exactly like "does not exist".
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from datetime import tzinfo
from typing import Final, Protocol

from composer.errors import NotFound, Refused
from composer.model import (
    BOT_VENDOR,
    CONSOLE,
    DEFAULT_SETTINGS,
    EVERY_VENDOR,
    GLOBAL_NAMESPACE,
    Conversation,
    ConversationKind,
    PersonalSettings,
    RecordingPolicy,
    Role,
    Trust,
    Visibility,
    dm_namespace,
    entries_namespace,
    profile_namespace,
    project_namespace,
    team_namespace,
)

YOU: Final = "you"  # as who reviews something
MAX_PARTICIPANTS: Final = 16  # people whose profiles a room's prompt may hold
_SEAL: Final = object()


class Tagged(Protocol):
    """Anything with an access tag and a list of vendors."""

    @property
    def namespace(self) -> str:
        """The namespace it is filed under."""
        ...

    @property
    def visibility(self) -> Visibility:
        """Public, private or shared, within its namespace."""
        ...

    @property
    def user_id(self) -> uuid.UUID | None:
        """Its owner."""
        ...

    @property
    def vendors(self) -> tuple[str, ...]:
        """The vendors that its owner lets read it; EVERY_VENDOR means all."""
        ...


@dataclass(frozen=True, slots=True)
class Readable:
    """What one viewer may read during one turn. Every read takes one; no store can make or widen one.

    A row may be read if
    - its namespace is in `namespaces`, and its visibility is in `visibilities` or it is private to one of `readers`; or
    - its namespace is in `pooled`: the conversations of a project, or a team. They share everything; or
    - its namespace is in `rooms`, and it is not private: the rooms that the person of a DM opened to it. Only what is
      recalled is read from these, and only by statements that name them; for every other one they don't exist.
    Besides, its list of vendors names `vendor`, unless that is EVERY_VENDOR.
    `namespaces`, `pooled` and `rooms` are disjoint. An empty Readable reads nothing.
    """

    tenant_id: uuid.UUID
    namespaces: tuple[str, ...]
    pooled: tuple[str, ...]
    visibilities: tuple[Visibility, ...]
    readers: tuple[uuid.UUID, ...]
    vendor: str
    seal: InitVar[object] = (
        None  # only this module passes it; it is not stored, so it cannot be copied from another Readable
    )
    rooms: tuple[str, ...] = ()

    def __post_init__(self, seal: object) -> None:
        """Refuse to be made anywhere else, also by dataclasses.replace."""
        if seal is not _SEAL:
            raise TypeError("only composer.visibility makes a Readable")

    def admits(self, row: Tagged) -> bool:
        """Whether this viewer may read a row. Equal to may_read() in SQL plus the namespace being in scope."""
        if self.vendor != EVERY_VENDOR and EVERY_VENDOR not in row.vendors and self.vendor not in row.vendors:
            return False
        if row.namespace in self.pooled:
            return True
        if row.namespace in self.rooms:
            return row.visibility is not Visibility.PRIVATE
        if row.namespace not in self.namespaces:
            return False
        if row.visibility in self.visibilities:
            return True
        return row.visibility is Visibility.PRIVATE and row.user_id in self.readers

    @property
    def all_namespaces(self) -> tuple[str, ...]:
        """Every namespace that a query may search: its own and the pooled ones. Recall searches `rooms` as well."""
        return self.namespaces + self.pooled

    def within(self, namespaces: Collection[str]) -> "Readable":
        """The same viewer in these namespaces alone. Those that they may not read are left out."""
        own, pooled, rooms = (
            tuple(name for name in names if name in namespaces) for names in (self.namespaces, self.pooled, self.rooms)
        )
        return Readable(self.tenant_id, own, pooled, self.visibilities, self.readers, self.vendor, _SEAL, rooms)

    def without_pool(self) -> "Readable":
        """The same viewer without the project's pool and without rooms. Facts and landmarks are read from neither."""
        return Readable(self.tenant_id, self.namespaces, (), self.visibilities, self.readers, self.vendor, _SEAL)


@dataclass(frozen=True, slots=True)
class Reviewable:
    """What somebody may approve: of `memories`, which the pool of a project may hold, and of `others`: facts and
    landmarks, which are never pooled. `own`: where they alone decide about what waits for being a member's own."""

    memories: Readable
    others: Readable
    own: Readable | None = None

    @classmethod
    def alike(cls, readable: Readable) -> "Reviewable":
        """The same places for items of every kind."""
        return cls(readable, readable)

    def of(self, kind: str) -> Readable:
        """Where they may approve items of a kind."""
        return self.memories if kind == "memory" else self.others

    def admits_own(self, row: Tagged) -> bool:
        """Whether they decide about a row as its author."""
        return self.own is not None and row.namespace in self.own.namespaces and row.user_id in self.own.readers


@dataclass(frozen=True, slots=True)
class Owned:
    """Everything that one person owns, wherever it is filed: the rows whose owner is one of `users`. For the person
    themself alone, and for whoever runs the installation on their behalf. Only this module makes one."""

    tenant_id: uuid.UUID
    users: tuple[uuid.UUID, ...]
    seal: InitVar[object] = None

    def __post_init__(self, seal: object) -> None:
        """Refuse to be made anywhere else."""
        if seal is not _SEAL:
            raise TypeError("only composer.visibility makes an Owned")

    def admits(self, owner: uuid.UUID | None) -> bool:
        """Whether a row of this owner is one of the person's own."""
        return owner in self.users


@dataclass(frozen=True, slots=True)
class PoolMember:
    """A conversation that is assigned to a project now.

    `pooled`: the admin of this private room has agreed to pool it, or whose session this is put it there, in their
    present membership. `owner_role`: the project role of the person whose session this is. `title`: the name of a
    public room; the others are not named to the project's members.
    """

    namespace: str
    kind: ConversationKind
    private: bool
    pooled: bool
    owner_role: Role | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """The project of a conversation as it is now. `role` is the asker's; None if they are not a member. `admins`: how
    many people are its admins, where acts on it are judged."""

    id: uuid.UUID
    slug: str
    isolated: bool
    role: Role | None
    members: tuple[PoolMember, ...] = ()
    admins: int = 1


@dataclass(frozen=True, slots=True)
class JoinedRoom:
    """A room that somebody is in now: a recorded member, or as its chat platform says of a private one. `namespace` is
    its present one; `isolated`: its project is. `managed`: they are its admin, as its chat platform says; elsewhere,
    because they opened it. `recording`: which of its messages are stored; `pooled`: its project, whose slug is
    `project`, may recall them although it is private."""

    namespace: str
    name: str
    private: bool
    project_id: uuid.UUID | None
    isolated: bool
    platform: str = CONSOLE
    room_id: uuid.UUID | None = None
    managed: bool = False
    recording: RecordingPolicy = RecordingPolicy.ON
    pooled: bool = False
    project: str | None = None

    @property
    def chat(self) -> bool:
        """Whether it is on a chat platform."""
        return self.platform != CONSOLE


@dataclass(frozen=True, slots=True)
class WaitingTalk:
    """A DM or session in which something waits for approval, or a decision is proposed, as a part of its `project`, if
    it is in one. `own`: it is the person's; `role`: theirs in that project."""

    member: PoolMember
    own: bool
    project: uuid.UUID | None
    role: Role | None


@dataclass(frozen=True, slots=True)
class AccessContext:
    """The facts that access is judged by, gathered when a turn starts.

    `joined`: whether the asker is a member of the room now (None: no membership is recorded). `departed`: people who
    have left it. `linked`: for each person who matters here, the other users that they are on other platforms.
    `trust`: what the asker is to the workspace, as their platform says. `outsiders`: people of other organisations read
    the room too. `isolated_linked_users`: those of the asker's linked users whose DM with this agent is in an isolated
    project. `reads_rooms`: this is a DM, and its user opened their DMs to the rooms that they are in; then
    `joined_rooms` are the rooms that the asker, or a user linked with them, is in. `teams`: those that entries of the
    asker, or of a user linked with them, are shared with; gathered for a DM or a session. `zone`: the asker's own time
    zone, if it is known; nobody else is told of it.
    """

    conversation: Conversation
    asker: uuid.UUID
    asker_admin: bool = False
    joined: bool | None = None
    departed: frozenset[uuid.UUID] = frozenset()
    project: ProjectFacts | None = None
    linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]] = field(default_factory=dict)
    trust: Trust = Trust.MEMBER
    outsiders: bool = False
    isolated_linked_users: frozenset[uuid.UUID] = frozenset()
    reads_rooms: bool = False
    joined_rooms: tuple[JoinedRoom, ...] = ()
    teams: tuple[uuid.UUID, ...] = ()
    zone: tzinfo | None = None

    def linked_users(self, user: uuid.UUID) -> tuple[uuid.UUID, ...]:
        """All users that one person is, this one first."""
        return (user, *self.linked.get(user, ()))


def may_participate(access: AccessContext) -> bool:
    """Whether the asker may take part in this conversation.

    Anyone may in a public room, only members in a private room, and only its own user in a DM or a session.
    """
    if _is_room(access.conversation):
        return may_enter_room(private=access.conversation.private, joined=access.joined)
    return access.conversation.user_id == access.asker


def may_enter_room(*, private: bool, joined: bool | None) -> bool:
    """Whether somebody may take part in a room: anyone in a public one, only its members in a private one."""
    return not private or joined is True


def may_have_posted(access: AccessContext, namespace: str) -> bool:
    """Whether something that the asker wanted posted in this conversation may be posted there now.

    They may take part in it and have not left it, and it is still the one that they asked in: `namespace` is the one
    that it had. A private room that was opened since has another one, and is read by others.
    """
    return may_participate(access) and access.joined is not False and namespace == access.conversation.namespace


def owned_by(access: AccessContext) -> Owned:
    """What the asker owns, as any of the users that they are. Raises NotFound if they may not participate here."""
    _require_participation(access)
    return Owned(access.conversation.tenant_id, access.linked_users(access.asker), _SEAL)


def owned_by_user(tenant_id: uuid.UUID, user: uuid.UUID, linked: Sequence[uuid.UUID]) -> Owned:
    """What a user and the users `linked` with them own, for whoever runs the installation on their behalf."""
    return Owned(tenant_id, (user, *linked), _SEAL)


def readable_conversation(access: AccessContext) -> Readable:
    """A Readable of the conversation's own namespace and nothing else.

    The working layer is read with it, before it is known who takes part. Raises NotFound if the asker may not
    participate.
    """
    _require_participation(access)
    return _make_readable(access.conversation, (access.conversation.namespace,), (), _readers(access))


def readable_in_room(conversation: Conversation) -> Readable:
    """A Readable of what everybody in a room may read: the public rows of its present namespace. Whatever is posted in
    it unasked is made from that alone: neither from a project and its pool nor from anybody's profile.

    Raises NotFound for what is no room.
    """
    if not _is_room(conversation):
        raise NotFound(unknown_conversation_sentence(conversation.kind, conversation.name))
    return _make_readable(conversation, (conversation.namespace,), (), ())


def reads_private(access: AccessContext) -> bool:
    """Whether what is read here may hold words that not everybody of the organisation may read: in a DM, a session, a
    private room and an isolated project, and where the pool of its project has a private room or a session."""
    project = effective_project(access)
    if not _is_room(access.conversation) or access.conversation.private:
        return True
    return project is not None and (project.isolated or any(map(_is_private_part, project.members)))


def is_of_organisation(access: AccessContext) -> bool:
    """Whether the organisation's own people are answered here, and nobody else reads it."""
    return access.trust is Trust.MEMBER and not access.outsiders


def participants(access: AccessContext, speakers: Sequence[uuid.UUID]) -> tuple[uuid.UUID, ...]:
    """The people whose shared profiles belong in a room's prompt: the asker and then `speakers`, at most 16.

    `speakers` are those who speak or are mentioned in the view, latest first. People who have left are removed only
    after the 16 are chosen, and a mention counts even if nothing is known of that person: otherwise what is known
    elsewhere would decide who is left out.
    """
    chosen = tuple(dict.fromkeys((access.asker, *speakers)))[:MAX_PARTICIPANTS]
    return tuple(person for person in chosen if person not in access.departed)


def readable(access: AccessContext, speakers: Sequence[uuid.UUID]) -> Readable:
    """Everything that may be read to answer in this conversation (docs/architecture.md, "Who may read what").

    `speakers` is used in rooms only; see `participants`. Raises NotFound if the asker may not participate.
    """
    _require_participation(access)
    conversation, project = access.conversation, effective_project(access)
    namespaces = [conversation.namespace]
    if project is None or not project.isolated:
        namespaces.extend(_of_the_organisation(access, speakers))
        if conversation.kind is ConversationKind.DM and conversation.agent_id is not None:
            own = [user for user in access.linked_users(access.asker) if user not in access.isolated_linked_users]
            namespaces.extend(dm_namespace(user, conversation.agent_id) for user in own)
        namespaces.extend(_own_entries(access))
    pooled: list[str] = []
    if project is not None:
        namespaces.append(project_namespace(project.id))
        pooled.extend(member.namespace for member in project.members if _is_pooled(member))
    rooms = [room.namespace for room in rooms_for_dm(access)] if access.reads_rooms else []
    return _make_readable(conversation, namespaces, pooled, _readers(access), rooms)


def _own_entries(access: AccessContext) -> list[str]:
    """The namespaces of the asker's own entries, where they are read. Of what is shared with a team, only the asker's
    own is read by this."""
    if not _reads_own_entries(access):
        return []
    own = [entries_namespace(user) for user in access.linked_users(access.asker)]
    return own + [team_namespace(team) for team in access.teams]


def _reads_own_entries(access: AccessContext) -> bool:
    """Whether nobody but the asker reads what is answered here: in a DM, and in a session that no project pools."""
    conversation = access.conversation
    pooled = conversation.kind is ConversationKind.SESSION and effective_project(access) is not None
    return not _is_room(conversation) and not pooled


def rooms_for_dm(access: AccessContext) -> tuple[JoinedRoom, ...]:
    """Those of `joined_rooms` that the asker's DM may read once they have opened it to rooms; none anywhere else.

    In an isolated project these are the project's own rooms, and outside none of such a project: nothing outside it is
    used in it, and nothing in it is used outside. On a chat platform a guest reads none. Raises NotFound if the asker
    may not participate.
    """
    _require_participation(access)
    if access.conversation.kind is not ConversationKind.DM:
        return ()
    project = effective_project(access)
    if project is not None and project.isolated:
        return tuple(room for room in access.joined_rooms if room.project_id == project.id and _may_count(access, room))
    return tuple(room for room in access.joined_rooms if not room.isolated and _may_count(access, room))


def rooms_of_person(access: "EntryAccess", joined: Iterable[JoinedRoom], trust: Trust) -> tuple[JoinedRoom, ...]:
    """Those of the rooms that a person is in that they may look into on a page of theirs: for themselves, all; on a
    chat platform a guest none. `joined` is as of now; `trust` is the least of what their platforms say of them."""
    if not access.is_person:
        return ()
    return tuple(room for room in joined if not room.chat or trust is Trust.MEMBER)


def readable_rooms(access: "EntryAccess", rooms: Iterable[JoinedRoom], trust: Trust) -> Readable:
    """A Readable of what is filed under rooms that a person is in, as everybody there may read it: neither what was
    written for a project or for everyone, nor a pool or a profile. Those that they may not look into are left out."""
    namespaces = tuple(dict.fromkeys(room.namespace for room in rooms_of_person(access, rooms, trust)))
    visibilities = (Visibility.PUBLIC, Visibility.SHARED)
    return Readable(access.tenant_id, namespaces, (), visibilities, (), BOT_VENDOR, _SEAL)


def readable_places(access: "EntryAccess") -> Readable:
    """A Readable of what is shared with the teams and written for the projects, isolated ones too, that a person may
    look into on a page of theirs."""
    projects = [each.id for each in access.projects if readable_project(access, each.id) is not None]
    return _entries(access, map(project_namespace, projects), map(team_namespace, access.teams))


class StoredPlace(Protocol):
    """Where something was said. `room_id` is the room of a room or thread, and of a DM or session its own id."""

    @property
    def kind(self) -> ConversationKind:
        """A room, a thread, a DM or a session."""
        ...

    @property
    def room_id(self) -> uuid.UUID | None:
        """Our own id."""
        ...

    @property
    def private(self) -> bool:
        """Whether not everybody of the organisation may be there."""
        ...


def may_be_named(access: AccessContext, place: StoredPlace) -> bool:
    """Whether what is posted in this conversation may say, or link to, where something was said that may be read here.

    A public room may be named, and the place itself. Another private room may only in a DM that its person has opened
    to the rooms that they are in: one that is merely pooled in their project is not known to them. Another DM or
    session never is.
    """
    if place.room_id == (access.conversation.room_id or access.conversation.id):
        return True
    if place.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return False
    opened = rooms_for_dm(access) if access.reads_rooms else ()
    return not place.private or any(room.room_id == place.room_id for room in opened)


def _may_count(access: AccessContext, room: JoinedRoom) -> bool:
    """Whether a room that somebody is in may be read outside it: a guest reads none of a chat platform's."""
    return not room.chat or access.trust is Trust.MEMBER


def _of_the_organisation(access: AccessContext, speakers: Sequence[uuid.UUID]) -> list[str]:
    """What is read in every conversation outside isolated projects: `global` and the profiles of who takes part.

    It belongs to the organisation's own people. A guest reads their own profile alone; in a room that outsiders read
    too nobody is answered from any of it.
    """
    if access.outsiders:
        return []
    member = access.trust is Trust.MEMBER
    people: Sequence[uuid.UUID] = (access.asker,)
    if member and _is_room(access.conversation):
        people = participants(access, speakers)
    profiles = [profile_namespace(user) for person in people for user in access.linked_users(person)]
    return [GLOBAL_NAMESPACE, *profiles] if member else profiles


def unknown_conversation_sentence(kind: ConversationKind, name: str) -> str:
    """The sentence for a conversation that does not exist, or is not for the asker. It is the same for both."""
    noun = {ConversationKind.DM: "agent", ConversationKind.SESSION: "session"}.get(kind, "room")
    return f"There is no {noun} '{name}' here."


def effective_project(access: AccessContext) -> ProjectFacts | None:
    """The project whose pool and namespace the asker may read now, if any.

    Assigning a room opens its project to everyone in the room. A DM or session is in its project only while its user is
    a member; being an admin of the tenant is not enough, because the pool holds other people's words.
    """
    if access.project is None or _is_room(access.conversation) or access.project.role is not None:
        return access.project
    return None


@dataclass(frozen=True, slots=True)
class AccessTag:
    """Where something is filed: its namespace, visibility and owner."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID


class WriteScope:
    """How widely a fact, memory or landmark is meant to be read."""

    HERE: Final = "here"
    EVERYWHERE: Final = "everywhere"
    PROJECT: Final = "project"
    GLOBAL: Final = "global"


def access_tag_for(access: AccessContext, scope: str) -> AccessTag:
    """Where something that the asker writes here is filed: in the conversation's namespace, or as wide as `scope` says.

    Who may write that widely is decided before (composer/rights/table.py). Raises NotFound if the asker may not
    participate, and Refused where there is no such scope: no project, or nothing outside an isolated one.
    """
    _require_participation(access)
    conversation, project = access.conversation, effective_project(access)
    if scope == WriteScope.HERE:
        return AccessTag(conversation.namespace, conversation.visibility, access.asker)
    if scope == WriteScope.PROJECT:
        if project is None:
            raise Refused("This conversation is in no project. To add it to one: /nexus project assign NAME")
        return AccessTag(project_namespace(project.id), Visibility.SHARED, access.asker)
    require_way_out(access, "Leave out the flag, or use --project.")
    if scope == WriteScope.EVERYWHERE:
        return AccessTag(profile_namespace(access.asker), Visibility.SHARED, access.asker)
    return AccessTag(GLOBAL_NAMESPACE, Visibility.SHARED, access.asker)


def require_way_out(access: AccessContext, instead: str) -> None:
    """Return if something that the asker writes here may be filed elsewhere, such as in their DM. Raises Refused in an
    isolated project, with what to do `instead`: a sentence."""
    project = effective_project(access)
    if project is not None and project.isolated:
        raise Refused(
            f"The project {project.slug} is isolated: nothing from this conversation may be written outside it. "
            f"{instead}"
        )


def access_tag_for_moving(access: AccessContext, scope: str, isolated: uuid.UUID | None) -> AccessTag:
    """Where something of the asker's own is filed when they change its reach here. `isolated` is the isolated project
    that it lies in now.

    Raises as `access_tag_for`, and Refused if it would leave that project. A DM is never pooled, so it counts as
    outside, also one that has chosen the project.
    """
    tag, project = access_tag_for(access, scope), effective_project(access)
    if isolated is not None:
        into_dm = access.conversation.kind is ConversationKind.DM and scope == WriteScope.HERE
        if into_dm or project is None or project.id != isolated:
            raise Refused("That is filed in an isolated project: nothing of it may be moved outside the project.")
    return tag


def reviewable(access: AccessContext, *, room_admin: bool) -> Reviewable:
    """What the asker may approve, and undo of others: what was written in the places that they administer.

    In a room that is the room's own namespace, for its admin; in a DM or a session the conversation's own, for its
    user. An admin of the project also reviews the project's namespace. A guest reviews nothing but their own DMs and
    sessions. Memories of a session in a project are read by the project, so its admins review them, from anywhere in
    the project, and not the session's user; unless that user may only read the project, which then reads nothing of it.
    What waits of a member's own for them (composer/memory/quarantine.py) is decided by nobody else.
    """
    _require_participation(access)
    conversation, project = access.conversation, effective_project(access)
    member = access.trust is Trust.MEMBER
    project_admin = member and project is not None and project.role is Role.ADMIN
    own = room_admin and member if _is_room(conversation) else True
    own_memories = own and (project_admin or not _feeds_project(access))
    namespaces: list[str] = []
    sessions: list[str] = []
    if project is not None and project_admin:
        namespaces.append(project_namespace(project.id))
        sessions += [m.namespace for m in project.members if m.kind is ConversationKind.SESSION and _is_pooled(m)]
    if member and not _is_room(conversation) and (project is None or not project.isolated):
        namespaces.append(profile_namespace(access.asker))
        if _reads_own_entries(access):
            namespaces += [entries_namespace(user) for user in access.linked_users(access.asker)]
    memories, others = ([conversation.namespace, *namespaces] if each else namespaces for each in (own_memories, own))
    readers = _readers(access)
    return Reviewable(
        _make_readable(conversation, memories, sessions, readers),
        _make_readable(conversation, others, (), readers),
        _make_readable(conversation, [conversation.namespace], (), access.linked_users(access.asker)),
    )


def reviewers(access: AccessContext, namespace: str, *, pooled: bool) -> str:
    """Who may approve what is filed under a namespace by somebody here, in words. `pooled` as for `reviewable`."""
    conversation, project = access.conversation, effective_project(access)
    own = namespace == conversation.namespace
    if own and _is_room(conversation):
        return "an admin of this room"
    if project is not None and (not own or (pooled and _feeds_project(access))):
        return f"an admin of the project {project.slug}"
    return YOU


@dataclass(frozen=True, slots=True)
class EntryAccess:
    """The facts that access to entries is judged by, gathered when a request begins.

    `user`: for whom is read and written, `linked`: the other users that they are. `vendor`: the tool that asks, or
    EVERY_VENDOR for the person themselves. `grants`: what the credential lets its bearer do, at most what the person
    may (see Grants); one that is missing means less. `teams`: those that the person is a member of now; `shared_with`:
    those that entries of theirs are shared with, also after they left. `projects`: those that they are a member of now.
    `project`: the one that the request is about; None: none. `settings`: what the person has set for themselves.
    Nothing is judged by `name`, what the user is called, and by `zone`, their own time zone if it is known.
    """

    tenant_id: uuid.UUID
    user: uuid.UUID
    vendor: str
    grants: frozenset[str]
    linked: tuple[uuid.UUID, ...] = ()
    teams: tuple[uuid.UUID, ...] = ()
    shared_with: tuple[uuid.UUID, ...] = ()
    projects: tuple[ProjectFacts, ...] = ()
    project: uuid.UUID | None = None
    settings: PersonalSettings = DEFAULT_SETTINGS
    name: str = ""
    zone: tzinfo | None = None

    @property
    def users(self) -> tuple[uuid.UUID, ...]:
        """All users that the person is, the one of the credential first."""
        return (self.user, *self.linked)

    @property
    def is_person(self) -> bool:
        """Whether the person asks themselves, rather than a tool."""
        return self.vendor == EVERY_VENDOR


class Grants:
    """What a credential may let its bearer do. A project's own grant is made by `of_project`."""

    READ_ENTRIES: Final = "entries:read"
    WRITE_ENTRIES: Final = "entries:write"
    READ_TEAMS: Final = "teams:read"
    WRITE_TEAMS: Final = "teams:write"
    READ_PROJECTS: Final = "projects:read"
    WRITE_PROJECTS: Final = "projects:write"

    @staticmethod
    def of_project(project: uuid.UUID, act: str) -> str:
        """The grant for one project alone. `act` is read or write; the second includes the first."""
        return f"project-{project}:{act}"


def readable_project(access: EntryAccess, project: uuid.UUID) -> ProjectFacts | None:
    """One of the person's projects, if the credential may read it; else None, as for one that does not exist."""
    found = next((each for each in access.projects if each.id == project), None)
    grants = {Grants.READ_PROJECTS, Grants.WRITE_PROJECTS}
    grants |= {Grants.of_project(project, act) for act in ("read", "write")}
    return found if found is not None and found.role is not None and grants & access.grants else None


def readable_entries(access: EntryAccess) -> Readable:
    """The entries that may be read: the person's own, those of their teams, and their projects'. Never a room, a DM, a
    session, a profile of others or a project's pool.

    In an isolated project, which a request must name, that project alone; elsewhere none of an isolated one. A request
    that names another project reads no further ones. A tool whose person has switched recall off reads nothing.
    Raises NotFound for a project that may not be read.
    """
    if not access.is_person and not access.settings.recall:
        return _entries(access, [], [])
    named = None if access.project is None else readable_project(access, access.project)
    if access.project is not None and named is None:
        raise NotFound(unknown_project_sentence(str(access.project)))
    if named is not None and named.isolated:
        return _entries(access, [project_namespace(named.id)], [])
    candidates = access.projects if named is None else (named,)
    projects = [each.id for each in candidates if not each.isolated and readable_project(access, each.id) is not None]
    namespaces = list(map(project_namespace, projects))
    if Grants.READ_ENTRIES in access.grants:
        namespaces += _namespaces_of_own(access)
    teams = access.teams if {Grants.READ_TEAMS, Grants.WRITE_TEAMS} & access.grants else ()
    return _entries(access, namespaces, map(team_namespace, teams))


def reviewable_entries(access: EntryAccess) -> Readable:
    """What others wrote for the project that the request names, where the person themselves, as an admin of it, may
    approve it; else nothing."""
    project = None if access.project is None else readable_project(access, access.project)
    grants = set() if project is None else {Grants.WRITE_PROJECTS, Grants.of_project(project.id, "write")}
    if project is None or project.role is not Role.ADMIN or not access.is_person or not grants & access.grants:
        return _entries(access, [], [])
    return _entries(access, [project_namespace(project.id)], [])


def decidable_entries(access: EntryAccess) -> Readable:
    """What waits that the person themselves may approve: among their own entries, and in each project that they are an
    admin of."""
    if not access.is_person:
        return _entries(access, [], [])
    own = map(entries_namespace, access.users) if Grants.READ_ENTRIES in access.grants else ()
    named = [reviewable_entries(replace(access, project=each.id)) for each in access.projects]
    return _entries(access, [*own, *(namespace for each in named for namespace in each.all_namespaces)], [])


def decidable_items(
    access: EntryAccess, rooms: Iterable[JoinedRoom], trust: Trust, talks: Iterable[WaitingTalk] = ()
) -> Reviewable:
    """The same, and what waits where `reviewable` lets them decide: in those of the `rooms` that they are an admin of
    (a guest is of none), in their own DMs and sessions, and, as `pooled`, the memories of sessions of projects that
    they are an admin of. Memories that a project reads of their own session are for its admins."""
    member = trust is Trust.MEMBER
    managed = [room for room in rooms if room.managed and member]
    of_rooms = readable_rooms(access, managed, trust)
    common = [*decidable_entries(access).namespaces, *of_rooms.namespaces]
    if access.is_person and member:
        common += map(profile_namespace, access.users)
    memories, others, pooled = list(common), list(common), list[str]()
    own = list(readable_rooms(access, rooms, trust).namespaces)
    for talk in talks if access.is_person else ():
        feeds, leads = _is_pooled(talk.member), member and talk.role is Role.ADMIN
        if talk.own:
            others.append(talk.member.namespace)
            own.append(talk.member.namespace)
        if talk.own and (leads or not feeds):
            memories.append(talk.member.namespace)
        elif not talk.own and leads and feeds:
            pooled.append(talk.member.namespace)
    own_readers = access.users if access.is_person else ()

    def made(places: Iterable[str], pool: Iterable[str]) -> Readable:
        visibilities, vendor = of_rooms.visibilities, of_rooms.vendor
        return Readable(access.tenant_id, tuple(places), tuple(pool), visibilities, own_readers, vendor, _SEAL)

    return Reviewable(made(memories, pooled), made(others, ()), made(own, ()))


def decidable_decisions(
    access: EntryAccess, rooms: Iterable[JoinedRoom], trust: Trust, talks: Iterable[WaitingTalk] = ()
) -> Readable:
    """What is filed under the rooms that a person is in, was written for the projects, isolated ones too, in which they
    themselves may write, and is filed under their own DMs and sessions among the `talks`: what is proposed there they
    may accept."""
    writing = {Grants.WRITE_PROJECTS}
    found = [
        each.id
        for each in access.projects
        if access.is_person and _writes(each.role) and (writing | {Grants.of_project(each.id, "write")}) & access.grants
    ]
    of_rooms = readable_rooms(access, rooms, trust)
    talked = [talk.member.namespace for talk in talks if talk.own and access.is_person]
    own = (*of_rooms.namespaces, *map(project_namespace, found), *talked)
    readers = access.users if talked else ()
    return Readable(access.tenant_id, own, (), of_rooms.visibilities, readers, of_rooms.vendor, _SEAL)


def may_see_teams(access: EntryAccess) -> bool:
    """Whether the credential may know which teams its person is in, and what they are called."""
    return bool({Grants.READ_TEAMS, Grants.WRITE_TEAMS} & access.grants)


def require_recall(access: EntryAccess) -> None:
    """Return if the person has anything recalled over the API. Raises Refused once they have switched that off."""
    if not access.settings.recall:
        raise Refused(RECALL_IS_OFF)


def readable_team(access: EntryAccess, team: uuid.UUID) -> Readable:
    """The entries of one team. Raises NotFound for a team that the person is no member of, or may not be read, and as
    `require_recall` for a tool."""
    if not access.is_person:
        require_recall(access)
    if team not in access.teams or not {Grants.READ_TEAMS, Grants.WRITE_TEAMS} & access.grants:
        raise NotFound(UNKNOWN_TEAM)
    return _entries(access, [], [team_namespace(team)])


def entry_tag(access: EntryAccess) -> AccessTag:
    """Where an entry is filed that the person, or a tool for them, writes: among their own, or in the project that the
    request names.

    Raises NotFound for a project that may not be read, Refused where the credential or the role in it is not enough.
    """
    if access.project is None:
        require_grant(access, {Grants.WRITE_ENTRIES}, "write entries")
        return AccessTag(entries_namespace(access.user), Visibility.PRIVATE, access.user)
    project = readable_project(access, access.project)
    if project is None:
        raise NotFound(unknown_project_sentence(str(access.project)))
    if not _writes(project.role):
        raise Refused(
            f"You may read the project {project.slug}, not write to it: ask one of its admins for the role write."
        )
    require_grant(access, {Grants.WRITE_PROJECTS, Grants.of_project(project.id, "write")}, "write to that project")
    return AccessTag(project_namespace(project.id), Visibility.SHARED, access.user)


def team_tag(access: EntryAccess, row: Tagged, team: uuid.UUID | None) -> AccessTag:
    """Where an entry of the person's own is filed once it is shared with a team, or with none (None) any more.

    Raises NotFound for an entry that is not theirs or a team that they are not in, Refused for an entry of a project,
    which is shared with that project already, and where the credential is not enough.
    """
    require_grant(access, {Grants.WRITE_TEAMS}, "share with teams")
    if row.user_id is None or row.user_id not in access.users or not readable_entries(access).admits(row):
        raise NotFound(UNKNOWN_ENTRY)
    if row.visibility is not Visibility.PRIVATE:
        raise Refused(
            "Only an entry of your own that is not shared yet, or shared with a team, can be shared with a team."
        )
    if team is None:
        return unshared_tag(row.user_id)
    if team not in access.teams:
        raise NotFound(UNKNOWN_TEAM)
    return AccessTag(team_namespace(team), Visibility.PRIVATE, row.user_id)


def unshared_tag(owner: uuid.UUID) -> AccessTag:
    """Where an entry is filed that is shared with nobody: its owner and their tools alone read it."""
    return AccessTag(entries_namespace(owner), Visibility.PRIVATE, owner)


def require_editable(access: EntryAccess, row: Tagged) -> None:
    """Return if the bearer may change, trash or forget an entry: the person whose own it is, themselves; a tool appends
    only. Raises NotFound for one that may not be read, Refused for one that may be read only."""
    if not readable_entries(access).admits(row):
        raise NotFound(UNKNOWN_ENTRY)
    if not access.is_person:
        raise Refused("A tool adds entries; only the person whose they are may change or delete them.")
    require_grant(access, {Grants.WRITE_ENTRIES}, "change entries")
    if row.user_id not in access.users:
        raise Refused("That entry is another person's: only they may change it.")
    project = next((each for each in access.projects if project_namespace(each.id) == row.namespace), None)
    if project is not None:
        entry_tag(replace(access, project=project.id))


def require_forgettable(access: EntryAccess, row: Tagged, origin: str) -> None:
    """Return if the bearer may erase an entry that `origin` wrote: the person, what they may change; a tool, what it
    wrote itself and what lies among the person's own, shared with nobody. Raises as `require_editable`."""
    if access.is_person:
        return require_editable(access, row)
    if not readable_entries(access).admits(row):
        raise NotFound(UNKNOWN_ENTRY)
    require_grant(access, {Grants.WRITE_ENTRIES}, "forget entries")
    if origin != access.vendor or row.namespace not in map(entries_namespace, access.users):
        raise Refused("A tool forgets only what it wrote itself, while that is shared with nobody.")
    return None


def owned_by_bearer(access: EntryAccess) -> Owned:
    """Everything that the person owns, for the person themselves. Raises Refused for a tool."""
    if not access.is_person:
        raise Refused("Only the person themselves may see all that is stored of them.")
    return Owned(access.tenant_id, access.users, _SEAL)


def may_know_session(access: EntryAccess, session: Conversation) -> bool:
    """Whether a session is the person's own, and one that their credential may know of."""
    if session.kind is not ConversationKind.SESSION or session.user_id not in access.users:
        return False
    known = projects_of_sessions(access)
    return known is None or session.project_id is None or session.project_id in known


def projects_of_sessions(access: EntryAccess) -> tuple[uuid.UUID, ...] | None:
    """The projects whose sessions, of the person's own, a credential may know of; None: it may of all. A session in no
    project is always among them."""
    if {Grants.READ_PROJECTS, Grants.WRITE_PROJECTS} & access.grants:
        return None
    return tuple(each.id for each in access.projects if readable_project(access, each.id) is not None)


def pooled_sessions(access: EntryAccess, project: uuid.UUID, members: Iterable[PoolMember]) -> Readable:
    """A Readable of the sessions that the pool of one of the person's projects holds, whosever they are; `members` are
    its conversations. Raises NotFound for a project that may not be read, and Refused for a tool."""
    owned_by_bearer(access)
    if readable_project(access, project) is None:
        raise NotFound(unknown_project_sentence(str(project)))
    sessions = (each.namespace for each in members if each.kind is ConversationKind.SESSION and _is_pooled(each))
    return _entries(access, [], sessions)


UNKNOWN_ENTRY: Final = "There is no such entry."
RECALL_IS_OFF: Final = (
    "This person has switched recall off for tools and the API: they switch it on with PATCH /v1/settings."
)
UNKNOWN_TEAM: Final = "There is no such team."


def unknown_project_sentence(name: str) -> str:
    """The sentence for a project that does not exist, or that the asker may not know of. It is the same for both."""
    return f"There is no project '{name}' here."


def _namespaces_of_own(access: EntryAccess) -> list[str]:
    """Where the person's own entries lie, shared or not. Of a team that they left, they still read their own."""
    own = [entries_namespace(user) for user in access.users] + [profile_namespace(user) for user in access.users]
    return own + [team_namespace(team) for team in access.shared_with]


def require_grant(access: EntryAccess, any_of: Collection[str], act: str) -> None:
    """Return if a credential has any of these permissions. Raises Refused, with the `act` in words."""
    if not access.grants.intersection(any_of):
        raise Refused(f"This key may not {act}. It would need {' or '.join(sorted(any_of))}.")


def _entries(access: EntryAccess, namespaces: Iterable[str], pooled: Iterable[str]) -> Readable:
    team = tuple(dict.fromkeys(pooled))
    own = tuple(namespace for namespace in dict.fromkeys(namespaces) if namespace not in team)
    return Readable(access.tenant_id, own, team, (Visibility.SHARED,), access.users, access.vendor, _SEAL)


def _make_readable(
    conversation: Conversation,
    namespaces: Iterable[str],
    pooled: Iterable[str],
    readers: Sequence[uuid.UUID],
    rooms: Iterable[str] = (),
) -> Readable:
    own = tuple(dict.fromkeys(namespaces))
    visibilities = (Visibility.SHARED,) if readers else (Visibility.PUBLIC, Visibility.SHARED)
    pool = tuple(namespace for namespace in dict.fromkeys(pooled) if namespace not in own)
    opened = tuple(namespace for namespace in dict.fromkeys(rooms) if namespace not in (*own, *pool))
    return Readable(conversation.tenant_id, own, pool, visibilities, tuple(readers), BOT_VENDOR, _SEAL, opened)


def _readers(access: AccessContext) -> tuple[uuid.UUID, ...]:
    """Users whose private rows may be read: none in a room, else the conversation's user and their linked users."""
    owner = access.conversation.user_id
    return () if _is_room(access.conversation) or owner is None else access.linked_users(owner)


def _writes(role: Role | None) -> bool:
    return role is not None and role.writes


def _feeds_project(access: AccessContext) -> bool:
    """Whether a project's pool holds what is said in this session."""
    project = effective_project(access)
    return project is not None and any(
        _is_pooled(member)
        for member in project.members
        if member.kind is ConversationKind.SESSION and member.namespace == access.conversation.namespace
    )


def _is_room(conversation: Conversation) -> bool:
    return conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)


def _require_participation(access: AccessContext) -> None:
    if not may_participate(access):
        raise NotFound(unknown_conversation_sentence(access.conversation.kind, access.conversation.name))


def _is_private_part(member: PoolMember) -> bool:
    return _is_pooled(member) and (member.private or member.kind is ConversationKind.SESSION)


def _is_pooled(member: PoolMember) -> bool:
    """Whether a conversation feeds its project's pool.

    Rooms do, private ones only if their own admin agreed. Sessions do while their user may write in the project: who
    may only read it puts nothing into it by talking there. Nor does a session that its user has put there in an earlier
    membership. A DM never does.
    """
    if member.kind is ConversationKind.ROOM:
        return member.pooled or not member.private
    return member.kind is ConversationKind.SESSION and member.pooled and _writes(member.owner_role)
