"""What the caller of a command may read in its conversation, and the scope of what they write."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from bot.commands.command import CONFIRM, PREFIX, Call, Flag, PlaceKind
from bot.commands.parameters import UserReference
from composer import visibility
from composer.errors import NotFound, Refused
from composer.memory.remember import Author
from composer.model import User, other_owners
from composer.repositories import audit
from composer.repositories.database import Transaction
from composer.rights.table import Act
from composer.visibility import AccessContext, AccessTag, WriteScope

ROOM_OPENED_SINCE: Final = "This room was made public since you gave that command, so nothing was done. Give it again."


def write_scope_flags() -> tuple[Flag, ...]:
    """The flags for a wider scope than this conversation, and the one that confirms it."""
    flags = (
        (
            WriteScope.EVERYWHERE,
            "about you, for everyone to know: read wherever you take part or are mentioned",
            Act.WRITE_EVERYWHERE,
        ),
        (WriteScope.PROJECT, "for the whole project of this conversation", Act.WRITE_PROJECT),
        (WriteScope.GLOBAL, "for everyone in the workspace", Act.WRITE_GLOBAL),
    )
    return (*(Flag(name, help, act, choice="scope") for name, help, act in flags), CONFIRM)


async def access_context(tx: Transaction, call: Call) -> AccessContext:
    """The access context of the conversation in which the command was called, for its caller.

    Raises NotFound when the caller may not be there.
    """
    access = await tx.conversations.access_context(
        call.conversation.id, call.user, call.incoming.sender_trust, call.presence
    )
    if access is None or not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation_sentence(call.conversation.kind, call.conversation.name))
    named = replace(access.conversation, name=call.conversation.name)
    return replace(access, conversation=named, asker_admin=access.asker_admin or call.incoming.sender_is_admin)


def access_tag_of(call: Call, access: AccessContext, scope: str) -> AccessTag:
    """Where something that a call stores is filed. Raises as `visibility.access_tag_for`, and as `require_unopened` for
    what is filed in the conversation itself."""
    if scope == WriteScope.HERE:
        require_unopened(call, access)
    return visibility.access_tag_for(access, scope)


def require_unopened(call: Call, access: AccessContext) -> None:
    """Return if the room of a call was not opened since it was given: what was written in private is not filed among
    what everybody reads. Raises Refused."""
    if access.conversation.namespace != call.conversation.namespace:
        raise Refused(ROOM_OPENED_SINCE)


async def record_read(call: Call, namespaces: Collection[str]) -> None:
    """Record in the audit log what the caller was shown of other people's profiles and sessions, if anything."""
    if not other_owners(namespaces, (call.user,)):
        return
    async with call.app.database.transaction(call.workspace.tenant_id) as tx:
        linked = await tx.people.linked_users([call.user])
        owners = other_owners(namespaces, (call.user, *linked.get(call.user, ())))
        if owners:
            tx.audit.act_for(call.user, call.conversation.id)
            await tx.audit.record(audit.AuditAct.READ_ACROSS, users=owners)


async def find_user(tx: Transaction, call: Call, reference: UserReference) -> User | None:
    """The user whom somebody named; None if there is none here."""
    for external_id in reference.external_ids:
        known = await tx.people.find_user(call.workspace.platform, call.workspace.name, external_id)
        if known is not None:
            return known
    return None


def unknown_user(reference: UserReference) -> NotFound:
    """The error for a user who is not found, with how people are named."""
    return NotFound(
        f"There is no user '{reference.text}' here. Mention the person instead; I only know people who have written "
        "where I read."
    )


def author_of(call: Call, scope: str) -> Author:
    """The caller as the author of something that is stored with a scope.

    Raises Refused for a guest who wants it read everywhere or by everyone: nobody could approve that.
    """
    trust = call.incoming.sender_trust
    needs_approval = trust in call.app.directory.quarantine(call.workspace.tenant_id)
    if needs_approval and scope in (WriteScope.EVERYWHERE, WriteScope.GLOBAL):
        raise Refused(f"Guests can't store something for every conversation: leave out --{scope}.")
    return Author(call.incoming.user_name, trust, needs_approval)


def require_trusted(call: Call) -> None:
    """Raise Refused for whoever waits for approval: they may not change what is pinned, or who may read something."""
    if author_of(call, WriteScope.HERE).needs_approval:
        raise Refused("Guests can't change what is pinned, or who may read something: ask a member of this workspace.")


def approval_sentence(access: AccessContext, tag: AccessTag, *, pooled: bool) -> str:
    """The answer to a write that waits for approval: who may approve what is filed there. `pooled`: a project's pool
    holds such items."""
    who = visibility.reviewers(access, tag.namespace, pooled=pooled)
    verb = "approve" if who == visibility.YOU else "approves"
    return f"Noted. It is not used until {who} {verb} it ({PREFIX} memory pending)."


def write_scope_of(call: Call) -> str:
    """The scope that the call's flags name, else `here`."""
    chosen = call.flags.intersection((WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL))
    return next(iter(chosen), WriteScope.HERE)


def scope_phrase(call: Call, scope: str) -> str:
    """A scope in words, for an answer."""
    if scope != WriteScope.HERE:
        everywhere = "about you, for everyone to know: wherever you take part or are mentioned"
        return {WriteScope.PROJECT: "for this project", WriteScope.GLOBAL: "for everyone"}.get(scope, everywhere)
    room = PlaceKind.of(call.conversation) is PlaceKind.ROOM
    return f"in #{call.conversation.name}" if room else "between us"
