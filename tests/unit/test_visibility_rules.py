"""Who may read what (docs/architecture.md), rule by rule, as the pure functions of composer.visibility decide it."""

import copy
import uuid
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import pytest

from composer import visibility
from composer.errors import NotFound, Refused
from composer.model import (
    CONSOLE,
    EVERY_VENDOR,
    GLOBAL_NAMESPACE,
    SLACK,
    Conversation,
    ConversationKind,
    Role,
    Trust,
    Visibility,
    dm_namespace,
    entries_namespace,
    profile_namespace,
    project_namespace,
    room_namespace,
    session_namespace,
    team_namespace,
)
from composer.visibility import (
    MAX_PARTICIPANTS,
    AccessContext,
    AccessTag,
    EntryAccess,
    Grants,
    JoinedRoom,
    PoolMember,
    ProjectFacts,
    Readable,
    WriteScope,
    access_tag_for,
    effective_project,
    entry_tag,
    may_have_posted,
    may_participate,
    owned_by_bearer,
    participants,
    readable,
    readable_conversation,
    readable_entries,
    readable_in_room,
    readable_team,
    require_editable,
    rooms_for_dm,
    team_tag,
)

TENANT, ROOM, THREAD_ID, PROJECT, AGENT, OTHER_AGENT, SESSION = (uuid.UUID(int=n) for n in range(1, 8))
ALICE, BOB, CAROL, DAVE = (uuid.UUID(int=n) for n in range(11, 15))
PUBLIC, PRIVATE, SHARED = Visibility.PUBLIC, Visibility.PRIVATE, Visibility.SHARED

GENERAL = Conversation(ROOM, TENANT, ConversationKind.ROOM, "general", room_namespace(ROOM))
BOARD = replace(GENERAL, name="board", private=True)
THREAD = Conversation(
    THREAD_ID, TENANT, ConversationKind.THREAD, "general", room_namespace(ROOM), room_id=ROOM, thread="t1"
)
DM = Conversation(
    uuid.UUID(int=21), TENANT, ConversationKind.DM, "nexus", dm_namespace(ALICE, AGENT), user_id=ALICE, agent_id=AGENT
)
WORK = Conversation(
    SESSION,
    TENANT,
    ConversationKind.SESSION,
    "s1",
    session_namespace(ALICE, AGENT, SESSION),
    user_id=ALICE,
    agent_id=AGENT,
)

OPEN_ROOM = PoolMember("room:open", ConversationKind.ROOM, private=False, pooled=False)
CLOSED_ROOM = PoolMember("room:closed", ConversationKind.ROOM, private=True, pooled=False)
CLOSED_POOLED = PoolMember("room:pooled", ConversationKind.ROOM, private=True, pooled=True)
ANY_DM = PoolMember("dm:bob", ConversationKind.DM, private=False, pooled=True, owner_role=Role.ADMIN)
MEMBERS_SESSION = PoolMember("session:bob", ConversationKind.SESSION, private=False, pooled=True, owner_role=Role.WRITE)
EARLIER_SESSION = replace(MEMBERS_SESSION, namespace="session:bob2", pooled=False)  # of an earlier membership
STRANGERS_SESSION = PoolMember("session:dave", ConversationKind.SESSION, private=False, pooled=True)
POOL = (OPEN_ROOM, CLOSED_ROOM, CLOSED_POOLED, ANY_DM, MEMBERS_SESSION, EARLIER_SESSION, STRANGERS_SESSION)
POOLED = ("room:open", "room:pooled", "session:bob")


def access(conversation: Conversation = GENERAL, asker: uuid.UUID = ALICE, **facts: object) -> AccessContext:
    return replace(AccessContext(conversation, asker), **facts)  # type: ignore[arg-type]


def project(role: Role | None = Role.READ, *, isolated: bool = False) -> ProjectFacts:
    return ProjectFacts(PROJECT, "apollo", isolated, role, POOL)


@dataclass(frozen=True)
class Row:
    """A stored row, with the access tag that decides."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None = None
    vendors: tuple[str, ...] = ("*",)


# --- who may take part -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conversation", "asker", "joined", "may"),
    [
        (GENERAL, ALICE, None, True),
        (GENERAL, ALICE, True, True),
        (GENERAL, ALICE, False, True),
        (THREAD, ALICE, None, True),
        (BOARD, ALICE, True, True),
        (BOARD, ALICE, False, False),
        (BOARD, ALICE, None, False),
        (replace(THREAD, private=True), ALICE, None, False),
        (replace(THREAD, private=True), ALICE, True, True),
        (DM, ALICE, None, True),
        (DM, BOB, None, False),
        (DM, BOB, True, False),
        (WORK, ALICE, None, True),
        (WORK, BOB, None, False),
    ],
)
def test_a_public_room_is_open_to_all_a_private_one_to_members_and_a_dm_or_session_to_its_user(
    conversation: Conversation, asker: uuid.UUID, joined: bool | None, may: bool
) -> None:
    at = access(conversation, asker, joined=joined, asker_admin=not may)  # an admin of the tenant has no further access
    assert may_participate(at) is may
    if may:
        assert readable_conversation(at).all_namespaces == (conversation.namespace,)
        return
    decisions: list[Callable[[], object]] = [
        lambda: readable_conversation(at),
        lambda: readable(at, []),
        lambda: access_tag_for(at, WriteScope.HERE),
    ]
    for decide in decisions:
        with pytest.raises(NotFound, match=r"^There is no (room|agent|session) '"):
            decide()


def test_a_hidden_conversation_is_refused_like_one_that_does_not_exist() -> None:
    with pytest.raises(NotFound) as refused:
        readable(access(BOARD, BOB), [])
    assert str(refused.value) == visibility.unknown_conversation_sentence(ConversationKind.ROOM, "board")


# --- rooms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conversation", [GENERAL, THREAD, BOARD])
def test_a_room_reads_its_own_namespace_global_and_the_profiles_of_participants(
    conversation: Conversation,
) -> None:
    may = readable(access(conversation, joined=True), [BOB, CAROL])
    assert may.tenant_id == TENANT
    assert may.namespaces == (
        room_namespace(ROOM),
        GLOBAL_NAMESPACE,
        profile_namespace(ALICE),
        profile_namespace(BOB),
        profile_namespace(CAROL),
    )
    assert may.pooled == ()
    assert may.visibilities == (PUBLIC, SHARED)
    assert may.readers == ()
    assert may.vendor == "nexus"


@pytest.mark.parametrize("trust", [Trust.GUEST, Trust.TOOL])
@pytest.mark.parametrize("conversation", [GENERAL, THREAD, DM, WORK])
def test_a_guest_reads_the_conversation_and_their_own_profile(conversation: Conversation, trust: Trust) -> None:
    may = readable(access(conversation, trust=trust, linked={ALICE: (DAVE,)}), [BOB, CAROL])
    assert GLOBAL_NAMESPACE not in may.namespaces
    profiles = {namespace for namespace in may.namespaces if namespace.startswith("profile:")}
    assert profiles == {profile_namespace(ALICE), profile_namespace(DAVE)}
    assert conversation.namespace in may.namespaces


@pytest.mark.parametrize("trust", list(Trust))
def test_in_a_room_that_outsiders_read_too_nobody_is_answered_from_profiles_or_global(trust: Trust) -> None:
    may = readable(access(outsiders=True, trust=trust, project=project()), [BOB, CAROL])
    assert may.namespaces == (room_namespace(ROOM), project_namespace(PROJECT))
    assert may.pooled == POOLED


@pytest.mark.parametrize(
    ("row", "may"),
    [
        (Row(room_namespace(ROOM), PUBLIC, BOB), True),
        (Row(profile_namespace(BOB), SHARED, BOB), True),
        (Row(GLOBAL_NAMESPACE, SHARED, DAVE), True),
        (Row(room_namespace(ROOM), PRIVATE, ALICE), False),
        (Row(profile_namespace(ALICE), PRIVATE, ALICE), False),
        (Row(profile_namespace(DAVE), SHARED, DAVE), False),
        (Row(room_namespace(ROOM, 1), PUBLIC, BOB), False),
        (Row("room:other", PUBLIC, ALICE), False),
        (Row(dm_namespace(ALICE, AGENT), PRIVATE, ALICE), False),
        (Row(session_namespace(ALICE, AGENT, SESSION), PRIVATE, ALICE), False),
        (Row(project_namespace(PROJECT), SHARED, ALICE), False),
        (Row(room_namespace(ROOM), PUBLIC, BOB, ("claude",)), False),
        (Row(room_namespace(ROOM), PUBLIC, BOB, ("claude", "nexus")), True),
        (Row(room_namespace(ROOM), PUBLIC, BOB, ()), False),
    ],
)
def test_a_room_admits_its_public_rows_and_shared_rows(row: Row, may: bool) -> None:
    assert readable(access(), [BOB]).admits(row) is may


def test_at_most_sixteen_participants_count_the_asker_first_and_never_people_who_left() -> None:
    crowd = [uuid.UUID(int=n) for n in range(100, 130)]
    assert participants(access(), crowd) == (ALICE, *crowd[: MAX_PARTICIPANTS - 1])
    assert participants(access(), [BOB, ALICE, BOB, CAROL]) == (ALICE, BOB, CAROL)
    assert participants(access(departed=frozenset([BOB])), [BOB, CAROL]) == (ALICE, CAROL)
    # People who left still count towards the sixteen: leaving admits nobody else.
    assert participants(access(departed=frozenset(crowd[:1])), crowd) == (ALICE, *crowd[1 : MAX_PARTICIPANTS - 1])


# --- DMs and sessions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conversation", [DM, WORK])
def test_a_dm_or_session_reads_its_own_namespace_its_users_profile_and_global(conversation: Conversation) -> None:
    may = readable(access(conversation), [BOB, CAROL])
    assert may.namespaces == (
        conversation.namespace,
        GLOBAL_NAMESPACE,
        profile_namespace(ALICE),
        entries_namespace(ALICE),
    )
    assert may.pooled == ()
    assert may.visibilities == (SHARED,)
    assert may.readers == (ALICE,)


@pytest.mark.parametrize(
    ("row", "may"),
    [
        (Row(DM.namespace, PRIVATE, ALICE), True),
        (Row(profile_namespace(ALICE), PRIVATE, ALICE), True),
        (Row(profile_namespace(ALICE), SHARED, BOB), True),
        (Row(profile_namespace(ALICE), PRIVATE, BOB), False),
        (Row(profile_namespace(ALICE), PRIVATE, None), False),
        (Row(profile_namespace(ALICE), PUBLIC, ALICE), False),
        (Row(profile_namespace(BOB), SHARED, BOB), False),
        (Row(dm_namespace(ALICE, OTHER_AGENT), PRIVATE, ALICE), False),
        (Row(dm_namespace(BOB, AGENT), PRIVATE, BOB), False),
        (Row(WORK.namespace, PRIVATE, ALICE), False),
        (Row(room_namespace(ROOM), PUBLIC, ALICE), False),
    ],
)
def test_a_dm_admits_private_rows_of_its_user_and_shared_rows(row: Row, may: bool) -> None:
    assert readable(access(DM), []).admits(row) is may


# --- projects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [None, Role.READ, Role.WRITE, Role.ADMIN])
def test_a_room_in_a_project_reads_the_pool_whatever_the_role_of_the_asker(role: Role | None) -> None:
    may = readable(access(project=project(role)), [BOB])
    assert may.namespaces == (
        room_namespace(ROOM),
        GLOBAL_NAMESPACE,
        profile_namespace(ALICE),
        profile_namespace(BOB),
        project_namespace(PROJECT),
    )
    assert may.pooled == POOLED


@pytest.mark.parametrize("conversation", [DM, WORK])
@pytest.mark.parametrize("role", [Role.READ, Role.WRITE, Role.ADMIN])
def test_a_members_dm_or_session_reads_the_pool_of_its_project(conversation: Conversation, role: Role) -> None:
    may = readable(access(conversation, project=project(role)), [])
    assert may.namespaces == (
        conversation.namespace,
        GLOBAL_NAMESPACE,
        profile_namespace(ALICE),
        *([entries_namespace(ALICE)] if conversation is DM else []),  # what is said in the session is read by others
        project_namespace(PROJECT),
    )
    assert may.pooled == POOLED


@pytest.mark.parametrize("conversation", [DM, WORK])
@pytest.mark.parametrize("admin", [False, True])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_former_member_reads_as_if_there_were_no_project_even_as_an_admin(
    conversation: Conversation, admin: bool, isolated: bool
) -> None:
    inside = access(conversation, asker_admin=admin, project=project(None, isolated=isolated))
    assert effective_project(inside) is None
    assert readable(inside, []) == readable(access(conversation), [])


@pytest.mark.parametrize("conversation", [GENERAL, THREAD, BOARD, DM, WORK])
def test_an_isolated_project_reads_only_itself(conversation: Conversation) -> None:
    may = readable(access(conversation, joined=True, project=project(isolated=True)), [BOB, CAROL])
    assert may.namespaces == (conversation.namespace, project_namespace(PROJECT))
    assert may.pooled == POOLED


@pytest.mark.parametrize(
    ("member", "pooled"),
    [
        (OPEN_ROOM, True),
        (CLOSED_ROOM, False),
        (CLOSED_POOLED, True),
        (ANY_DM, False),
        (MEMBERS_SESSION, True),
        (replace(MEMBERS_SESSION, owner_role=Role.ADMIN), True),
        (replace(MEMBERS_SESSION, owner_role=Role.READ), False),
        (STRANGERS_SESSION, False),
    ],
)
def test_the_pool_has_public_rooms_agreed_private_rooms_and_writers_sessions_but_never_a_dm(
    member: PoolMember, pooled: bool
) -> None:
    facts = replace(project(), members=(member,))
    assert readable(access(project=facts), []).pooled == ((member.namespace,) if pooled else ())


def test_the_pool_admits_private_rows_and_the_own_namespace_of_a_room_does_not() -> None:
    may = readable(access(project=project()), [])
    assert may.admits(Row("session:bob", PRIVATE, BOB))
    assert not may.admits(Row("room:closed", PUBLIC, BOB))
    assert not may.admits(Row(room_namespace(ROOM), PRIVATE, BOB))
    assert not may.admits(Row("session:bob", PRIVATE, BOB, ("claude",)))


def test_the_own_namespace_is_never_read_by_the_rules_of_the_pool() -> None:
    own = PoolMember(GENERAL.namespace, ConversationKind.ROOM, private=False, pooled=False)
    may = readable(access(project=replace(project(), members=(*POOL, own))), [])
    assert not set(may.namespaces).intersection(may.pooled)
    assert not may.admits(Row(GENERAL.namespace, PRIVATE, BOB))


def test_facts_and_landmarks_are_never_pooled() -> None:
    may = readable(access(project=project()), [BOB])
    assert may.without_pool() == readable(access(project=replace(project(), members=())), [BOB])
    assert not may.without_pool().admits(Row("room:open", PUBLIC, BOB))


def test_the_working_view_reads_only_the_own_namespace_even_in_a_project() -> None:
    for conversation in (GENERAL, DM, WORK):
        may = readable_conversation(access(conversation, project=project()))
        assert may.all_namespaces == (conversation.namespace,)


def test_less_membership_never_allows_more_but_for_ones_own_entries() -> None:
    inside = readable(access(WORK, project=project()), [])
    outside = readable(access(WORK, project=project(None)), [])
    assert set(outside.all_namespaces) - set(inside.all_namespaces) == {entries_namespace(ALICE)}


# --- rooms that a person opens to their DM ----------------------------------------------------------------------------

LOBBY = JoinedRoom(room_namespace(ROOM), "lobby", private=False, project_id=None, isolated=False)
VAULT = JoinedRoom("room:vault.2", "vault", private=True, project_id=PROJECT, isolated=False)
CAMP = JoinedRoom("room:camp", "camp", private=True, project_id=PROJECT, isolated=True)
MOON = JoinedRoom("room:moon", "moon", private=False, project_id=OTHER_AGENT, isolated=True)
JOINED = (LOBBY, VAULT, CAMP, MOON)


def opened(conversation: Conversation = DM, asker: uuid.UUID = ALICE, **facts: object) -> AccessContext:
    return access(conversation, asker, reads_rooms=True, joined_rooms=JOINED, **facts)


def test_a_dm_that_is_open_to_rooms_reads_those_that_its_person_is_in_but_none_of_an_isolated_project() -> None:
    assert readable(opened(), []).rooms == (LOBBY.namespace, VAULT.namespace)
    assert readable(opened(project=project()), []).rooms == (LOBBY.namespace, VAULT.namespace)
    closed = access(DM, joined_rooms=JOINED)
    assert readable(closed, []).rooms == ()
    assert rooms_for_dm(closed) == (LOBBY, VAULT)  # what it would read


def test_a_dm_in_an_isolated_project_reads_no_room_outside_it() -> None:
    assert readable(opened(project=project(isolated=True)), []).rooms == (CAMP.namespace, VAULT.namespace)[::-1]
    assert readable(opened(project=project(None, isolated=True)), []).rooms == (LOBBY.namespace, VAULT.namespace)


@pytest.mark.parametrize("conversation", [GENERAL, THREAD, BOARD, WORK])
def test_rooms_are_read_in_a_dm_alone(conversation: Conversation) -> None:
    may = readable(opened(conversation, joined=True), [BOB])
    assert may.rooms == ()
    assert may == readable(access(conversation, joined=True), [BOB])


def test_nobody_reads_rooms_in_the_dm_of_another() -> None:
    with pytest.raises(NotFound):
        rooms_for_dm(opened(asker=BOB))


@pytest.mark.parametrize("trust", list(Trust))
def test_a_guest_reads_the_rooms_that_they_are_in_and_nothing_more_by_it(trust: Trust) -> None:
    may = readable(opened(trust=trust), [])
    assert may.rooms == (LOBBY.namespace, VAULT.namespace)
    assert may.namespaces == readable(access(DM, trust=trust), []).namespaces


def test_a_private_channel_that_they_are_in_is_read_by_members_and_by_no_guest() -> None:
    joined = tuple(replace(room, platform=SLACK) for room in JOINED)
    member, guest, tool = (replace(opened(trust=trust), joined_rooms=joined) for trust in Trust)
    assert rooms_for_dm(member) == tuple(room for room in joined if not room.isolated)
    assert rooms_for_dm(guest) == rooms_for_dm(tool) == ()


@pytest.mark.parametrize(
    ("row", "may"),
    [
        (Row(LOBBY.namespace, PUBLIC, BOB), True),
        (Row(LOBBY.namespace, SHARED, BOB), True),
        (Row(LOBBY.namespace, PUBLIC), True),
        (Row(LOBBY.namespace, PRIVATE, ALICE), False),
        (Row(LOBBY.namespace, PRIVATE, BOB), False),
        (Row(LOBBY.namespace, PUBLIC, BOB, ("claude",)), False),
        (Row(room_namespace(ROOM, 1), PUBLIC, BOB), False),
        (Row("room:vault", PUBLIC, ALICE), False),
        (Row(CAMP.namespace, PUBLIC, ALICE), False),
        (Row(profile_namespace(BOB), SHARED, BOB), False),
        (Row(project_namespace(PROJECT), SHARED, BOB), False),
        (Row(DM.namespace, PRIVATE, ALICE), True),
        (Row(DM.namespace, PUBLIC, ALICE), False),
    ],
)
def test_of_an_open_room_a_dm_reads_what_the_room_itself_reads_of_its_own(row: Row, may: bool) -> None:
    assert readable(opened(), []).admits(row) is may


def test_facts_landmarks_and_the_working_view_read_no_room() -> None:
    assert readable(opened(), []).without_pool() == readable(access(DM), [])
    assert readable_conversation(opened()).rooms == ()
    assert not set(readable(opened(), []).rooms).intersection(readable(opened(), []).all_namespaces)


def test_a_room_that_is_pooled_already_is_read_by_the_rules_of_the_pool() -> None:
    pooled = replace(LOBBY, namespace="room:open")
    may = readable(replace(opened(project=project()), joined_rooms=(pooled, VAULT)), [])
    assert may.pooled == POOLED
    assert may.rooms == (VAULT.namespace,)


# --- writing ---------------------------------------------------------------------------------------------------------

HERE, EVERYWHERE, TO_PROJECT, FOR_ALL = WriteScope.HERE, WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL


@pytest.mark.parametrize(
    ("at", "scope", "tag"),
    [
        (access(GENERAL), HERE, AccessTag(GENERAL.namespace, PUBLIC, ALICE)),
        (access(THREAD), HERE, AccessTag(GENERAL.namespace, PUBLIC, ALICE)),
        (access(BOARD, joined=True), HERE, AccessTag(BOARD.namespace, PUBLIC, ALICE)),
        (access(DM), HERE, AccessTag(DM.namespace, PRIVATE, ALICE)),
        (access(WORK), HERE, AccessTag(WORK.namespace, PRIVATE, ALICE)),
        (access(WORK, project=project(isolated=True)), HERE, AccessTag(WORK.namespace, PRIVATE, ALICE)),
        (access(GENERAL), EVERYWHERE, AccessTag(profile_namespace(ALICE), SHARED, ALICE)),
        (access(DM), EVERYWHERE, AccessTag(profile_namespace(ALICE), SHARED, ALICE)),
        (access(DM, project=project(Role.WRITE)), TO_PROJECT, AccessTag(project_namespace(PROJECT), SHARED, ALICE)),
        (
            access(GENERAL, project=project(Role.ADMIN)),
            TO_PROJECT,
            AccessTag(project_namespace(PROJECT), SHARED, ALICE),
        ),
        (access(GENERAL, asker_admin=True), FOR_ALL, AccessTag(GLOBAL_NAMESPACE, SHARED, ALICE)),
    ],
)
def test_a_row_is_filed_in_its_conversation_unless_a_wider_scope_is_named(
    at: AccessContext, scope: str, tag: AccessTag
) -> None:
    assert access_tag_for(at, scope) == tag


@pytest.mark.parametrize(
    ("at", "scope", "sentence"),
    [
        (access(GENERAL), TO_PROJECT, "in no project"),
        (access(DM, project=project(None), asker_admin=True), TO_PROJECT, "in no project"),
        (access(GENERAL, project=project(isolated=True)), EVERYWHERE, "apollo is isolated"),
        (access(WORK, project=project(Role.ADMIN, isolated=True)), EVERYWHERE, "apollo is isolated"),
        (access(GENERAL, project=project(isolated=True), asker_admin=True), FOR_ALL, "apollo is isolated"),
    ],
)
def test_a_write_scope_that_the_conversation_does_not_have_is_refused_with_a_sentence(
    at: AccessContext, scope: str, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        access_tag_for(at, scope)


def test_a_row_filed_in_a_conversation_can_be_read_there() -> None:
    for at in (access(GENERAL), access(THREAD), access(BOARD, joined=True), access(DM), access(WORK)):
        tag = access_tag_for(at, HERE)
        assert readable(at, []).admits(Row(tag.namespace, tag.visibility, tag.user_id))


# --- only visibility makes a Readable --------------------------------------------------------------------------------


@pytest.mark.parametrize("seal", [None, object(), True, TypeError])
def test_only_visibility_can_create_a_readable(seal: object) -> None:
    with pytest.raises(TypeError, match=r"only composer\.visibility"):
        Readable(TENANT, ("room:other",), (), (PUBLIC,), (), "nexus", seal)
    with pytest.raises(TypeError, match=r"only composer\.visibility"):
        Readable(TENANT, ("room:other",), (), (PUBLIC,), (), "nexus")


def test_a_readable_cannot_be_widened() -> None:
    may = readable(access(), [])
    changes: list[dict[str, object]] = [
        {"namespaces": ("room:other",)},
        {"pooled": ("room:other",)},
        {"visibilities": tuple(Visibility)},
        {"readers": (BOB,)},
        {"rooms": ("room:other",)},
        {"tenant_id": uuid.uuid4()},
        {"vendor": "*"},
        {},
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"only composer\.visibility"):
            replace(may, **change)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        may.namespaces = ("room:other",)  # type: ignore[misc]
    assert copy.copy(may) == may


def test_the_seal_cannot_be_taken_from_a_readable() -> None:
    may = readable(access(), [])
    assert "seal" not in may.__slots__
    assert not any(getattr(may, name) is visibility._SEAL for name in may.__slots__)


def test_an_empty_readable_admits_nothing() -> None:
    empty = visibility._make_readable(GENERAL, (), (), ())
    assert empty.all_namespaces == ()
    assert not empty.admits(Row("", PUBLIC))
    assert not empty.admits(Row(GENERAL.namespace, PUBLIC))


def test_something_is_posted_only_where_its_person_is_and_where_they_asked() -> None:
    here, before = GENERAL.namespace, room_namespace(ROOM, 1)
    assert may_have_posted(access(GENERAL), here)
    assert may_have_posted(access(BOARD, joined=True), here)
    assert not may_have_posted(access(BOARD), here), "they were never in the private room"
    assert not may_have_posted(access(GENERAL, joined=False), here), "they have left"
    assert not may_have_posted(access(GENERAL), before), "the room was opened since"
    assert may_have_posted(access(DM), DM.namespace)
    assert not may_have_posted(access(DM, BOB), DM.namespace)


def test_what_everybody_in_a_room_may_read_is_its_own_public_rows() -> None:
    for conversation in (GENERAL, BOARD, THREAD):
        everyones = readable_in_room(conversation)
        assert (everyones.all_namespaces, everyones.readers, everyones.rooms) == ((GENERAL.namespace,), (), ())
        assert Visibility.PRIVATE not in everyones.visibilities
    with pytest.raises(NotFound):
        readable_in_room(DM)


# --- entries: what people keep over the API, and what their tools may read of it ------------------------------------

TEAM, LEFT_TEAM, FOREIGN_TEAM, OTHER_PROJECT = (uuid.UUID(int=n) for n in range(31, 35))
READER = frozenset({Grants.READ_ENTRIES, Grants.READ_TEAMS, Grants.READ_PROJECTS})
WRITER = READER | {Grants.WRITE_ENTRIES, Grants.WRITE_TEAMS, Grants.WRITE_PROJECTS}
OPEN_PROJECT = ProjectFacts(PROJECT, "apollo", False, Role.WRITE)
ISOLATED_PROJECT = ProjectFacts(OTHER_PROJECT, "zeus", True, Role.WRITE)


def entry_access(vendor: str = "claude", grants: frozenset[str] = READER, **facts: object) -> EntryAccess:
    given = EntryAccess(
        TENANT, ALICE, vendor, grants, (CAROL,), (TEAM,), (TEAM, LEFT_TEAM), (OPEN_PROJECT, ISOLATED_PROJECT)
    )
    return replace(given, **facts)  # type: ignore[arg-type]


OWN = Row(entries_namespace(ALICE), PRIVATE, ALICE)
OF_OTHER_ACCOUNT = Row(entries_namespace(CAROL), PRIVATE, CAROL)
OF_BOB = Row(entries_namespace(BOB), PRIVATE, BOB)
OF_TEAMMATE = Row(team_namespace(TEAM), PRIVATE, BOB)
OWN_IN_TEAM = Row(team_namespace(TEAM), PRIVATE, ALICE)
OWN_IN_LEFT_TEAM = Row(team_namespace(LEFT_TEAM), PRIVATE, ALICE)
OF_LEFT_TEAM = Row(team_namespace(LEFT_TEAM), PRIVATE, BOB)
OF_FOREIGN_TEAM = Row(team_namespace(FOREIGN_TEAM), PRIVATE, BOB)
ABOUT_ALICE = Row(profile_namespace(ALICE), SHARED, ALICE)
ABOUT_BOB = Row(profile_namespace(BOB), SHARED, BOB)
OF_PROJECT = Row(project_namespace(PROJECT), SHARED, BOB)
OF_ISOLATED = Row(project_namespace(OTHER_PROJECT), SHARED, BOB)
IN_DM = Row(dm_namespace(ALICE, AGENT), PRIVATE, ALICE)
IN_SESSION = Row(session_namespace(ALICE, AGENT, SESSION), PRIVATE, ALICE)
IN_ROOM = Row(room_namespace(ROOM), PUBLIC, ALICE)
FOR_EVERYONE = Row(GLOBAL_NAMESPACE, SHARED, BOB)
ENTRY_ROWS: tuple[Row, ...] = (
    OWN,
    OF_OTHER_ACCOUNT,
    OF_BOB,
    OF_TEAMMATE,
    OWN_IN_TEAM,
    OWN_IN_LEFT_TEAM,
    OF_LEFT_TEAM,
    OF_FOREIGN_TEAM,
)
ENTRY_ROWS += (ABOUT_ALICE, ABOUT_BOB, OF_PROJECT, OF_ISOLATED, IN_DM, IN_SESSION, IN_ROOM, FOR_EVERYONE)
OF_THE_PERSON = {OWN, OF_OTHER_ACCOUNT, OWN_IN_TEAM, OWN_IN_LEFT_TEAM, ABOUT_ALICE}


def read(given: EntryAccess) -> set[Row]:
    viewer = readable_entries(given)
    return {row for row in ENTRY_ROWS if viewer.admits(row)}


@pytest.mark.parametrize("vendor", ["claude", EVERY_VENDOR])
def test_a_tool_and_its_person_read_their_entries_their_teams_and_their_open_projects_and_nothing_else(
    vendor: str,
) -> None:
    assert read(entry_access(vendor)) == OF_THE_PERSON | {OF_TEAMMATE, OF_PROJECT}


@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        (Grants.READ_ENTRIES, OF_THE_PERSON - {OWN_IN_TEAM}),  # a key for teams reads what its person shared there
        (Grants.READ_TEAMS, {OF_TEAMMATE}),
        (Grants.READ_PROJECTS, {OF_PROJECT}),
    ],
)
def test_a_grant_that_is_missing_means_less(missing: str, gone: set[Row]) -> None:
    assert read(entry_access()) - read(entry_access(grants=READER - {missing})) == gone


def test_a_credential_without_grants_reads_nothing() -> None:
    assert read(entry_access(grants=frozenset())) == set()


def test_a_grant_for_one_project_reads_that_one_and_never_one_that_its_person_is_not_in() -> None:
    grants = frozenset({Grants.of_project(PROJECT, "read"), Grants.of_project(FOREIGN_TEAM, "read")})
    assert read(entry_access(grants=grants)) == {OF_PROJECT}
    assert read(entry_access(grants=grants, projects=())) == set()
    with pytest.raises(NotFound):
        readable_entries(entry_access(grants=grants, project=FOREIGN_TEAM))


def test_a_project_without_a_role_in_it_is_neither_read_nor_written() -> None:
    given = entry_access(grants=WRITER, projects=(replace(OPEN_PROJECT, role=None),))
    assert OF_PROJECT not in read(given)
    with pytest.raises(NotFound):
        entry_tag(replace(given, project=PROJECT))


def test_a_request_that_names_a_project_reads_no_other_one_and_an_isolated_one_alone() -> None:
    other = ProjectFacts(FOREIGN_TEAM, "hera", False, Role.READ)
    of_other = Row(project_namespace(FOREIGN_TEAM), SHARED, BOB)
    given = entry_access(projects=(OPEN_PROJECT, other, ISOLATED_PROJECT))
    assert readable_entries(given).admits(of_other)
    named = replace(given, project=PROJECT)
    assert not readable_entries(named).admits(of_other)
    assert read(named) == OF_THE_PERSON | {OF_TEAMMATE, OF_PROJECT}
    assert read(replace(given, project=OTHER_PROJECT)) == {OF_ISOLATED}


@pytest.mark.parametrize("vendors", [("claude",), ("chatgpt",), ("claude", "chatgpt"), (EVERY_VENDOR,), ()])
def test_a_list_of_vendors_restricts_tools_and_the_bot_and_never_the_person(vendors: tuple[str, ...]) -> None:
    row = replace(OWN, vendors=vendors)
    for_all = EVERY_VENDOR in vendors
    assert readable_entries(entry_access("claude")).admits(row) is (for_all or "claude" in vendors)
    assert readable_entries(entry_access("cursor")).admits(row) is for_all
    assert readable_entries(entry_access(EVERY_VENDOR)).admits(row)
    assert readable(access(DM), []).admits(row) is for_all


def test_the_bot_recalls_a_persons_entries_in_their_dm_and_in_a_session_of_no_project_only() -> None:
    teams: dict[str, Any] = {"teams": (TEAM,), "linked": {ALICE: (CAROL,)}}
    everything = {OWN, OF_OTHER_ACCOUNT, OWN_IN_TEAM}

    def recalled(context: AccessContext) -> set[Row]:
        viewer = readable(context, [BOB])
        mine = {OWN, OF_OTHER_ACCOUNT, OF_BOB, OF_TEAMMATE, OWN_IN_TEAM, OF_FOREIGN_TEAM}
        return {row for row in mine if viewer.admits(row)}

    assert recalled(access(DM, **teams)) == everything
    assert recalled(access(DM, project=project(), **teams)) == everything  # a DM is never pooled
    assert recalled(access(WORK, **teams)) == everything
    assert recalled(access(WORK, project=project(None), **teams)) == everything
    assert recalled(access(WORK, project=project(), **teams)) == set()  # the project's members read what is said there
    for context in (GENERAL, THREAD):
        assert recalled(access(context, **teams)) == set()
    for place in (DM, WORK, GENERAL):
        assert recalled(access(place, project=project(isolated=True), **teams)) == set()


def test_an_entry_is_written_among_ones_own_or_for_a_project_that_one_may_write_to() -> None:
    assert entry_tag(entry_access(grants=WRITER)) == AccessTag(entries_namespace(ALICE), PRIVATE, ALICE)
    here = entry_access(grants=WRITER, project=PROJECT)
    assert entry_tag(here) == AccessTag(project_namespace(PROJECT), SHARED, ALICE)
    only = replace(here, grants=frozenset({Grants.of_project(PROJECT, "write")}))
    assert entry_tag(only).namespace == project_namespace(PROJECT)
    for grants in (READER, frozenset({Grants.of_project(PROJECT, "read")}), WRITER - {Grants.WRITE_PROJECTS}):
        with pytest.raises(Refused):
            entry_tag(replace(here, grants=grants))
    with pytest.raises(Refused):
        entry_tag(replace(here, projects=(replace(OPEN_PROJECT, role=Role.READ),)))
    with pytest.raises(NotFound):
        entry_tag(replace(here, projects=()))
    with pytest.raises(Refused):
        entry_tag(entry_access())


def test_only_the_person_themselves_changes_an_entry_of_their_own() -> None:
    person = entry_access(EVERY_VENDOR, WRITER)
    for row in OF_THE_PERSON:
        require_editable(person, row)
    for row in (OF_TEAMMATE, OF_PROJECT):
        with pytest.raises(Refused):
            require_editable(person, row)
    for row in (OF_BOB, OF_LEFT_TEAM, OF_ISOLATED, IN_DM, IN_ROOM):
        with pytest.raises(NotFound):
            require_editable(person, row)
    with pytest.raises(Refused):
        require_editable(entry_access("claude", WRITER), OWN)
    with pytest.raises(Refused):
        require_editable(replace(person, grants=READER), OWN)


def test_an_entry_is_shared_with_a_team_of_ones_own_and_taken_back() -> None:
    person = entry_access(EVERY_VENDOR, WRITER)
    assert team_tag(person, OWN, TEAM) == AccessTag(team_namespace(TEAM), PRIVATE, ALICE)
    for row in (OWN_IN_TEAM, OWN_IN_LEFT_TEAM):
        assert team_tag(person, row, None) == AccessTag(entries_namespace(ALICE), PRIVATE, ALICE)
    for row, team in ((OWN, LEFT_TEAM), (OWN, FOREIGN_TEAM), (OF_TEAMMATE, TEAM), (OF_BOB, TEAM), (IN_DM, TEAM)):
        with pytest.raises(NotFound):
            team_tag(person, row, team)
    with pytest.raises(Refused):
        team_tag(person, ABOUT_ALICE, TEAM)
    with pytest.raises(Refused):
        team_tag(replace(person, grants=READER), OWN, TEAM)


def test_a_team_is_read_by_its_members_alone() -> None:
    team = readable_team(entry_access(), TEAM)
    assert {row for row in ENTRY_ROWS if team.admits(row)} == {OF_TEAMMATE, OWN_IN_TEAM}
    for given, which in ((entry_access(), LEFT_TEAM), (entry_access(grants=frozenset({Grants.READ_ENTRIES})), TEAM)):
        with pytest.raises(NotFound):
            readable_team(given, which)


def test_only_the_person_themselves_gets_everything_that_they_own() -> None:
    assert owned_by_bearer(entry_access(EVERY_VENDOR)).users == (ALICE, CAROL)
    with pytest.raises(Refused):
        owned_by_bearer(entry_access("claude", WRITER))


def test_a_person_looks_into_their_rooms_and_a_guest_into_none_of_a_chat_platform() -> None:
    chat = JoinedRoom(
        "room:a", "a", private=True, project_id=None, isolated=False, platform=SLACK, room_id=uuid.uuid4()
    )
    terminal = replace(chat, namespace="room:b", name="b", platform=CONSOLE)
    person = EntryAccess(uuid.uuid4(), uuid.uuid4(), EVERY_VENDOR, frozenset())
    both = (chat, terminal)
    assert visibility.rooms_of_person(person, both, Trust.MEMBER) == both
    assert visibility.rooms_of_person(person, both, Trust.GUEST) == (terminal,)
    assert visibility.rooms_of_person(replace(person, vendor="claude"), both, Trust.MEMBER) == ()
    readable = visibility.readable_rooms(person, both, Trust.GUEST)
    assert (readable.namespaces, readable.pooled, readable.readers, readable.rooms) == (("room:b",), (), (), ())
    assert visibility.readable_rooms(replace(person, vendor="claude"), both, Trust.MEMBER).all_namespaces == ()
