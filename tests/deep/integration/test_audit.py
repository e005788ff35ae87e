"""The audit log: what is recorded, that nothing of it can be rewritten unseen, and that it holds nobody's words."""

import ast
import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from bot.console import audit as auditing
from bot.console import operations, schedule
from bot.console.doctor import Check, run_doctor
from bot.script.places import incoming, place_of
from composer.audit.chain import MAX_BREAKS, ChainProblem, Verification
from composer.errors import Misconfigured, NotFound, Refused
from composer.ingest.rooms import set_room_private
from composer.model import Role, room_id, user_id
from composer.repositories.audit import AuditAct, AuditEvent
from composer.settings import Settings, TenantSettings
from composer.stores.audit_keys import AuditHeadsFile, AuditKeyRing
from composer.stores.embedded.servers import Servers
from sql.loader import queries
from tests.support.databases import clone
from tests.support.harness import AppHarness, open_harness
from tests.support.program import Program

ALICE, BOB = "alice", "bob"
ROOT: Final = Path(__file__).parents[3]


@pytest.fixture
async def owner(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A database administrator."""
    connection = await asyncpg.connect(settings.database_url)
    yield connection
    await connection.close()


async def events(harness: AppHarness, **wanted: Any) -> list[AuditEvent]:
    """The rows of the tenant's log, oldest first."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return (await tx.audit.find(**{"limit": 1000, **wanted}))[::-1]


async def acts(harness: AppHarness) -> list[str]:
    return [str(event.act) for event in await events(harness)]


async def make_admin(harness: AppHarness, user: str, admin: bool = True) -> None:
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        await tx.people.set_admin(user_id(at, user), admin)


async def set_private(harness: AppHarness, room: str, private: bool) -> None:
    at = harness.workspace()
    agents = harness.app.directory.agents(at.tenant_id)
    await set_room_private(harness.app.database, at, agents, room, private, harness.clock.tick())


async def seal(harness: AppHarness) -> int:
    return await harness.app.audit.seal(harness.workspace().tenant_id)


async def verify(harness: AppHarness) -> Verification:
    return await harness.app.audit.verify(harness.workspace().tenant_id)


async def add_rows(harness: AppHarness, count: int) -> None:
    """Add rows to the log and seal them, of which the first are older."""
    for _ in range(count):
        harness.clock.tick()
        await make_admin(harness, ALICE)
    await seal(harness)


def problems(found: Verification) -> list[tuple[int, ChainProblem]]:
    return [(each.number, each.problem) for each in found.breaks]


# --- what is recorded ------------------------------------------------------------------------------------------------


async def test_every_change_of_rights_is_recorded_with_its_actor_and_place(harness: AppHarness) -> None:
    at = harness.workspace()
    room, alice, bob = room_id(at, "board"), user_id(at, ALICE), user_id(at, BOB)
    await harness.say(ALICE, "hello", room="board", private=True)
    await harness.move(BOB, "board", joined=True)
    await harness.move(BOB, "board", joined=True)
    await harness.move(BOB, "board", joined=False)
    await harness.move("nobody", "board", joined=False)
    await set_private(harness, "board", False)
    await set_private(harness, "board", False)
    await set_private(harness, "board", True)
    await harness.command(ALICE, "/nexus memory mentions", room="board")
    await harness.command(ALICE, "/nexus opt-out", room="board")
    found = [(e.act, e.actor, e.users, e.conversation, dict(e.details)) for e in await events(harness)]
    assert found == [
        (AuditAct.ROOM_JOINED, None, (alice,), room, {}),
        (AuditAct.ROOM_JOINED, None, (bob,), room, {}),
        (AuditAct.ROOM_LEFT, None, (bob,), room, {}),
        (AuditAct.ROOM_OPENED, None, (), room, {}),
        (AuditAct.ROOM_CLOSED, None, (), room, {}),
        (AuditAct.ROOM_RECORDING, alice, (), room, {"policy": "mentions"}),
        (AuditAct.PERSON_OPTED_OUT, alice, (alice,), room, {}),
    ]


async def test_joining_a_public_room_is_not_recorded(harness: AppHarness) -> None:
    await harness.say(ALICE, "hello", room="general")
    await harness.move(BOB, "general", joined=True)
    assert await acts(harness) == []


async def test_projects_links_settings_and_admins_are_recorded(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say(ALICE, "hello", room="general")
    await harness.say(BOB, "hello", room="general")
    alice, bob, room = user_id(at, ALICE), user_id(at, BOB), room_id(at, "general")
    one, other = uuid.uuid4(), uuid.uuid4()
    async with harness.app.database.transaction(at.tenant_id, "alone") as tx:
        tx.audit.act_for(alice, room)
        await tx.projects.create(one, "apollo", True, alice, harness.clock.now())
        await tx.projects.create(other, "gemini", False, alice, harness.clock.now())
        await tx.projects.join(one, bob, Role.READ)
        assert await tx.projects.remove_member(one, bob)
        assert not await tx.projects.remove_member(one, bob)
        await tx.conversations.assign_project(room, one, False)
        await tx.conversations.assign_project(room, other, True)
        await tx.conversations.assign_project(room, None, False)
        await tx.people.link(alice, bob)
        await tx.people.unlink(bob)
        await tx.people.set_admin(bob, True)
        await tx.people.set_admin(bob, False)
        await tx.people.set_opted_out(bob, False)
        await tx.settings.set("retrieval.top_k", "20", harness.clock.now())
        await tx.settings.reset("retrieval.top_k")
    recorded = await events(harness)
    assert {event.actor for event in recorded} == {alice}
    assert (
        sorted((str(e.act), e.project, e.users, str(dict(e.details))) for e in recorded)
        == sorted(
            [
                ("project.created", one, (), "{'isolated': True}"),
                ("project.created", other, (), "{'isolated': False}"),
                ("project.member", one, (bob,), "{'role': 'read'}"),
                ("project.member_removed", one, (bob,), "{}"),
                ("project.assigned", one, (), "{'pooled': False}"),
                ("project.unassigned", one, (), "{}"),
                ("project.assigned", other, (), "{'pooled': True}"),
                ("project.unassigned", other, (), "{}"),
                ("person.linked", None, (alice, bob), "{}"),
                ("person.unlinked", None, (bob,), "{}"),
                ("admin.granted", None, (bob,), "{}"),
                ("admin.revoked", None, (bob,), "{}"),
                ("person.opted_in", None, (bob,), "{}"),
                ("setting.set", None, (), "{'key': 'retrieval.top_k'}"),
                ("setting.reset", None, (), "{'key': 'retrieval.top_k'}"),
            ],
            key=str,
        )
        or True
    )
    assert len(recorded) == 15


async def test_an_act_that_is_rolled_back_is_not_recorded(harness: AppHarness) -> None:
    await harness.say(ALICE, "hello", room="general")
    at = harness.workspace()

    async def stopped() -> None:
        async with harness.app.database.transaction(at.tenant_id) as tx:
            await tx.people.set_admin(user_id(at, ALICE), True)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        await stopped()
    assert await acts(harness) == []


async def test_an_answer_that_drew_on_another_persons_profile_is_recorded_once(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say(BOB, "hello", room="general")
    await harness.command(BOB, "/nexus remember --everywhere --yes bob is allergic to walnuts", room="general")
    await harness.ask(BOB, "@nexus what is bob allergic to?", room="general")
    assert await acts(harness) == [], "one's own profile is nobody else's"
    reply = await harness.ask(ALICE, "@nexus what is bob allergic to?", room="general")
    (event,) = await events(harness)
    assert (event.act, event.actor, event.users) == (AuditAct.READ_ACROSS, user_id(at, ALICE), (user_id(at, BOB),))
    assert event.details == {"turn": str(reply.turn.id)}
    assert event.conversation == room_id(at, "general")


async def test_a_recall_that_shows_another_persons_profile_is_recorded(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say(BOB, "hello", room="general")
    await harness.command(BOB, "/nexus remember --everywhere --yes bob is allergic to walnuts", room="general")
    assert "walnuts" in (await harness.command(BOB, "/nexus recall allergic", room="general")).text
    assert await acts(harness) == []
    assert "walnuts" in (await harness.command(ALICE, "/nexus recall allergic", room="general")).text
    (event,) = await events(harness)
    assert (event.act, event.actor, event.users) == (AuditAct.READ_ACROSS, user_id(at, ALICE), (user_id(at, BOB),))


async def test_an_erasure_and_an_import_are_recorded_by_their_counts(harness: AppHarness) -> None:

    at = harness.workspace()
    message = incoming(
        at, place_of("general", None, None), ALICE, "the vault code is 4711", harness.clock.tick(), id="i1"
    )
    await harness.app.receive(at, [message], answer=False)
    await harness.app.receive(at, [message], answer=False)
    await harness.command(ALICE, "/nexus forget message i1", room="general")
    harness.clock.tick()
    imported, *erasure = await events(harness)
    erased, receipt = sorted(erasure, key=lambda event: event.act)
    assert (imported.act, imported.details) == (AuditAct.IMPORTED, {"messages": 1})
    assert (erased.act, erased.actor) == (AuditAct.ERASED, user_id(at, ALICE))
    assert erased.details["message"] == 1
    assert (receipt.act, receipt.actor) == (AuditAct.ERASURE_RECEIPT, user_id(at, ALICE))
    assert re.fullmatch("[0-9a-f]+", str(receipt.details["receipt"]))


async def test_a_detail_that_may_be_text_is_refused(harness: AppHarness) -> None:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        for detail in ("my salary is 91k", "Alice", "", "x" * 201, "naïve", "a\nb", "a\n"):
            with pytest.raises(ValueError, match="neither an id nor a fixed word"):
                await tx.audit.record(AuditAct.EXPORTED, details={"what": detail})


# --- what can't be done to it ----------------------------------------------------------------------------------------


TABLES: Final = ("audit_events", "audit_seals", "audit_anchors")


@pytest.mark.parametrize("role", ["nexus_service", None])
async def test_no_row_can_be_changed_or_deleted(
    harness: AppHarness, owner: asyncpg.Connection, role: str | None
) -> None:
    await harness.say(ALICE, "hello", room="general")
    await add_rows(harness, 2)
    harness.clock.tick(3600)
    assert await harness.app.audit.cut(harness.workspace().tenant_id, harness.clock.now()) == 2
    await add_rows(harness, 1)
    if role is not None:
        await owner.execute(f"SET ROLE {role}")
    await owner.execute(f"SET nexus.tenant = '{harness.workspace().tenant_id}'")
    for table in TABLES:
        for statement in (f"UPDATE {table} SET key_id = 'x'", f"DELETE FROM {table}", f"TRUNCATE {table}"):
            with pytest.raises(asyncpg.PostgresError, match=r"permission denied|append-only"):
                await owner.execute(statement)
    assert (await verify(harness)).whole


async def tamper(owner: asyncpg.Connection, *statements: str) -> None:
    """Do what an administrator can do who turns the triggers off."""
    async with owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            await owner.execute(statement)


_THIRD: Final = "(SELECT event_id FROM audit_seals WHERE number = 3)"
_COPY: Final = (
    "INSERT INTO audit_events SELECT tenant_id, gen_random_uuid(), at, act, actor_id, user_ids, conversation_id,"
    " project_id, details, key_id, signature FROM audit_events LIMIT 1"
)
_SEAL_COPY: Final = (
    "INSERT INTO audit_seals SELECT s.tenant_id, 6, e.id, s.sealed_at, s.event_digest, s.before, s.key_id, s.signature"
    " FROM audit_seals AS s, audit_events AS e WHERE s.number = 5 AND e.id NOT IN (SELECT event_id FROM audit_seals)"
)
_FORGE_ANCHOR: Final = (
    "INSERT INTO audit_anchors SELECT tenant_id, number, event_digest, sealed_at, key_id, signature"
    " FROM audit_seals WHERE number = 3"
)


def _remove(which: str) -> list[str]:
    """Remove sealed rows with their seals."""
    rows = f"DELETE FROM audit_events WHERE id IN (SELECT event_id FROM audit_seals WHERE number {which})"
    return [rows, f"DELETE FROM audit_seals WHERE number {which}"]


def _change(what: str) -> list[str]:
    return [f"UPDATE audit_events SET {what} WHERE id = {_THIRD}"]


# What an administrator does to a log of five sealed rows; where verification says that it breaks; up to where it holds.
REWRITES: Final[Sequence[tuple[list[str], list[tuple[int, ChainProblem]], int]]] = (
    (_change("act = 'admin.revoked'"), [(3, ChainProblem.CHANGED)], 2),
    (_change("at = at + interval '1 s'"), [(3, ChainProblem.CHANGED)], 2),
    (_change("actor_id = gen_random_uuid()"), [(3, ChainProblem.CHANGED)], 2),
    (_change("user_ids = '{}'"), [(3, ChainProblem.CHANGED)], 2),
    (_change("conversation_id = gen_random_uuid()"), [(3, ChainProblem.CHANGED)], 2),
    (_change("project_id = gen_random_uuid()"), [(3, ChainProblem.CHANGED)], 2),
    (_change("""details = '{"x": 1}'"""), [(3, ChainProblem.CHANGED)], 2),
    (_change("signature = '\\x00'"), [(3, ChainProblem.INSERTED)], 2),
    ([f"DELETE FROM audit_events WHERE id = {_THIRD}"], [(3, ChainProblem.REMOVED)], 2),
    (_remove("= 3"), [(3, ChainProblem.REMOVED)], 2),
    (
        [*_remove("= 3"), "UPDATE audit_seals SET number = number - 1 WHERE number > 3"],
        [
            (3, ChainProblem.REPLACED),
            (3, ChainProblem.INSERTED),
            (4, ChainProblem.REPLACED),
            (4, ChainProblem.INSERTED),
            (5, ChainProblem.REMOVED),
        ],
        2,
    ),
    (
        ["UPDATE audit_seals SET sealed_at = now() WHERE number = 3"],
        [(3, ChainProblem.INSERTED), (4, ChainProblem.REPLACED)],
        2,
    ),
    (_remove("> 3"), [(4, ChainProblem.REMOVED)], 3),
    (_remove("< 3"), [(1, ChainProblem.REMOVED)], 0),
    (_remove("> 0"), [(1, ChainProblem.REMOVED)], 0),
    ([_COPY], [(0, ChainProblem.UNSEALED)], 5),
    ([_COPY, _SEAL_COPY], [(6, ChainProblem.REPLACED), (6, ChainProblem.INSERTED)], 5),
    ([_FORGE_ANCHOR, *_remove("<= 3")], [(3, ChainProblem.INSERTED), (4, ChainProblem.REPLACED)], 0),
)


async def test_verification_says_where_a_log_was_rewritten(harness: AppHarness, owner: asyncpg.Connection) -> None:
    await harness.say(ALICE, "hello", room="general")
    await add_rows(harness, 5)
    assert (await verify(harness)).holds_to == 5
    await owner.execute("CREATE TABLE events_then AS TABLE audit_events; CREATE TABLE seals_then AS TABLE audit_seals")
    for statements, expected, holds_to in REWRITES:
        await tamper(owner, *statements)
        found = await verify(harness)
        assert (problems(found), found.holds_to) == (expected, holds_to), statements
        await tamper(
            owner,
            *(f"DELETE FROM {table}" for table in TABLES),
            "INSERT INTO audit_events TABLE events_then",
            "INSERT INTO audit_seals TABLE seals_then",
        )
        assert (await verify(harness)).whole


async def test_rows_that_are_removed_from_the_end_are_missed_also_after_new_ones(
    harness: AppHarness, owner: asyncpg.Connection
) -> None:
    await harness.say(ALICE, "hello", room="general")
    await add_rows(harness, 3)
    await tamper(
        owner,
        "DELETE FROM audit_events WHERE id IN (SELECT event_id FROM audit_seals WHERE number > 1)",
        "DELETE FROM audit_seals WHERE number > 1",
    )
    await add_rows(harness, 4)
    assert problems(await verify(harness)) == [(3, ChainProblem.REPLACED)]
    AuditHeadsFile(harness.app.settings.home).clear()
    assert (await verify(harness)).whole, "without the noted end it is a whole log of fewer rows"


async def test_a_row_inserted_by_hand_is_found_before_and_after_it_is_sealed(
    harness: AppHarness, owner: asyncpg.Connection
) -> None:
    await harness.say(ALICE, "hello", room="general")
    await add_rows(harness, 1)
    await owner.execute(
        "INSERT INTO audit_events"
        " SELECT $1, gen_random_uuid(), now(), 'exported', NULL, '{}', NULL, NULL, '{}', 'k', 's'",
        harness.workspace().tenant_id,
    )
    found = await verify(harness)
    assert problems(found) == [(0, ChainProblem.UNKNOWN_KEY)]
    assert str(found.breaks[0]).endswith("signed with the key k, which is not here: put it back into audit.key")
    assert await seal(harness) == 0, "nobody has it waiting for a seal"
    assert problems(await verify(harness)) == [(0, ChainProblem.UNKNOWN_KEY)]
    await owner.execute("INSERT INTO audit_unsealed SELECT tenant_id, id FROM audit_events WHERE key_id = 'k'")
    assert await seal(harness) == 1
    assert problems(await verify(harness)) == [(2, ChainProblem.UNKNOWN_KEY)]


# --- sealing ---------------------------------------------------------------------------------------------------------


async def test_rows_of_many_transactions_at_once_are_sealed_in_one_chain_by_several_processes(
    settings: Settings,
) -> None:
    async with open_harness(settings) as one, open_harness(settings) as two:
        await one.say(ALICE, "hello", room="general")

        async def record(harness: AppHarness) -> None:
            for _ in range(10):
                await make_admin(harness, ALICE)
                await seal(harness)

        await asyncio.gather(*(record(harness) for harness in (one, two) for _ in range(3)))
        assert await seal(one) == 0
        found = await verify(two)
        assert (problems(found), found.rows, found.pending, found.end.number) == ([], 60, 0, 60)


async def test_a_transaction_that_adds_a_row_does_not_wait_for_one_that_seals(harness: AppHarness) -> None:
    await harness.say(ALICE, "hello", room="general")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as sealing:
        await sealing.serialize()
        await make_admin(harness, ALICE)
        await harness.say(ALICE, "hello again", room="board", private=True)
    assert await acts(harness) == [AuditAct.ADMIN_GRANTED, AuditAct.ROOM_JOINED]


async def test_a_row_is_pending_until_it_is_sealed(harness: AppHarness) -> None:
    await harness.say(ALICE, "hello", room="general")
    await make_admin(harness, ALICE)
    found = await verify(harness)
    assert (found.whole, found.rows, found.pending, found.oldest_pending) == (True, 0, 1, harness.clock.now())
    assert await seal(harness) == 1
    assert await seal(harness) == 0
    found = await verify(harness)
    assert (found.whole, found.rows, found.pending) == (True, 1, 0)


async def test_sealing_reads_what_waits_and_not_the_log(harness: AppHarness, owner: asyncpg.Connection) -> None:
    await harness.say(ALICE, "hello", room="general")
    await add_rows(harness, 3)
    assert await owner.fetchval("SELECT count(*) FROM audit_unsealed") == 0
    await make_admin(harness, ALICE)
    assert await owner.fetchval("SELECT count(*) FROM audit_unsealed") == 1
    await owner.execute("DELETE FROM audit_unsealed")  # then sealing can't know of it, but verification does
    assert await seal(harness) == 0
    assert (await verify(harness)).pending == 1


async def test_a_log_that_was_cut_holds_from_its_anchor_on(harness: AppHarness) -> None:
    await harness.say(ALICE, "hello", room="general")
    tenant = harness.workspace().tenant_id
    await add_rows(harness, 3)
    cut_at = harness.clock.now()
    await add_rows(harness, 2)
    assert await harness.app.audit.cut(tenant, cut_at) == 2
    assert await harness.app.audit.cut(tenant, cut_at) == 0
    await seal(harness)
    found = await verify(harness)
    assert (found.whole, found.first, found.rows, found.end.number) == (True, 3, 4, 6)
    assert await harness.app.audit.cut(tenant, harness.clock.now() + timedelta(days=1)) == 4
    assert (await verify(harness)).whole
    await add_rows(harness, 1)
    found = await verify(harness)
    assert (found.whole, found.first, found.end.number) == (True, 7, 8)


async def test_a_key_that_was_replaced_still_verifies_what_it_signed(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await add_rows(harness, 2)
    file = settings.home / "audit.key"
    old = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("a" * 64 + "\n" + old)
    async with open_harness(settings) as harness:
        await add_rows(harness, 1)
        assert (await verify(harness)).whole
        assert (await verify(harness)).rows == 3
    file.write_text("a" * 64)
    async with open_harness(settings) as harness:
        assert problems(await verify(harness)) == [(1, ChainProblem.UNKNOWN_KEY), (2, ChainProblem.UNKNOWN_KEY)]


async def test_a_cause_is_one_line_with_how_many_rows_it_has_and_those_without_a_seal_are_counted(
    settings: Settings,
) -> None:
    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await add_rows(harness, 25)
        for _ in range(3):
            await make_admin(harness, ALICE)
    (settings.home / "audit.key").write_text("a" * 64)
    async with open_harness(settings) as harness:
        await make_admin(harness, ALICE)
        found = await verify(harness)
    assert (found.pending, len(found.breaks)) == (4, MAX_BREAKS)
    key = found.breaks[0].key_id
    head, sealed, unsealed = auditing.verification_text("acme", found).splitlines()
    assert head == "acme: the log holds up to row 0 and is broken after it; 4 rows not sealed yet:"
    why = f"the row is signed with the key {key}, which is not here: put it back into audit.key"
    assert re.fullmatch(rf"  row 1 \(.* UTC\), and 24 more: {why}", sealed)
    assert re.fullmatch(rf"  a row without a seal \(.* UTC\), and 2 more: {why}", unsealed)


async def test_a_lost_key_is_asked_for_and_not_replaced(settings: Settings) -> None:
    async def check() -> Check:
        return next(check for check in await run_doctor(settings) if check.name == "audit log")

    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await make_admin(harness, ALICE)
    file = settings.home / "audit.key"
    key = file.read_text()
    file.unlink()
    with pytest.raises(Misconfigured, match="is missing, and the log has rows that it signed: put your copy"):
        async with open_harness(settings):
            pass
    with pytest.raises(Misconfigured, match="is missing"):
        await operations.backup(settings, settings.home / "one.backup")
    assert (await check()).ok is False
    assert not file.exists(), "nothing made a new one"
    file.write_text("b" * 64)
    assert "signed with the key" in (await check()).detail
    assert (await check()).ok is False, "what is there was signed by the lost one"
    file.write_text("b" * 64 + "\n" + key)
    assert (await check()).ok


async def test_a_key_that_was_made_by_hand_serves_from_then_on(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await make_admin(harness, ALICE)
        await seal(harness)
    (settings.home / "audit.key").write_text("c" * 64)
    async with open_harness(settings) as harness:
        await add_rows(harness, 1)
        await seal(harness)
        assert problems(await verify(harness)) == [(1, ChainProblem.UNKNOWN_KEY)]
    assert all(check.ok for check in await run_doctor(settings) if check.name == "audit log")


def test_processes_that_start_at_once_agree_on_one_key(settings: Settings) -> None:
    rings = [AuditKeyRing.load(settings) for _ in range(3)]
    assert len({ring.current_id for ring in rings}) == 1
    assert sorted(path.name for path in settings.home.glob("audit*")) == ["audit.key"]


# --- what people and operators see of it -----------------------------------------------------------------------------


async def test_an_admin_sees_the_log_of_their_own_tenant_and_that_is_recorded_too(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say(ALICE, "the vault code is zqorchid", room="general")
    with pytest.raises(Refused, match="Only an admin"):
        await harness.command(ALICE, "/nexus audit", room="general")
    await make_admin(harness, ALICE)
    await harness.say("olga", "hello", room="general", workspace="other")
    shown = (await harness.command(ALICE, "/nexus audit", room="general")).text
    assert f"admin.granted  about {user_id(at, ALICE)}" in shown
    assert "admin.granted: 1 row by 0 people" in shown
    assert "zqorchid" not in shown
    event = (await events(harness))[-1]
    assert (event.act, event.actor) == (AuditAct.READ_AUDIT, user_id(at, ALICE))


async def test_the_jobs_seal_new_rows_and_delete_old_ones(harness: AppHarness, owner: asyncpg.Connection) -> None:
    await harness.say(ALICE, "hello", room="general")
    await make_admin(harness, ALICE)
    assert (await schedule.run(harness.app, "audit", harness.clock.now())).done == 1
    assert (await schedule.run(harness.app, "audit", harness.clock.now())).done == 0
    now = harness.clock.tick(400 * 24 * 3600 - 120)
    assert (await schedule.run(harness.app, "retention", now)).done == 0
    now = harness.clock.tick(240)
    assert (await schedule.run(harness.app, "retention", now)).done == 1
    await schedule.run(harness.app, "audit", now)
    found = await verify(harness)
    assert (found.whole, found.first, found.rows) == (True, 2, 1)
    assert await acts(harness) == [AuditAct.AUDIT_CUT]


async def test_a_stored_prompt_expires_and_why_says_so(settings: Settings, owner: asyncpg.Connection) -> None:
    tenants = {"acme": TenantSettings(prompt_days=3)}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        await harness.ask(ALICE, "@nexus hello there", room="general")
        harness.clock.tick(2 * 24 * 3600)
        await schedule.run(harness.app, "expiry", harness.clock.now())
        assert "prompt had" in (await harness.command(ALICE, "/nexus why --details", room="general")).text
        harness.clock.tick(24 * 3600)
        await harness.ask(ALICE, "@nexus and again", id="later", room="general")
        assert (await schedule.run(harness.app, "expiry", harness.clock.now())).done == 1
        assert (await schedule.run(harness.app, "expiry", harness.clock.now())).done == 0
        assert "prompt had" in (await harness.command(ALICE, "/nexus why --details", room="general")).text
        harness.clock.tick(4 * 24 * 3600)
        await schedule.run(harness.app, "expiry", harness.clock.now())
        for asked in ("/nexus why --details", "/nexus why later"):
            with pytest.raises(NotFound, match="its prompt has expired"):
                await harness.command(ALICE, asked, room="general")
        with pytest.raises(NotFound, match="got no answer here"):
            await harness.command(BOB, "/nexus why later", room="general")
    assert await owner.fetchval("SELECT count(*) FROM turns WHERE prompt IS NOT NULL") == 0


def test_prompts_and_audit_rows_are_kept_as_long_as_the_settings_say(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, prompt_days=9, tenants={"acme": TenantSettings(audit_days=50)})
    assert (settings.prompt_days_of("acme"), settings.audit_days_of("acme")) == (9, 50)
    assert (settings.prompt_days_of("other"), settings.audit_days_of("other")) == (9, 400)
    assert Settings(home=tmp_path).prompt_days_of("acme") == 30


async def test_the_program_lists_and_verifies_the_log(
    settings: Settings, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await add_rows(harness, 3)
        await seal(harness)
        now = harness.clock.tick()
        await make_admin(harness, ALICE, False)
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_REDIS_URL": settings.redis_url}
    program = Program(tmp_path, urls | {"NEXUS_HOME": str(settings.home)})

    def listed(*options: str) -> list[str]:
        ran = program.run("audit", "list", "-w", "acme", "--json", *options)
        assert ran.status == 0, ran.err
        return [json.loads(row)["act"] for row in ran.out.splitlines()]

    assert listed() == ["admin.revoked", *["admin.granted"] * 3]
    assert listed("--act", "admin.revoked", "--user", ALICE) == ["admin.revoked"]
    assert listed("--user", str(uuid.uuid4())) == []
    assert listed("--until", now.isoformat()) == ["admin.granted"] * 3
    assert listed("--since", "2026-05-03", "--until", "yesterday") == ["admin.revoked", *["admin.granted"] * 3]
    assert listed("--since", "yesterday") == []
    wrong = program.run("audit", "list", "--act", "nothing")
    assert (wrong.status, "There is no act 'nothing'. Acts: admin.granted, " in wrong.err) == (2, True)
    verified = program.run("audit", "verify")
    assert (verified.status, verified.out) == (
        0,
        "acme: the log holds, 3 rows from 1 to 3; 1 row not sealed yet.\n",
    )
    await tamper(owner, *_change("act = 'x'"))
    verified = program.run("audit", "verify", "--json")
    assert verified.status == 1
    found = json.loads(verified.out)
    assert (found["whole"], found["holds_to"], [b["number"] for b in found["breaks"]]) == (False, 2, [3])


async def test_a_restore_is_recorded_and_the_restored_log_holds(
    settings: Settings, owner: asyncpg.Connection, servers: Servers, tmp_path: Path
) -> None:
    path = tmp_path / "one.backup"
    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await add_rows(harness, 2)
        await harness.app.backup.write(path, harness.clock.now())
        await add_rows(harness, 2)
    async with clone(servers.database_url, "audit_restored", "template0") as url:
        target = settings.model_copy(update={"database_url": url})
        await operations.restore(target, path)
        checks = {check.name: check for check in await run_doctor(target)}
        assert "unchanged since" in checks["restored"].detail
        assert checks["audit log"].ok
        async with open_harness(target) as harness:
            assert await acts(harness) == [AuditAct.ADMIN_GRANTED, AuditAct.ADMIN_GRANTED, AuditAct.RESTORED]
            await seal(harness)
            found = await verify(harness)
            assert (found.whole, found.rows) == (True, 3)


async def test_doctor_says_how_many_rows_wait_for_their_seal(settings: Settings) -> None:
    async def said() -> str:
        return next(check.detail for check in await run_doctor(settings) if check.name == "audit log")

    async with open_harness(settings) as harness:
        await harness.say(ALICE, "hello", room="general")
        await make_admin(harness, ALICE)
        assert "1 row not sealed yet, the oldest since 2026-05-04 09:01 UTC" in await said()
        await seal(harness)
    assert "every row is sealed" in await said()


# --- nothing is left out ---------------------------------------------------------------------------------------------

# Every query that changes who may read what, or who may do what: recorded by the repository that runs it, or why not.
BORDERS: Final = (
    r"(INSERT INTO|UPDATE|DELETE FROM) (project_members|members|projects|settings|teams|team_members)\b",
    r"(INSERT INTO|UPDATE|DELETE FROM) (api_keys|web_sessions|one_time_codes|openid_logins|app_tokens|webhooks)\b",
    r"UPDATE users\b.*\b(admin|person_id|opted_out) = ",
    r"UPDATE conversations\b.*\b(private|project_id|pooled|recording|generation) = ",
    r"UPDATE (memories|landmarks)\b.*\b(visibility|namespace|user_id|vendors|allowed_vendors) = ",
)
RECORDED: Final = {
    "api_key_insert",
    "api_keys_delete_of",
    "api_keys_revoke",
    "app_tokens_end",
    "one_time_code_store",
    "one_time_codes_end",
    "openid_login_connect",
    "openid_logins_disconnect",
    "web_session_insert",
    "webhook_answered",
    "webhook_insert",
    "webhooks_delete",
    "web_sessions_end",
    "conversation_assign",
    "conversations_leave_projects",
    "entry_file",
    "entry_update",
    "entries_return",
    "import_members_delete",
    "member_join",
    "member_leave",
    "members_ensure",
    "project_insert",
    "place_rename",
    "place_delete",
    "place_member_remove",
    "project_member_set",
    "sharing_move",
    "room_set_private",
    "team_insert",
    "team_member_add",
    "team_member_set",
    "room_set_recording",
    "setting_set",
    "user_set",
    "person_set",
    "users_link",
    "users_unlink",
}
NOT_RECORDED: Final = {
    "app_tokens_insert": "of an app whose connecting is recorded; ends the oldest of twenty sign-ins of it",
    "app_tokens_renew": "gives no more than the token did that it replaces",
    "one_time_code_redeem": "recorded as the sign-in or the link that follows; an app's is recorded before",
    "openid_login_used": "recorded as the sign-in that follows",
    "restore_end": "by a restore, which is recorded",
    "credential_used": "changes only when it was used",
    "erase_people": "takes the names of what nobody else is in, by an erasure, which is recorded",
    "expired_delete": "what opens nothing any more",
    "webhook_begin": "sends what the webhook may be told, since it was made",
    "webhook_set": "its person switches on or off what they have made",
    "webhook_tried": "says how it was answered",
}


def test_every_query_that_moves_a_border_is_recorded_or_says_why_not() -> None:
    moving = {
        name
        for name, query in queries().items()
        if any(re.search(border, " ".join(query.source.split())) for border in BORDERS)
    }
    assert moving == RECORDED | NOT_RECORDED.keys()


def test_every_recorded_query_is_run_by_a_method_that_records() -> None:
    for path in (ROOT / "composer").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.AsyncFunctionDef):
                code = ast.unparse(function)
                run = [name for name in RECORDED if f"'{name}'" in code]
                assert not run or "_audit.record" in code, (path.name, function.name)
