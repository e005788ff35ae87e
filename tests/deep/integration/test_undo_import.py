"""`nexus import --undo`: what a run of an import brought goes, with all that was made of it, and nothing else."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from bot.console import imports, schedule
from bot.console.cli import history as history_commands
from bot.console.doctor import check_receipt
from bot.importers.export import DISCORD_EXPORT, SLACK_EXPORT
from bot.importers.history import import_history, read_history
from bot.importers.undoing import undo_run
from composer.errors import NotFound
from composer.ingest import imports as runs
from composer.ingest.imports import FoundRun, find_import, list_imports, short_id
from composer.ingest.rooms import set_room_private
from composer.memory.forget import RETRACTED
from composer.model import room_id
from composer.repositories.imports import ImportRun
from tests.deep.integration.test_discord_import import thread, town
from tests.deep.integration.test_slack_import import WHOLE
from tests.support.exports import BOT, GENERAL, NEXUS, TEAM, SlackZip, loaded
from tests.support.harness import START, AppHarness

SECRET = "zqxwal"  # in what the run brings, and nowhere else


def history(folder: Path, *events: dict[str, Any], name: str = "old.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in events), encoding="utf-8")
    return path


def said(id: str, user: str, text: str, minute: int = 0, **fields: Any) -> dict[str, Any]:
    at = (START - timedelta(days=3) + timedelta(minutes=minute)).isoformat()
    place = {} if "dm" in fields or "room" in fields else {"room": "harbour"}
    return {"type": "message", "at": at, "id": id, "user": user, "text": text, **place, **fields}


async def load(harness: AppHarness, path: Path, run: ImportRun | None = None, **options: Any) -> FoundRun:
    run = run or ImportRun(uuid4(), path.name)
    lines = read_history(path, "jsonl", harness.name, None)
    await import_history(harness.app, lines, lambda _: None, run=run, **options)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    return await find_import(harness.app.database, short_id(run.id))


async def undo(harness: AppHarness, run: FoundRun) -> runs.UndoResult:
    done = await undo_run(harness.app, run, lambda _: None)
    assert done is not None
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    return done


async def stored_bytes(harness: AppHarness) -> str:
    """Every row of every table, as text."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        tables = await connection.fetch("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
        found = []
        for table in tables:
            rows = await connection.fetch(f"SELECT t::text AS row FROM {table['name']} AS t ORDER BY 1")
            found += [f"{table['name']}: {row['row']}" for row in rows]
        return "\n".join(found)
    finally:
        await connection.close()


async def count(harness: AppHarness, query: str, *values: object) -> int:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return int(await connection.fetchval(query, *values))
    finally:
        await connection.close()


OLD = (
    said("o1", "walterzq", f"The {SECRET} sleeps under the crane of the harbour.", 0),
    said("o2", "alice", f"We decided that the {SECRET} stays.", 1),
    said("o3", "walterzq", f"my own number is {SECRET}-4711", 2, dm="nexus"),
    said("o4", "walterzq", f"In a thread of the {SECRET}.", 3, room="harbour", thread="t1"),
)


async def test_nothing_of_the_run_is_left_and_everything_else_is(harness: AppHarness, tmp_path: Path) -> None:
    await harness.say("alice", "The ship sails on Friday.", room="general")
    await harness.say("alice", "The quay is wet.", room="harbour", id="live1")
    run = await load(harness, history(tmp_path, *OLD))
    assert (run.messages, run.rooms) == (4, 2)
    reply = await harness.ask("alice", "@nexus who sleeps under the crane?", room="harbour")
    assert SECRET in reply.text
    await harness.command("alice", "/nexus fact set quay wet", room="harbour")
    await harness.say("bob", "The gull flies.", room="harbour", id="live2")
    done = await undo(harness, run)
    assert (done.messages, done.people) == (4, 1)
    everything = await stored_bytes(harness)
    assert SECRET not in everything
    assert "walterzq" not in everything
    assert "my own number" not in everything
    assert RETRACTED in everything
    for kept in (
        "The ship sails on Friday.",
        "The quay is wet.",
        "The gull flies.",
        "who sleeps under the crane",
        "quay",
    ):
        assert kept in everything, kept
    assert await count(harness, "SELECT count(*) FROM conversations WHERE name = 'harbour' AND kind = 'room'") == 1
    assert await count(harness, "SELECT count(*) FROM conversations WHERE kind IN ('thread', 'dm')") == 0
    prompt = (await harness.compose("alice", "@nexus and the gull?", room="harbour")).prompt
    assert "The gull flies." in str(prompt.as_json())


# What remembers that something happened, by ids and counts.
TRACES = ("audit_", "imports", "receipts", "erased", "job_runs", "usage", "summaries_due")
COUNTERS = ("version", "last_seq")


async def rows_by_table(harness: AppHarness) -> dict[str, list[dict[str, Any]]]:
    """All rows but for traces and counters, by table."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        found = {}
        for table in await connection.fetch("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"):
            if not table["name"].startswith(TRACES):
                rows = await connection.fetch(f"SELECT row_to_json(t)::text AS row FROM {table['name']} AS t")
                kept = [json.loads(row["row"]) for row in rows]
                for row in kept if table["name"] == "conversations" else ():
                    for column in COUNTERS:
                        row.pop(column)
                found[table["name"]] = sorted(kept, key=str)
        return found
    finally:
        await connection.close()


async def work(harness: AppHarness) -> None:
    """The background work on what was loaded: memories, vectors, summaries."""
    for tenant, _ in await harness.app.database.tenants():
        await harness.app.indexer.catch_up(tenant)
    for job in ("thread", "session", "day", "week"):
        assert (await schedule.run(harness.app, job, harness.clock.now())).state == "done"


@pytest.mark.parametrize("format", ["jsonl", SLACK_EXPORT, DISCORD_EXPORT])
async def test_after_it_every_table_is_as_it_was(harness: AppHarness, tmp_path: Path, format: str) -> None:
    harness.clock.set(datetime(2026, 6, 1, 9, 0, tzinfo=UTC))
    await harness.say("alice", "The quay is wet, we decided.", room="harbour")
    await harness.say("alice", "for you alone", dm="nexus")
    if format == SLACK_EXPORT:  # the room is known to the live adapter, with one of its people
        await set_room_private(
            harness.app.database,
            harness.app.directory.workspace("slack", TEAM),
            harness.app.directory.agents(harness.app.directory.workspace("slack", TEAM).tenant_id),
            GENERAL,
            False,
            harness.clock.now(),
            create=True,
        )
    await work(harness)
    before, run = await rows_by_table(harness), ImportRun(uuid4(), "old")
    if format == "jsonl":
        await load(harness, history(tmp_path, *OLD), run=run)
    elif format == SLACK_EXPORT:
        path = SlackZip(WHOLE).write(tmp_path / "export.zip")
        assert (await loaded(harness.app, SLACK_EXPORT, path, bot=BOT, run=run)).new == 8
    else:
        assert (await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), thread(tmp_path), bot=NEXUS, run=run)).new > 3
    await work(harness)
    assert await rows_by_table(harness) != before
    await undo(harness, await find_import(harness.app.database, short_id(run.id)))
    await work(harness)
    after = await rows_by_table(harness)
    for table, rows in before.items():
        if table not in ("tenants", "agents"):  # of the export's workspace
            assert after[table] == rows, table


async def test_what_was_there_before_the_run_or_came_from_another_stays(harness: AppHarness, tmp_path: Path) -> None:
    first = await load(harness, history(tmp_path, *OLD[:2]))
    again = await load(harness, history(tmp_path, *OLD[:2], said("n1", "carol", "A new one of the quay.", 5)))
    assert (again.messages, again.rooms) == (1, 1)
    assert (await undo(harness, again)).messages == 1
    everything = await stored_bytes(harness)
    assert "A new one of the quay." not in everything
    assert "carol" not in everything
    assert f"The {SECRET} sleeps" in everything
    assert (await find_import(harness.app.database, short_id(first.id))).messages == 2


async def test_what_a_platform_delivers_after_the_run_stays(harness: AppHarness, tmp_path: Path) -> None:
    run = await load(harness, history(tmp_path, *OLD[:2]))
    await harness.say("walterzq", OLD[0]["text"], id="o1", room="harbour")  # the same message
    assert (await undo(harness, run)).messages == 1
    everything = await stored_bytes(harness)
    assert OLD[0]["text"] in everything
    assert OLD[1]["text"] not in everything


async def test_an_undone_history_may_be_imported_again_with_another_privacy(
    harness: AppHarness, tmp_path: Path
) -> None:
    """What is it for: a history that was imported as public by mistake."""
    path = history(tmp_path, *OLD[:2])
    await undo(harness, await load(harness, path))
    workspace = harness.workspace()
    assert await count(harness, "SELECT count(*) FROM conversations") == 0
    again = await load(harness, path, private={(harness.name, "harbour")})
    assert again.messages == 2
    async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
        room = await tx.conversations.get(room_id(workspace, "harbour"))
    assert room is not None
    assert room.private


async def test_a_receipt_says_which_import_brought_back_what_was_undone(harness: AppHarness, tmp_path: Path) -> None:
    path = history(tmp_path, *OLD[:2])
    [receipt] = (await undo(harness, await load(harness, path))).receipts
    harness.clock.tick(60)
    again = await load(harness, path)
    settings = harness.app.settings
    [check] = [each for each in await check_receipt(settings, receipt) if each.name == "erased"]
    assert not check.ok
    assert (
        "it was erased, and imported again since (2 messages from old.jsonl, by import "
        f"{short_id(again.id)} of {again.parts[0][1].begun_at:%Y-%m-%d %H:%M} UTC). To erase that too: nexus import "
        f"--undo {short_id(again.id)}. It is in: "
    ) in check.detail
    assert SECRET not in check.detail
    await undo(harness, again)
    [check] = [each for each in await check_receipt(settings, receipt) if each.name == "erased"]
    assert check.ok, check.detail


async def test_what_somebody_forgot_meanwhile_stays_forgotten(harness: AppHarness, tmp_path: Path) -> None:
    path = history(tmp_path, *OLD[:2])
    run = await load(harness, path)
    await harness.command("alice", "/nexus forget stays --yes", room="harbour")
    await undo(harness, run)
    assert (await load(harness, path)).messages == 1


async def test_people_and_rooms_that_something_else_uses_stay(harness: AppHarness, tmp_path: Path) -> None:
    run = await load(harness, history(tmp_path, *OLD))
    await harness.say("walterzq", "I am still here.", room="general")
    await harness.command("alice", "/nexus remember the harbour is closed on Sunday", room="harbour")
    done = await undo(harness, run)
    assert done.people == 0
    everything = await stored_bytes(harness)
    assert "I am still here." in everything
    assert "closed on Sunday" in everything
    assert SECRET not in everything


async def test_a_member_by_the_import_alone_is_none_after_it(harness: AppHarness, tmp_path: Path) -> None:
    await harness.say("alice", "Behind closed doors.", room="board", private=True)
    run = await load(harness, history(tmp_path, said("b1", "mallory", "I was here.", room="board")))
    await undo(harness, run)
    with pytest.raises(NotFound):
        await harness.say("mallory", "@nexus what was said?", room="board")


async def test_an_interrupted_undo_goes_on_and_twice_is_one_sentence(
    harness: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "UNDO_BATCH", 2)
    run = await load(harness, history(tmp_path, *OLD))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await undo_run(harness.app, run, interrupt)
    half = await find_import(harness.app.database, short_id(run.id))
    assert (half.messages, half.undone_at) == (2, None)
    assert (await undo(harness, half)).messages == 2
    whole = await find_import(harness.app.database, short_id(run.id))
    assert await undo_run(harness.app, whole, lambda _: None) is None
    assert "nothing of it is left" in imports.undone_text(whole, None)
    assert SECRET not in await stored_bytes(harness)


async def test_runs_are_listed_and_the_undoing_is_in_the_audit_log(harness: AppHarness, tmp_path: Path) -> None:
    first = await load(harness, history(tmp_path, *OLD[:2], name="first.jsonl"))
    harness.clock.tick()
    second = await load(harness, history(tmp_path, said("x", "dave", "Hello.", room="attic"), name="second.jsonl"))
    assert [run.id for run in await list_imports(harness.app.database)] == [second.id, first.id]
    assert "second.jsonl → console acme: 1 message in 1 room" in imports.line(second)
    done = await undo(harness, second)
    (after, _) = await list_imports(harness.app.database)
    assert "undone" in imports.line(after)
    assert imports.as_json(after)["messages"] == 0
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        (event,) = [
            each
            for each in await tx.audit.find(since=None, until=None, act=None, user=None, limit=20)
            if each.act == "imported.undone"
        ]
        (receipt,) = done.receipts
        assert await tx.erasure.receipt(receipt) is not None
    assert event.details == {"import": short_id(second.id), "messages": 1, "rooms": 1, "people": 1}
    with pytest.raises(NotFound):
        await find_import(harness.app.database, "ffffffff")


async def test_an_answer_is_counted_once_however_many_batches_reach_it(
    harness: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "UNDO_BATCH", 40)
    things = ("crane", "ship", "gull", "quay", "rope")
    lines = (f"The {SECRET} number {n} sleeps under the {things[n % 5]}." for n in range(120))
    run = await load(harness, history(tmp_path, *(said(f"o{n}", "bob", text, n) for n, text in enumerate(lines))))
    for question in ("who sleeps under the crane?", "what sleeps on the rope?", "which number sleeps?"):
        assert SECRET in (await harness.ask("alice", f"@nexus {question}", room="harbour")).text
    done = await undo(harness, run)
    assert (done.messages, done.answers) == (120, 3)


async def test_an_import_that_brought_nothing_is_neither_listed_nor_undone(harness: AppHarness, tmp_path: Path) -> None:
    first = await load(harness, history(tmp_path, *OLD))
    again = await load(harness, history(tmp_path, *OLD))
    assert (first.brought, again.brought) == (True, False)
    assert await undo_run(harness.app, again, lambda _: None) is None
    assert "brought nothing" in imports.undone_text(again, None)
    assert (await find_import(harness.app.database, short_id(again.id))).undone_at is None, "nothing is recorded"
    await undo(harness, first)
    assert [run.id for run in await list_imports(harness.app.database) if run.brought] == [first.id]
    assert "0 messages" not in imports.line(await find_import(harness.app.database, short_id(first.id)))


async def test_the_list_leaves_out_what_brought_nothing(
    harness: AppHarness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = await load(harness, history(tmp_path, *OLD))
    again = await load(harness, history(tmp_path, *OLD))
    await history_commands._runs(harness.app, None, confirmed=False, json_lines=False)
    listed = capsys.readouterr().out
    assert short_id(first.id) in listed
    assert short_id(again.id) not in listed
