"""Open a session: find it by its name, or make it, in the project that it is asked for in."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries.projects import named_project
from composer.errors import BadInput, NotFound
from composer.ingest.validation import validate_message
from composer.model import (
    API,
    Agent,
    Attachment,
    Conversation,
    ConversationKind,
    Incoming,
    Place,
    Trust,
    conversation_id,
    session_namespace,
)
from composer.people.sessions.owner import SessionOwner
from composer.repositories.database import Transaction
from composer.rights import project_names
from composer.rights.table import Act, judge, opening
from composer.visibility import ProjectFacts

DEFAULT_SESSION: Final = "default"
Admit = Callable[[Transaction], Awaitable[None]]  # raises where nothing may be stored any more
ID_PREFIX: Final = "api:"  # before what a client calls a message: our own ids begin otherwise


@dataclass(frozen=True, slots=True)
class NewSessionMessage:
    """What a person wants to say: to an agent (None: the first), in a session, in a project (its id or name; None: in
    none). `id` is the client's for this message, by which it is received once. `attachments`: the files with it."""

    content: str
    agent: str | None
    session: str
    project: str | None
    id: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that may be spoken in. `opens` says what its project reads from now on, and it of the project; empty
    if the session was there already, or is in none. `project` is the one that it is in now."""

    conversation: Conversation
    agent: Agent
    project: ProjectFacts | None
    opens: str
    incoming: Incoming


async def open_session(
    tx: Transaction,
    owner: SessionOwner,
    agents: Sequence[Agent],
    said: NewSessionMessage,
    now: datetime,
    admit: Admit | None = None,
) -> OpenSession:
    """Open the session that something is said in, and make the message of it, which is yet to be received.

    Whoever names a project is a member of it now, by a credential that may reach it; a session that is made so belongs
    to it from its first message on. `admit` is asked before one is made. Raises as it does, NotFound for any other
    project, and for a session that was put into one that the credential may not reach; BadInput for what can't be
    stored and an unknown agent. Then nothing is made.
    """
    agent = agent_of(agents, said.agent)
    access = await owner.access(tx)
    project = None if said.project is None else named_project(access, said.project)
    place = _place(said.session, agent, project)
    incoming = validate_message(_incoming(owner, place, said, now), agents)
    id = conversation_id(owner.workspace, place, owner.user, agent.id)
    opens = ""
    conversation = await tx.conversations.get(id)
    if conversation is None:
        conversation, opens = await _create(tx, owner, NewSession(id, place, agent, project), now, admit)
    if not visibility.may_know_session(access, conversation):
        raise NotFound(visibility.unknown_conversation_sentence(ConversationKind.SESSION, said.session))
    if not conversation.name:  # it was forgotten, and is named again with what is said now
        conversation = replace(conversation, name=place.name)
    await _introduce(tx, owner, agents, now)
    trust, names = await tx.people.trust(owner.user), await tx.people.names([owner.user])
    here = next((each for each in access.projects if each.id == conversation.project_id), None)
    message = Incoming(
        incoming.adapter,
        incoming.workspace,
        place,
        incoming.user,
        names.get(owner.user, ""),
        incoming.id,
        incoming.text,
        incoming.at,
        incoming.attachments,
        sender_trust=trust,
    )
    return OpenSession(conversation, agent, here, opens, message)


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to make."""

    id: uuid.UUID
    place: Place
    agent: Agent
    project: ProjectFacts | None


async def _create(
    tx: Transaction, owner: SessionOwner, new: NewSession, now: datetime, admit: Admit | None
) -> tuple[Conversation, str]:
    """Make a session, in its project. Returns what that opens to whom."""
    if admit is not None:
        await admit(tx)
    namespace = session_namespace(owner.user, new.agent.id, new.id)
    tenant, kind = owner.workspace.tenant_id, ConversationKind.SESSION
    session = Conversation(new.id, tenant, kind, new.place.name, namespace, user_id=owner.user, agent_id=new.agent.id)
    made = await tx.conversations.ensure(API, owner.workspace.name, [session], now)
    conversation = await tx.conversations.get(new.id)
    assert conversation is not None
    if new.project is None or new.id not in made:
        return conversation, ""
    name = project_names.full_name(new.project.slug, new.project.id)
    facts = await tx.permissions.facts(conversation, owner.user, [name])
    judge([Act.ASSIGN_SESSION], facts)
    opens = opening([Act.ASSIGN_SESSION], facts)
    tx.audit.act_for(owner.user, new.id)
    await tx.conversations.assign_project(new.id, new.project.id, True)
    assigned = await tx.conversations.get(new.id)
    assert assigned is not None
    return assigned, opens


async def _introduce(tx: Transaction, owner: SessionOwner, agents: Sequence[Agent], now: datetime) -> None:
    """Let the API know the person by their own id, so that they are the same user there as elsewhere. A session may be
    there already, made in the terminal."""
    here, name = owner.workspace, str(owner.user)
    known, _ = await tx.people.ensure_tenant(here.tenant, here.platform, here.name, agents, now, [name])
    if name not in known:
        await tx.people.ensure_users(here.platform, here.name, {name: (owner.user, name)}, now)


def agent_of(agents: Sequence[Agent], slug: str | None) -> Agent:
    """The agent of a slug; None: the first. Raises BadInput for an unknown one."""
    found = agents[0] if slug is None else next((agent for agent in agents if agent.slug == slug.casefold()), None)
    if found is None:
        known = ", ".join(agent.slug for agent in agents)
        raise BadInput(f"There is no such agent: choose one of {known}.")
    return found


def session_id(
    owner: SessionOwner, user: uuid.UUID, agent: Agent, session: str, project: uuid.UUID | None
) -> uuid.UUID:
    """The id of one user's session."""
    place = Place(ConversationKind.SESSION, session, project=None if project is None else str(project))
    return conversation_id(owner.workspace, place, user, agent.id)


def _place(session: str, agent: Agent, project: ProjectFacts | None) -> Place:
    key = None if project is None else str(project.id)
    return Place(ConversationKind.SESSION, session, agent=agent.slug, project=key)


def _incoming(owner: SessionOwner, place: Place, said: NewSessionMessage, now: datetime) -> Incoming:
    user = str(owner.user)
    id = f"{ID_PREFIX}{said.id}" if said.id.strip() else ""
    name, files = owner.workspace.name, said.attachments
    return Incoming(API, name, place, user, user, id, said.content, now, files, sender_trust=Trust.GUEST)
