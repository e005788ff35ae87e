"""Name the places that a person's rows are filed under, and say who reads there. Pure."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from composer.model import GLOBAL_NAMESPACE, ConversationKind
from composer.repositories.holdings import OwnPlace, OwnProject
from composer.text.names import speaker_label

_ID_LENGTH: Final = 36  # of a UUID as text


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A namespace in words: what it is, and who reads what is filed there."""

    name: str
    readers: str


def room_ids(namespaces: Iterable[str]) -> list[uuid.UUID]:
    """The rooms among some namespaces, of any generation."""
    rooms = (name.removeprefix("room:")[:_ID_LENGTH] for name in namespaces if name.startswith("room:"))
    return sorted({uuid.UUID(room) for room in rooms})


def named(
    namespace: str, places: Sequence[OwnPlace], projects: Sequence[OwnProject], users: Iterable[uuid.UUID]
) -> NamedPlace:
    """A namespace in words for the person who is `users`. What they may not read now is not named."""
    by_namespace: Mapping[str, OwnPlace] = {place.namespace: place for place in places}
    kind, _, rest = namespace.partition(":")
    if namespace == GLOBAL_NAMESPACE:
        return NamedPlace("what is stored for everyone", "everyone in this workspace, except in isolated projects")
    if kind == "profile":
        own = uuid.UUID(rest) in set(users)
        readers = "everyone, wherever you take part or are mentioned, except in isolated projects"
        return NamedPlace("your profile" if own else "another person's profile", readers)
    if kind == "project":
        found = next((project for project in projects if str(project.id) == rest), None)
        found_room = next((p for p in places if str(p.project_id) == rest and p.readable and p.project), None)
        slug = found.slug if found is not None else found_room.project if found_room is not None else None
        name = "a project that you are not in" if slug is None else f"project {speaker_label(slug)}"
        return NamedPlace(name, "the project's rooms and sessions, and its members' DMs that chose it")
    place = by_namespace.get(namespace)
    if place is not None:
        return _conversation(place)
    former = next((p for p in places if kind == "room" and p.id == uuid.UUID(rest[:_ID_LENGTH])), None)
    if former is not None and former.readable:
        return NamedPlace(f"#{speaker_label(former.name)}, while it was private", "nobody any more")
    if kind == "room":
        return NamedPlace("a private room that you are not in", "its members")
    return NamedPlace(f"a {'DM' if kind == 'dm' else kind} of yours", "you")


def _conversation(place: OwnPlace) -> NamedPlace:
    agent = f"@{place.agent}" if place.agent else "an agent"
    if place.kind is ConversationKind.DM:
        return NamedPlace(f"your DM with {agent}", f"you, in your DMs with {agent}")
    label = speaker_label(place.name)
    if place.kind is ConversationKind.SESSION:
        pooled = place.project is not None and place.role is not None
        return NamedPlace(f"your session {label} with {agent}", "you, in that session" + _pool(place, pooled=pooled))
    if not place.readable:
        return NamedPlace("a private room that you are not in", "its members")
    pooled = place.project is not None and (place.pooled or not place.private)
    if place.private:
        return NamedPlace(f"the private room #{label}", "its members" + _pool(place, pooled=pooled))
    return NamedPlace(f"#{label}", "everyone in the room" + _pool(place, pooled=pooled))


def _pool(place: OwnPlace, *, pooled: bool) -> str:
    if not pooled:
        return ""
    return f", and messages and memories also in the rest of project {speaker_label(place.project or '')}"
