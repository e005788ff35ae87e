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
class WhoReads:
    """A line of the table: `who` is or is not (`may`) answered from the item, and `why`. `names` are filled in, where a
    sentence names something as %(room)s."""

    may: bool
    who: str
    why: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


_YOUR_TOOLS: Final = WhoReads(False, "Your AI tools", "they read entries alone")
_ROOMS: Final = WhoReads(False, "Every room", "said in private, it is used in no room")
_ADMINS: Final = WhoReads(False, "Admins", "they see figures, never these words")


def readers_of(item: OwnItem, places: Sequence[OwnPlace], projects: Sequence[OwnProject]) -> list[WhoReads]:
    """The table for an item. `places` and `projects` are those that the person has or is in, as they are now."""
    if item.trashed_at is not None:
        return [WhoReads(False, "Nobody", "it is in the trash, and you alone can restore it")]
    if item.pending:
        alone = any(each.namespace == item.namespace and _is_own_talk(each) for each in places)
        return [
            WhoReads(False, "Nobody yet", "it waits for approval"),
            WhoReads(True, "You" if alone else "You and its reviewers", "to decide"),
        ]
    kind, _, rest = item.namespace.partition(":")
    if item.namespace == GLOBAL_NAMESPACE:
        return [
            WhoReads(True, "Everyone in this organisation", "it is stored for everyone"),
            WhoReads(False, "Guests", "they get only what is in their rooms"),
            WhoReads(False, "Isolated projects", "nothing from outside is used in them"),
        ]
    if kind == "entries":
        return [
            WhoReads(True, "You", "in your DMs, your sessions and over the API"),
            *_tools(item),
            _ROOMS_OF_ENTRY,
            _ADMINS,
        ]
    if kind == "team":
        return [
            WhoReads(True, "The team's members", "over the API, with their tools"),
            WhoReads(True, "You", "in your DMs and your sessions, too"),
            *_tools(item),
            _ROOMS_OF_ENTRY,
            _ADMINS,
        ]
    if kind == "profile":
        return [
            WhoReads(True, "You", "wherever you ask"),
            WhoReads(True, "Others in a room", "where you take part, or are mentioned: you shared it on purpose"),
            WhoReads(False, "Isolated projects", "nothing from outside is used in them"),
        ]
    if kind == "project":
        return _of_project(rest, projects)
    return _of_conversation(item, kind, rest, places)


def readers_of_room(name: str, *, private: bool, project: str | None, isolated: bool, pooled: bool) -> list[WhoReads]:
    """The table for what is said in a room, and what is kept of it."""
    names = {"room": title_label(name), "project": title_label(project or "")}
    found = [
        WhoReads(True, "#%(room)s", "its members, when they ask there" if private else "whoever asks there", names),
    ]
    if not isolated:
        found.append(WhoReads(True, "Its members' DMs", "of those who gave /nexus rooms on"))
    if pooled:
        found.append(WhoReads(True, "Project %(project)s", "whoever asks in its rooms and sessions", names))
    elif project is not None:
        found.append(WhoReads(False, "The rest of project %(project)s", "this private room is not pooled in it", names))
    if isolated:
        return [*found, WhoReads(False, "Everywhere else", "the project is isolated"), _YOUR_TOOLS]
    return [*found, WhoReads(False, "Every other room", "it was said in this one"), _YOUR_TOOLS]


def readers_of_project(slug: str, *, isolated: bool) -> list[WhoReads]:
    """The table for what was written for a project."""
    names = {"project": title_label(slug)}
    found = [
        WhoReads(True, "Project %(project)s", "whoever asks in its rooms and sessions", names),
        WhoReads(True, "Its members' AI tools", "the entries that were written for it"),
    ]
    if isolated:
        return [*found, WhoReads(False, "Everywhere else", "the project is isolated"), _ADMINS_OUTSIDE]
    return [*found, WhoReads(False, "Rooms outside the project", "it was stored for the project"), _ADMINS_OUTSIDE]


TEAM_READERS: Final = (
    WhoReads(True, "The team's members", "over the API, with their tools"),
    WhoReads(True, "Whose it is", "in their DMs and sessions, too"),
    WhoReads(False, "Every room", "entries are used in no room"),
    WhoReads(False, "Admins who are no members", "they see figures, never these words"),
)
_ADMINS_OUTSIDE: Final = WhoReads(False, "Admins who are no members", "they see figures, never these words")
_ROOMS_OF_ENTRY: Final = WhoReads(False, "Every room", "entries are used in no room")


def _is_own_talk(place: OwnPlace) -> bool:
    """Whether one decides alone about what waits there."""
    return place.kind is ConversationKind.DM or (place.kind is ConversationKind.SESSION and place.project is None)


def _tools(item: OwnItem) -> list[WhoReads]:
    if EVERY_VENDOR in item.vendors:
        return [WhoReads(True, "Your AI tools", "every tool of yours may read it")]
    named = ", ".join(title_label(vendor) for vendor in item.vendors)
    return [
        WhoReads(True, "%(tools)s", "you let them read it", {"tools": named}),
        WhoReads(False, "Other tools of yours", "they are not on its list"),
    ]


def _of_project(id: str, projects: Sequence[OwnProject]) -> list[WhoReads]:
    project = next((each for each in projects if str(each.id) == id), None)
    if project is None:
        return [WhoReads(True, "A project that you are not in any more", "its rooms and sessions")]
    names = {"project": title_label(project.slug)}
    found = [WhoReads(True, "Project %(project)s", "whoever asks in its rooms and sessions", names)]
    if project.isolated:
        return [*found, WhoReads(False, "Everywhere else", "the project is isolated")]
    return [*found, WhoReads(False, "Rooms outside the project", "it was stored for the project")]


def _of_conversation(item: OwnItem, kind: str, rest: str, places: Sequence[OwnPlace]) -> list[WhoReads]:
    place = next((each for each in places if each.namespace == item.namespace), None)
    if place is None:
        if kind == "room" and any(each.id == uuid.UUID(rest[:_ID_LENGTH]) for each in places):
            return [WhoReads(False, "Nobody", "the room was private then, and is not now")]
        return [WhoReads(False, "Nobody outside it", "you are not in that conversation any more")]
    agent = {"agent": f"@{place.agent}" if place.agent else "the agent"}
    if place.kind is ConversationKind.DM:
        return [WhoReads(True, "You", "in your DMs with %(agent)s", agent), _ROOMS, _YOUR_TOOLS, _ADMINS]
    names = {"room": title_label(place.name), "project": title_label(place.project or "")}
    pooled = place.project is not None
    if place.kind is ConversationKind.SESSION:
        found = [WhoReads(True, "You", "in your session %(room)s", names)]
        if place.pooled and place.role is not None and place.role.writes:
            found.append(WhoReads(True, "Project %(project)s", "you put the session into it", names))
        return [*found, _ROOMS if not pooled else _YOUR_TOOLS, _ADMINS]
    if not place.readable:
        return [WhoReads(True, "A private room that you are not in", "its members, when they ask there")]
    who = WhoReads(
        True, "#%(room)s", "its members, when they ask there" if place.private else "whoever asks there", names
    )
    found = [who, WhoReads(True, "Its members' DMs", "of those who gave /nexus rooms on")]
    if pooled and (place.pooled or not place.private):
        found.append(WhoReads(True, "Project %(project)s", "whoever asks in its rooms and sessions", names))
    return [*found, WhoReads(False, "Every other room", "it was said in this one"), _YOUR_TOOLS]
