"""What the caller of a command may do in its conversation, and the scope of what they write."""

from collections.abc import Collection
from dataclasses import replace

from bot.commands.command import Call, Flag, PlaceKind, Right
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.model import other_owners
from composer.repositories.audit import Act
from composer.repositories.database import Transaction
from composer.visibility import AccessContext, WriteScope


def write_scope_flags(*unlisted: str) -> tuple[Flag, ...]:
    """The flags for a wider scope than this conversation."""
    flags = (
        (WriteScope.EVERYWHERE, "about you: readable in every conversation that you take part in", None),
        (WriteScope.PROJECT, "for the whole project of this conversation", Right.PROJECT_WRITER),
        (WriteScope.GLOBAL, "for everyone in the workspace", Right.TENANT_ADMIN),
    )
    return tuple(Flag(name, help, right, listed=name not in unlisted) for name, help, right in flags)


async def access_context(tx: Transaction, call: Call) -> AccessContext:
    """The access context of the conversation in which the command was called, for its caller.

    Raises NotFound when the caller may not be there.
    """
    access = await tx.conversations.access_context(call.conversation.id, call.user)
    if access is None or not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation_sentence(call.conversation.kind, call.conversation.name))
    return replace(access, asker_admin=access.asker_admin or call.incoming.sender_is_admin)


async def is_room_admin(tx: Transaction, call: Call) -> bool:
    """Whether the caller is an admin of this room, or of the platform that it is on."""
    room = call.conversation.room_id or call.conversation.id
    return call.incoming.sender_is_admin or await tx.conversations.is_room_admin(room, call.user)


async def has_right(tx: Transaction, call: Call, access: AccessContext, right: Right | None = None) -> bool:
    """Whether the caller has a right, by default the one that the command declares. `access` carries the project that
    the rights of projects are about."""
    match right or call.command.right:
        case Right.PARTICIPANT:
            return visibility.may_participate(access)
        case Right.ROOM_ADMIN:
            own = PlaceKind.of(call.conversation) is not PlaceKind.ROOM
            return own or access.asker_admin or await is_room_admin(tx, call)
        case Right.PROJECT_MEMBER:
            return access.project is not None and (access.project.role is not None or access.asker_admin)
        case Right.PROJECT_WRITER:
            return visibility.can_write_project(access)
        case Right.PROJECT_ADMIN:
            return visibility.can_manage_project(access)
        case Right.TENANT_ADMIN:
            return access.asker_admin


async def record_read(call: Call, namespaces: Collection[str]) -> None:
    """Record in the audit log what the caller was shown of other people's profiles and sessions, if anything."""
    if not other_owners(namespaces, (call.user,)):
        return
    async with call.app.database.transaction(call.workspace.tenant_id) as tx:
        linked = await tx.people.linked_users([call.user])
        owners = other_owners(namespaces, (call.user, *linked.get(call.user, ())))
        if owners:
            tx.audit.act_for(call.user, call.conversation.id)
            await tx.audit.record(Act.READ_ACROSS, users=owners)


def write_scope_of(call: Call) -> str:
    """The scope that the call's flags name, else `here`. Raises BadInput when they name two."""
    chosen = sorted(call.flags.intersection((WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL)))
    if len(chosen) > 1:
        raise BadInput(f"Choose one of {' and '.join(f'--{flag}' for flag in chosen)}.")
    return chosen[0] if chosen else WriteScope.HERE


def scope_phrase(call: Call, scope: str) -> str:
    """A scope in words, for an answer."""
    if scope != WriteScope.HERE:
        everywhere = "about you, for everyone to read"
        return {WriteScope.PROJECT: "for this project", WriteScope.GLOBAL: "for everyone"}.get(scope, everywhere)
    room = PlaceKind.of(call.conversation) is PlaceKind.ROOM
    return f"in #{call.conversation.name}" if room else "between us"
