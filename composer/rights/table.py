"""Decide who may act: one table, which says for each act which permissions it needs, and what it opens to whom.

Facts are gathered first, as of this moment (composer/repositories/permissions.py); then pure functions judge. What is
not in the table is refused. Who may read is decided in composer/visibility.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from composer.errors import AdminNeeded, BadInput, NexusError, NotFound, Refused
from composer.model import Role
from composer.rights.project_names import full_name
from composer.rights.relations import (
    ActorFacts,
    Facts,
    MembershipFacts,
    Permission,
    Relation,
    TeamFacts,
    TenantFacts,
    Thing,
    has_permission,
)
from composer.visibility import (
    UNKNOWN_TEAM,
    ProjectFacts,
    effective_project,
    may_participate,
    unknown_conversation_sentence,
    unknown_project_sentence,
)


class Act(StrEnum):
    """What a person can do."""

    READ = "read what is known here"
    WRITE = "write what is read here"
    WRITE_EVERYWHERE = "write about oneself, for everyone"
    WRITE_PROJECT = "write for the project"
    WRITE_GLOBAL = "write for everyone"
    MOVE_TO_PROJECT = "file what is one's own under the project"
    MOVE_TO_GLOBAL = "file what is one's own for everyone"
    ACCEPT_LANDMARK = "pin a proposed decision"
    SETTLE_LANDMARK = "amend or retire a decision"
    REMIND = "have oneself reminded, or a conversation that one is in"
    SET_DIGEST = "set whether a room's digest is posted to it"
    SEE_OWN = "see and take all that is one's own, and set one's time zone"
    FORGET_OWN = "erase what is one's own"
    ERASE_ROOM = "erase what everyone said in a room"
    ERASE_USER = "erase all of a person"
    ERASE_PROJECT = "erase all of a project"
    SET_CONSENT = "say whether one's own messages are stored"
    GET_LINK_CODE = "get a code that links two accounts"
    LINK = "link two accounts"
    UNLINK = "separate linked accounts"
    SEE_KEYS = "see and end what opens one's memory from outside"
    CREATE_KEY = "let an AI tool use one's entries"
    SIGN_IN = "sign in to the web pages"
    OPEN_ROOMS = "let one's DMs read the rooms that one is in"
    SET_RECORDING = "set what is stored of a room"
    SET_FOLLOW_UPS = "set whether follow-ups in a room need a mention"
    DECIDE = "approve or reject what waits here for oneself"
    REVIEW = "approve and take back what others wrote here"
    COMPACT = "shorten an agent's view"
    CHANGE_SETTINGS = "see and change settings"
    SEE_AUDIT = "see the audit log"
    MANAGE_PEOPLE = "make people admins, sign them out and let them in again, and disable them"
    OVERSEE_PLACES = "see all projects and teams by their figures, and give one without an admin one, or delete it"
    IMPORT_HISTORY = "bring in what was said in public rooms from a file, and undo that"
    SEE_USAGE = "see what everyone's use of models costs"
    CREATE_PROJECT = "make a project"
    SEE_PROJECT = "see the members of a project"
    RENAME_PROJECT = "give a project another name"
    DELETE_PROJECT = "delete a project"
    ADD_MEMBER = "invite somebody to a project, and set a member's role"
    JOIN_PROJECT = "accept or decline an invitation to a project"
    LEAVE_PROJECT = "leave a project"
    REMOVE_MEMBER = "remove a member from a project"
    ASSIGN_ROOM = "put a room into a project"
    ASSIGN_SESSION = "put one's session into a project"
    ASSIGN_DM = "let one's DM recall what a project remembers"
    POOL_ROOM = "let a project recall what is said in a private room"
    UNASSIGN_ROOM = "take a room out of its project"
    UNASSIGN_SESSION = "take one's session out of its project"
    UNASSIGN_DM = "take one's DM out of its project"
    SEE_TEAM = "see the members of a team"
    RENAME_TEAM = "give a team another name"
    DELETE_TEAM = "delete a team"
    INVITE_TO_TEAM = "invite somebody to a team"
    JOIN_TEAM = "accept or decline an invitation to a team"
    REMOVE_FROM_TEAM = "remove a member from a team"
    SET_TEAM_ROLE = "set what a member may do in a team"
    UNSHARE_OF_FORMER = "end what a former member shares with a team"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """What an act needs: any one of these permissions. `refusal` is the sentence for who has none of them; it may
    name {place}, {here}, {left} and {named}."""

    any_of: tuple[Permission, ...]
    refusal: str = ""

    @property
    def words(self) -> str:
        """Who has it."""
        return " or ".join(permission.words for permission in self.any_of)


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table: all that an act needs, and what it opens to whom, in a sentence that is shown first. An act
    that opens something changes nothing until it is confirmed."""

    requirements: tuple[AnyOf, ...]
    opens: Callable[[ActorFacts], str] | None = None


def judge(acts: Sequence[Act], facts: Facts) -> None:
    """Return if the person has every permission that the acts need: in a conversation, over a team, or over a project
    that they name outside any conversation.

    Raises NotFound for what they may not know of, which looks like nothing, else Refused with the first permission that
    is missing.
    """
    _require_known(facts)
    for act in acts:
        if act not in TABLE:
            raise Refused("Nobody may do that.")
        for requirement in TABLE[act].requirements:
            if not any(has_permission(facts, permission) for permission in requirement.any_of):
                raise _refusal(requirement, facts)


def _require_known(facts: Facts) -> None:
    match facts:
        case ActorFacts() if not may_participate(facts.access):
            conversation = facts.access.conversation
            raise NotFound(unknown_conversation_sentence(conversation.kind, conversation.name))
        case TeamFacts() if facts.role is None and not facts.invited:
            raise NotFound(UNKNOWN_TEAM)
        case MembershipFacts() if facts.project is None or facts.project.role is None:
            raise NotFound(unknown_project_sentence(facts.name))


def opening(acts: Sequence[Act], facts: ActorFacts) -> str:
    """What the acts open to whom, in sentences; empty if they open nothing."""
    facts = replace(facts, pooling=Act.POOL_ROOM in acts)
    found = (rule.opens(facts) for rule in map(TABLE.__getitem__, acts) if rule.opens is not None)
    return " ".join(sentence for sentence in found if sentence)


def who(*acts: Act) -> str:
    """Who may do all of these, in words for help texts: those of whom all of the words are true."""
    requirements = [requirement for act in acts for requirement in TABLE[act].requirements]
    stricter = [requirement for requirement in requirements if requirement not in (PARTICIPANT, KNOWN)] or requirements
    return ", ".join(dict.fromkeys(requirement.words for requirement in stricter))


def _refusal(requirement: AnyOf, facts: Facts) -> NexusError:
    if isinstance(facts, TenantFacts):
        return AdminNeeded(requirement.refusal)
    if not isinstance(facts, ActorFacts):
        named = facts.project if isinstance(facts, MembershipFacts) else None
        return Refused(requirement.refusal.format(named="" if named is None else named.slug))
    if requirement is KNOWN:
        if len(facts.named_projects) > 1:
            return _several(facts)
        return NotFound(unknown_project_sentence(facts.project_name))
    here = effective_project(facts.access)
    if requirement is HERE_WRITER and here is None:
        return Refused("This conversation is in no project. To add it to one: /nexus project assign NAME")
    projects = {"here": here, "left": facts.left, "named": facts.named}
    slugs = {name: "" if project is None else facts.name_of(project) for name, project in projects.items()}
    refused = AdminNeeded if requirement.any_of == (_TENANT_ADMIN,) else Refused
    return refused(requirement.refusal.format(place=facts.place, **slugs))


def _several(facts: ActorFacts) -> NexusError:
    """The refusal of a name that several of the person's projects have."""
    names = [f"{full_name(each.slug, each.id)} (your role: {each.role})" for each in facts.named_projects]
    return BadInput(f"You are in {len(names)} projects called {facts.project_name}; name one as {' or '.join(names)}.")


def _assigned(facts: ActorFacts) -> str:
    project, place = facts.named, facts.place
    here = facts.access.project
    if project is None or (here is not None and here.id == project.id and (facts.given or not facts.in_session)):
        return ""
    name = facts.name_of(project)
    who = "Everyone" if facts.in_room else "You"
    opened = f"{who} in {place} can then recall what {name} remembers"
    if not facts.in_room and project.role is not None and not project.role.writes:
        opened += (
            f". Your role there is read, so nobody in {name} recalls what is said in {place}; once you have the role "
            "write they do, also what was said before."
        )
    elif facts.private_room:
        opened += "." if facts.pooling else "; what is said in this private room stays here."
    else:
        opened += f", and everyone in {name} what is said in {place}, also what was said before."
    if project.isolated:
        opened += f" {name} is isolated: here I then recall nothing from outside it, and nothing of it outside."
    return f"{opened} {_left(facts)}".rstrip()


def _left(facts: ActorFacts) -> str:
    if facts.left is None:
        return ""
    name, place = facts.name_of(facts.left), facts.place
    return (
        f"From then on I recall nothing of {name} in {place}, and nobody in {name} recalls what is said in {place}. "
        f"What was written for {name} with --project stays with {name}, and what was said in {place} stays there."
    )


def _left_without_admin(facts: ActorFacts) -> str:
    project = facts.named
    return "" if project is None else leaving_alone(project, facts.name_of(project))


def leaving_alone(project: ProjectFacts, name: str) -> str:
    """What it opens that somebody leaves a project, as a sentence; empty unless they are its only admin."""
    if project.role is not Role.ADMIN or project.admins != 1:
        return ""
    return (
        f"You are the only admin of {name}: without you, each of its members may do what its admins may, and where "
        "there is none left, nobody can read it any more. To name another admin first: "
        f"/nexus project member add {name} USER admin."
    )


def _pooled(facts: ActorFacts) -> str:
    if facts.named is None:
        return ""
    name = facts.name_of(facts.named)
    return f"Everyone in {name} can then recall all that is said in this private room, now and before."


def _written_everywhere(facts: ActorFacts) -> str:
    return _written(facts, "you wherever you ask, and others in every room where you take part or are mentioned")


def _written_global(facts: ActorFacts) -> str:
    return _written(facts, "everyone in the workspace, in every conversation")


def _written(facts: ActorFacts, readers: str) -> str:
    """What is written outside an isolated project is refused, and what waits for approval opens nothing yet."""
    here = effective_project(facts.access)
    if facts.needs_approval or (here is not None and here.isolated):
        return ""
    return f"This is then used in answers to {readers}, except in isolated projects."


def _written_for_project(facts: ActorFacts) -> str:
    here = effective_project(facts.access)
    if facts.needs_approval or here is None:
        return ""
    return f"This is then used in answers to everyone in project {facts.name_of(here)}, not only in {facts.place}."


def _linked(facts: ActorFacts) -> str:
    if facts.account is None:
        return ""
    other = facts.account
    return (
        f"That code belongs to {other.name} on {other.platform} ({other.workspace}). Once linked, whoever uses that "
        "account reads your private memories and DMs with me, and with /nexus rooms on the rooms that you are in; and "
        "you theirs. Link only an account of your own."
    )


def _key_created(facts: ActorFacts) -> str:
    return (
        "Whoever has that key can then read, as that tool, your entries and those of your teams and projects, except "
        "where an entry names other tools alone; write entries of yours; and ask models through the gateway, where "
        "there is one. It opens no room, DM or session."
    )


PARTICIPANT: Final = AnyOf((Permission(Relation.PARTICIPANT, Thing.CONVERSATION, "anyone in the conversation"),))
KNOWN: Final = AnyOf((Permission(Relation.MEMBER, Thing.PROJECT_NAMED, "members of the project"),))
_OWNER: Final = Permission(Relation.OWNER, Thing.CONVERSATION, "the person whose DM or session it is")
_ROOM_ADMIN: Final = Permission(Relation.ADMIN, Thing.ROOM, "admins of the room")
_TENANT_ADMIN: Final = Permission(Relation.ADMIN, Thing.TENANT, "admins of the workspace")
NAMED_ADMIN: Final = Permission(Relation.ADMIN, Thing.PROJECT_NAMED, "admins of the project")
HERE_WRITER: Final = AnyOf(
    (Permission(Relation.WRITER, Thing.PROJECT_HERE, "members of the project with the role write or admin"),),
    "You may not write to the project {here}; ask one of its admins for the role write.",
)
_NAMED_WRITER: Final = AnyOf(
    (Permission(Relation.WRITER, Thing.PROJECT_NAMED, "with the role write or admin in the project"),),
    "You may read {named} but not add to it; ask one of its admins for the role write.",
)
_NAMED_MANAGED: Final = "Only an admin of {named} may change its members: ask one (/nexus project member list {named})."
_OUT_OF_ISOLATED: Final = AnyOf(
    (Permission(Relation.ADMIN, Thing.ISOLATED_LEFT, "and to leave an isolated project as an admin of that too"),),
    "{left} is isolated: only one of its admins may take a conversation out of it. Ask one of them.",
)
_YOURS: Final = "To erase your own messages: /nexus forget WORDS."
_OWN: Final = AnyOf((_OWNER,), "Only the person whose conversation this is may do that.")
_THE_PERSON: Final = Permission(Relation.SELF, Thing.PERSON, "the person themselves")
_OF_TENANT: Final = AnyOf(
    (Permission(Relation.MEMBER, Thing.TENANT, "as a member of the workspace, not a guest"),),
    "Guests have no keys and don't sign in: ask a member of this workspace.",
)
_ON_ANOTHER_PLATFORM: Final = Permission(
    Relation.ANOTHER_PLACE, Thing.ACCOUNT, "with accounts on two platforms or workspaces"
)


_TEAM_MEMBER: Final = Permission(Relation.MEMBER, Thing.TEAM, "members of the team")
_TEAM_ADMIN: Final = Permission(Relation.ADMIN, Thing.TEAM, "admins of the team")
_TEAM_SELF: Final = Permission(Relation.SELF, Thing.TEAM, "the member themselves")
_TEAM_MANAGED: Final = "Only an admin of this team may change its members: ask one."


def _room_admin(refusal: str) -> AnyOf:
    return AnyOf((_ROOM_ADMIN,), refusal)


TABLE: Final[Mapping[Act, Rule]] = {
    Act.READ: Rule((PARTICIPANT,)),
    Act.WRITE: Rule((PARTICIPANT,)),
    Act.WRITE_EVERYWHERE: Rule((PARTICIPANT,), _written_everywhere),
    Act.WRITE_PROJECT: Rule((HERE_WRITER,), _written_for_project),
    Act.WRITE_GLOBAL: Rule(
        (AnyOf((_TENANT_ADMIN,), "Only an admin of the workspace may use --global. Leave it out, or ask an admin."),),
        _written_global,
    ),
    Act.MOVE_TO_PROJECT: Rule((HERE_WRITER,)),
    Act.MOVE_TO_GLOBAL: Rule(
        (AnyOf((_TENANT_ADMIN,), "Only an admin of the workspace may share something with everyone: ask one."),)
    ),
    Act.ACCEPT_LANDMARK: Rule(
        (
            AnyOf(
                (Permission(Relation.WRITER, Thing.ITEM, "whoever may write where the decision is kept"),),
                "That landmark applies beyond this conversation: ask a project or workspace admin to change it.",
            ),
        )
    ),
    Act.SETTLE_LANDMARK: Rule(
        (
            AnyOf(
                (
                    Permission(Relation.AUTHOR, Thing.ITEM, "who pinned the decision"),
                    Permission(Relation.ADMIN, Thing.ITEM, "admins of the room or the project where it is kept"),
                ),
                "That landmark is another person's, or applies beyond this conversation: ask who pinned it, or an "
                "admin of the room, the project or the workspace.",
            ),
        )
    ),
    Act.REMIND: Rule((PARTICIPANT,)),
    Act.SEE_OWN: Rule((PARTICIPANT,)),
    Act.FORGET_OWN: Rule((PARTICIPANT,)),
    Act.ERASE_ROOM: Rule((_room_admin(f"Only an admin of {{place}} may do this. {_YOURS}"),)),
    Act.ERASE_USER: Rule((AnyOf((_TENANT_ADMIN,), f"Only an admin of the workspace may do this. {_YOURS}"),)),
    Act.ERASE_PROJECT: Rule((AnyOf((_TENANT_ADMIN,), f"Only an admin of the workspace may do this. {_YOURS}"),)),
    Act.SET_CONSENT: Rule((PARTICIPANT,)),
    Act.GET_LINK_CODE: Rule((_OWN,)),
    Act.LINK: Rule(
        (
            _OWN,
            AnyOf(
                (_ON_ANOTHER_PLATFORM,),
                "That code is of an account in this same workspace, or would link two accounts of one workspace: a "
                "link joins one person's accounts on two platforms.",
            ),
        ),
        _linked,
    ),
    Act.UNLINK: Rule((PARTICIPANT,)),
    Act.SEE_KEYS: Rule((_OWN,)),
    Act.CREATE_KEY: Rule((_OWN, _OF_TENANT), _key_created),
    Act.SIGN_IN: Rule((_OWN, _OF_TENANT)),
    # It opens nothing to anybody: who is shown the rooms is in them, and a DM is shown to nobody else.
    Act.OPEN_ROOMS: Rule((_OWN,)),
    Act.SET_RECORDING: Rule(
        (
            _room_admin(
                "Only an admin of {place} may change what is stored from it. For your own messages use /nexus opt-out."
            ),
        )
    ),
    Act.SET_FOLLOW_UPS: Rule((_room_admin("Only an admin of {place} may set when I answer in its threads: ask one."),)),
    Act.SET_DIGEST: Rule((_room_admin("Only an admin of {place} may set its digest: ask one."),)),
    Act.DECIDE: Rule((PARTICIPANT,)),
    Act.REVIEW: Rule(
        (
            AnyOf(
                (_ROOM_ADMIN, Permission(Relation.ADMIN, Thing.PROJECT_HERE, "admins of the room's project"), _OWNER),
                "Only an admin of this room, or of its project, may review what others wrote here: ask one.",
            ),
        )
    ),
    Act.COMPACT: Rule((AnyOf((_ROOM_ADMIN, _OWNER), "Only an admin of this room may compact an agent's view of it."),)),
    Act.CHANGE_SETTINGS: Rule(
        (AnyOf((_TENANT_ADMIN,), "Only an admin of this workspace may see and change its settings: ask one of them."),)
    ),
    Act.SEE_AUDIT: Rule(
        (AnyOf((_TENANT_ADMIN,), "Only an admin of this workspace may see its audit log: ask one of them."),)
    ),
    # Over the API and on the web pages alone; `nexus admin` is for whoever runs Nexus.
    Act.MANAGE_PEOPLE: Rule(
        (
            AnyOf(
                (_TENANT_ADMIN,),
                "Only an admin of this workspace may make people admins, sign them out and disable them: ask one.",
            ),
        )
    ),
    Act.OVERSEE_PLACES: Rule(
        (
            AnyOf(
                (_TENANT_ADMIN,),
                "Only an admin of this workspace may see all projects and teams and manage those that have no admin.",
            ),
        )
    ),
    Act.IMPORT_HISTORY: Rule(
        (AnyOf((_TENANT_ADMIN,), "Only an admin of this workspace may import a history: ask one of them."),)
    ),
    Act.SEE_USAGE: Rule(
        (
            AnyOf(
                (_TENANT_ADMIN,),
                "Only an admin of this workspace may see the usage of everyone. To see your own: /nexus usage.",
            ),
        )
    ),
    Act.CREATE_PROJECT: Rule((PARTICIPANT,)),
    Act.SEE_PROJECT: Rule((KNOWN,)),
    # Over the API alone, which shows what deleting one opens (composer/people/projects/deletion.py).
    Act.RENAME_PROJECT: Rule((KNOWN, AnyOf((NAMED_ADMIN,), "Only an admin of {named} may rename it: ask one."))),
    Act.DELETE_PROJECT: Rule((KNOWN, AnyOf((NAMED_ADMIN,), "Only an admin of {named} may delete it: ask one."))),
    Act.ADD_MEMBER: Rule((KNOWN, AnyOf((NAMED_ADMIN,), _NAMED_MANAGED))),
    # An invitation is found by whose it is: nobody sees another's.
    Act.JOIN_PROJECT: Rule((PARTICIPANT,)),
    Act.LEAVE_PROJECT: Rule((KNOWN,), _left_without_admin),
    Act.REMOVE_MEMBER: Rule((KNOWN, AnyOf((NAMED_ADMIN, _THE_PERSON), _NAMED_MANAGED))),
    Act.ASSIGN_ROOM: Rule(
        (
            KNOWN,
            _room_admin("Only an admin of {place} may put it into a project: ask one."),
            _NAMED_WRITER,
            _OUT_OF_ISOLATED,
        ),
        _assigned,
    ),
    Act.ASSIGN_SESSION: Rule((KNOWN, _OWN, _OUT_OF_ISOLATED), _assigned),
    Act.ASSIGN_DM: Rule((KNOWN, _OWN, _OUT_OF_ISOLATED)),
    Act.POOL_ROOM: Rule(
        (
            AnyOf(
                (Permission(Relation.ADMIN, Thing.PRIVATE_ROOM, "admins of the private room"),),
                "Only an admin of a private room may use --pool. Leave it out, or ask one; in a public room it changes "
                "nothing, since what is said there is recalled in its project anyway.",
            ),
        ),
        _pooled,
    ),
    Act.UNASSIGN_ROOM: Rule(
        (
            AnyOf(
                (_ROOM_ADMIN, Permission(Relation.ADMIN, Thing.PROJECT_LEFT, "admins of its project")),
                "Only an admin of {place} or of {left} may take it out of {left}: ask one of them.",
            ),
            _OUT_OF_ISOLATED,
        ),
        _left,
    ),
    Act.UNASSIGN_SESSION: Rule((_OWN, _OUT_OF_ISOLATED)),
    Act.UNASSIGN_DM: Rule((_OWN, _OUT_OF_ISOLATED)),
    # Who is in a team reads what is shared with it. It is shown by whoever asks for the act, over the API.
    Act.SEE_TEAM: Rule((AnyOf((_TEAM_MEMBER,), "Only a member of a team may see who else is in it."),)),
    Act.RENAME_TEAM: Rule((AnyOf((_TEAM_ADMIN,), "Only an admin of this team may rename it: ask one."),)),
    Act.DELETE_TEAM: Rule((AnyOf((_TEAM_ADMIN,), "Only an admin of this team may delete it: ask one."),)),
    Act.INVITE_TO_TEAM: Rule((AnyOf((_TEAM_ADMIN,), _TEAM_MANAGED),)),
    Act.JOIN_TEAM: Rule(
        (
            AnyOf(
                (Permission(Relation.INVITED, Thing.TEAM, "who is invited to the team"),),
                "You are not invited to this team any more: ask one of its admins.",
            ),
        )
    ),
    Act.REMOVE_FROM_TEAM: Rule((AnyOf((_TEAM_ADMIN, _TEAM_SELF), _TEAM_MANAGED),)),
    Act.SET_TEAM_ROLE: Rule((AnyOf((_TEAM_ADMIN,), _TEAM_MANAGED),)),
    Act.UNSHARE_OF_FORMER: Rule(
        (AnyOf((_TEAM_ADMIN,), "Only an admin of this team, or whose it is, may unshare that: ask one."),)
    ),
}
