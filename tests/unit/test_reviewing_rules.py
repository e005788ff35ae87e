"""Who reviews what others wrote: the namespaces in which composer.visibility lets a person approve and take back."""

from dataclasses import replace
from typing import Any

import pytest

from composer.errors import NotFound
from composer.model import (
    EVERY_VENDOR,
    Conversation,
    Role,
    Trust,
    Visibility,
    entries_namespace,
    profile_namespace,
    project_namespace,
)
from composer.repositories.quarantine import PendingItem
from composer.visibility import AccessTag, EntryAccess, PoolMember, WaitingTalk, decidable_items, reviewable
from tests.support.harness import START
from tests.unit.test_visibility_rules import (
    ALICE,
    BOARD,
    BOB,
    DM,
    GENERAL,
    POOL,
    PROJECT,
    THREAD,
    WORK,
    access,
    project,
)

ROOMS = (GENERAL, THREAD)
APOLLO, PROFILE, ENTRIES = project_namespace(PROJECT), profile_namespace(ALICE), entries_namespace(ALICE)
SESSIONS = ("session:bob",)  # of the project's members; see POOL


def reviewed(
    conversation: Conversation, *, pooled: bool, admin: bool = False, **facts: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The namespaces and the pooled ones in which alice reviews what may be `pooled` (memories) or may not, as an admin
    of the room or not."""
    both = reviewable(access(conversation, **facts), room_admin=admin)
    found = both.of("memory" if pooled else "fact")
    return found.namespaces, found.pooled


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("room", ROOMS)
def test_what_is_written_in_a_room_is_reviewed_by_its_admins_alone(room: Conversation, pooled: bool) -> None:
    assert reviewed(room, pooled=pooled, admin=True) == ((room.namespace,), ())
    assert reviewed(room, pooled=pooled) == ((), ())


@pytest.mark.parametrize("role", [None, Role.READ, Role.WRITE])
@pytest.mark.parametrize("room", ROOMS)
def test_members_of_a_project_review_nothing_of_it(room: Conversation, role: Role | None) -> None:
    for pooled in (True, False):
        assert reviewed(room, pooled=pooled, project=project(role)) == ((), ())
        assert reviewed(room, pooled=pooled, admin=True, project=project(role)) == ((room.namespace,), ())


@pytest.mark.parametrize("room", ROOMS)
def test_an_admin_of_a_project_reviews_what_is_its_own_and_not_the_room(room: Conversation) -> None:
    lead = project(Role.ADMIN)
    assert reviewed(room, pooled=True, project=lead) == ((APOLLO,), SESSIONS)
    assert reviewed(room, pooled=True, admin=True, project=lead) == ((room.namespace, APOLLO), SESSIONS)


@pytest.mark.parametrize("conversation", [GENERAL, WORK])
def test_facts_and_landmarks_of_others_sessions_are_not_reviewed(conversation: Conversation) -> None:
    _, sessions = reviewed(conversation, pooled=False, project=project(Role.ADMIN))
    assert sessions == ()


@pytest.mark.parametrize("role", [None, *Role])
def test_a_guest_reviews_nothing_in_a_room_also_as_its_admin_and_that_of_its_project(role: Role | None) -> None:
    facts = {} if role is None else {"project": project(role)}
    for room in ROOMS:
        for pooled in (True, False):
            assert reviewed(room, pooled=pooled, admin=True, trust=Trust.GUEST, **facts) == ((), ())


@pytest.mark.parametrize("conversation", [DM, WORK])
@pytest.mark.parametrize("pooled", [True, False])
def test_what_is_written_in_a_dm_or_a_session_is_reviewed_by_its_person(
    conversation: Conversation, pooled: bool
) -> None:
    assert reviewed(conversation, pooled=pooled) == ((conversation.namespace, PROFILE, ENTRIES), ())
    assert reviewed(conversation, pooled=pooled, trust=Trust.GUEST) == ((conversation.namespace,), ())


@pytest.mark.parametrize("trust", [Trust.MEMBER, Trust.GUEST])
@pytest.mark.parametrize("role", [Role.READ, Role.WRITE])
def test_what_a_project_reads_of_a_session_is_not_for_its_person_to_review(role: Role, trust: Trust) -> None:
    own = (PROFILE,) if trust is Trust.MEMBER else ()
    for given in (True, False):  # in an earlier membership, or of a reader: the project reads nothing of the session
        here = PoolMember(WORK.namespace, WORK.kind, private=False, pooled=given, owner_role=role)
        in_session = () if given and role is Role.WRITE else (WORK.namespace,)
        apollo = replace(project(role), members=(*POOL, here))
        assert reviewed(WORK, pooled=True, trust=trust, project=apollo) == ((*in_session, *own), ())
        assert reviewed(WORK, pooled=False, trust=trust, project=apollo) == ((WORK.namespace, *own), ())
    in_dm = (*own, ENTRIES) if own else ()
    assert reviewed(DM, pooled=True, trust=trust, project=project(role)) == ((DM.namespace, *in_dm), ())


def test_in_their_own_session_an_admin_of_the_project_reviews_all_of_it() -> None:
    lead = project(Role.ADMIN)
    assert reviewed(WORK, pooled=True, project=lead) == ((WORK.namespace, APOLLO, PROFILE), SESSIONS)


@pytest.mark.parametrize("conversation", [DM, WORK])
def test_nothing_outside_an_isolated_project_is_reviewed_in_it(conversation: Conversation) -> None:
    own, _ = reviewed(conversation, pooled=False, project=project(Role.ADMIN, isolated=True))
    assert own == (conversation.namespace, APOLLO)


def test_who_was_removed_from_a_project_reviews_their_session_as_if_it_were_in_none() -> None:
    assert reviewed(WORK, pooled=True, project=project(None)) == ((WORK.namespace, PROFILE, ENTRIES), ())


def test_whoever_is_not_in_a_private_room_reviews_nothing_there() -> None:
    with pytest.raises(NotFound):
        reviewable(access(BOARD, joined=False), room_admin=True)


def on_waiting(
    member: PoolMember,
    role: Role | None,
    *,
    own: bool,
    trust: Trust = Trust.MEMBER,
    vendor: str = EVERY_VENDOR,
    kind: str = "memory",
) -> tuple[bool, bool]:
    """Whether alice decides on her page about what waits in a DM or session, and whether as a part of a pool."""
    talk = WaitingTalk(member, own, PROJECT, role)
    found = decidable_items(EntryAccess(WORK.tenant_id, ALICE, vendor, frozenset()), (), trust, (talk,)).of(kind)
    return member.namespace in found.all_namespaces, member.namespace in found.pooled


@pytest.mark.parametrize("trust", [Trust.MEMBER, Trust.GUEST])
@pytest.mark.parametrize("role", [None, *Role])
def test_on_a_page_one_decides_where_one_does_in_the_chat(role: Role | None, trust: Trust) -> None:
    leads = role is Role.ADMIN and trust is Trust.MEMBER
    for owner in (None, *Role):
        session = PoolMember(WORK.namespace, WORK.kind, private=True, pooled=True, owner_role=owner)
        feeds = owner is not None and owner.writes
        assert on_waiting(session, owner, own=True, trust=trust) == (
            not feeds or (owner is Role.ADMIN and trust is Trust.MEMBER),
            False,
        )
        assert on_waiting(session, role, own=False, trust=trust) == (leads and feeds, leads and feeds)
        for kind in ("fact", "landmark"):
            assert on_waiting(session, owner, own=True, trust=trust, kind=kind) == (True, False)
            assert on_waiting(session, role, own=False, trust=trust, kind=kind) == (False, False)
    dm = PoolMember(DM.namespace, DM.kind, private=True, pooled=False)
    assert on_waiting(dm, role, own=True, trust=trust) == (True, False)
    assert on_waiting(dm, role, own=True, trust=trust, vendor="claude") == (False, False)


def test_what_is_a_members_own_is_decided_by_them_alone() -> None:
    """An admin of the room decides about what guests wrote there, and not about what waits for its author."""
    for admin in (True, False):
        found = reviewable(access(GENERAL), room_admin=admin)
        mine = AccessTag(GENERAL.namespace, Visibility.PUBLIC, ALICE)
        assert found.admits_own(item := PendingItem("memory", ALICE, mine, Trust.MEMBER, "fact", "x", "a", "", START))
        assert not found.admits_own(replace(item, tag=replace(mine, user_id=BOB)))
        assert not found.admits_own(replace(item, tag=replace(mine, namespace=WORK.namespace)))
