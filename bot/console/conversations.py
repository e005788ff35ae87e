"""Where the terminal speaks from: a workspace, a person and a place, checked as a platform would check them."""

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Final

from bot.console.script import external, incoming, mentions
from composer import visibility
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.ingest.addressing import find_addressed_agents
from composer.model import Agent, ConversationKind, Message, Place, User, derived_id
from composer.repositories.database import Transaction
from composer.turn.compose import PromptRequest
from composer.workspace import Workspace, conversation_id, private_thread, room_id, user_id

LAST: Final = 2**62  # after every message of a conversation


async def resolve_conversation(app: App, workspace: Workspace, place: Place, user: str) -> uuid.UUID:
    """The conversation at a place, for someone who may be there; on a real platform they could not open another.

    One that is not there yet is theirs to make. Raises NotFound for a private room that they are not in, as if it
    were not there, and BadInput for an agent that is not.
    """
    agent = agent_at(app, workspace, place)
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        known = await tx.people.find_user(workspace.platform, workspace.name, external(user))
        asker = user_id(workspace, external(user)) if known is None else known.id
        settled = await _settled(tx, workspace, place)
        here = conversation_id(workspace, settled, asker, agent.id)
        room = conversation_id(workspace, replace(settled, kind=ConversationKind.ROOM), asker, None)
        access = await tx.conversations.access_context(room if settled.thread else here, asker)
    if access is not None and not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation(place.kind, place.name))
    return here


async def _settled(tx: Transaction, workspace: Workspace, place: Place) -> Place:
    """The same place, but a thread that is a private one is the room of its own that it is."""
    if place.kind is ConversationKind.THREAD:
        own = private_thread(place)
        if await tx.conversations.get(room_id(workspace, own.name)) is not None:
            return own
    return place


def agent_at(app: App, workspace: Workspace, place: Place, text: str = "") -> Agent:
    """The agent that a place or else a text names, else the first. Raises BadInput for one that is not there."""
    agents = app.directory.agents(workspace.tenant_id)
    slug = place.name if place.kind is ConversationKind.DM else place.agent
    if slug is None:
        return (find_addressed_agents(text, agents) or list(agents))[0]
    for agent in agents:
        if agent.slug == slug:
            return agent
    raise BadInput(f"There is no agent '{slug}'; there is {', '.join(agent.slug for agent in agents)}.")


async def question(
    app: App, workspace: Workspace, place: Place, user: str, text: str, at: datetime, *, top_k: int | None, id: str
) -> tuple[PromptRequest, str | None]:
    """A question that is not stored, and a remark if its asker is new.

    Raises NotFound (no such room, or not for this person; no such session) and BadInput (no such agent, or
    nobody of that name, where a stranger can't be).
    """
    said = incoming(workspace, place, user, text, at, id=id)
    agent = agent_at(app, workspace, place, text)
    if not text.strip():
        raise BadInput("The question is empty: write some text.")
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        known = await tx.people.find_user(workspace.platform, workspace.name, said.user)
        asker = known or User(user_id(workspace, said.user), said.user_name)
        if known is None and place.kind in (ConversationKind.DM, ConversationKind.SESSION):
            raise BadInput(
                f"There is no user '{user}' in the workspace {workspace.name}; nobody has spoken by that name."
            )
        here = conversation_id(workspace, await _settled(tx, workspace, place), asker.id, agent.id)
        access = await tx.conversations.access_context(here, asker.id)
        if access is None or not visibility.may_participate(access):
            raise NotFound(visibility.unknown_conversation(place.kind, place.name))
        mentioned = await tx.people.find_user_ids(workspace.platform, workspace.name, mentions(text))
    conversation = access.conversation
    message = Message(
        derived_id("unstored", str(here), id),
        id,
        LAST,
        at,
        asker.id,
        None,
        asker.name,
        text,
        conversation.namespace,
        conversation.visibility,
        mentions=tuple(mentioned.get(name) or user_id(workspace, name) for name in said.mentions),
    )
    remark = None if known else f"{user} is new in {workspace.name}: nothing is known of them yet."
    return PromptRequest(workspace.tenant_id, here, asker.id, agent, message, top_k), remark
