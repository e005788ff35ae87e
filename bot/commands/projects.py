"""project: what is grouped, by whom, and what may be read across it."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from bot.commands.command import (
    Call,
    Command,
    CommandAnswer,
    Names,
    Parameter,
    access_context,
    is_room_admin,
)
from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.model import ConversationKind, Role, User, derived_id
from composer.repositories.database import Transaction
from composer.repositories.projects import Project

_MENTION = re.compile(r"<@!?([A-Za-z0-9]+)(?:\|[^<>]*)?>")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


async def _project_create(call: Call) -> CommandAnswer:
    slug = call.words.lower()
    if not _SLUG.fullmatch(slug):
        raise BadInput("A project's name is 1 to 32 characters of a-z, 0-9, - and _; for example: apollo")
    id = derived_id("project", str(call.workspace.tenant_id), slug)
    async with call.changing() as tx:
        if not await tx.projects.create(id, slug, "isolated" in call.flags, call.user, call.now):
            raise BadInput(f"The name {slug} is taken; choose another.")
        await tx.projects.set_member(id, call.user, Role.ADMIN)
    kind = "isolated project" if "isolated" in call.flags else "project"
    return CommandAnswer(f"Made the {kind} {slug}, with you as its admin. Assign a room: /nexus project assign {slug}")


async def _project_assign(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        project = await _project(tx, call, call.words)
        access = await access_context(tx, call)
        room = call.conversation.room_id or call.conversation.id
        private_room = call.conversation.kind is ConversationKind.ROOM and access.conversation.private
        own_room = private_room and await is_room_admin(tx, call)
        seen = replace(
            access, project=visibility.ProjectFacts(project.id, project.slug, project.isolated, project.role)
        )
        pooled = "pool" in call.flags
        if call.conversation.kind is ConversationKind.DM:
            if project.role is None:
                raise NotFound(_no_project(project.slug))
        elif not visibility.can_write_project(seen):
            raise Refused(f"You may read {project.slug} but not add to it; ask one of its admins for the role write.")
        if pooled and not own_room:
            raise Refused("Only an admin of a private room may pool it with a project.")
        await tx.conversations.lock([room])
        await tx.conversations.assign_project(room, project.id, pooled)
    return CommandAnswer(_assigned(call, project, private_room, pooled))


def _assigned(call: Call, project: Project, private_room: bool, pooled: bool) -> str:
    undo = "Undo: /nexus project unassign"
    if call.conversation.kind is ConversationKind.DM:
        return f"I now read {project.slug} in this conversation; nothing that is said here goes into it. {undo}"
    if call.conversation.kind is ConversationKind.SESSION:
        return (
            f"Everyone in {project.slug} can now recall what is said in this session, "
            f"and this session what is said there. {undo}"
        )
    opens = f"Everyone in #{call.conversation.name} can now recall what {project.slug} remembers"
    if private_room and not pooled:
        return f"{opens}; what is said in this private room stays here (--pool would share it). {undo}"
    return f"{opens}, and {project.slug} what is said here. {undo}"


async def _project_unassign(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        access = await access_context(tx, call)
        if access.project is None:
            raise BadInput("This conversation is in no project.")
        room = call.conversation.room_id or call.conversation.id
        own = call.conversation.user_id == call.user or await is_room_admin(tx, call)
        if not own and not visibility.can_write_project(access):
            raise Refused(f"Only who may write to {access.project.slug}, or an admin of this room, may take it out.")
        await tx.conversations.lock([room])
        await tx.conversations.assign_project(room, None, False)
    return CommandAnswer(f"Out of {access.project.slug}: from the next message on I recall only what belongs here.")


async def _project_member(call: Call) -> CommandAnswer:
    """`project member add|remove PROJECT USER [ROLE]`, `project member list PROJECT`; without a verb: add."""
    words = call.words.split()
    verb = words.pop(0).lower() if words and words[0].lower() in ("add", "remove", "list", "set") else ""
    if not words or (verb != "list" and len(words) == 1 and verb):
        raise BadInput("Who, and where? For example: /nexus project member add apollo bob write")
    async with call.changing() as tx:
        project = await _project_named(tx, call, words)
        if verb == "list" or len(words) == 1:
            rows = await tx.projects.members(project.id)
            return CommandAnswer("\n".join(f"{name}  {role}" for name, role in rows))
        access = replace(
            await access_context(tx, call),
            project=visibility.ProjectFacts(project.id, project.slug, project.isolated, project.role),
        )
        known = await _person(tx, call, words[1])
        if not visibility.can_manage_project(access) and not (verb == "remove" and known and known.id == call.user):
            raise Refused(f"Only an admin of {project.slug} may change who is in it.")
        if known is None:
            raise NotFound(f"There is no user '{words[1].lstrip('@')}' here.")
        if verb == "remove":
            if not await tx.projects.remove_member(project.id, known.id):
                raise NotFound(f"{known.name} is not in {project.slug}.")
            return CommandAnswer(f"{known.name} is no longer in {project.slug}.")
        role = _role(words[2] if len(words) > 2 else "write")
        await tx.projects.set_member(project.id, known.id, role)
    return CommandAnswer(f"{known.name} is in {project.slug} with the role {role}.")


async def _person(tx: Transaction, call: Call, word: str) -> User | None:
    """Whom a word means: a mention as platforms write it (`<@U123>`, `<@!123>`), an id, or a terminal's name."""
    mention = _MENTION.fullmatch(word)
    name = mention[1] if mention else word.lstrip("@")
    for external in dict.fromkeys((name, name.casefold())):
        known = await tx.people.find_user(call.workspace.platform, call.workspace.name, external)
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
    return CommandAnswer("\n".join(lines) or "You are in no project. Make one: /nexus project create NAME")


async def _project(tx: Transaction, call: Call, name: str) -> Project:
    """A project that the caller may know of: its members, and admins of the tenant."""
    slug = name.strip().lower()
    if not slug:
        raise BadInput("Which project? For example: apollo")
    project = await tx.projects.find(slug, call.user)
    access = await access_context(tx, call)
    if project is None or (project.role is None and not access.asker_admin):
        raise NotFound(_no_project(slug))
    return project


async def _project_named(tx: Transaction, call: Call, words: list[str]) -> Project:
    """The project that is named before a person, or after them: then the words are put in order."""
    try:
        return await _project(tx, call, words[0])
    except NotFound:
        if len(words) == 1:
            raise
        with suppress(NotFound):
            project = await _project(tx, call, words[1])
            words[0], words[1] = words[1], words[0]
            return project
        raise


def _no_project(slug: str) -> str:
    return f"There is no project '{slug}' here."


def _role(text: str) -> Role:
    try:
        return Role(text.lower().removeprefix("--"))
    except ValueError:
        raise BadInput(f"There is no role '{text}'; there is read, write and admin.") from None


COMMANDS: Final[Sequence[Command]] = (
    Command("project create", (Parameter("name"),), "make a project", _project_create, ("isolated",)),
    Command(
        "project assign",
        (Parameter("name", names=Names.PROJECT),),
        "put this conversation into a project",
        _project_assign,
        ("pool",),
    ),
    Command("project unassign", (), "take it out again", _project_unassign),
    Command(
        "project member",
        (
            Parameter("action", choices=("add", "remove", "list")),
            Parameter("name", names=Names.PROJECT),
            Parameter("user", required=False, names=Names.PERSON),
            Parameter("role", required=False, choices=tuple(Role)),
        ),
        "who is in a project",
        _project_member,
    ),
    Command("project list", (), "your projects", _project_list),
)
