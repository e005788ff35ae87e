"""Bugs planted on purpose, one at a time, each of which the property tests must find: a test of the tests.

The first twelve distinguish the methods: some are found only by the reference, some only by comparing two
worlds. Some are planted in extracted memories, though they could be in summaries too.
"""

import itertools
import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from bot.commands import forget
from bot.importers import history
from composer import visibility
from composer.ingest.recording import Recording
from composer.layers import semantic
from composer.memory import index, remember
from composer.model import GLOBAL_NAMESPACE, ConversationKind, Item, Message, Trust, Visibility, room_id
from composer.ports.memberships import RoomsOnPlatform
from composer.repositories.conversations import Conversations
from composer.repositories.memories import NewMemory
from composer.turn import memberships
from composer.turn.memberships import ChatAccount, Memberships
from composer.visibility import (
    AccessContext,
    AccessTag,
    JoinedRoom,
    PoolMember,
    ProjectFacts,
    Readable,
    Reviewable,
    WriteScope,
)
from tests.property.campaign import compare_with_reference, compare_with_twin
from tests.property.checks import Broken
from tests.property.product import WHICH, Product
from tests.property.setting import DEN
from tests.support.planted_bugs import Patch, in_sql, replacing

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_WORLDS: Final = 120  # that may pass without finding the bug
_SCOPE: Final = re.compile(r"AND namespace = ANY \(:namespaces::text\[\]\)\s+AND may_read\([^)]*\)")
REFERENCE: Final = "reference"
TWINS: Final = "interference"
NIGHTS: Final = "interference by night"  # in worlds with summaries


@dataclass(frozen=True)
class Bug:
    """A bug, how it is planted, and the methods that find it, each with the seed of a world that shows it. When
    worlds are generated differently, the search continues from that seed."""

    name: str
    plant: Callable[[Patch], None]
    found_by: Mapping[str, int]


def without_predicate(which: int) -> Callable[[str], str]:
    """Remove the predicate at its occurrence number `which`."""

    def change(text: str) -> str:
        found = list(_SCOPE.finditer(text))[which]
        return text[: found.start()] + text[found.end() :]

    return change


def _memories_with(change: Callable[[NewMemory, Message], NewMemory]) -> Callable[[Patch], None]:
    """Plant memories that take something from the previously indexed message, whatever its namespace."""

    def plant(patch: Patch) -> None:
        last: dict[str, Message] = {}
        before: dict[tuple[str, uuid.UUID], Message | None] = {}
        original = index.extracted_memories

        def extracted_memories(message: Message) -> list[NewMemory]:
            key = (WHICH.get(), message.id)
            earlier = before.setdefault(key, last.get(WHICH.get()))
            last[WHICH.get()] = message
            return [memory if earlier is None else change(memory, earlier) for memory in original(message)]

        patch.setattr(index, "extracted_memories", extracted_memories)

    return plant


def _a_fact_about_a_person_is_global(patch: Patch) -> None:
    original = visibility.access_tag_for

    def access_tag_for(access: AccessContext, scope: str) -> AccessTag:
        tag = original(access, scope)
        return replace(tag, namespace=GLOBAL_NAMESPACE) if scope == WriteScope.EVERYWHERE else tag

    patch.setattr(visibility, "access_tag_for", access_tag_for)


def _membership_is_cached(patch: Patch) -> None:
    original, known = Conversations.access_context, dict[tuple[str, uuid.UUID, uuid.UUID], AccessContext]()

    async def access_context(
        log: Conversations, conversation: uuid.UUID, asker: uuid.UUID, trust: Trust, *rest: Any
    ) -> AccessContext | None:
        key, now = (WHICH.get(), conversation, asker), await original(log, conversation, asker, trust, *rest)
        if now is None:
            return None
        then = known.setdefault(key, now)
        return replace(now, joined=then.joined, departed=then.departed, project=then.project)

    patch.setattr(Conversations, "access_context", access_context)


def _recall_is_cached_by_question(patch: Patch) -> None:
    original, cached = semantic.read, dict[tuple[str, uuid.UUID, str], list[Item]]()

    async def read(
        recall: Any, readable: Readable, query: semantic.SearchQuery, *rest: Any, **options: Any
    ) -> list[Item]:
        key = (WHICH.get(), readable.tenant_id, query.text)
        if key not in cached:
            cached[key] = await original(recall, readable, query, *rest, **options)
        return cached[key]

    patch.setattr(semantic, "read", read)


def _ids_are_sequential(patch: Patch) -> None:
    counters: dict[str, itertools.count[int]] = {}

    def derived_id(*_: str) -> uuid.UUID:
        return uuid.UUID(int=next(counters.setdefault(WHICH.get(), itertools.count(1))) << 64)

    start = uuid.uuid4().int >> 80

    def fresh(*parts: str) -> uuid.UUID:
        return uuid.UUID(int=derived_id(*parts).int + start)

    patch.setattr(remember, "derived_id", fresh)
    patch.setattr(index, "derived_id", fresh)


def _pooled_by(rule: Callable[[PoolMember], bool]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(visibility, "_is_pooled", rule)


def _isolation_is_ignored(patch: Patch) -> None:
    original = visibility.effective_project

    def effective_project(access: AccessContext) -> ProjectFacts | None:
        project = original(access)
        return None if project is None else replace(project, isolated=False)

    patch.setattr(visibility, "effective_project", effective_project)


def _readables_with(field: str, value: object) -> Callable[[Patch], None]:
    """Plant Readables with one field changed."""

    def plant(patch: Patch) -> None:
        original = visibility._make_readable

        def forged(*given: Any) -> Readable:
            readable = original(*given)
            object.__setattr__(readable, field, value)
            return readable

        patch.setattr(visibility, "_make_readable", forged)

    return plant


def _rooms_by(rule: Callable[[AccessContext], tuple[JoinedRoom, ...]]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(visibility, "rooms_for_dm", rule)


def _people_who_left_are_participants(patch: Patch) -> None:
    def people(access: AccessContext, speakers: Sequence[uuid.UUID]) -> tuple[uuid.UUID, ...]:
        return tuple(dict.fromkeys((access.asker, *speakers)))[: visibility.MAX_PARTICIPANTS]

    patch.setattr(visibility, "participants", people)


def _an_account_forgets_alone(patch: Patch) -> None:
    async def identities(tx: Any, user: uuid.UUID) -> tuple[uuid.UUID, ...]:
        return (user,)

    patch.setattr(forget, "_identities", identities)


def _of_the_organisation_as(**changes: Any) -> Callable[[Patch], None]:
    """Plant another trust of the asker, or other readers of the room, where the organisation's own is judged."""

    def plant(patch: Patch) -> None:
        original = visibility._of_the_organisation
        patch.setattr(visibility, "_of_the_organisation", lambda now, spoke: original(replace(now, **changes), spoke))

    return plant


def _guests_review_rooms(patch: Patch) -> None:
    original = visibility.reviewable

    def reviewable(access: AccessContext, **facts: bool) -> Reviewable:
        return original(replace(access, trust=Trust.MEMBER), **facts)

    patch.setattr(visibility, "reviewable", reviewable)


def _a_platform_that_fails_says_yes(patch: Patch) -> None:
    original = Memberships._ask

    async def ask(memberships: Memberships, account: ChatAccount) -> RoomsOnPlatform | None:
        said = await original(memberships, account)
        return RoomsOnPlatform((DEN.name,)) if said is None else said

    patch.setattr(Memberships, "_ask", ask)


def _an_answer_counts_for_everybody(patch: Patch) -> None:
    original, first = Memberships._answer, dict[tuple[str, uuid.UUID, str], ChatAccount]()

    async def answer(memberships: Memberships, tenant: uuid.UUID, account: ChatAccount) -> Any:
        return await original(memberships, tenant, first.setdefault((WHICH.get(), tenant, account[0]), account))

    patch.setattr(Memberships, "_answer", answer)


def _a_room_of_another_platform_will_do(patch: Patch) -> None:
    patch.setattr(memberships, "room_id", lambda here, room: room_id(replace(here, platform="slack"), room))


def _nothing_in_a_history_is_private(patch: Patch) -> None:
    async def private_rooms(app: Any, lines: Any) -> set[tuple[str, str]]:
        return set()

    patch.setattr(history, "_private_rooms", private_rooms)


_JOINED: Final = "AND m.conversation_id = conversation.member_of AND m.user_id = :asker_id) AS joined"
_MEMBERS: Final = """(SELECT count(DISTINCT coalesce(u.person_id, u.id)) FROM project_members AS c
        JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
        WHERE c.tenant_id = p.tenant_id AND c.project_id = p.id)"""
_ROOMS: Final = "(SELECT count(*) FROM conversations AS c WHERE c.tenant_id = p.tenant_id AND c.project_id = p.id)"
_NOTHING: Final = """SELECT ''::text AS kind, :tenant_id::uuid AS id
WHERE cardinality(:source_ids::uuid[]) < 0"""

BUGS: Final = (
    Bug(
        "a memory joins two scopes",
        _memories_with(lambda memory, last: replace(memory, text=f"{memory.text}. {last.text}")),
        {TWINS: 300_040, REFERENCE: 300_014},
    ),
    Bug(
        "a memory of one scope is labelled as of another",
        _memories_with(
            lambda m, last: replace(m, tag=replace(m.tag, namespace=last.namespace, visibility=last.visibility))
        ),
        {TWINS: 300_004, REFERENCE: 300_014},
    ),
    Bug(
        "a fact about someone is read as for all",
        _a_fact_about_a_person_is_global,
        {TWINS: 300_001, REFERENCE: 300_004},
    ),
    Bug(
        "membership of any room does",
        in_sql(
            "access_context",
            replacing("SELECT m.left_at IS NULL FROM members", "SELECT bool_or(m.left_at IS NULL) FROM members"),
            replacing(_JOINED, "AND m.user_id = :asker_id) AS joined"),
        ),
        {TWINS: 300_002, REFERENCE: 300_001},
    ),
    Bug(
        "access is decided when a session joins the pool, not when it is read",
        _pooled_by(
            lambda m: (
                m.kind is ConversationKind.SESSION or (m.kind is ConversationKind.ROOM and (m.pooled or not m.private))
            )
        ),
        {TWINS: 301_460, REFERENCE: 300_700},
    ),
    Bug("membership is remembered after leaving", _membership_is_cached, {REFERENCE: 300_002}),
    Bug("recall is kept by question, whoever asks", _recall_is_cached_by_question, {REFERENCE: 300_013}),
    Bug("erasing does not follow lineage", in_sql("lineage_closure", lambda text: _NOTHING), {REFERENCE: 300_002}),
    Bug(
        "word statistics are taken over everything",
        in_sql(
            "recall_search",
            without_predicate(0),
            replacing("(items - coalesce(df, 0) + 0.5)", "(greatest(items - coalesce(df, 0), 0) + 0.5)"),
            replacing(
                "(SELECT n, count(*) AS df FROM term_matches GROUP BY n)",
                "(SELECT array_position(:terms::text[], term) AS n, count(*) AS df FROM recall_terms"
                " WHERE tenant_id = :tenant_id AND term = ANY (:terms::text[]) GROUP BY 1)",
            ),
        ),
        {TWINS: 300_011},
    ),
    Bug(
        "what may be read is sorted out after the nearest were taken",
        in_sql(
            "recall_search",
            without_predicate(1),
            replacing("LIMIT (SELECT greatest(1000, items / 15) FROM scope) +", "LIMIT 3 + 0 *"),
        ),
        {TWINS: 401_125},
    ),
    Bug("ids are counted", _ids_are_sequential, {TWINS: 300_004}),
    Bug(
        "a figure counts what may not be read",
        in_sql(
            "project_list",
            replacing(_MEMBERS, _ROOMS),
        ),
        {TWINS: 400_693},
    ),
    # Further bugs.
    Bug(
        "a summary is made of more than its run",
        in_sql(
            "summarised_messages",
            replacing(
                "AND (c.id = :conversation_id OR (:with_threads AND c.room_id = :conversation_id))\n"
                "      AND m.namespace = :namespace",
                "AND (:conversation_id::uuid IS NOT NULL AND :with_threads::bool IS NOT NULL)\n"
                "      AND :namespace::text IS NOT NULL",
            ),
        ),
        {NIGHTS: 300_004},
    ),
    Bug("a DM is pooled", _pooled_by(lambda m: m.pooled or not m.private), {TWINS: 300_013, REFERENCE: 300_003}),
    Bug(
        "a private room is pooled without its admin's word",
        _pooled_by(lambda m: m.kind is ConversationKind.ROOM),
        {TWINS: 300_098, REFERENCE: 300_025},
    ),
    Bug("isolation is forgotten", _isolation_is_ignored, {TWINS: 300_238, REFERENCE: 300_048}),
    Bug(
        "a private mark passes in a room",
        _readables_with("visibilities", tuple(Visibility)),
        {TWINS: 300_013, REFERENCE: 300_023},
    ),
    Bug(
        "a DM reads the rooms that its person has left",
        in_sql("rooms_joined", replacing("AND m.left_at IS NULL", "")),
        {REFERENCE: 300_067},
    ),
    Bug(
        "a DM reads rooms that nobody opened to it",
        in_sql("access_context", replacing("(SELECT u.reads_rooms FROM users", "(SELECT true FROM users")),
        {TWINS: 300_001, REFERENCE: 300_001},
    ),
    Bug("a DM reads rooms of isolated projects", _rooms_by(lambda now: now.joined_rooms), {REFERENCE: 300_038}),
    Bug(
        "what is for another vendor is shown", _readables_with("vendor", "claude"), {TWINS: 300_001, REFERENCE: 300_056}
    ),
    Bug("who has left is still here", _people_who_left_are_participants, {REFERENCE: 300_158}),
    Bug(
        "a room that is opened keeps its past",
        lambda patch: patch.setattr(
            "composer.ingest.room_privacy.room_namespace", lambda room, generation=0: f"room:{room}"
        ),
        {TWINS: 300_007, REFERENCE: 300_124},
    ),
    Bug(
        "what is said by who opted out is kept",
        lambda patch: patch.setattr(
            "composer.ingest.receive.decide_recording", lambda policy, *, opted_out, wants_answer: Recording.STORE
        ),
        {REFERENCE: 300_047, TWINS: 300_123},
    ),
    Bug(
        "an edit of who opted out is kept",
        lambda patch: patch.setattr(
            "composer.ingest.changes.decide_recording", lambda policy, *, opted_out, wants_answer: Recording.STORE
        ),
        {REFERENCE: 300_042},
    ),
    Bug(
        "a DM in an isolated project is read with another account",
        in_sql("access_context", replacing("AND q.isolated\n", "AND q.isolated IS NULL\n")),
        {REFERENCE: 500_144},
    ),
    Bug(
        "a project counts accounts, not people",
        in_sql("actor_facts", replacing("AND pm.user_id IN (SELECT id FROM person)", "AND pm.user_id = :asker_id")),
        {REFERENCE: 500_100},
    ),
    Bug(
        "who is unlinked stays the same person",
        in_sql("users_unlink", replacing("(id = :user_id OR id IN (SELECT id FROM others))", "false")),
        {REFERENCE: 500_197, TWINS: 500_879},
    ),
    Bug("an account forgets nothing of the other one", _an_account_forgets_alone, {REFERENCE: 500_085}),
    Bug(
        "one account opts out, and the other is recorded",
        in_sql(
            "person_set",
            replacing("AND coalesce(u.person_id, u.id) =", "AND u.id = :user_id AND coalesce(u.person_id, u.id) ="),
        ),
        {REFERENCE: 500_084},
    ),
    Bug(
        "linking forgets who had opted out",
        in_sql("users_link", replacing("(SELECT bool_or(opted_out) FROM people)", "opted_out")),
        {REFERENCE: 500_175},
    ),
    Bug(
        "a guest reads what is for everyone",
        _of_the_organisation_as(trust=Trust.MEMBER),
        {REFERENCE: 500_002, TWINS: 500_471},
    ),
    Bug(
        "a room that others read is answered from profiles",
        _of_the_organisation_as(outsiders=False),
        {REFERENCE: 500_487},
    ),
    Bug("a guest approves as admin of a room", _guests_review_rooms, {REFERENCE: 500_149}),
    Bug(
        "who is recorded in a private room is in it, whatever its platform says",
        in_sql("rooms_joined", replacing("CASE WHEN c.private AND c.platform <> 'console'", "CASE WHEN false")),
        {REFERENCE: 600_001},
    ),
    Bug(
        "a platform is asked once",
        lambda patch: patch.setattr(memberships, "MAX_AGE", timedelta(days=10_000)),
        {REFERENCE: 600_033},
    ),
    Bug(
        "what a platform has said is used for six minutes",
        lambda patch: patch.setattr(memberships, "MAX_AGE", timedelta(minutes=6)),
        {REFERENCE: 600_565},
    ),
    Bug("a platform that fails says yes", _a_platform_that_fails_says_yes, {REFERENCE: 600_092}),
    Bug(
        "what a platform says of one person counts for everybody", _an_answer_counts_for_everybody, {REFERENCE: 600_001}
    ),
    Bug(
        "a room of the same name on another platform will do",
        _a_room_of_another_platform_will_do,
        {REFERENCE: 600_048},
    ),
    Bug(
        "who is told to have left is in the room for as long as an answer is kept",
        in_sql("rooms_joined", replacing("AND m.left_at > :asked_at", "AND m.left_at > :asked_at AND false")),
        {REFERENCE: 600_709},
    ),
    Bug("a history brings private words into a room", _nothing_in_a_history_is_private, {REFERENCE: 600_046}),
    Bug(
        "a history opens the rooms of which it says nothing",
        lambda patch: patch.setattr(history, "with_private_rooms", lambda lines, rooms: list(lines)),
        {REFERENCE: 600_574, TWINS: 600_499},
    ),
    Bug(
        "an edited message is found by its old words",
        in_sql("message_edit", replacing("indexed = false", "indexed = true")),
        {REFERENCE: 300_060},
    ),
    Bug(
        "erasing a project leaves its sessions",
        in_sql("erasable_select", replacing("OR c.kind <> 'dm' AND", "OR c.kind NOT IN ('dm', 'session') AND")),
        {REFERENCE: 700_416},
    ),
    Bug(
        "erasing a project takes the DMs that have chosen it",
        in_sql("erasable_select", replacing("OR c.kind <> 'dm' AND", "OR")),
        {REFERENCE: 700_485},
    ),
    Bug(
        "erasing a project leaves what is filed in it",
        in_sql("erasable_select", replacing("'project:' || :project_id::uuid::text WHERE", "NULL WHERE false AND")),
        {REFERENCE: 700_034},
    ),
)


# No world near their seeds shows these since sessions leave a project with their person, and invitations are accepted:
# each needs a seed of its own again.
CASES: Final = [pytest.param(bug, method, id=f"{bug.name}, {method}") for bug in BUGS for method in bug.found_by]


@pytest.mark.parametrize(("bug", "method"), CASES)
async def test_a_planted_bug_is_found(bug: Bug, method: str, products: tuple[Product, Product]) -> None:
    prefix = f"{BUGS.index(bug)}{method[0]}{len(method)}-"
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        for seed in range(bug.found_by[method], bug.found_by[method] + MOST_WORLDS):
            try:
                if method == REFERENCE:
                    await compare_with_reference(products[0], seed, Counter(), prefix=prefix)
                else:
                    nights = method == NIGHTS
                    await compare_with_twin(*products, seed, Counter(), prefix=prefix, looks=0, nights=nights)
            except Broken as error:
                if method.startswith(error.method):
                    return
    pytest.fail(f"{MOST_WORLDS} worlds did not show that {bug.name}")


async def test_without_a_planted_bug_nothing_is_found(products: tuple[Product, Product]) -> None:
    """Play the same worlds, to show that the findings above come from the planted bugs."""
    for method, seed in sorted({pair for bug in BUGS[::3] for pair in bug.found_by.items()}):
        if method == REFERENCE:
            await compare_with_reference(products[0], seed, Counter(), prefix="clean")
        else:
            nights = method == NIGHTS
            await compare_with_twin(*products, seed, Counter(), prefix="clean-twin", nights=nights)
