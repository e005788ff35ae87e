"""A platform's workspace, and the ids of everything in it. Ids are derived, so every process gets the same ones."""

import uuid
from dataclasses import dataclass

from composer.model import API, ConversationKind, Place, derived_id


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace of a platform and the tenant that owns it."""

    tenant_id: uuid.UUID
    tenant: str
    platform: str
    name: str


def api_workspace(tenant: uuid.UUID, slug: str) -> Workspace:
    """The workspace of a tenant's conversations over the API. People are called there by their own ids."""
    return Workspace(tenant, slug, API, slug)


def tenant_id(slug: str) -> uuid.UUID:
    """The id of a tenant."""
    return derived_id("tenant", slug)


def agent_id(tenant: uuid.UUID, slug: str) -> uuid.UUID:
    """The id of an agent in a tenant."""
    return derived_id("agent", str(tenant), slug)


def user_id(workspace: Workspace, external_id: str) -> uuid.UUID:
    """The id that a new user gets, from their id on the platform."""
    return derived_id("user", str(workspace.tenant_id), workspace.platform, workspace.name, external_id)


def room_id(workspace: Workspace, name: str) -> uuid.UUID:
    """The id of a room."""
    return derived_id("room", str(workspace.tenant_id), workspace.platform, workspace.name, name)


def thread_id(room: uuid.UUID, thread: str) -> uuid.UUID:
    """The id of a public thread."""
    return derived_id("thread", str(room), thread)


def private_thread(place: Place) -> Place:
    """The place of a private thread, which is a room of its own."""
    return Place(ConversationKind.ROOM, f"{place.name}/{place.thread}", private=True)


def conversation_id(workspace: Workspace, place: Place, user: uuid.UUID, agent: uuid.UUID | None) -> uuid.UUID:
    """The id of the conversation at a place. `agent` is the agent of a DM or session."""
    match place.kind:
        case ConversationKind.ROOM:
            return room_id(workspace, place.name)
        case ConversationKind.THREAD:
            return thread_id(room_id(workspace, place.name), place.thread or "")
        case ConversationKind.DM:
            return dm_id(workspace.tenant_id, user, agent)
        case ConversationKind.SESSION:
            return derived_id(
                "session", str(workspace.tenant_id), str(user), str(agent), place.project or "", place.name
            )


def dm_id(tenant: uuid.UUID, user: uuid.UUID, agent: uuid.UUID | None) -> uuid.UUID:
    """The id of a DM."""
    return derived_id("dm", str(tenant), str(user), str(agent))


def message_id(container: uuid.UUID, external_id: str) -> uuid.UUID:
    """The id of a message, from its id on the platform and the id of its room, DM or session."""
    return derived_id("message", str(container), external_id)
