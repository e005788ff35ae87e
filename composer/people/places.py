"""Name the places that a person's rows are filed under, and say who reads there. Pure."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from composer.model import GLOBAL_NAMESPACE, ConversationKind
from composer.repositories.own_data import OwnPlace, OwnProject
from composer.rights.project_names import distinct_names
from composer.text.names import title_label

_ID_LENGTH: Final = 36  # of a UUID as text
SESSION: Final = "your session %(room)s with %(agent)s"
LEFT_ROOM: Final = "a private room that you are not in"


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A namespace in words: what it is (`called`), and who reads what is filed there (`read_by`), as texts in which
    `names` are filled in; and the project that it is in, if any."""

    called: str
    read_by: str
    project: str = ""
    names: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What it is, in English."""
        return self.called % dict(self.names) if self.names else self.called

    @property
    def readers(self) -> str:
        """Who reads there, in English."""
        return self.read_by % dict(self.names) if self.names else self.read_by


# Who reads a place that is also read in the rest of its project.
POOLED: Final = {
    "you, in that session": "you, in that session, and messages and memories also in the rest of project %(project)s",
    "its members": "its members, and messages and memories also in the rest of project %(project)s",
    "everyone in the room": "everyone in the room, and messages and memories also in the rest of project %(project)s",
}


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
        return NamedPlace(
            "your profile" if own else "another person's profile",
            "everyone, wherever you take part or are mentioned, except in isolated projects",
        )
    if kind == "entries":
        own = uuid.UUID(rest) in set(users)
        return NamedPlace(
            "your entries" if own else "another person's entries",
            "you, in your DMs and sessions, and the tools that may read the entry",
        )
    if kind == "team":
        return NamedPlace("a team's entries", "the members of that team, their tools, and you in your DMs and sessions")
    if kind == "project":
        known = names.get(uuid.UUID(rest))
        if known is None:
            return NamedPlace(
                "a project that you are not in", "its rooms and sessions, and its members' DMs that chose it"
            )
        return NamedPlace(
            "project %(project)s",
            "the rooms and sessions of project %(project)s, and its members' DMs that chose it",
            known,
            (("project", known),),
        )
    place = by_namespace.get(namespace)
    if place is not None:
        project = names.get(place.project_id, "") if place.readable and place.project_id is not None else ""
        return replace(_conversation(place, names), project=project)
    former = next((p for p in places if kind == "room" and p.id == uuid.UUID(rest[:_ID_LENGTH])), None)
    if former is not None and former.readable:
        label = title_label(former.name)
        return NamedPlace("#%(room)s, while it was private", "nobody any more", names=(("room", label),))
    if kind == "room":
        return NamedPlace(LEFT_ROOM, "its members")
    return NamedPlace("a DM of yours", "you") if kind == "dm" else NamedPlace("a session of yours", "you")


def session_in(project: str) -> NamedPlace:
    """A session of somebody else in a project, for an admin of that."""
    return NamedPlace("a session of project %(project)s", "you", names=(("project", project),))


def _project_names(places: Sequence[OwnPlace], projects: Sequence[OwnProject]) -> Mapping[uuid.UUID, str]:
    """What the person calls each project that they may know of: with its id where that is several of one slug."""
    found = {each.project_id: each.project for each in places if each.readable and each.project_id and each.project}
    found |= {project.id: project.slug for project in projects}
    return distinct_names((id, title_label(slug)) for id, slug in found.items())


def _conversation(place: OwnPlace, names: Mapping[uuid.UUID, str]) -> NamedPlace:
    if place.kind is ConversationKind.ROOM and not place.readable:
        return NamedPlace(LEFT_ROOM, "its members")
    agent, label = f"@{place.agent}" if place.agent else "an agent", title_label(place.name)
    given = [("agent", agent), ("room", label)]
    if place.kind is ConversationKind.DM:
        return NamedPlace("your DM with %(agent)s", "you, in your DMs with %(agent)s", names=tuple(given))
    if place.kind is ConversationKind.SESSION:
        pooled = place.pooled and place.role is not None and place.role.writes
        found = NamedPlace(SESSION, "you, in that session")
    else:
        pooled = place.project is not None and (place.pooled or not place.private)
        private = NamedPlace("the private room #%(room)s", "its members")
        found = private if place.private else NamedPlace("#%(room)s", "everyone in the room")
    if pooled and place.project_id is not None:
        given.append(("project", names[place.project_id]))
        found = replace(found, read_by=POOLED[found.read_by])
    return replace(found, names=tuple(given))
