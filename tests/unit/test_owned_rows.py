"""What is one's own, and what follows a person from one of their accounts to another, by composer.visibility."""

import uuid

import pytest

from composer.errors import NotFound
from composer.model import Conversation, dm_namespace
from composer.visibility import Owned, owned_by, owned_by_user, readable
from tests.unit.test_visibility_rules import AGENT, ALICE, BOARD, BOB, CAROL, DM, GENERAL, TENANT, WORK, access, project

LINKED = {ALICE: (CAROL,)}  # carol is another account of alice


def test_a_persons_own_rows_are_those_of_all_their_accounts_and_of_nobody_else() -> None:
    for owned in (owned_by(access(linked=LINKED)), owned_by_user(TENANT, ALICE, [CAROL])):
        assert [owned.admits(owner) for owner in (ALICE, CAROL, BOB, None)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("conversation", "asker"), [(BOARD, ALICE), (DM, BOB), (WORK, BOB)], ids=["private room", "DM", "session"]
)
def test_nobody_reads_what_is_their_own_from_a_place_where_they_are_not(
    conversation: Conversation, asker: uuid.UUID
) -> None:
    with pytest.raises(NotFound):
        owned_by(access(conversation, asker))
    assert isinstance(owned_by(access(GENERAL, asker)), Owned)


def test_a_dm_reads_the_dms_of_linked_accounts_but_for_those_in_an_isolated_project() -> None:
    other = dm_namespace(CAROL, AGENT)
    assert other in readable(access(DM, linked=LINKED), []).namespaces
    assert other not in readable(access(DM, linked=LINKED, isolated_linked_users=frozenset({CAROL})), []).namespaces


def test_a_dm_in_an_isolated_project_reads_no_dm_of_a_linked_account() -> None:
    inside = access(DM, linked=LINKED, project=project(isolated=True))
    assert dm_namespace(CAROL, AGENT) not in readable(inside, []).namespaces
