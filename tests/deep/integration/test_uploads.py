"""Imports of files that admins upload: what an honest one brings, and what a forged one does not get."""

import asyncio
import io
import json
import os
import tempfile
import uuid
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from bot.console.conversations import question
from bot.importers import export_loading, uploads
from bot.importers.uploads import MAX_LISTED_CHANNELS, Uploads
from composer.errors import AdminNeeded, BadInput, Conflict, NotFound
from composer.ingest.imports import FoundRun
from composer.ingest.rooms import set_room_private
from composer.ingest.uploads import KEPT_FOR, UploadedFile, UploadFolder, UploadState, remove_old_uploads
from composer.model import ConversationKind, Incoming, Place, Trust, Workspace, room_id, user_id
from composer.people.administration import set_disabled
from composer.repositories.audit import AuditAct
from composer.repositories.imports import ImportRun
from composer.repositories.people import NAMELESS
from composer.settings import Settings, TenantSettings
from composer.turn.explanation import explain_stored
from tests.deep.integration.test_discord_import import thread, town
from tests.support.api import person
from tests.support.exports import (
    ALICE,
    BOB,
    BOT,
    CAROL,
    GENERAL,
    GUILD,
    LEADS,
    TEAM,
    TOWN,
    SlackZip,
    slack_said,
)
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

FORGED: Final = "zqforged"
DAY: Final = "general/2026-05-04"
HONEST: Final = {
    DAY: [
        slack_said("1777885200.000100", ALICE, "we launch on Friday"),
        slack_said("1777885320.000100", BOB, "at noon", thread_ts="1777885200.000100"),
    ],
    "leads/2026-05-04": [slack_said("1777885200.000100", ALICE, "carol gets a raise")],
    "DAGENT/2026-05-04": [slack_said("1777885200.000100", ALICE, "my salary is 91k")],
    "DHUMANS/2026-05-04": [slack_said("1777885200.000100", BOB, "between you and me")],
}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    tenants = {
        "acme": TenantSettings(workspaces=("acme", TEAM, GUILD)),
        "globex": TenantSettings(workspaces=("T0GLOBEX",)),
    }
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        harness.clock.set(datetime(2026, 6, 1, 9, 0, tzinfo=UTC))
        yield harness


@pytest.fixture
async def kept(harness: AppHarness) -> AsyncIterator[Uploads]:
    found = Uploads(harness.app)
    yield found
    await found.close()


def slack(harness: AppHarness) -> Workspace:
    return harness.app.directory.workspace("slack", TEAM)


async def admin_of(harness: AppHarness, name: str = "root") -> uuid.UUID:
    found = await person(harness, name)
    async with harness.app.database.transaction(slack(harness).tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return found.id


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 1_000):
        yield content[start : start + 1_000]


async def settled(harness: AppHarness, kept: Uploads, admin: uuid.UUID) -> UploadedFile:
    """The upload, once nobody works on it."""

    await until(lambda: not kept.at_work)
    found = await kept.of(slack(harness).tenant_id, admin)
    assert found is not None
    return found


async def sent(
    harness: AppHarness, kept: Uploads, admin: uuid.UUID, content: bytes, name: str = "acme.zip"
) -> UploadedFile:
    await kept.receive(slack(harness).tenant_id, admin, name, pieces(content))
    return await settled(harness, kept, admin)


async def imported(
    harness: AppHarness, kept: Uploads, admin: uuid.UUID, content: bytes, channels: Sequence[str] | None = None
) -> UploadedFile:
    found = await sent(harness, kept, admin, content)
    assert found.state is UploadState.READY, found.error
    await kept.run(slack(harness).tenant_id, admin, found.id, channels)
    return await settled(harness, kept, admin)


async def messages(harness: AppHarness) -> list[tuple[str, str]]:
    """All messages: where (the room's id on the platform, also of a thread) and what."""
    query = (
        "SELECT coalesce(r.name, c.name) AS name, m.text FROM messages AS m"
        " JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id"
        " LEFT JOIN conversations AS r ON r.tenant_id = m.tenant_id AND r.id = c.room_id ORDER BY m.at, m.seq"
    )
    return [(each["name"], each["text"]) for each in await rows_of(harness, query)]


async def rows_of(harness: AppHarness, query: str) -> list[Any]:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def acts_of(harness: AppHarness) -> list[tuple[str, uuid.UUID | None]]:
    async with harness.app.database.transaction(slack(harness).tenant_id, "read") as tx:
        return [(str(each.act), each.actor) for each in await tx.audit.find(limit=50)]


def export(days: Any = None, **lists: Any) -> bytes:
    """The zip of an export of Slack, with other lists than usual."""
    made = SlackZip(HONEST if days is None else days)
    for name, rows in lists.items():
        setattr(made, name, rows)
    with tempfile.TemporaryDirectory() as folder:
        return made.write(Path(folder) / "export.zip").read_bytes()


async def make_private(harness: AppHarness, room: str, *members: str) -> None:
    """A private room that Nexus knows, with something said in it."""
    here, app = slack(harness), harness.app
    place = Place(ConversationKind.ROOM, room, private=True, title="leads")
    for number, user in enumerate(members):
        at = harness.clock.tick()
        said = Incoming("slack", here.name, place, user, user.title(), f"{at.timestamp():.6f}", f"secret {number}", at)
        await app.receive(here, [said])
    await app.turns.settle()


async def test_an_honest_export_brings_its_public_channels_alone(harness: AppHarness, kept: Uploads) -> None:
    root = await admin_of(harness)
    found = await sent(harness, kept, root, export())
    assert [(each.id, each.title, each.messages, each.people) for each in found.channels] == [
        (GENERAL, "general", 2, 2)
    ]
    assert (found.private, found.unknown, found.messages) == (1, 0, 5)
    assert "leads" not in str(found)
    assert await messages(harness) == [], "nothing is stored before it is run"
    await kept.run(slack(harness).tenant_id, root, found.id, None)
    done = await settled(harness, kept, root)
    assert (done.state, done.new, done.known) == (UploadState.DONE, 2, 0)
    assert await messages(harness) == [(GENERAL, "we launch on Friday"), (GENERAL, "at noon")]
    assert not UploadFolder(harness.app.settings.home, slack(harness).tenant_id).file.exists()
    acts = await acts_of(harness)
    assert {(AuditAct.IMPORT_UPLOADED, root), (AuditAct.IMPORT_BEGUN, root), (AuditAct.IMPORTED, root)} <= set(acts)


async def test_running_it_again_stores_nothing_twice_and_undoing_leaves_nothing(
    harness: AppHarness, kept: Uploads
) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    await imported(harness, kept, root, export())
    again = await imported(harness, kept, root, export())
    assert (again.new, again.known) == (0, 2)
    [first] = [run for run in await kept.runs(tenant, root) if run.messages]
    await kept.undo(tenant, root, first.id)
    await settled(harness, kept, root)
    assert await messages(harness) == []
    undone: list[FoundRun] = await kept.runs(tenant, root)
    assert next(run for run in undone if run.id == first.id).undone_at is not None
    assert (AuditAct.IMPORT_UNDONE, root) in await acts_of(harness)
    assert (await imported(harness, kept, root, export())).new == 2, "it may be imported again"


async def test_only_an_admin_may_and_sees_what_is_theirs(harness: AppHarness, kept: Uploads) -> None:
    root, other, tenant = await admin_of(harness), await admin_of(harness, "other"), slack(harness).tenant_id
    nobody = (await person(harness, "alice")).id
    for act in (
        kept.of(tenant, nobody),
        kept.receive(tenant, nobody, "x.zip", pieces(b"x")),
        kept.run(tenant, nobody, uuid.uuid4(), None),
        kept.discard(tenant, nobody, uuid.uuid4()),
        kept.runs(tenant, nobody),
        kept.undo(tenant, nobody, uuid.uuid4()),
    ):
        with pytest.raises(AdminNeeded):
            await act
    found = await sent(harness, kept, root, export())
    seen = await kept.of(tenant, other)
    assert seen is not None
    assert (seen.id, seen.channels, seen.name) == (found.id, (), "")
    with pytest.raises(NotFound):
        await kept.run(tenant, other, found.id, None)
    with pytest.raises(Conflict):
        await kept.receive(tenant, other, "x.zip", pieces(b"x"))
    await kept.discard(tenant, other, found.id)
    assert await kept.of(tenant, root) is None
    await imported(harness, kept, root, export())
    assert await kept.of(tenant, other) is None, "it is done: the next one may send a file"
    assert (await sent(harness, kept, other, export())).by == other


async def test_a_forged_list_of_members_lets_nobody_into_a_private_room(harness: AppHarness, kept: Uploads) -> None:
    root, here = await admin_of(harness), slack(harness)
    await make_private(harness, LEADS, ALICE, CAROL)
    forged = [{"id": LEADS, "name": "leads", "members": ["UROOT", BOB, BOT], "creator": "UROOT"}]
    days = {"leads/2026-05-04": [slack_said("1777885200.000100", "UROOT", FORGED)], DAY: HONEST[DAY]}
    general = SlackZip().channels
    for lists in ({"groups": forged}, {"channels": [*general, *forged], "groups": []}):
        done = await imported(harness, kept, root, export(days, **lists))
        assert (done.state, done.new + done.known) == (UploadState.DONE, 2)
    members = [each["user_id"] for each in await rows_of(harness, "SELECT user_id FROM members")]
    assert sorted(members) == sorted(user_id(here, each) for each in (ALICE, CAROL))
    assert FORGED not in str(await messages(harness))


async def test_a_private_room_gains_no_message_by_an_upload_that_calls_it_public(
    harness: AppHarness, kept: Uploads
) -> None:
    root, here = await admin_of(harness), slack(harness)
    await make_private(harness, GENERAL, ALICE)
    before = await messages(harness)
    found = await sent(harness, kept, root, export())
    assert (found.state, found.error, found.channels) == (UploadState.FAILED, uploads.NOTHING, ())
    assert await messages(harness) == before
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        [state] = (await tx.conversations.room_states([room_id(here, GENERAL)])).values()
    assert state.private


async def test_a_room_that_becomes_private_before_the_run_gains_nothing(harness: AppHarness, kept: Uploads) -> None:
    root, here = await admin_of(harness), slack(harness)
    days = {**HONEST, "other/2026-05-04": [slack_said("1777885200.000100", ALICE, "elsewhere")]}
    channels = [{"id": GENERAL, "name": "general"}, {"id": "COTHER", "name": "other"}]
    found = await sent(harness, kept, root, export(days, channels=channels))
    assert {each.id for each in found.channels} == {GENERAL, "COTHER"}
    await make_private(harness, GENERAL, ALICE)
    await kept.run(here.tenant_id, root, found.id, None)
    done = await settled(harness, kept, root)
    assert (done.state, done.new) == (UploadState.DONE, 1)
    assert "we launch on Friday" not in str(await messages(harness))


async def test_what_is_stored_says_no_even_where_the_importer_would_not(harness: AppHarness) -> None:
    """The last gate: within the transaction that stores the messages, with their room locked."""
    root, here = await admin_of(harness), slack(harness)
    await make_private(harness, LEADS, ALICE)
    run, at = ImportRun(uuid.uuid4(), "x.zip", root), harness.clock.tick()

    def said(place: Place, id: str) -> Incoming:
        return Incoming("slack", here.name, place, "UROOT", "Root", id, FORGED, at)

    room = Place(ConversationKind.ROOM, LEADS)
    places = [room, Place(ConversationKind.THREAD, LEADS, thread="t"), Place(ConversationKind.DM, "nexus")]
    places += [Place(ConversationKind.ROOM, LEADS, private=True), Place(ConversationKind.ROOM, "CNEW")]
    for number, place in enumerate(places):
        received = await harness.app.receive(here, [said(place, str(number))], answer=False, run=run)
        assert received.new == (), place
    assert FORGED not in str(await messages(harness))
    members = await rows_of(harness, "SELECT user_id FROM members")
    assert user_id(here, "UROOT") not in [each["user_id"] for each in members]


async def test_whoever_is_said_to_have_written_becomes_no_member_and_no_admin(
    harness: AppHarness, kept: Uploads
) -> None:
    """Who writes first in a room is its admin: of one that becomes private later, an admin may let others read it."""
    root, here = await admin_of(harness), slack(harness)
    await imported(harness, kept, root, export({DAY: [slack_said("1777885200.000100", "UROOT", FORGED)]}))
    assert FORGED in str(await messages(harness))
    assert await rows_of(harness, "SELECT user_id FROM members") == []
    await set_room_private(harness.app.database, here, (), GENERAL, True, harness.clock.tick())
    assert await rows_of(harness, "SELECT user_id FROM members") == []


async def test_forged_dms_and_group_dms_are_left_out(harness: AppHarness, kept: Uploads) -> None:
    root = await admin_of(harness)
    days = {
        **HONEST,
        "DFAKE/2026-05-04": [slack_said("1777885200.000100", ALICE, FORGED)],
        "mpdm/2026-05-04": [slack_said("1777885200.000200", ALICE, FORGED)],
    }
    dms = [{"id": "DFAKE", "members": [ALICE, BOT]}]
    mpims = [{"id": "GMPDM", "name": "mpdm", "members": [ALICE, BOT, BOB]}]
    users = SlackZip().users
    users[-1]["profile"]["api_app_id"] = "A0NEXUS"
    done = await imported(harness, kept, root, export(days, dms=dms, mpims=mpims, users=users))
    assert done.new == 2
    assert FORGED not in str(await messages(harness))


async def test_a_file_of_another_workspace_is_refused_whosever_it_is(harness: AppHarness, kept: Uploads) -> None:
    root = await admin_of(harness)
    for team in ("T0GLOBEX", "T0NOBODY"):
        users = [{**each, "team_id": team} for each in SlackZip().users]
        found = await sent(harness, kept, root, export(users=users))
        assert (found.state, found.channels) == (UploadState.FAILED, ())
        assert found.error == uploads.NOT_YOURS.format(name=team), "it does not say whether somebody else has it"
    assert await messages(harness) == []
    several = io.BytesIO()
    with zipfile.ZipFile(several, "w") as file:
        for team, folder in ((TEAM, "one/"), ("T0GLOBEX", "two/")):
            users = [{**each, "team_id": team} for each in SlackZip().users]
            for name, content in (
                ("channels", SlackZip().channels),
                ("users", users),
                (DAY, [slack_said("1777885200.000100", ALICE, FORGED)]),
            ):
                file.writestr(f"{folder}{name}.json", json.dumps(content))
    assert (await sent(harness, kept, root, several.getvalue())).error == uploads.NOT_YOURS.format(name="T0GLOBEX")


async def test_messages_that_are_still_to_come_are_left_out(harness: AppHarness, kept: Uploads) -> None:
    """The adapter reads on after the latest message: it would miss all until then."""
    root = await admin_of(harness)
    later = (harness.clock.now() + timedelta(hours=1)).timestamp()
    days = {DAY: [*HONEST[DAY], slack_said(f"{later:.6f}", ALICE, FORGED)]}
    done = await imported(harness, kept, root, export(days))
    assert (done.state, done.new) == (UploadState.DONE, 2)
    assert FORGED not in str(await messages(harness))


async def test_words_in_the_mouth_of_another_keep_their_mark(harness: AppHarness, kept: Uploads) -> None:
    """A forged text under the id of a real message: the platform's own delivery does not make it the platform's."""
    root, here = await admin_of(harness), slack(harness)
    await imported(harness, kept, root, export({DAY: [slack_said("1777885200.000100", ALICE, FORGED)]}))
    at = datetime(2026, 5, 4, 9, 0, 0, 100, tzinfo=UTC)
    real = Incoming(
        "slack",
        here.name,
        Place(ConversationKind.ROOM, GENERAL, private=False),
        ALICE,
        "Alice",
        "1777885200.000100",
        "x",
        at,
    )
    await harness.app.receive(here, [real])
    [row] = await rows_of(harness, "SELECT i.uploaded_by FROM messages AS m JOIN imports AS i ON i.id = m.import_id")
    assert row["uploaded_by"] == root
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        [id] = [each["id"] for each in await rows_of(harness, "SELECT id FROM messages")]
        assert await tx.explanations.uploaders([id]) == {id: {root}}


async def test_an_answer_says_of_its_sources_that_they_come_from_an_upload_and_whose(
    harness: AppHarness, kept: Uploads
) -> None:
    root, here = await admin_of(harness), slack(harness)
    await imported(harness, kept, root, export())
    await harness.app.indexer.catch_up(here.tenant_id)
    room, now = Place(ConversationKind.ROOM, GENERAL), harness.clock.tick()
    asked, _ = await question(harness.app, here, room, BOB, "when do we launch?", now, top_k=None, id="question")
    composed = await harness.app.composer.compose(asked)
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(room_id(here, GENERAL), user_id(here, BOB), Trust.MEMBER)
        assert access is not None
        found = await explain_stored(tx, access, json.dumps(composed.prompt.as_json()))
    used = [source for section in found.sections for source in section.sources if source.messages != ("question",)]
    assert any("from a file that root uploaded" in source.came_from for source in used), used


async def test_people_who_are_known_keep_their_names_and_what_they_are(harness: AppHarness, kept: Uploads) -> None:
    root, here = await admin_of(harness), slack(harness)
    place = Place(ConversationKind.ROOM, GENERAL, private=False, title="general")
    at = harness.clock.tick()
    await harness.app.receive(here, [Incoming("slack", here.name, place, BOB, "Bob", "1.5", "hello", at)])
    users = [{**each, "profile": {"display_name": "The Boss"}, "is_admin": True} for each in SlackZip().users]
    channels = [{"id": GENERAL, "name": "renamed"}]
    called_carol = {"user_profile": {"display_name": "Carol"}}
    said = [slack_said("1777885200.000100", BOB, FORGED), slack_said("1777885201.000100", BOB, FORGED, **called_carol)]
    days = {"renamed/2026-05-04": said}
    await imported(harness, kept, root, export(days, users=users, channels=channels))
    [bob] = await rows_of(harness, f"SELECT name, admin FROM users WHERE id = '{user_id(here, BOB)}'")
    assert (bob["name"], bob["admin"]) == ("Bob", False)
    forged = await rows_of(harness, f"SELECT author FROM messages WHERE text = '{FORGED}'")
    assert {each["author"] for each in forged} == {"Bob"}, "nor do the words that the file puts into their mouth"
    [room] = await rows_of(harness, f"SELECT title FROM conversations WHERE id = '{room_id(here, GENERAL)}'")
    assert room["title"] == "general"


async def test_a_discord_channel_of_which_nobody_says_who_may_view_it_is_left_out(
    harness: AppHarness, kept: Uploads, tmp_path: Path
) -> None:
    root = await admin_of(harness)
    found = await sent(harness, kept, root, town(tmp_path).read_bytes(), "town.json")
    assert (found.state, found.unknown, found.channels) == (UploadState.FAILED, 1, ())
    here = harness.app.directory.workspace("discord", GUILD)
    await set_room_private(harness.app.database, here, (), TOWN, False, harness.clock.tick(), create=True)
    both = io.BytesIO()
    with zipfile.ZipFile(both, "w") as file:
        for path in (town(tmp_path), thread(tmp_path)):
            file.write(path, path.name)
    done = await imported(harness, kept, root, both.getvalue())
    assert done.state is UploadState.DONE
    assert done.new == 5


async def test_a_private_thread_of_discord_that_a_file_calls_public_gains_nothing(
    harness: AppHarness, kept: Uploads, tmp_path: Path
) -> None:
    root, app = await admin_of(harness), harness.app
    here = app.directory.workspace("discord", GUILD)
    await set_room_private(app.database, here, (), TOWN, False, harness.clock.tick(), create=True)
    await set_room_private(app.database, here, (), "202", True, harness.clock.tick(), create=True)
    forged = json.loads(thread(tmp_path).read_text())
    forged["channel"]["id"] = "202"
    forged["messages"][0]["content"] = FORGED
    await imported(harness, kept, root, json.dumps(forged).encode())
    assert (TOWN, FORGED) in await messages(harness), "a public thread of the public channel, for everyone"
    assert "202" not in [room for room, _ in await messages(harness)]


async def test_files_that_are_no_export_or_an_attack_are_refused(harness: AppHarness, kept: Uploads) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id

    def packed(*entries: tuple[str, bytes]) -> bytes:
        found = io.BytesIO()
        with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in entries:
                file.writestr(name, content)
        return found.getvalue()

    lists = [(f"{name}.json", json.dumps(rows).encode()) for name, rows in (("users", SlackZip().users),)]
    channels = ("channels.json", json.dumps(SlackZip().channels).encode())
    many = json.dumps(
        [{"id": f"C{number}", "name": f"c{number}"} for number in range(MAX_LISTED_CHANNELS + 1)]
    ).encode()
    wrong = {
        "no export": b"hello",
        "json": b'{"a": 1}',
        "lines": b'{"type": "message", "user": "alice", "text": "x", "room": "general"}',
        "irc": b"[12:18] <alice> hello\n" * 3,
        "bomb": packed(channels, ("general/2026-05-04.json", b" " * 40_000_000)),
        "outside": packed(channels, ("../../etc/passwd.json", b"[]")),
        "absolute": packed(channels, ("/etc/passwd.json", b"[]")),
        "channels": packed(*lists, ("channels.json", many)),
        "values": packed(*lists, ("channels.json", b"[" + b"[]," * 2_100_000 + b"[]]")),
        "cut": export()[:-30],
        "deep": packed(*lists, ("channels.json", b"[" * 100_000)),
    }
    for what, content in wrong.items():
        found = await sent(harness, kept, root, content, "../../évil\u202e\x00<b>.zip")
        assert (found.state, found.channels) == (UploadState.FAILED, ()), what
        assert found.error, what
        assert str(harness.app.settings.home) not in found.error, found.error
        assert found.name == "évil <b>.zip", repr(found.name)
        assert not UploadFolder(harness.app.settings.home, tenant).file.exists(), what
    assert await messages(harness) == []
    with pytest.raises(BadInput):
        await kept.receive(tenant, root, "x.zip", pieces(b""))


async def test_a_file_that_is_too_long_is_not_kept(
    harness: AppHarness, kept: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 5_000)
    with pytest.raises(BadInput, match="too long"):
        await kept.receive(tenant, root, "x.zip", pieces(b"x" * 6_000))
    folder = UploadFolder(harness.app.settings.home, tenant)
    assert not folder.file.exists()
    assert await kept.of(tenant, root) is None

    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await kept.receive(tenant, root, "x.zip", broken())
    assert not folder.file.exists()
    assert (await sent(harness, kept, root, export()[:4_000])).state is not None, "the next one is taken"


async def test_one_at_a_time(harness: AppHarness, kept: Uploads) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    arrived, more = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield export()
        arrived.set()
        await more.wait()

    first = asyncio.create_task(kept.receive(tenant, root, "a.zip", slowly()))
    await arrived.wait()
    with pytest.raises(Conflict):
        await kept.receive(tenant, root, "b.zip", pieces(export()))
    with pytest.raises(Conflict):
        await kept.discard(tenant, root, uuid.uuid4())
    more.set()
    await first
    assert (await settled(harness, kept, root)).name == "a.zip"


async def test_a_restart_says_so_and_it_can_be_run_again(harness: AppHarness, kept: Uploads) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    found = await sent(harness, kept, root, export())
    folder = UploadFolder(harness.app.settings.home, tenant)
    folder.write(replace(found, state=UploadState.IMPORTING))  # as a process leaves it that is killed
    stopped = await kept.of(tenant, root)
    assert stopped is not None
    assert (stopped.state, stopped.can_run) == (UploadState.STOPPED, True)
    await kept.run(tenant, root, found.id, [GENERAL])
    assert (await settled(harness, kept, root)).new == 2


async def test_it_is_gone_after_a_day(harness: AppHarness, kept: Uploads) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    await sent(harness, kept, root, export())
    home, folder = harness.app.settings.home, UploadFolder(harness.app.settings.home, tenant)
    now = datetime.now(UTC)
    assert remove_old_uploads(home, now + KEPT_FOR / 2) == 0
    lock = folder.lock()
    assert lock is not None
    assert remove_old_uploads(home, now + 2 * KEPT_FOR) == 0, "somebody works on it"
    os.close(lock)
    assert remove_old_uploads(home, now + 2 * KEPT_FOR) == 1
    assert await kept.of(tenant, root) is None
    assert not folder.file.exists()


async def test_what_whoever_runs_nexus_imported_is_not_for_admins_to_undo(harness: AppHarness, kept: Uploads) -> None:
    root, here = await admin_of(harness), slack(harness)
    run, at = ImportRun(uuid.uuid4(), "operator.zip"), harness.clock.tick()
    said = Incoming(
        "slack", here.name, Place(ConversationKind.ROOM, GENERAL, private=False), ALICE, "Alice", "7", "old", at
    )
    await harness.app.receive(here, [said], answer=False, run=run)
    assert await kept.runs(here.tenant_id, root) == []
    with pytest.raises(NotFound):
        await kept.undo(here.tenant_id, root, run.id)
    assert len(await messages(harness)) == 1


async def test_a_room_that_its_platform_has_just_made_private_is_not_opened(
    harness: AppHarness, kept: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, here = await admin_of(harness), slack(harness)
    look = export_loading._WorkspaceLoad.check_known_rooms

    async def looked(load: Any, found: Any) -> None:
        await look(load, found)
        await make_private(harness, GENERAL, ALICE)

    monkeypatch.setattr(export_loading._WorkspaceLoad, "check_known_rooms", looked)
    done = await imported(harness, kept, root, export())
    assert (done.new, await messages(harness)) == (0, [(GENERAL, "secret 0")])
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        [state] = (await tx.conversations.room_states([room_id(here, GENERAL)])).values()
    assert state.private


async def test_an_import_ends_with_the_rights_of_its_admin(
    harness: AppHarness, kept: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tenant = await admin_of(harness), slack(harness).tenant_id
    await admin_of(harness, "other")
    found = await sent(harness, kept, root, export())
    opened = Uploads._opened

    async def demoted(kept: Uploads, *values: Any) -> Any:
        async with harness.app.database.transaction(tenant) as tx:
            await tx.people.set_admin(root, False)
        return await opened(kept, *values)

    monkeypatch.setattr(Uploads, "_opened", demoted)
    await kept.run(tenant, root, found.id, None)
    await until(lambda: not kept.at_work)
    assert await messages(harness) == []


async def test_undoing_leaves_who_was_disabled_and_a_file_names_nobody_again(
    harness: AppHarness, kept: Uploads
) -> None:
    root, tenant, alice = await admin_of(harness), slack(harness).tenant_id, user_id(slack(harness), ALICE)
    await imported(harness, kept, root, export())
    async with harness.app.database.transaction(tenant, "alone") as tx:
        await set_disabled(tx, root, alice, True, harness.clock.now())
        await tx.people.blank_names([alice], ["Alice"])
    [first] = [run for run in await kept.runs(tenant, root) if run.messages]
    await kept.undo(tenant, root, first.id)
    await settled(harness, kept, root)
    await imported(harness, kept, root, export())
    [row] = await rows_of(harness, f"SELECT name, disabled_at FROM users WHERE id = '{alice}'")
    assert (row["name"], row["disabled_at"] is None) == (NAMELESS, False)
