"""project: group rooms and sessions, and say who may read and write what they share."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, find_user, unknown_user
from bot.commands.command import CONFIRM, PREFIX, Call, Case, Command, CommandAnswer, Flag, PlaceKind
from bot.commands.invitations import invitation_lines, own_users
from bot.commands.parameters import Arguments, UserReference
from composer.errors import BadInput, NotFound
from composer.model import ConversationKind, Role, User, derived_id
from composer.people.projects import members, projects
from composer.repositories.database import Transaction
from composer.repositories.invites import INVITE_LIFETIME
from composer.rights.relations import ActorFacts, has_permission
from composer.rights.table import NAMED_ADMIN, Act
from composer.text.counts import counted
from composer.visibility import ProjectFacts, unknown_project_sentence


class MemberAction(StrEnum):
    """What `project member` does."""

    ADD = "add"
    REMOVE = "remove"
    LIST = "list"


_NEW: Final = parameters.word("name", "the new project's name", projects.new_slug)
_PROJECT: Final = parameters.project("name", "the name of one of your projects, as /nexus project list shows it")
_ACTION: Final = parameters.choice(
    "action",
    "invite somebody or change a member's role, remove a member, or list the members",
    MemberAction,
    aliases={"set": MemberAction.ADD},
    omittable=True,
)
_USER: Final = parameters.user("user", "the person to invite or remove", required=False)
_ROLE: Final = parameters.choice(
    "role",
    "read: recall what the project remembers; write: add to it too; admin: manage its members too; by default write",
    Role,
    aliases={f"role {role}": role for role in Role},
    required=False,
)


async def _project_create(call: Call) -> CommandAnswer:
    slug, isolated = call.arguments[_NEW], "isolated" in call.flags
    id = derived_id("project", str(call.workspace.tenant_id), call.event_id, str(call.user), slug)
    async with call.changing("alone") as tx:
        await projects.create(tx, id, slug, call.user, call.now, isolated=isolated)
    kind = "isolated project" if isolated else "project"
    return CommandAnswer(
        f"Created the {kind} {slug}; you are its admin. To add this conversation: {PREFIX} project assign {slug}"
    )


async def _project_assign(call: Call) -> CommandAnswer:
    pooled = "pool" in call.flags or call.conversation.kind is ConversationKind.SESSION
    async with call.changing("alone") as tx:
        facts = await call.judge(tx)
        project = _named_project(facts)
        await tx.conversations.assign_project(call.room, project.id, pooled)
    left = "" if facts.left is None else f"It is no longer in {facts.left.slug}, of which I recall nothing here now. "
    return CommandAnswer(left + _assigned(call, project, facts.private_room, pooled))


def _named_project(facts: ActorFacts) -> ProjectFacts:
    """The project that a call names. Raises NotFound where it is none of the caller's."""
    if facts.named is None:
        raise NotFound(unknown_project_sentence(facts.project_name))
    return facts.named


def _assigned(call: Call, project: ProjectFacts, private_room: bool, pooled: bool) -> str:
    undo = f"To undo: {PREFIX} project unassign"
    if project.isolated and project.role is not Role.ADMIN:
        undo = f"{project.slug} is isolated: only its admins take a conversation out of it again."
    if call.conversation.kind is ConversationKind.DM:
        return (
            f"In this conversation I can now recall what {project.slug} remembers. Nothing from here is shared "
            f"with it. {undo}"
        )
    if call.conversation.kind is ConversationKind.SESSION:
        return (
            f"Everyone in {project.slug} can now recall what is said in this session, "
            f"and this session what is said there. {undo}"
        )
    opens = f"Everyone in #{call.conversation.name} can now recall what {project.slug} remembers"
    if private_room and not pooled:
        return (
            f"{opens}; what is said in this private room stays here (to share it, repeat the command with "
            f"--pool). {undo}"
        )
    return f"{opens}, and everyone in {project.slug} what is said here. {undo}"


async def _project_unassign(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        project = (await access_context(tx, call)).project
        if project is None:
            raise BadInput("This conversation is in no project. To add it to one: /nexus project assign NAME")
        await tx.conversations.assign_project(call.room, None, False)
    return CommandAnswer(f"Removed from {project.slug}: from the next message on I recall nothing from it here.")


async def _project_member(call: Call) -> CommandAnswer:
    """`project member add|remove PROJECT USER [ROLE]`, `project member list PROJECT`.

    PROJECT and USER may be given in either order. Without an action, a user is added, and members are listed where no
    user is named.
    """
    if _lists_members(call.arguments):
        return await _list_members(call)
    async with call.changing("alone") as tx:
        facts = await call.judge(tx)
        user = _named_user(call, facts)
        if user is None:
            raise call.command.missing(_USER)
        return CommandAnswer(await _change_member(tx, call, _named_project(facts), user))


async def _list_members(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        facts = await call.judge(tx)
        project = _named_project(facts)
        found = await tx.projects.members(project.id)
        manages = has_permission(facts, NAMED_ADMIN)
        invited = await tx.invites.find(call.now, place=project.id) if manages else []
    lines = [f"{_all_names(each.names)}  {each.role}" for each in found]
    lines += [f"{each.name}  {each.role} (invited, until {each.expires_at:%Y-%m-%d})" for each in invited]
    return CommandAnswer("\n".join(lines))


async def _project_leave(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        project = _named_project(await call.judge(tx))
        await members.leave(tx, project.id, await own_users(tx, call), call.now)
    return CommandAnswer(
        f"You left {project.slug}, with all of your accounts. What you wrote for it stays there until you forget it; "
        "what you say in your sessions is yours alone again."
    )


async def _change_member(tx: Transaction, call: Call, project: ProjectFacts, user: UserReference) -> str:
    """Remove somebody, or set their role. Returns the answer; raises NotFound and Conflict."""
    known = await _find_user(tx, call, project, user)
    if known is None:
        raise unknown_user(user)
    if call.arguments.get(_ACTION) is not MemberAction.REMOVE:
        role = call.arguments.get(_ROLE) or Role.WRITE
        if await members.set_member(tx, project, known, role, call.user, call.now):
            return f"{known.name} is in {project.slug} with the role {role}."
        return (
            f"Invited {known.name} to {project.slug} with the role {role}, which they have once they accept: {PREFIX} "
            f"project accept {project.slug}. The invitation holds for {INVITE_LIFETIME.days} days."
        )
    if not await members.remove_member(tx, project, known, call.now):
        raise NotFound(f"{known.name} is not in {project.slug}.")
    return f"{known.name} is no longer in {project.slug}, or invited to it, with none of their accounts."


def _all_names(names: Sequence[str]) -> str:
    """The names of a member's accounts, in one line."""
    first, *others = dict.fromkeys(names)
    return f"{first} (also {', '.join(others)})" if others else first


async def _with_person(tx: Transaction, call: Call, facts: ActorFacts) -> ActorFacts:
    """Whether the person to be removed is the caller. Raises BadInput where nobody is named."""
    user = _named_user(call, facts)
    if user is None and not _lists_members(call.arguments):
        raise call.command.missing(_USER)
    if user is None or facts.named is None or facts.named.role is None:
        return facts
    known = await _find_user(tx, call, facts.named, user)
    return replace(facts, of_self=known is not None and known.id in facts.access.linked_users(call.user))


def _named_user(call: Call, facts: ActorFacts) -> UserReference | None:
    """The user that is named; they and the project may be given in either order."""
    user = call.arguments.get(_USER)
    if user is None or facts.project_name == call.arguments[_PROJECT]:
        return user
    return call.arguments.exchanged(_PROJECT, _USER)[_USER]


def _lists_members(arguments: Arguments) -> bool:
    """Without an action, a user is added, and members are listed where none is named."""
    action = arguments.get(_ACTION)
    return action is MemberAction.LIST or (action is None and arguments.get(_USER) is None)


async def _find_user(tx: Transaction, call: Call, project: ProjectFacts, user: UserReference) -> User | None:
    """The user that is named: one of this workspace, or a member of the project from any other, who may be named as the
    list names them. To remove somebody, the members come first. Raises BadInput where that may be several people."""
    here = await find_user(tx, call, user)
    inside = await tx.projects.find_member(project.id, [*user.external_ids, user.text.casefold()])
    if here is not None:
        own = await tx.people.linked_users([here.id])
        removing = call.arguments.get(_ACTION) is MemberAction.REMOVE
        if not (removing and inside) or any(each.id in (here.id, *own.get(here.id, ())) for each in inside):
            return here
    if len(inside) > 1:
        raise BadInput(f"Several members of {project.slug} are called {user.text}: name them in their own workspace.")
    return inside[0] if inside else None


async def _project_list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        access = await access_context(tx, call)
        joined = await tx.conversations.joined_ids(access.linked_users(call.user), call.presence)
        lines = []
        for project in await tx.projects.find_for(call.user):
            rooms = [f"#{room.name}" for room in await tx.projects.rooms(project.id, joined)]
            kind = " (isolated)" if project.isolated else ""
            lines.append(
                f"{project.name}{kind}  your role: {project.role}; {counted(project.members, 'member')}; "
                f"rooms: {', '.join(rooms) or 'none'}"
            )
        lines += await invitation_lines(tx, call)
    return CommandAnswer("\n".join(lines) or "You are in no project. To make one: /nexus project create NAME")


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "project create",
        (_NEW,),
        "Make a project, with yourself as its admin",
        _project_create,
        "project create apollo",
        (Flag("isolated", "its conversations recall nothing from outside, and nothing of them is recalled outside"),),
        act=Act.CREATE_PROJECT,
    ),
    Command(
        "project assign",
        (_PROJECT,),
        "Put this conversation into a project",
        _project_assign,
        "project assign apollo",
        (
            Flag("pool", "let everyone in the project recall what is said in this private room", Act.POOL_ROOM),
            CONFIRM,
        ),
        act={
            PlaceKind.ROOM: Act.ASSIGN_ROOM,
            PlaceKind.DM: Act.ASSIGN_DM,
            PlaceKind.SESSION: Act.ASSIGN_SESSION,
        },
    ),
    Command(
        "project unassign",
        (),
        "Take this conversation out of its project",
        _project_unassign,
        "project unassign",
        (CONFIRM,),
        act={
            PlaceKind.ROOM: Act.UNASSIGN_ROOM,
            PlaceKind.DM: Act.UNASSIGN_DM,
            PlaceKind.SESSION: Act.UNASSIGN_SESSION,
        },
    ),
    Command(
        "project member",
        (_ACTION, _PROJECT, _USER, _ROLE),
        "Invite, remove or list the members of a project",
        _project_member,
        "project member add apollo bob write",
        act=Act.ADD_MEMBER,
        cases=(
            Case(Act.SEE_PROJECT, _lists_members, "to list them"),
            Case(Act.REMOVE_MEMBER, lambda given: given.get(_ACTION) is MemberAction.REMOVE, "to remove one"),
        ),
        gather=_with_person,
    ),
    Command(
        "project leave",
        (_PROJECT,),
        "Leave a project",
        _project_leave,
        "project leave apollo",
        (CONFIRM,),
        act=Act.LEAVE_PROJECT,
    ),
    Command(
        "project list",
        (),
        "List your projects, and who invites you",
        _project_list,
        "project list",
        act=Act.READ,
        names_rooms=True,
    ),
)
