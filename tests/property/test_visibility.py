"""The predicate of who may read, in SQL and pure: both are the same, and less membership never admits more."""

import random
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composer import visibility
from composer.errors import NotFound
from composer.model import (
    EVERY_VENDOR,
    GLOBAL_NAMESPACE,
    Conversation,
    ConversationKind,
    Role,
    Visibility,
    derived_id,
    entries_namespace,
    profile_namespace,
    project_namespace,
    team_namespace,
)
from composer.repositories.readable import recall_parameters
from composer.visibility import (
    AccessContext,
    EntryAccess,
    Grants,
    JoinedRoom,
    PoolMember,
    ProjectFacts,
    Readable,
)
from sql.loader import parse_query
from tests.property.product import Product
from tests.property.reference import Reference
from tests.property.setting import PEOPLE
from tests.property.trace import MAIN
from tests.property.worlds import large

in_module = pytest.mark.asyncio(loop_scope="module")

# The predicate of every recall statement, by itself.
READABLE_ROWS = parse_query(
    "readable_rows",
    """
    SELECT id FROM recall_index
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
    """,
)


# --- the predicate, pure ---------------------------------------------------------------------------------------

TENANT = derived_id("tenant", "pure")
USERS = tuple(derived_id("user", name) for name in PEOPLE)
RUNS = tuple(f"{kind}:{n}" for kind in ("room", "session", "dm") for n in (1, 2, 3))
PROJECT = derived_id("project", "pure")
TEAMS = tuple(derived_id("team", name) for name in ("red", "blue"))


@dataclass(frozen=True)
class Row:
    """A row with an access tag."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]


def _conversation(kind: ConversationKind, private: bool) -> Conversation:
    own = kind in (ConversationKind.DM, ConversationKind.SESSION)
    run = {"room": "room:1", "thread": "room:1", "dm": "dm:1", "session": "session:1"}[kind]
    user = USERS[0] if own else None
    return Conversation(uuid.uuid5(TENANT, run), TENANT, kind, "here", run, private, user_id=user, agent_id=user)


roles = st.sampled_from([None, *Role])
members = st.builds(
    PoolMember,
    st.sampled_from(RUNS),
    st.sampled_from([ConversationKind.ROOM, ConversationKind.DM, ConversationKind.SESSION]),
    st.booleans(),
    st.booleans(),
    roles,
)
projects = st.builds(
    ProjectFacts, st.just(PROJECT), st.just("apollo"), st.booleans(), roles, st.lists(members, max_size=6).map(tuple)
)
joined = st.builds(
    JoinedRoom,
    st.sampled_from(["room:1", "room:2", "room:3"]),
    st.just("there"),
    st.booleans(),
    st.sampled_from([None, PROJECT]),
    st.booleans(),
)
access_context = st.builds(
    AccessContext,
    st.builds(_conversation, st.sampled_from(ConversationKind), st.booleans()),
    st.sampled_from(USERS[:2]),
    st.booleans(),
    st.sampled_from([None, True, False]),
    st.frozensets(st.sampled_from(USERS)),
    st.none() | projects,
    reads_rooms=st.booleans(),
    joined_rooms=st.lists(joined, max_size=4).map(tuple),
    teams=st.lists(st.sampled_from(TEAMS), unique=True).map(tuple),
)
speakers = st.lists(st.sampled_from(USERS), max_size=5)
ENTRY_NAMESPACES = (*(entries_namespace(user) for user in USERS), *(team_namespace(team) for team in TEAMS))
GRANTS = [*(getattr(Grants, name) for name in vars(Grants) if name.isupper()), Grants.of_project(PROJECT, "read")]
entry_access = st.builds(
    EntryAccess,
    st.just(TENANT),
    st.sampled_from(USERS[:2]),
    st.sampled_from([EVERY_VENDOR, "nexus", "claude"]),
    st.frozensets(st.sampled_from(GRANTS)),
    st.lists(st.sampled_from(USERS[2:4]), max_size=1).map(tuple),
    st.lists(st.sampled_from(TEAMS), unique=True).map(tuple),
    st.lists(st.sampled_from(TEAMS), unique=True).map(tuple),
    st.lists(projects, max_size=1).map(tuple),
    st.sampled_from([None, PROJECT]),
)
ROWS = [
    Row(run, mark, user, vendors)
    for run in (
        *RUNS,
        GLOBAL_NAMESPACE,
        project_namespace(PROJECT),
        *(profile_namespace(user) for user in USERS),
        *ENTRY_NAMESPACES,
    )
    for mark in Visibility
    for user in (None, *USERS[:2])
    for vendors in (("*",), ("nexus",), ("claude",), ())
]


def _admitted(access: AccessContext, spoke: Sequence[uuid.UUID]) -> set[Row]:
    try:
        readable = visibility.readable(access, spoke)
    except NotFound:
        return set()
    return {row for row in ROWS if readable.admits(row)}


@st.composite
def _weakened(draw: st.DrawFn) -> tuple[AccessContext, AccessContext]:
    """Draw an access context, and the same with less membership."""
    now = draw(access_context)
    less = replace(
        now,
        asker_admin=now.asker_admin and draw(st.booleans()),
        joined=now.joined if draw(st.booleans()) else draw(st.sampled_from([None, False])),
        departed=now.departed | draw(st.frozensets(st.sampled_from(USERS))),
        reads_rooms=now.reads_rooms and draw(st.booleans()),
        joined_rooms=tuple(room for room in now.joined_rooms if draw(st.booleans())),
    )
    if now.project is not None:
        kept = tuple(m for m in now.project.members if draw(st.booleans()))
        kept = tuple(
            replace(
                m, owner_role=m.owner_role if draw(st.booleans()) else None, pooled=m.pooled and draw(st.booleans())
            )
            for m in kept
        )
        role = now.project.role if draw(st.booleans()) else None
        less = replace(less, project=replace(now.project, role=role, members=kept))
    return now, less


@settings(max_examples=250, deadline=None, derandomize=True)
@given(_weakened(), speakers)
def test_less_membership_never_admits_more(pair: tuple[AccessContext, AccessContext], spoke: list[uuid.UUID]) -> None:
    now, less = pair
    more = _admitted(less, spoke) - _admitted(now, spoke)
    if (
        now.project is not None and now.project.isolated
    ):  # who leaves an isolated project may read what is outside again
        outside = {room.namespace for room in less.joined_rooms if not room.isolated}
        outside |= {GLOBAL_NAMESPACE, profile_namespace(USERS[0])}
        more = {row for row in more if row.namespace not in outside}
        more -= _own_entries(less)
    if now.conversation.kind is ConversationKind.SESSION and now.project is not None:
        more -= _own_entries(less)  # a session that no project pools any more reads its person's entries again
    assert not more


def _own_entries(access: AccessContext) -> set[Row]:
    own = (entries_namespace(access.asker), *(team_namespace(team) for team in access.teams))
    return {row for row in ROWS if row.namespace in own}


@st.composite
def _less_entry_access(draw: st.DrawFn) -> tuple[EntryAccess, EntryAccess]:
    """Draw who asks for entries, and the same with fewer grants and less membership."""
    now = draw(entry_access)
    fewer = replace(
        now,
        grants=frozenset(grant for grant in now.grants if draw(st.booleans())),
        linked=tuple(user for user in now.linked if draw(st.booleans())),
        teams=tuple(team for team in now.teams if draw(st.booleans())),
        shared_with=tuple(team for team in now.shared_with if draw(st.booleans())),
        projects=tuple(project for project in now.projects if draw(st.booleans())),
    )
    return now, fewer


def _admitted_entries(access: EntryAccess) -> set[Row]:
    try:
        readable = visibility.readable_entries(access)
    except NotFound:
        return set()
    return {row for row in ROWS if readable.admits(row)}


@settings(max_examples=250, deadline=None, derandomize=True)
@given(_less_entry_access())
def test_fewer_grants_and_less_membership_never_admit_more_entries(pair: tuple[EntryAccess, EntryAccess]) -> None:
    now, fewer = pair
    assert _admitted_entries(fewer) <= _admitted_entries(now)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(entry_access)
def test_a_tool_reads_no_entry_that_its_person_does_not_and_nothing_from_a_conversation(access: EntryAccess) -> None:
    found = _admitted_entries(access)
    assert found <= _admitted_entries(replace(access, vendor=EVERY_VENDOR))
    assert not {row for row in found if row.namespace in (*RUNS, GLOBAL_NAMESPACE)}
    for row in found:
        others = row.user_id not in access.users
        assert not (others and row.namespace.startswith(("entries:", "profile:")) and row.visibility == "private")


@settings(max_examples=250, deadline=None, derandomize=True)
@given(access_context, speakers)
def test_without_the_pool_no_more_is_admitted_than_with_it(access: AccessContext, spoke: list[uuid.UUID]) -> None:
    try:
        readable = visibility.readable(access, spoke)
    except NotFound:
        return
    without = readable.without_pool()
    for row in ROWS:
        assert not without.admits(row) or readable.admits(row)


# --- the predicate in SQL ----------------------------------------------------------------------------------------


@in_module
async def test_the_sql_predicate_equals_the_pure_one(products: tuple[Product, Product]) -> None:
    rng, product, name = random.Random("predicate"), products[0], "predicate"
    world = large(60_001)
    await product.play(name, world.events, Reference.after(world.events).accepted)
    workspace = product.workspace(name, MAIN)
    tenant = workspace.tenant_id
    await _insert_rows(product, name, rng)
    people = [row["id"] for row in await product.raw.fetch("SELECT id FROM users WHERE tenant_id = $1", tenant)]
    rows = await product.raw.fetch(
        "SELECT id, namespace, visibility, user_id, vendors FROM recall_index WHERE tenant_id = $1", tenant
    )
    marked = {
        row["id"]: Row(
            row["namespace"],
            Visibility(row["visibility"]),
            row["user_id"],
            ("*",) if row["vendors"] is None else tuple(row["vendors"]),
        )
        for row in rows
    }
    assert len(marked) > 400
    counts: Counter[str] = Counter()
    for _ in range(400):
        if rng.random() < 0.3:
            readable = _some_entry_readable(tenant, people, list((await product.projects(workspace)).values()), rng)
        else:
            readable = await _some_readable(product, name, people, [row.namespace for row in marked.values()], rng)
        if readable is None:
            counts["refused"] += 1
            continue
        found = await product.raw.fetch(
            READABLE_ROWS.sql, *READABLE_ROWS.bind({"tenant_id": tenant, **recall_parameters(readable)})
        )
        admitted = {id for id, row in marked.items() if readable.admits(row)}
        assert {row["id"] for row in found} == admitted
        counts["admitted"] += len(admitted)
        counts["kept out of its own runs"] += sum(
            row.namespace in readable.all_namespaces and id not in admitted for id, row in marked.items()
        )
    assert counts["refused"] < 200
    assert counts["admitted"] > 2_000
    assert counts["kept out of its own runs"] > 2_000


async def _insert_rows(product: Product, name: str, rng: random.Random) -> None:
    """Insert rows of every visibility in every namespace, in this tenant and in another with the same namespaces."""
    tenant, other = (product.workspace(name, which).tenant_id for which in (MAIN, "foreign"))
    await product.raw.execute(
        "INSERT INTO tenants VALUES ($1, $2, now()) ON CONFLICT DO NOTHING", other, f"{name}-foreign"
    )
    runs = await product.raw.fetch("SELECT DISTINCT namespace FROM conversations WHERE tenant_id = $1", tenant)
    users = [row["id"] for row in await product.raw.fetch("SELECT id FROM users WHERE tenant_id = $1", tenant)]
    projects = [project_namespace(id) for id in (await product.projects(product.workspace(name, MAIN))).values()]
    every = [*(row["namespace"] for row in runs), *map(profile_namespace, users), *projects, GLOBAL_NAMESPACE]
    every += [*map(entries_namespace, users), *map(team_namespace, TEAMS)]
    for n in range(900):
        await product.raw.execute(
            "INSERT INTO recall_index (tenant_id, id, kind, namespace, user_id, visibility, vendors, at, length)"
            " VALUES ($1, $2, 'memory', $3, $4, $5, $6, now(), 1)",
            tenant if n % 3 else other,
            derived_id("strewn", str(n)),
            rng.choice(every),
            rng.choice([None, *users]),
            str(rng.choice(list(Visibility))),
            rng.choice([None, None, ["*"], ["nexus"], ["claude"], ["claude", "nexus"], []]),
        )


def _some_entry_readable(
    tenant: uuid.UUID, people: list[uuid.UUID], projects: list[uuid.UUID], rng: random.Random
) -> Readable | None:
    """Make a Readable of a person or a tool that asks for entries, from facts that need not be true."""
    facts = tuple(
        ProjectFacts(id, "apollo", rng.random() < 0.3, rng.choice(list(Role)))
        for id in rng.sample(projects, min(2, len(projects)))
    )
    access = EntryAccess(
        tenant,
        rng.choice(people),
        rng.choice([EVERY_VENDOR, "claude", "nexus"]),
        frozenset(rng.sample(GRANTS, rng.randint(1, len(GRANTS)))),
        tuple(rng.sample(people, rng.randint(0, 1))),
        tuple(rng.sample(TEAMS, rng.randint(0, 2))),
        tuple(rng.sample(TEAMS, rng.randint(0, 2))),
        facts,
        rng.choice([None, None, *(each.id for each in facts)]),
    )
    try:
        return visibility.readable_entries(access)
    except NotFound:
        return None


async def _some_readable(
    product: Product, name: str, people: list[uuid.UUID], runs: list[str], rng: random.Random
) -> Readable | None:
    """Make a Readable of someone at a place, from an access context that need not be true."""
    tenant = product.workspace(name, MAIN)
    ids = await product.raw.fetch("SELECT id FROM conversations WHERE tenant_id = $1 ORDER BY id", tenant.tenant_id)
    async with product.harness.app.database.transaction(tenant.tenant_id) as tx:
        conversation = await tx.conversations.get(rng.choice(ids)["id"])
    assert conversation is not None
    own = conversation.user_id if conversation.user_id is not None and rng.random() < 0.9 else None
    project = None
    if rng.random() < 0.6:
        pool = tuple(
            PoolMember(
                rng.choice(runs),
                rng.choice([ConversationKind.ROOM, ConversationKind.SESSION, ConversationKind.DM]),
                rng.random() < 0.5,
                rng.random() < 0.5,
                rng.choice([None, *Role]),
            )
            for _ in range(rng.randint(0, 8))
        )
        slug, id = rng.choice(sorted((await product.projects(tenant)).items()))
        project = ProjectFacts(id, slug, rng.random() < 0.3, rng.choice([None, *Role, Role.READ]), pool)
    access = AccessContext(
        conversation,
        own or rng.choice(people),
        rng.random() < 0.3,
        rng.choice([None, True, True, False]),
        frozenset(rng.sample(people, rng.randint(0, 2))),
        project,
        reads_rooms=rng.random() < 0.7,
        joined_rooms=tuple(
            JoinedRoom(
                rng.choice(runs),
                "here",
                rng.random() < 0.5,
                None if project is None or rng.random() < 0.5 else project.id,
                rng.random() < 0.3,
            )
            for _ in range(rng.randint(0, 4))
        ),
    )
    try:
        if rng.random() < 0.15:
            return visibility.readable_conversation(access)
        readable = visibility.readable(access, rng.sample(people, rng.randint(0, len(people))))
        return readable.without_pool() if rng.random() < 0.15 else readable
    except NotFound:
        return None
