"""The table of rights, act by act: exactly who may do what in which place, stated a second time by persons."""

import uuid
from dataclasses import dataclass, replace
from typing import Final

import pytest

from composer.errors import NexusError
from composer.model import (
    GLOBAL_NAMESPACE,
    Conversation,
    ConversationKind,
    Role,
    Trust,
    Visibility,
    profile_namespace,
    project_namespace,
)
from composer.rights.relations import ActorFacts, LinkedAccount
from composer.rights.table import Act, judge, opening
from composer.visibility import AccessContext, ProjectFacts

TENANT, ROOM, SELF, OTHER, HERE, NAMED = (
    uuid.uuid5(uuid.NAMESPACE_DNS, n) for n in ["tenant", "room", "self", "other", "here", "named"]
)


@dataclass(frozen=True)
class Person:
    """Somebody: whether an admin of the room, their roles in the project named and in the one of the conversation."""

    room_admin: bool = False
    named: Role | None = None
    here: Role | None = None
    root: bool = False


PEOPLE: Final = {
    "guest": Person(),
    "opener": Person(room_admin=True),
    "reader": Person(named=Role.READ, here=Role.READ),
    "writer": Person(named=Role.WRITE),
    "manager": Person(named=Role.ADMIN),
    "host": Person(room_admin=True, named=Role.READ),
    "captain": Person(room_admin=True, named=Role.WRITE),
    "inner": Person(here=Role.WRITE),
    "chief": Person(here=Role.ADMIN),
    "marshal": Person(room_admin=True, named=Role.WRITE, here=Role.ADMIN),
    "root": Person(root=True),
}
ALL: Final = frozenset(PEOPLE)
NOBODY: Final = frozenset[str]()
OPENERS: Final = frozenset({"opener", "host", "captain", "marshal"})
ROOT: Final = frozenset({"root"})
NAMED_MEMBERS: Final = frozenset({"reader", "writer", "manager", "host", "captain", "marshal"})
HERE_WRITERS: Final = frozenset({"inner", "chief", "marshal"})
HERE_ADMINS: Final = frozenset({"chief", "marshal"})
PLACES: Final = (
    "room",
    "private room",
    "room in a project",
    "room in an isolated project",
    "DM",
    "session",
    "session in an isolated project",
)
IN_ROOMS, OWN = PLACES[:4], PLACES[4:]


def facts(name: str, place: str) -> ActorFacts:
    """The facts about a person in a place, who names a project that exists."""
    who = PEOPLE[name]
    kind = (
        ConversationKind.ROOM
        if place in IN_ROOMS
        else ConversationKind.DM
        if place == "DM"
        else ConversationKind.SESSION
    )
    user = None if place in IN_ROOMS else SELF
    private = place == "private room"
    conversation = Conversation(ROOM, TENANT, kind, "lobby", f"room:{ROOM}", private=private, user_id=user)
    here = ProjectFacts(HERE, "ares", "isolated" in place, who.here) if "project" in place else None
    access = AccessContext(conversation, SELF, who.root, True, project=here)
    return ActorFacts(access, who.room_admin, (ProjectFacts(NAMED, "apollo", False, who.named),), "apollo")


def may(acts: list[Act], about: ActorFacts) -> bool:
    try:
        judge(acts, about)
    except NexusError:
        return False
    return True


def allowed(act: Act, place: str, **more: object) -> frozenset[str]:
    return frozenset(name for name in PEOPLE if may([act], replace(facts(name, place), **more)))  # type: ignore[arg-type]


def same(places: tuple[str, ...], who: frozenset[str]) -> dict[str, frozenset[str]]:
    return dict.fromkeys(places, who)


OF_ROOT: Final = (
    Act.WRITE_GLOBAL,
    Act.MOVE_TO_GLOBAL,
    Act.ERASE_USER,
    Act.ERASE_PROJECT,
    Act.CHANGE_SETTINGS,
    Act.SEE_AUDIT,
    Act.MANAGE_PEOPLE,
    Act.OVERSEE_PLACES,
    Act.IMPORT_HISTORY,
    Act.SEE_USAGE,
)
MARSHAL: Final = frozenset({"marshal"})
ANYONE: Final = (
    Act.READ,
    Act.WRITE,
    Act.WRITE_EVERYWHERE,
    Act.REMIND,
    Act.SEE_OWN,
    Act.DECIDE,
    Act.FORGET_OWN,
    Act.SET_CONSENT,
    Act.UNLINK,
    Act.CREATE_PROJECT,
    Act.JOIN_PROJECT,
)
TABLE: Final = {
    **{act: same(PLACES, ALL) for act in ANYONE},
    **{act: same(PLACES, ROOT) for act in OF_ROOT},
    **{act: same(IN_ROOMS, OPENERS) | same(OWN, NOBODY)
       for act in (Act.ERASE_ROOM, Act.SET_RECORDING, Act.SET_FOLLOW_UPS, Act.SET_DIGEST)},
    **{act: {p: HERE_WRITERS if "project" in p else NOBODY for p in PLACES}
       for act in (Act.WRITE_PROJECT, Act.MOVE_TO_PROJECT)},
    Act.COMPACT: same(IN_ROOMS, OPENERS) | same(OWN, ALL),
    Act.REVIEW: {p: OPENERS | (HERE_ADMINS if "project" in p else NOBODY) for p in IN_ROOMS} | same(OWN, ALL),
    Act.GET_LINK_CODE: same(IN_ROOMS, NOBODY) | same(OWN, ALL),
    Act.OPEN_ROOMS: same(IN_ROOMS, NOBODY) | same(OWN, ALL),
    Act.SEE_KEYS: same(IN_ROOMS, NOBODY) | same(OWN, ALL),
    Act.CREATE_KEY: same(IN_ROOMS, NOBODY) | same(OWN, ALL),
    Act.SIGN_IN: same(IN_ROOMS, NOBODY) | same(OWN, ALL),
    Act.SEE_PROJECT: same(PLACES, NAMED_MEMBERS),
    Act.LEAVE_PROJECT: same(PLACES, NAMED_MEMBERS),
    Act.ADD_MEMBER: same(PLACES, frozenset({"manager"})),
    Act.RENAME_PROJECT: same(PLACES, frozenset({"manager"})),
    Act.DELETE_PROJECT: same(PLACES, frozenset({"manager"})),
    Act.REMOVE_MEMBER: same(PLACES, frozenset({"manager"})),
    Act.ASSIGN_ROOM: same(IN_ROOMS, frozenset({"captain", "marshal"})) | same(OWN, NOBODY)
    | {"room in an isolated project": MARSHAL},
    Act.ASSIGN_SESSION: same(IN_ROOMS, NOBODY) | same(OWN, NAMED_MEMBERS)
    | {"session in an isolated project": MARSHAL},
    Act.ASSIGN_DM: same(IN_ROOMS, NOBODY) | same(OWN, NAMED_MEMBERS) | {"session in an isolated project": MARSHAL},
    Act.POOL_ROOM: same(PLACES, NOBODY) | {"private room": OPENERS},
    Act.UNASSIGN_SESSION: same(IN_ROOMS, NOBODY) | same(OWN, ALL) | {"session in an isolated project": HERE_ADMINS},
    Act.UNASSIGN_DM: same(IN_ROOMS, NOBODY) | same(OWN, ALL) | {"session in an isolated project": HERE_ADMINS},
}  # fmt: skip


@pytest.mark.parametrize("act", TABLE)
def test_exactly_those_may_act_whom_the_rules_name(act: Act) -> None:
    assert {place: allowed(act, place) for place in PLACES} == TABLE[act]


def test_guests_have_no_keys_and_do_not_sign_in() -> None:
    dm = facts("reader", "DM")
    guest = replace(dm, access=replace(dm.access, trust=Trust.GUEST))
    for act in (Act.CREATE_KEY, Act.SIGN_IN):
        assert may([act], dm)
        assert not may([act], guest)
    assert may([Act.SEE_KEYS], guest), "who became a guest ends what they have"


def test_who_takes_a_room_out_of_its_project() -> None:
    leaving = {
        place: allowed(Act.UNASSIGN_ROOM, place, named_projects=())
        for place in ("room in a project", "room in an isolated project")
    }
    assert leaving == {"room in a project": OPENERS | HERE_ADMINS, "room in an isolated project": HERE_ADMINS}


def test_who_removes_themselves_from_a_project() -> None:
    assert allowed(Act.REMOVE_MEMBER, "room", of_self=True) == NAMED_MEMBERS


def test_a_project_without_an_admin_is_its_members() -> None:
    orphan = (ProjectFacts(NAMED, "apollo", False, Role.READ, admins=0),)
    for act in (Act.RENAME_PROJECT, Act.DELETE_PROJECT, Act.ADD_MEMBER, Act.REMOVE_MEMBER):
        assert may([act], replace(facts("reader", "DM"), named_projects=orphan))
        none = (replace(orphan[0], role=None),)
        assert not may([act], replace(facts("reader", "DM"), named_projects=none)), "and of nobody else"
    reader = facts("reader", "room in a project")
    within = replace(reader, access=replace(reader.access, project=replace(orphan[0], id=HERE)), named_projects=())
    assert not may([Act.WRITE_PROJECT], within), "who may only read it writes nothing, but may make themselves an admin"
    left = ProjectFacts(HERE, "ares", True, None, admins=0)
    captain = facts("captain", "room in an isolated project")
    captain = replace(captain, access=replace(captain.access, project=left), named_projects=())
    assert may([Act.UNASSIGN_ROOM], captain), "else nobody could ever take its rooms out of it"


def test_who_leaves_a_project_alone_is_told_what_that_opens() -> None:
    only = (ProjectFacts(NAMED, "apollo", False, Role.ADMIN),)
    said = opening([Act.LEAVE_PROJECT], replace(facts("manager", "DM"), named_projects=only))
    assert said.startswith("You are the only admin of apollo: ")
    two = (replace(only[0], admins=2),)
    assert opening([Act.LEAVE_PROJECT], replace(facts("manager", "DM"), named_projects=two)) == ""
    read = (replace(only[0], role=Role.READ),)
    assert opening([Act.LEAVE_PROJECT], replace(facts("manager", "DM"), named_projects=read)) == ""


def test_a_room_that_is_in_the_project_already_leaves_none() -> None:
    within = replace(
        facts("captain", "room in an isolated project"), named_projects=(ProjectFacts(HERE, "ares", True, Role.WRITE),)
    )
    assert may([Act.ASSIGN_ROOM], within)
    assert opening([Act.ASSIGN_ROOM], within) == ""


def test_accounts_are_linked_in_private_and_across_workspaces_alone() -> None:
    other = LinkedAccount("ann", "slack", "acme", same_place=False)
    for place in PLACES:
        assert allowed(Act.LINK, place, account=other) == (NOBODY if place in IN_ROOMS else ALL)
        assert allowed(Act.LINK, place, account=replace(other, same_place=True)) == NOBODY
        assert allowed(Act.LINK, place) == NOBODY
    assert "ann on slack (acme)" in opening([Act.LINK], replace(facts("guest", "DM"), account=other))


@dataclass(frozen=True)
class Item:
    """Something that is kept: a landmark."""

    namespace: str
    user_id: uuid.UUID | None = OTHER
    visibility: Visibility = Visibility.SHARED
    vendors: tuple[str, ...] = ("*",)


@pytest.mark.parametrize(
    ("namespace", "writers", "admins"),
    [
        (f"room:{ROOM}", ALL, OPENERS),
        (project_namespace(HERE), HERE_WRITERS, HERE_ADMINS),
        (project_namespace(NAMED), NOBODY, NOBODY),
        (GLOBAL_NAMESPACE, ROOT, ROOT),
        (profile_namespace(SELF), ALL, ALL),
        (profile_namespace(OTHER), NOBODY, NOBODY),
        ("room:elsewhere", NOBODY, NOBODY),
    ],
)
def test_who_changes_a_landmark(namespace: str, writers: frozenset[str], admins: frozenset[str]) -> None:
    place = "room in a project"
    assert allowed(Act.ACCEPT_LANDMARK, place, item=Item(namespace), proposed=True) == writers
    assert allowed(Act.SETTLE_LANDMARK, place, item=Item(namespace), proposed=True) == writers
    assert allowed(Act.SETTLE_LANDMARK, place, item=Item(namespace)) == admins
    assert allowed(Act.SETTLE_LANDMARK, place, item=Item(namespace, SELF)) == writers


def test_nothing_is_changed_without_saying_what() -> None:
    assert allowed(Act.SETTLE_LANDMARK, "room") == allowed(Act.ACCEPT_LANDMARK, "room") == NOBODY


def test_an_act_with_a_flag_needs_both_rights() -> None:
    within = facts("opener", "private room")
    assert may([Act.READ, Act.POOL_ROOM], within)
    assert not may([Act.READ, Act.WRITE_GLOBAL], within)


def test_a_place_that_the_person_is_not_in_allows_nothing() -> None:
    for name in PEOPLE:
        there = facts(name, "private room")
        gone = replace(there, access=replace(there.access, joined=False))
        assert not any(may([act], gone) for act in Act)


def test_every_act_is_tested_here() -> None:
    elsewhere = {Act.UNASSIGN_ROOM, Act.LINK, Act.ACCEPT_LANDMARK, Act.SETTLE_LANDMARK}
    elsewhere |= {Act.SEE_TEAM, Act.INVITE_TO_TEAM, Act.JOIN_TEAM, Act.REMOVE_FROM_TEAM, Act.SET_TEAM_ROLE}
    elsewhere |= {Act.UNSHARE_OF_FORMER, Act.RENAME_TEAM, Act.DELETE_TEAM}  # tests/integration/test_teams.py
    assert set(TABLE) | elsewhere == set(Act)
