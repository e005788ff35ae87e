"""Name the places that a person's rows are filed under, and say who reads there. Pure."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from composer.model import GLOBAL_NAMESPACE, ConversationKind
from composer.repositories.own_data import OwnPlace, OwnProject
from composer.text.names import title_label
from composer.text.project_names import distinct_names

_ID_LENGTH: Final = 36  # of a UUID as text
LEFT_ROOM: Final = "a private room that you are not in"


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A namespace in words: what it is, who reads what is filed there, and the project that it is in, if any."""

    name: str
    readers: str
    project: str = ""


def room_ids(namespaces: Iterable[str]) -> list[uuid.UUID]:
    """The rooms among some namespaces, of any generation."""
    rooms = (name.removeprefix("room:")[:_ID_LENGTH] for name in namespaces if name.startswith("room:"))
    return sorted({uuid.UUID(room) for room in rooms})


def named(
    namespace: str, places: Sequence[OwnPlace], projects: Sequence[OwnProject], users: Iterable[uuid.UUID]
) -> NamedPlace:
    """A namespace in words for the person who is `users`. What they may not read now is not named."""
    names = _project_names(places, projects)
    by_namespace: Mapping[str, OwnPlace] = {place.namespace: place for place in places}
    kind, _, rest = namespace.partition(":")
    if namespace == GLOBAL_NAMESPACE:
        return NamedPlace("what is stored for everyone", "everyone in this workspace, except in isolated projects")
    if kind == "profile":
        own = uuid.UUID(rest) in set(users)
        readers = "everyone, wherever you take part or are mentioned, except in isolated projects"
        return NamedPlace("your profile" if own else "another person's profile", readers)
    if kind == "entries":
        own = uuid.UUID(rest) in set(users)
        readers = "you, in your DMs and sessions, and the tools that may read the entry"
        return NamedPlace("your entries" if own else "another person's entries", readers)
    if kind == "team":
        return NamedPlace("a team's entries", "the members of that team, their tools, and you in your DMs and sessions")
    if kind == "project":
        known = names.get(uuid.UUID(rest))
        name = "a project that you are not in" if known is None else f"project {known}"
        return NamedPlace(name, f"the rooms and sessions of {name}, and its members' DMs that chose it", known or "")
    place = by_namespace.get(namespace)
    if place is not None:
        project = names.get(place.project_id, "") if place.readable and place.project_id is not None else ""
        return replace(_conversation(place, names), project=project)
    former = next((p for p in places if kind == "room" and p.id == uuid.UUID(rest[:_ID_LENGTH])), None)
    if former is not None and former.readable:
        return NamedPlace(f"#{title_label(former.name)}, while it was private", "nobody any more")
    if kind == "room":
        return NamedPlace(LEFT_ROOM, "its members")
    return NamedPlace(f"a {'DM' if kind == 'dm' else kind} of yours", "you")


def _project_names(places: Sequence[OwnPlace], projects: Sequence[OwnProject]) -> Mapping[uuid.UUID, str]:
    """What the person calls each project that they may know of: with its id where that is several of one slug."""
    found = {each.project_id: each.project for each in places if each.readable and each.project_id and each.project}
    found |= {project.id: project.slug for project in projects}
    return distinct_names((id, title_label(slug)) for id, slug in found.items())


def _conversation(place: OwnPlace, names: Mapping[uuid.UUID, str]) -> NamedPlace:
    agent = f"@{place.agent}" if place.agent else "an agent"
    if place.kind is ConversationKind.DM:
        return NamedPlace(f"your DM with {agent}", f"you, in your DMs with {agent}")
    label = title_label(place.name)
    if place.kind is ConversationKind.SESSION:
        pooled = place.pooled and place.role is not None and place.role.writes
        readers = "you, in that session" + _pool(place, names, pooled=pooled)
        return NamedPlace(f"your session {label} with {agent}", readers)
    if not place.readable:
        return NamedPlace(LEFT_ROOM, "its members")
    pooled = place.project is not None and (place.pooled or not place.private)
    if place.private:
        return NamedPlace(f"the private room #{label}", "its members" + _pool(place, names, pooled=pooled))
    return NamedPlace(f"#{label}", "everyone in the room" + _pool(place, names, pooled=pooled))


def _pool(place: OwnPlace, names: Mapping[uuid.UUID, str], *, pooled: bool) -> str:
    if not pooled or place.project_id is None:
        return ""
    return f", and messages and memories also in the rest of project {names[place.project_id]}"
