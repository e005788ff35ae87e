"""What the caller of a command may read in its conversation, and the scope of what they write."""

from collections.abc import Collection
from dataclasses import replace

from bot.commands.command import Call, Flag, PlaceKind
from composer import visibility
from composer.errors import NotFound
from composer.model import other_owners
from composer.repositories import audit
from composer.repositories.database import Transaction
from composer.rights import Act
from composer.visibility import AccessContext, WriteScope


def write_scope_flags(*unlisted: str) -> tuple[Flag, ...]:
    """The flags for a wider scope than this conversation."""
    flags = (
        (
            WriteScope.EVERYWHERE,
            "about you: readable in every conversation that you take part in",
            Act.WRITE_EVERYWHERE,
        ),
        (WriteScope.PROJECT, "for the whole project of this conversation", Act.WRITE_PROJECT),
        (WriteScope.GLOBAL, "for everyone in the workspace", Act.WRITE_GLOBAL),
    )
    return tuple(Flag(name, help, act, listed=name not in unlisted, choice="scope") for name, help, act in flags)


async def access_context(tx: Transaction, call: Call) -> AccessContext:
    """The access context of the conversation in which the command was called, for its caller.

    Raises NotFound when the caller may not be there.
    """
    access = await tx.conversations.access_context(call.conversation.id, call.user)
    if access is None or not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation_sentence(call.conversation.kind, call.conversation.name))
    return replace(access, asker_admin=access.asker_admin or call.incoming.sender_is_admin)


async def record_read(call: Call, namespaces: Collection[str]) -> None:
    """Record in the audit log what the caller was shown of other people's profiles and sessions, if anything."""
    if not other_owners(namespaces, (call.user,)):
        return
    async with call.app.database.transaction(call.workspace.tenant_id) as tx:
        linked = await tx.people.linked_users([call.user])
        owners = other_owners(namespaces, (call.user, *linked.get(call.user, ())))
        if owners:
            tx.audit.act_for(call.user, call.conversation.id)
            await tx.audit.record(audit.Act.READ_ACROSS, users=owners)


def write_scope_of(call: Call) -> str:
    """The scope that the call's flags name, else `here`."""
    chosen = call.flags.intersection((WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL))
    return next(iter(chosen), WriteScope.HERE)


def scope_phrase(call: Call, scope: str) -> str:
    """A scope in words, for an answer."""
    if scope != WriteScope.HERE:
        everywhere = "about you, for everyone to read"
        return {WriteScope.PROJECT: "for this project", WriteScope.GLOBAL: "for everyone"}.get(scope, everywhere)
    room = PlaceKind.of(call.conversation) is PlaceKind.ROOM
    return f"in #{call.conversation.name}" if room else "between us"
