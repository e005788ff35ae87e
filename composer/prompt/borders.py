"""Say in words from which scope a row came, if it crossed the border of the conversation that it is used in. Pure."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from composer import visibility
from composer.model import GLOBAL_NAMESPACE, Conversation, ConversationKind, project_namespace
from composer.text.names import in_quotes, speaker_label, title_label
from composer.visibility import AccessContext, Readable

_PROFILE: Final = "profile:"
_OWN_ENTRIES: Final = ("entries:", "team:")  # of a team's entries, a DM or a session reads the asker's own alone


def profile_owners(namespaces: Iterable[str]) -> list[uuid.UUID]:
    """The people whose profiles are among some namespaces."""
    return sorted({uuid.UUID(name.removeprefix(_PROFILE)) for name in namespaces if name.startswith(_PROFILE)})


def said_here(conversation: Conversation) -> str:
    """Where something was said that came from a conversation itself, as a phrase such as 'in "#general"'."""
    if conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        return f"in {_room(conversation.name)}"
    return f"in this {conversation.kind.value if conversation.kind is ConversationKind.SESSION else 'DM'}"


def came_from(namespace: str, access: AccessContext, names: Mapping[uuid.UUID, str]) -> str:
    """Where a row of `namespace` came from, as a phrase such as "from project apollo"; "" for the conversation's own.

    `names` are those of the `profile_owners`. A private room that is pooled is not named: its project's members need
    not know it.
    """
    if namespace == access.conversation.namespace:
        return ""
    if namespace == GLOBAL_NAMESPACE:
        return "from what is stored for everyone"
    if namespace.startswith(_PROFILE):
        owner = uuid.UUID(namespace.removeprefix(_PROFILE))
        return f"from {speaker_label(names.get(owner, ''))}'s profile"
    if namespace.startswith(_OWN_ENTRIES):
        return "from the asker's own entries"
    project = visibility.effective_project(access)
    if project is not None and namespace == project_namespace(project.id):
        return f"from project {title_label(project.slug)}"
    pool = {} if project is None else {member.namespace: member.title for member in project.members}
    if project is not None and namespace in pool:
        title = pool[namespace]
        where = "another conversation" if title is None else _room(title)
        return f"from {where} of project {title_label(project.slug)}"
    room = next((room for room in access.joined_rooms if room.namespace == namespace), None)
    if room is not None:
        return f"from the room {_room(room.name)}"
    return "from a DM of the same person's other account"


def rooms_by_name(access: AccessContext, readable: Readable) -> dict[str, frozenset[str]]:
    """The namespaces of the rooms that a viewer may read from here, by the names that they may know them by."""
    conversation, project = access.conversation, visibility.effective_project(access)
    found: defaultdict[str, set[str]] = defaultdict(set)
    if conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        found[conversation.name].add(conversation.namespace)
    for member in () if project is None else project.members:
        if member.title is not None and member.namespace in readable.pooled:
            found[member.title].add(member.namespace)
    for room in access.joined_rooms:
        if room.namespace in readable.rooms:
            found[room.name].add(room.namespace)
    return {name: frozenset(namespaces) for name, namespaces in found.items() if name}


def _room(title: str) -> str:
    return in_quotes(f"#{title_label(title)}")
