"""project: group rooms and sessions, and say who may read and write what they share."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, has_right, is_room_admin
from bot.commands.command import PREFIX, Call, Command, CommandAnswer, Flag, Right
from bot.commands.parameters import UserReference
from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.model import ConversationKind, Role, User, derived_id
from composer.repositories.database import Transaction
from composer.repositories.projects import Project
from composer.visibility import AccessContext

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class MemberAction(StrEnum):
    """What `project member` does."""

    ADD = "add"
    REMOVE = "remove"
    LIST = "list"


def _new_slug(text: str) -> str:
    slug = text.lower()
    if not _SLUG.fullmatch(slug):
        raise BadInput("A project's name is 1 to 32 characters of a-z, 0-9, - and _.")
    return slug


_NEW: Final = parameters.word("name", "the new project's name", _new_slug)
_PROJECT: Final = parameters.project("name", "the project's name")
_ACTION: Final = parameters.choice(
    "action",
    "add a member or change a role, remove a member, or list the members",
    MemberAction,
    aliases={"set": MemberAction.ADD},
    omittable=True,
)
_USER: Final = parameters.user("user", "the person to add or remove", required=False)
_ROLE: Final = parameters.choice(
    "role",
    "read: recall what the project remembers; write: add to it too; admin: manage its members too; by default write",
    Role,
    aliases={f"role {role}": role for role in Role},
    required=False,
)


async def _project_create(call: Call) -> CommandAnswer:
    slug, isolated = call.arguments[_NEW], "isolated" in call.flags
    id = derived_id("project", str(call.workspace.tenant_id), slug)
    async with call.changing() as tx:
        if not await tx.projects.create(id, slug, isolated, call.user, call.now):
            raise BadInput(f"The name {slug} is taken; choose another.")
        await tx.projects.set_member(id, call.user, Role.ADMIN)
    kind = "isolated project" if isolated else "project"
    return CommandAnswer(
        f"Created the {kind} {slug}; you are its admin. To add this conversation: {PREFIX} project assign {slug}"
    )


async def _project_assign(call: Call) -> CommandAnswer:
    pooled = "pool" in call.flags
    async with call.changing() as tx:
        project = await _project(tx, call, call.arguments[_PROJECT])
        access = await access_context(tx, call)
        private_room = call.conversation.kind is ConversationKind.ROOM and access.conversation.private
        if call.conversation.kind is ConversationKind.DM:
            if project.role is None:
                raise NotFound(_unknown(project.slug))
        elif not await has_right(tx, call, _about(access, project)):
            raise Refused(f"You may read {project.slug} but not add to it; ask one of its admins for the role write.")
        if pooled and not (private_room and await is_room_admin(tx, call)):
            raise Refused("Only an admin of a private room may use --pool. Leave it out, or ask one.")
        room = call.conversation.room_id or call.conversation.id
        await tx.conversations.lock([room])
        await tx.conversations.assign_project(room, project.id, pooled)
    return CommandAnswer(_assigned(call, project, private_room, pooled))


def _about(access: AccessContext, project: Project) -> AccessContext:
    """The same access context, with `project` as the project that rights are about."""
    facts = visibility.ProjectFacts(project.id, project.slug, project.isolated, project.role)
    return replace(access, project=facts)


def _assigned(call: Call, project: Project, private_room: bool, pooled: bool) -> str:
    undo = f"To undo: {PREFIX} project unassign"
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
    async with call.changing() as tx:
        access = await access_context(tx, call)
        if access.project is None:
            raise BadInput("This conversation is in no project. To add it to one: /nexus project assign NAME")
        room = call.conversation.room_id or call.conversation.id
        own = call.conversation.user_id == call.user or await is_room_admin(tx, call)
        if not own and not await has_right(tx, call, access, Right.PROJECT_WRITER):
            raise Refused(
                f"Only members who may write to {access.project.slug}, or an admin of this room, may remove "
                "this conversation from it: ask one of them."
            )
        await tx.conversations.lock([room])
        await tx.conversations.assign_project(room, None, False)
    return CommandAnswer(f"Removed from {access.project.slug}: from the next message on I recall nothing from it here.")


async def _project_member(call: Call) -> CommandAnswer:
    """`project member add|remove PROJECT USER [ROLE]`, `project member list PROJECT`.

    PROJECT and USER may stand in either order. Without an action, a user is added, and members are listed where no
    user is named.
    """
    action = call.arguments.get(_ACTION)
    if action in (MemberAction.ADD, MemberAction.REMOVE) and call.arguments.get(_USER) is None:
        raise call.command.missing(_USER)
    async with call.changing() as tx:
        project, user = await _project_and_user(tx, call)
        if action is MemberAction.LIST or user is None:
            rows = await tx.projects.members(project.id)
            return CommandAnswer("\n".join(f"{name}  {role}" for name, role in rows))
        known = await _find_user(tx, call, user)
        leaving = action is MemberAction.REMOVE and known is not None and known.id == call.user
        if not leaving and not await has_right(tx, call, _about(await access_context(tx, call), project)):
            raise Refused(
                f"Only an admin of {project.slug} may change its members: ask one (/nexus project member list "
                f"{project.slug})."
            )
        if known is None:
            raise NotFound(f"There is no user '{user.text}' here.")
        if action is MemberAction.REMOVE:
            if not await tx.projects.remove_member(project.id, known.id):
                raise NotFound(f"{known.name} is not in {project.slug}.")
            return CommandAnswer(f"{known.name} is no longer in {project.slug}.")
        role = call.arguments.get(_ROLE) or Role.WRITE
        await tx.projects.set_member(project.id, known.id, role)
    return CommandAnswer(f"{known.name} is in {project.slug} with the role {role}.")


async def _find_user(tx: Transaction, call: Call, user: UserReference) -> User | None:
    for external_id in user.external_ids:
        known = await tx.people.find_user(call.workspace.platform, call.workspace.name, external_id)
        if known is not None:
            return known
    return None


async def _project_list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        access = await access_context(tx, call)
        lines = []
        for project in await tx.projects.find_for(call.user, access.asker_admin):
            rooms = [f"#{name}" for name, _, _ in await tx.projects.rooms(project.id, call.user)]
            kind = " (isolated)" if project.isolated else ""
            lines.append(
                f"{project.slug}{kind}  your role: {project.role or 'none'}; {project.members} members; "
                f"rooms: {', '.join(rooms) or 'none'}"
            )
    return CommandAnswer("\n".join(lines) or "You are in no project. To make one: /nexus project create NAME")


async def _project(tx: Transaction, call: Call, slug: str) -> Project:
    """A project that the caller may know of: its members may, and admins of the tenant."""
    project = await tx.projects.find(slug, call.user)
    access = await access_context(tx, call)
    if project is None or not await has_right(tx, call, _about(access, project), Right.PROJECT_MEMBER):
        raise NotFound(_unknown(slug))
    return project


async def _project_and_user(tx: Transaction, call: Call) -> tuple[Project, UserReference | None]:
    """The project and the user that were named, in either order."""
    user = call.arguments.get(_USER)
    try:
        return await _project(tx, call, call.arguments[_PROJECT]), user
    except NotFound:
        if user is None:
            raise
        exchanged = call.arguments.exchanged(_PROJECT, _USER)
        with suppress(NotFound):
            return await _project(tx, call, exchanged[_PROJECT]), exchanged[_USER]
        raise


def _unknown(slug: str) -> str:
    return f"There is no project '{slug}' here."


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "project create",
        (_NEW,),
        "Make a project, with yourself as its admin",
        _project_create,
        "project create apollo",
        (Flag("isolated", "its conversations recall nothing from outside, and nothing of them is recalled outside"),),
    ),
    Command(
        "project assign",
        (_PROJECT,),
        "Put this conversation into a project",
        _project_assign,
        "project assign apollo",
        (Flag("pool", "let everyone in the project recall what is said in this private room", Right.ROOM_ADMIN),),
        right=Right.PROJECT_WRITER,
    ),
    Command(
        "project unassign",
        (),
        "Take this conversation out of its project",
        _project_unassign,
        "project unassign",
        right=Right.PROJECT_WRITER,
    ),
    Command(
        "project member",
        (_ACTION, _PROJECT, _USER, _ROLE),
        "Add, remove or list the members of a project",
        _project_member,
        "project member add apollo bob write",
        right=Right.PROJECT_ADMIN,
        view_right=Right.PROJECT_MEMBER,
    ),
    Command("project list", (), "List your projects", _project_list, "project list"),
)
