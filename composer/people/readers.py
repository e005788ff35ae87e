"""Who can be answered from one item of a person, and why: the table of README, for this item as it is now. Pure.

The sentences are plain English with names to fill in, so that a page can translate them.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from composer.model import EVERY_VENDOR, GLOBAL_NAMESPACE, ConversationKind
from composer.repositories.own_data import OwnItem, OwnPlace, OwnProject
from composer.text.names import title_label

_ID_LENGTH: Final = 36  # of a UUID as text


@dataclass(frozen=True, slots=True)
class Reader:
    """A line of the table: `who` is or is not (`may`) answered from the item, and `why`. `names` are filled in, where a
    sentence names something as %(room)s."""

    may: bool
    who: str
    why: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


_YOUR_TOOLS: Final = Reader(False, "Your AI tools", "they read entries alone")
_ROOMS: Final = Reader(False, "Every room", "said in private, it is used in no room")
_ADMINS: Final = Reader(False, "Admins", "they see figures, never these words")


def readers_of(item: OwnItem, places: Sequence[OwnPlace], projects: Sequence[OwnProject]) -> list[Reader]:
    """The table for an item. `places` and `projects` are those that the person has or is in, as they are now."""
    if item.trashed_at is not None:
        return [Reader(False, "Nobody", "it is in the trash, and you alone can restore it")]
    if item.pending:
        return [
            Reader(False, "Nobody yet", "it waits for approval"),
            Reader(True, "You and its reviewers", "to decide"),
        ]
    kind, _, rest = item.namespace.partition(":")
    if item.namespace == GLOBAL_NAMESPACE:
        return [
            Reader(True, "Everyone in this organisation", "it is stored for everyone"),
            Reader(False, "Guests", "they get only what is in their rooms"),
            Reader(False, "Isolated projects", "nothing from outside is used in them"),
        ]
    if kind == "entries":
        return [
            Reader(True, "You", "in your DMs, your sessions and over the API"),
            *_tools(item),
            _ROOMS_OF_ENTRY,
            _ADMINS,
        ]
    if kind == "team":
        return [
            Reader(True, "The team's members", "over the API, with their tools"),
            Reader(True, "You", "in your DMs and your sessions, too"),
            *_tools(item),
            _ROOMS_OF_ENTRY,
            _ADMINS,
        ]
    if kind == "profile":
        return [
            Reader(True, "You", "wherever you ask"),
            Reader(True, "Others in a room", "where you take part, or are mentioned: you shared it on purpose"),
            Reader(False, "Isolated projects", "nothing from outside is used in them"),
        ]
    if kind == "project":
        return _of_project(rest, projects)
    return _of_conversation(item, kind, rest, places)


_ROOMS_OF_ENTRY: Final = Reader(False, "Every room", "entries are used in no room")


def _tools(item: OwnItem) -> list[Reader]:
    if EVERY_VENDOR in item.vendors:
        return [Reader(True, "Your AI tools", "every tool of yours may read it")]
    named = ", ".join(title_label(vendor) for vendor in item.vendors)
    return [
        Reader(True, "%(tools)s", "you let them read it", {"tools": named}),
        Reader(False, "Other tools of yours", "they are not on its list"),
    ]


def _of_project(id: str, projects: Sequence[OwnProject]) -> list[Reader]:
    project = next((each for each in projects if str(each.id) == id), None)
    if project is None:
        return [Reader(True, "A project that you are not in any more", "its rooms and sessions")]
    names = {"project": title_label(project.slug)}
    found = [Reader(True, "Project %(project)s", "whoever asks in its rooms and sessions", names)]
    if project.isolated:
        return [*found, Reader(False, "Everywhere else", "the project is isolated")]
    return [*found, Reader(False, "Rooms outside the project", "it was stored for the project")]


def _of_conversation(item: OwnItem, kind: str, rest: str, places: Sequence[OwnPlace]) -> list[Reader]:
    place = next((each for each in places if each.namespace == item.namespace), None)
    if place is None:
        if kind == "room" and any(each.id == uuid.UUID(rest[:_ID_LENGTH]) for each in places):
            return [Reader(False, "Nobody", "the room was private then, and is not now")]
        return [Reader(False, "Nobody outside it", "you are not in that conversation any more")]
    agent = {"agent": f"@{place.agent}" if place.agent else "the agent"}
    if place.kind is ConversationKind.DM:
        return [Reader(True, "You", "in your DMs with %(agent)s", agent), _ROOMS, _YOUR_TOOLS, _ADMINS]
    names = {"room": title_label(place.name), "project": title_label(place.project or "")}
    pooled = place.project is not None
    if place.kind is ConversationKind.SESSION:
        found = [Reader(True, "You", "in your session %(room)s", names)]
        if pooled and place.role is not None:
            found.append(Reader(True, "Project %(project)s", "you put the session into it", names))
        return [*found, _ROOMS if not pooled else _YOUR_TOOLS, _ADMINS]
    if not place.readable:
        return [Reader(True, "A private room that you are not in", "its members, when they ask there")]
    who = Reader(
        True, "#%(room)s", "its members, when they ask there" if place.private else "whoever asks there", names
    )
    found = [who, Reader(True, "Its members' DMs", "of those who gave /nexus rooms on")]
    if pooled and (place.pooled or not place.private):
        found.append(Reader(True, "Project %(project)s", "whoever asks in its rooms and sessions", names))
    return [*found, Reader(False, "Every other room", "it was said in this one"), _YOUR_TOOLS]
