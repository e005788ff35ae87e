"""Whether a person has a permission: a relation (member, admin, author, …) to one of the things that an act concerns,
judged by facts that were gathered at one moment. Pure; which act needs which ones is in composer/rights/table.py."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from composer.model import (
    GLOBAL_NAMESPACE,
    ConversationKind,
    Role,
    TeamRole,
    Trust,
    profile_namespace,
    project_namespace,
)
from composer.visibility import AccessContext, ProjectFacts, Tagged, effective_project, may_participate


class Relation(StrEnum):
    """How a person may be related to a thing."""

    PARTICIPANT = "participant"
    ADMIN = "admin"
    OWNER = "owner"
    MEMBER = "member"
    WRITER = "writer"
    AUTHOR = "author"
    SELF = "self"
    ANOTHER_PLACE = "another place"
    INVITED = "invited"


class Thing(StrEnum):
    """What an act may concern."""

    CONVERSATION = "conversation"
    ROOM = "room"
    PRIVATE_ROOM = "private room"
    PROJECT_HERE = "project here"
    PROJECT_LEFT = "project left"
    ISOLATED_LEFT = "isolated project left"
    PROJECT_NAMED = "project named"
    PERSON = "person"
    ACCOUNT = "account"
    ITEM = "item"
    TEAM = "team"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Permission:
    """A relation to a thing, and who has it, in words for help texts."""

    relation: Relation
    thing: Thing
    words: str


@dataclass(frozen=True, slots=True)
class LinkedAccount:
    """Another account of somebody: the name that people see there, and where that is. `same_place`: with it, two
    accounts in one workspace would become one person."""

    name: str
    platform: str
    workspace: str
    same_place: bool


@dataclass(frozen=True, slots=True)
class ActorFacts:
    """Everything that permissions are judged by.

    `access`: the conversation, whether the person is in it, and its project as it is now. `room_admin`: the platform
    calls them an admin of the room; in the terminal, they opened it. `named_projects`: those of their projects that
    `project_name`, as typed, may mean; if it is one, it is `named`. `names`: what the person calls the projects here
    and named, by id, where a slug alone may mean several. `of_self`: the person that is named is they themselves.
    `item`: what is to be changed; `proposed`: it was found in messages, and nobody has pinned it yet. `account`: the
    account to be linked. `needs_approval`: what they write waits for approval. `pooling`: the project is to recall what
    is said in the room. `given`: the person has put this session into its project in this membership.
    """

    access: AccessContext
    room_admin: bool = False
    named_projects: tuple[ProjectFacts, ...] = ()
    project_name: str = ""
    of_self: bool = False
    item: Tagged | None = None
    proposed: bool = False
    account: LinkedAccount | None = None
    needs_approval: bool = False
    pooling: bool = False
    given: bool = False
    names: Mapping[uuid.UUID, str] = field(default_factory=dict)

    @property
    def in_room(self) -> bool:
        """Whether the conversation is a room or a thread of one."""
        return self.access.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)

    @property
    def in_session(self) -> bool:
        """Whether the conversation is a session."""
        return self.access.conversation.kind is ConversationKind.SESSION

    @property
    def private_room(self) -> bool:
        """Whether it is a private room."""
        return self.in_room and self.access.conversation.private

    @property
    def named(self) -> ProjectFacts | None:
        """The project that is named; None if it is none of the person's, or may be several."""
        return self.named_projects[0] if len(self.named_projects) == 1 else None

    @property
    def left(self) -> ProjectFacts | None:
        """The project that the conversation leaves when it is put into the named one, or into none."""
        here, named = self.access.project, self.named
        return None if here is not None and named is not None and here.id == named.id else here

    @property
    def projects(self) -> tuple[uuid.UUID | None, ...]:
        """The ids of the projects that permissions are judged by: here (which may be left), and named."""
        return tuple(None if project is None else project.id for project in (self.access.project, self.named))

    def name_of(self, project: ProjectFacts) -> str:
        """What the person calls a project."""
        return self.names.get(project.id, project.slug)

    @property
    def place(self) -> str:
        """The conversation, as people write it."""
        if self.in_room:
            return f"#{self.access.conversation.name}"
        return "this DM" if self.access.conversation.kind is ConversationKind.DM else "this session"


@dataclass(frozen=True, slots=True)
class TeamFacts:
    """What somebody, and another person, are to a team, as of now. `role` and `invited` are of the one who acts,
    `other_role` of the other (None: no member), who is the same person if `of_self`. `last_admin`: the other, or who
    acts where there is no other, is its only admin."""

    name: str
    role: TeamRole | None
    invited: bool = False
    other_role: TeamRole | None = None
    of_self: bool = False
    last_admin: bool = False


@dataclass(frozen=True, slots=True)
class MembershipFacts:
    """What somebody is to a project that they name outside any conversation, as of now. `project`: with their role
    (None: there is none of theirs that is called so). `name`: what they call it. `of_self`: the act is about them.
    `item`: what is to be changed of what was written for the project; `authored`: it is theirs, or was found in
    messages and nobody has pinned it yet."""

    project: ProjectFacts | None
    name: str
    of_self: bool = False
    item: Tagged | None = None
    authored: bool = False


@dataclass(frozen=True, slots=True)
class TenantFacts:
    """What somebody is to their tenant, outside any conversation, as of now."""

    admin: bool


Facts = ActorFacts | TeamFacts | MembershipFacts | TenantFacts


def has_permission(facts: Facts, permission: Permission) -> bool:
    """Whether the person has a permission. A relation that is not defined for a thing nobody has, and of a thing that
    the facts say nothing of nobody has any."""
    match facts:
        case ActorFacts():
            return _RELATIONS[permission.thing](facts, permission.relation)
        case TeamFacts():
            return permission.thing is Thing.TEAM and _to_team(facts, permission.relation)
        case MembershipFacts():
            if permission.thing is Thing.PROJECT_NAMED:
                return _in_project(facts.project, permission.relation)
            if permission.thing is Thing.ITEM:
                return _to_item_of_project(facts, permission.relation)
            themselves = permission.thing is Thing.PERSON and permission.relation is Relation.SELF
            return themselves and facts.of_self
        case TenantFacts():
            return permission.thing is Thing.TENANT and permission.relation is Relation.ADMIN and facts.admin


def _to_team(facts: TeamFacts, relation: Relation) -> bool:
    return {
        Relation.MEMBER: facts.role is not None,
        Relation.ADMIN: facts.role is TeamRole.ADMIN,
        Relation.INVITED: facts.invited,
        Relation.SELF: facts.role is not None and facts.of_self,
    }.get(relation, False)


def _to_conversation(facts: ActorFacts, relation: Relation) -> bool:
    match relation:
        case Relation.PARTICIPANT:
            return may_participate(facts.access)
        case Relation.OWNER:
            return not facts.in_room and facts.access.conversation.user_id == facts.access.asker
    return False


def _to_room(facts: ActorFacts, relation: Relation) -> bool:
    return relation is Relation.ADMIN and facts.in_room and facts.room_admin


def _in_project(project: ProjectFacts | None, relation: Relation) -> bool:
    """Membership alone counts: being an admin of the tenant gives nothing in a project. One that has no admin any more
    is its members': each may do what an admin may."""
    roles: Mapping[Relation, tuple[Role, ...]] = {
        Relation.MEMBER: tuple(Role),
        Relation.WRITER: tuple(role for role in Role if role.writes),
        Relation.ADMIN: (Role.ADMIN,),
    }
    if project is None or project.role is None:
        return False
    return project.role in roles.get(relation, ()) or (relation is Relation.ADMIN and project.admins == 0)


def _in_project_left(facts: ActorFacts, relation: Relation) -> bool:
    """A conversation in no project leaves none."""
    return facts.left is None or _in_project(facts.left, relation)


def _in_isolated_project_left(facts: ActorFacts, relation: Relation) -> bool:
    """Nothing inside an isolated project reaches out, so a conversation leaves one only by the will of its admins, if
    it has any."""
    return facts.left is None or not facts.left.isolated or not facts.left.admins or _in_project(facts.left, relation)


def _to_item(facts: ActorFacts, relation: Relation) -> bool:
    """Whether the person may write where the item is kept, wrote it themselves, or is an admin there."""
    item, access = facts.item, facts.access
    if item is None:
        return False
    if item.namespace in (profile_namespace(user) for user in access.linked_users(access.asker)):
        return True
    project = effective_project(access)
    if item.namespace == access.conversation.namespace:
        writer = may_participate(access)
        admin = _to_room(facts, relation) or _to_conversation(facts, Relation.OWNER)
    elif project is not None and item.namespace == project_namespace(project.id):
        writer, admin = _in_project(project, Relation.WRITER), _in_project(project, Relation.ADMIN)
    else:
        writer = admin = item.namespace == GLOBAL_NAMESPACE and access.asker_admin
    authored = facts.proposed or item.user_id in access.linked_users(access.asker)
    return _to_kept(relation, writer=writer, admin=admin, authored=authored)


def _to_item_of_project(facts: MembershipFacts, relation: Relation) -> bool:
    project, item = facts.project, facts.item
    if project is None or item is None or item.namespace != project_namespace(project.id):
        return False
    return _to_kept(
        relation,
        writer=_in_project(project, Relation.WRITER),
        admin=_in_project(project, Relation.ADMIN),
        authored=facts.authored,
    )


def _to_kept(relation: Relation, *, writer: bool, admin: bool, authored: bool) -> bool:
    return {Relation.WRITER: writer, Relation.AUTHOR: writer and authored, Relation.ADMIN: admin}.get(relation, False)


_RELATIONS: Final[Mapping[Thing, Callable[[ActorFacts, Relation], bool]]] = {
    Thing.CONVERSATION: _to_conversation,
    Thing.ROOM: _to_room,
    Thing.PRIVATE_ROOM: lambda facts, relation: facts.private_room and _to_room(facts, relation),
    Thing.PROJECT_HERE: lambda facts, relation: _in_project(effective_project(facts.access), relation),
    Thing.PROJECT_LEFT: _in_project_left,
    Thing.ISOLATED_LEFT: _in_isolated_project_left,
    Thing.PROJECT_NAMED: lambda facts, relation: _in_project(facts.named, relation),
    Thing.PERSON: lambda facts, relation: relation is Relation.SELF and facts.of_self,
    Thing.ACCOUNT: lambda facts, relation: (
        relation is Relation.ANOTHER_PLACE and facts.account is not None and not facts.account.same_place
    ),
    Thing.ITEM: _to_item,
    Thing.TEAM: lambda facts, relation: False,  # teams are judged by TeamFacts alone
    Thing.TENANT: lambda facts, relation: (
        (relation is Relation.ADMIN and facts.access.asker_admin)
        or (relation is Relation.MEMBER and facts.access.trust is Trust.MEMBER)
    ),
}
