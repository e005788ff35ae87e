"""Who may read what: the only place that decides it, and the only one that can make a `Readable`.

Facts are gathered first (`AccessContext`, by one store query, as they are now), then judged here by
pure functions. When anything is missing the answer is no, and no looks like "does not exist".
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final, Protocol

from composer.errors import NotFound, Refused
from composer.model import (
    BOT_VENDOR,
    GLOBAL_NAMESPACE,
    Conversation,
    ConversationKind,
    Role,
    Visibility,
    dm_namespace,
    profile_namespace,
    project_namespace,
)

MAX_PARTICIPANTS: Final = 16  # whose profiles a room's prompt may hold (DESIGN section 4)
_SEAL: Final = object()


class Tagged(Protocol):
    """Anything that carries the marks that decide who may read it."""

    @property
    def namespace(self) -> str:
        """The run it belongs to."""
        ...

    @property
    def visibility(self) -> Visibility:
        """Its mark within the run."""
        ...

    @property
    def user_id(self) -> uuid.UUID | None:
        """Whose it is."""
        ...

    @property
    def vendors(self) -> tuple[str, ...]:
        """Which vendors its owner lets read it; `*` is all."""
        ...


@dataclass(frozen=True, slots=True)
class Readable:
    """What one viewer may read, for one turn. Stores take it whole and can't make or widen one.

    A row may be read when its run is in `runs` and its mark is in `visibilities`, or is private and
    of one of `readers`; or when its run is in `pooled` (the conversations of a project have consented to
    each other, whatever their mark). Runs are disjoint from pooled ones. An empty one reads nothing.
    """

    tenant_id: uuid.UUID
    runs: tuple[str, ...]
    pooled: tuple[str, ...]
    visibilities: tuple[Visibility, ...]
    readers: tuple[uuid.UUID, ...]
    vendor: str
    seal: InitVar[object] = None  # shown when one is made and not kept: nobody can copy it off another one

    def __post_init__(self, seal: object) -> None:
        """Refuse to be made anywhere but here, by dataclasses.replace too."""
        if seal is not _SEAL:
            raise TypeError("only composer.visibility makes a Readable")

    def admits(self, row: Tagged) -> bool:
        """Whether this viewer may read `row`; equal to may_read() in SQL plus the run's being in scope."""
        if "*" not in row.vendors and self.vendor not in row.vendors:
            return False
        if row.namespace in self.pooled:
            return True
        if row.namespace not in self.runs:
            return False
        if row.visibility in self.visibilities:
            return True
        return row.visibility is Visibility.PRIVATE and row.user_id in self.readers

    @property
    def scope(self) -> tuple[str, ...]:
        """Every run that recall may look into: its own and the pooled ones."""
        return self.runs + self.pooled

    def without_pool(self) -> "Readable":
        """The same viewer for what is never pooled: facts and landmarks."""
        return Readable(self.tenant_id, self.runs, (), self.visibilities, self.readers, self.vendor, _SEAL)


@dataclass(frozen=True, slots=True)
class PoolMember:
    """A conversation that is assigned to a project, as it is now.

    `pooled` is its own admin's word that a private room joins the pool; `owner_role` is the role in
    the project of the person whose session it is.
    """

    namespace: str
    kind: ConversationKind
    private: bool
    pooled: bool
    owner_role: Role | None = None


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """The project of a conversation as it is now. `role` is the asker's; None for no member."""

    id: uuid.UUID
    slug: str
    isolated: bool
    role: Role | None
    members: tuple[PoolMember, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessContext:
    """What is so at the moment a turn starts, gathered before anything is judged.

    `joined` is whether the asker is a member of the room now (None: nobody ever said either way).
    `gone` are people who have left it. `linked` are the other users that a person is, on other platforms,
    for the people that matter here; whoever is not in it is nobody else.
    """

    conversation: Conversation
    asker: uuid.UUID
    asker_admin: bool = False
    joined: bool | None = None
    gone: frozenset[uuid.UUID] = frozenset()
    project: ProjectFacts | None = None
    linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]] = field(default_factory=dict)

    def selves(self, user: uuid.UUID) -> tuple[uuid.UUID, ...]:
        """All the users that one person is, this one first."""
        return (user, *self.linked.get(user, ()))


def _readable(
    conversation: Conversation, runs: Iterable[str], pooled: Iterable[str], readers: Sequence[uuid.UUID]
) -> Readable:
    own = tuple(dict.fromkeys(runs))
    marks = (Visibility.SHARED,) if readers else (Visibility.PUBLIC, Visibility.SHARED)
    pool = tuple(run for run in dict.fromkeys(pooled) if run not in own)
    return Readable(conversation.tenant_id, own, pool, marks, tuple(readers), BOT_VENDOR, _SEAL)


def _readers(access: AccessContext) -> tuple[uuid.UUID, ...]:
    """Whose private words may be read: in a room nobody's, else those of the person whose conversation it is."""
    owner = access.conversation.user_id
    return () if _is_room(access.conversation) or owner is None else access.selves(owner)


def _is_room(conversation: Conversation) -> bool:
    return conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)


def may_participate(access: AccessContext) -> bool:
    """Whether the asker may take part in this conversation: anyone in a public room, members in a
    private one, and nobody but its own user in a DM or a session."""
    if _is_room(access.conversation):
        return not access.conversation.private or access.joined is True
    return access.conversation.user_id == access.asker


def conversation_namespace(access: AccessContext) -> Readable:
    """The conversation's own words and no more: what the working layer reads, before it is known who speaks.

    Raises NotFound when the asker may not be here.
    """
    _require_participation(access)
    return _readable(access.conversation, (access.conversation.namespace,), (), _readers(access))


def people(access: AccessContext, speakers: Sequence[uuid.UUID]) -> tuple[uuid.UUID, ...]:
    """Whose shared profiles belong in a room's prompt: the asker, then `speakers` (who speaks or is
    mentioned, latest first), at most 16, without those who have left.

    Someone mentioned takes a place whether or not anything is known of them: otherwise what is known
    elsewhere would decide who is pushed out.
    """
    chosen = tuple(dict.fromkeys((access.asker, *speakers)))[:MAX_PARTICIPANTS]
    return tuple(person for person in chosen if person not in access.gone)


def readable(access: AccessContext, speakers: Sequence[uuid.UUID]) -> Readable:
    """Everything that may be read to answer in this conversation (DESIGN section 4).

    `speakers`: see `people`; used for rooms only. Raises NotFound when the asker may not be here.
    """
    _require_participation(access)
    conversation, project = access.conversation, effective_project(access)
    room = _is_room(conversation)
    runs = [conversation.namespace]
    if project is None or not project.isolated:
        runs.append(GLOBAL_NAMESPACE)
        persons = people(access, speakers) if room else (access.asker,)
        runs.extend(profile_namespace(self) for person in persons for self in access.selves(person))
        if conversation.kind is ConversationKind.DM and conversation.agent_id is not None:
            runs.extend(dm_namespace(self, conversation.agent_id) for self in access.selves(access.asker))
    pooled: list[str] = []
    if project is not None:
        runs.append(project_namespace(project.id))
        pooled.extend(member.namespace for member in project.members if _is_pooled(member))
    return _readable(conversation, runs, pooled, _readers(access))


def _require_participation(access: AccessContext) -> None:
    if not may_participate(access):
        raise NotFound(unknown_conversation(access.conversation.kind, access.conversation.name))


def unknown_conversation(kind: ConversationKind, name: str) -> str:
    """The one sentence for a conversation that is not there or not for the asker."""
    noun = {ConversationKind.DM: "agent", ConversationKind.SESSION: "session"}.get(kind, "room")
    return f"There is no {noun} '{name}' here."


def effective_project(access: AccessContext) -> ProjectFacts | None:
    """The project that this conversation is in, as far as reading goes.

    A room that is assigned opens its project to all who are in it. A DM or a session is in its project
    only while its user is a member; being an admin of the tenant does not do, since what is pooled
    there are other people's words.
    """
    if access.project is None or _is_room(access.conversation) or access.project.role is not None:
        return access.project
    return None


def _is_pooled(member: PoolMember) -> bool:
    """Rooms, private ones if their own admin said so, and sessions while their user is a member: who
    has been removed does not go on feeding a pool that they can no longer see. A DM never."""
    if member.kind is ConversationKind.ROOM:
        return member.pooled or not member.private
    return member.kind is ConversationKind.SESSION and member.owner_role is not None


def can_write_project(access: AccessContext) -> bool:
    """Members who may write, and admins of the tenant."""
    role = None if access.project is None else access.project.role
    return access.asker_admin or role in (Role.WRITE, Role.ADMIN)


def can_manage_project(access: AccessContext) -> bool:
    """The project's admins, and admins of the tenant."""
    return access.asker_admin or (access.project is not None and access.project.role is Role.ADMIN)


@dataclass(frozen=True, slots=True)
class AccessTag:
    """Under which run and visibility, and as whose, something is written."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID


class WriteScope:
    """How far a written fact, memory or landmark is meant to reach."""

    HERE: Final = "here"
    EVERYWHERE: Final = "everywhere"
    PROJECT: Final = "project"
    GLOBAL: Final = "global"


def access_tag_for(access: AccessContext, reach: str) -> AccessTag:
    """Where something that the asker writes here is filed: in the conversation's own run unless a
    wider reach is named by someone who may.

    Raises NotFound (may not be here), Refused with a sentence (may not reach that far).
    """
    _require_participation(access)
    conversation, project = access.conversation, effective_project(access)
    if reach == WriteScope.HERE:
        return AccessTag(conversation.namespace, conversation.visibility, access.asker)
    if reach == WriteScope.PROJECT:
        if project is None:
            raise Refused("This conversation is in no project; assign it first with /nexus project assign NAME.")
        if not can_write_project(access):
            raise Refused(f"You may not write to the project {project.slug}; ask one of its admins for the role write.")
        return AccessTag(project_namespace(project.id), Visibility.SHARED, access.asker)
    if project is not None and project.isolated:
        raise Refused(f"The project {project.slug} is isolated: nothing that is said here may leave it.")
    if reach == WriteScope.EVERYWHERE:
        return AccessTag(profile_namespace(access.asker), Visibility.SHARED, access.asker)
    if not access.asker_admin:
        raise Refused("Only an admin of this workspace may set something for everyone.")
    return AccessTag(GLOBAL_NAMESPACE, Visibility.SHARED, access.asker)


def may_manage_landmarks(access: AccessContext, namespace: str) -> bool:
    """Whether the asker may accept, amend or retire what is filed under a run that they can read: in the conversation
    itself everyone who is there, elsewhere whoever may write that far."""
    _require_participation(access)
    project = effective_project(access)
    if namespace in (access.conversation.namespace, profile_namespace(access.asker)):
        return True
    if project is not None and namespace == project_namespace(project.id):
        return can_write_project(access)
    return namespace == GLOBAL_NAMESPACE and access.asker_admin


def own_namespaces(access: AccessContext) -> tuple[str, ...]:
    """The runs in which the asker's own words are meant by "forget this": the conversation's and their profile."""
    _require_participation(access)
    return (access.conversation.namespace, profile_namespace(access.asker))
