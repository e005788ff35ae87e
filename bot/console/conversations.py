"""Conversations that the terminal opens: checks who may be where, as a chat platform would."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from bot.script.places import agent_at, external, incoming
from composer import visibility
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.ingest.validation import validate_message
from composer.model import (
    ConversationKind,
    Message,
    Place,
    Trust,
    User,
    Workspace,
    conversation_id,
    derived_id,
    private_thread,
    room_id,
    user_id,
)
from composer.repositories.database import Transaction
from composer.repositories.reminders import Position
from composer.turn.reading import PromptRequest

AFTER_ALL: Final = 2**62  # a sequence number after every message of a conversation


async def resolve_position(app: App, workspace: Workspace, place: Place, user: str) -> Position:
    """The ids of a user and of the conversation at a place where they may be. Both may be new.

    Raises NotFound for a private room that they are not in, as for one that does not exist, and BadInput for an
    unknown agent.
    """
    agent = agent_at(app, workspace, place)
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        known = await tx.people.find_user(workspace.platform, workspace.name, external(user))
        asker = user_id(workspace, external(user)) if known is None else known.id
        resolved = await _resolved(tx, workspace, place)
        conversation = conversation_id(workspace, resolved, asker, agent.id)
        room = conversation_id(workspace, replace(resolved, kind=ConversationKind.ROOM), asker, None)
        access = await tx.conversations.access_context(room if resolved.thread else conversation, asker, Trust.MEMBER)
    if access is not None and not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation_sentence(place.kind, place.name))
    return Position(asker, conversation)


async def is_new(app: App, workspace: Workspace, position: Position) -> bool:
    """Whether nothing is stored of the conversation yet."""
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.conversations.get(position.conversation_id) is None


async def _resolved(tx: Transaction, workspace: Workspace, place: Place) -> Place:
    """The same place; a private thread becomes the room of its own that it is."""
    if place.kind is ConversationKind.THREAD:
        own = private_thread(place)
        if await tx.conversations.get(room_id(workspace, own.name)) is not None:
            return own
    return place


async def question(
    app: App, workspace: Workspace, place: Place, user: str, text: str, at: datetime, *, top_k: int | None, id: str
) -> tuple[PromptRequest, str | None]:
    """A question that is not stored, and a warning if its asker is new.

    Raises NotFound (unknown room or session, or one that the user may not be in; in a DM or a session also an unknown
    user) and BadInput (unknown agent).
    """
    agent = agent_at(app, workspace, place, text)
    if not text.strip():
        raise BadInput("The question is empty: write some text.")
    agents = app.directory.agents(workspace.tenant_id)
    sent = validate_message(incoming(workspace, place, user, text, at, id=id), agents)
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        known = await tx.people.find_user(workspace.platform, workspace.name, sent.user)
        asker = known or User(user_id(workspace, sent.user), sent.user_name)
        if known is None and place.kind in (ConversationKind.DM, ConversationKind.SESSION):
            raise NotFound(
                f"There is no user '{user}' in the workspace {workspace.name}; nobody of that name has written there."
            )
        target = conversation_id(workspace, await _resolved(tx, workspace, place), asker.id, agent.id)
        access = await tx.conversations.access_context(target, asker.id, sent.sender_trust)
        if access is None or not visibility.may_participate(access):
            raise NotFound(visibility.unknown_conversation_sentence(place.kind, place.name))
        mentioned = await tx.people.find_user_ids(workspace.platform, workspace.name, sent.mentions)
    conversation = access.conversation
    message = Message(
        derived_id("unstored", str(target), id),
        id,
        AFTER_ALL,
        at,
        asker.id,
        None,
        asker.name,
        sent.text,
        conversation.namespace,
        conversation.visibility,
        mentions=tuple(mentioned.get(name) or user_id(workspace, name) for name in sent.mentions),
    )
    warning = None if known else f"{user} is new in {workspace.name}: nothing is known about them yet."
    return PromptRequest(workspace.tenant_id, target, asker.id, agent, message, top_k), warning
