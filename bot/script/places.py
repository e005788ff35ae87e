"""People, places and messages by the names that the terminal and scripts use for them."""

import secrets
from datetime import datetime
from typing import Final

from composer.app import App
from composer.errors import BadInput
from composer.ingest.addressing import find_addressed_agents
from composer.model import CONSOLE, Agent, Attachment, ConversationKind, Incoming, Place, Trust, Workspace

DEFAULT_USER: Final = "alice"


def external(name: str, platform: str = CONSOLE) -> str:
    """The platform id of a person or a room: in the terminal its name without # or @, in lower case. On other platforms
    an id is given as it is."""
    if platform != CONSOLE:
        return name.strip()
    return name.strip().lstrip("#@").casefold()


def room_of(name: str) -> str:
    """The platform id of a room. Raises BadInput for a name with a slash: the private thread T of a room R is the room
    R/T, which nobody may open by that name before."""
    room = external(name)
    if "/" in room:
        raise BadInput(f"The name of a room has no slash: '{name}'.")
    return room


def place_of(
    room: str | None,
    dm: str | None,
    session: str | None,
    thread: str | None = None,
    private: bool | None = None,
    agent: str | None = None,
    *,
    platform: str = CONSOLE,
) -> Place:
    """The place that exactly one of room, dm (an agent's slug) and session names. Raises BadInput as `room_of`."""
    if dm is not None:
        return Place(ConversationKind.DM, external(dm))
    if session is not None:
        return Place(ConversationKind.SESSION, session, agent=None if agent is None else external(agent))
    kind = ConversationKind.ROOM if thread is None else ConversationKind.THREAD
    id = room_of(room or "") if platform == CONSOLE else external(room or "", platform)
    return Place(kind, id, thread, private)


def agent_at(app: App, workspace: Workspace, place: Place, text: str = "") -> Agent:
    """The agent that a place or else a text names, else the first. Raises BadInput for an unknown one."""
    agents = app.directory.agents(workspace.tenant_id)
    slug = place.name if place.kind is ConversationKind.DM else place.agent
    if slug is None:
        return (find_addressed_agents(text, agents) or list(agents))[0]
    for agent in agents:
        if agent.slug == slug:
            return agent
    raise BadInput(f"There is no agent '{slug}': choose one of {', '.join(agent.slug for agent in agents)}.")


def mentions(text: str) -> tuple[str, ...]:
    """The platform ids of the people whom a text mentions by @name."""
    return tuple(dict.fromkeys(external(word.rstrip(".,:;!?)")) for word in text.split() if word.startswith("@")))


def incoming(
    workspace: Workspace,
    place: Place,
    user: str,
    text: str,
    at: datetime,
    *,
    id: str | None = None,
    name: str | None = None,
    attachments: tuple[Attachment, ...] = (),
    trust: Trust = Trust.MEMBER,
) -> Incoming:
    """A message from the terminal or a script, as every adapter passes it on. Without `id` it gets a random one."""
    return Incoming(
        workspace.platform,
        workspace.name,
        place,
        external(user, workspace.platform),
        name or user.strip().lstrip("@"),
        id or secrets.token_hex(8),
        text,
        at,
        attachments,
        mentions(text),
        sender_trust=trust,
    )
