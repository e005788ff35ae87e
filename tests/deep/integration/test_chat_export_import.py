"""Loading exports of chat systems that Nexus does not connect to: as rooms of the terminal, with who may read them."""

import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bot.console import after_import
from bot.importers.export import MATRIX, MATTERMOST, TEAMS, TELEGRAM, ZULIP, ImportOptions
from bot.importers.platform_exports import load, open_exports
from bot.importers.undoing import undo_run
from composer import visibility
from composer.errors import BadInput
from composer.ingest.imports import list_imports
from composer.model import CONSOLE, Trust, room_id, thread_id, user_id
from composer.repositories.imports import ImportRun
from composer.settings import Settings
from composer.visibility import readable_conversation
from tests.deep.integration.test_history_import import everything
from tests.support.exports import loaded
from tests.support.harness import AppHarness
from tests.support.program import Program
from tests.unit.test_chat_exports import (
    HELLO,
    came,
    chat,
    event,
    graph,
    matrix,
    mattermost,
    posted,
    rule,
    telegram_said,
    tenant,
    text,
    write,
    zulip,
    zulip_said,
)


@pytest.fixture
def program(settings: Settings, tmp_path: Path) -> Program:
    """The program over this worker's servers and a fresh database."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_REDIS_URL": settings.redis_url}
    return Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home"), **urls})


async def texts(
    harness: AppHarness, workspace: str, room: str, user: str, thread: str | None = None
) -> list[str] | None:
    """What a person reads in a room; None where they may not."""
    here = harness.app.directory.workspace(CONSOLE, workspace)
    id = room_id(here, room) if thread is None else thread_id(room_id(here, room), thread)
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(id, user_id(here, user), Trust.MEMBER)
        if access is None or not visibility.may_participate(access):
            return None
        found = await tx.messages.latest(readable_conversation(access), access.conversation, 100, None)
    return [message.text for message in found]


async def test_mattermost_is_loaded_with_its_members(harness: AppHarness, tmp_path: Path) -> None:
    replies = [{"user": "ben", "message": "at noon", "create_at": 1777885201000}]
    path = mattermost(
        tmp_path,
        posted("town-square", "ben", "second", 1777885209000),
        posted("town-square", "ann", "first", replies=replies),
        posted("leads", "ann", "a raise"),
        posted("leads", "ben", "I am leaving"),
    )
    done = await loaded(harness.app, MATTERMOST, path)
    assert (done.read, done.new, done.known) == (5, 5, 0)
    assert await texts(harness, "acme", "town-square", "stranger") == ["first", "second"]
    assert await texts(harness, "acme", "town-square", "stranger", "1777885200000-ann") == ["at noon"]
    assert await texts(harness, "acme", "leads", "ann") == ["a raise", "I am leaving"]
    assert await texts(harness, "acme", "leads", "ben") is None, "he posted there, and is no member any more"
    before = await everything(harness, harness.app.directory.workspace(CONSOLE, "acme"))
    again = await loaded(harness.app, MATTERMOST, path)
    assert (again.new, again.known) == (0, 5)
    assert await everything(harness, harness.app.directory.workspace(CONSOLE, "acme")) == before


async def test_zulip_is_loaded_with_its_topics_as_threads(harness: AppHarness, tmp_path: Path) -> None:
    path = zulip(
        tmp_path / "z",
        zulip_said(2, 12, 101, "at noon"),
        zulip_said(1, 11, 101, "we launch"),
        zulip_said(3, 11, 102, "a raise"),
        zulip_said(4, 12, 102, "I am leaving"),
    )
    assert (await loaded(harness.app, ZULIP, path)).new == 4
    assert await texts(harness, "acme", "general", "stranger", "plans") == ["we launch", "at noon"]
    assert await texts(harness, "acme", "leads", "ann@acme.org", "plans") == ["a raise", "I am leaving"]
    assert await texts(harness, "acme", "leads", "ben@acme.org", "plans") is None
    assert (await loaded(harness.app, ZULIP, path)).known == 4


async def test_telegram_shows_a_private_group_to_those_who_wrote_there(harness: AppHarness, tmp_path: Path) -> None:
    messages = telegram_said(1, "Ann", "a raise"), telegram_said(2, "Benny", "thanks")
    path = write(tmp_path / "result.json", chat(*messages, name="Leads"))
    assert (await loaded(harness.app, TELEGRAM, path, workspace="acme")).new == 2
    assert await texts(harness, "acme", "leads-77", "user3") == ["a raise", "thanks"]
    assert await texts(harness, "acme", "leads-77", "user99") is None


async def test_a_group_of_another_account_with_the_same_name_is_a_room_of_its_own(
    harness: AppHarness, tmp_path: Path
) -> None:
    for id, name in ((1, "Ann"), (2, "Eve at home")):
        path = write(
            tmp_path / str(id) / "result.json", chat(telegram_said(1, name, f"secret {id}"), name="Family", id=id)
        )
        await loaded(harness.app, TELEGRAM, path, workspace="acme")
    assert await texts(harness, "acme", "family-1", "user3") == ["secret 1"]
    assert await texts(harness, "acme", "family-2", "user3") is None


async def test_a_room_of_matrix_is_private_unless_its_events_or_a_person_say_else(
    harness: AppHarness, tmp_path: Path
) -> None:
    room = "town-abcdefgh"
    path = matrix(tmp_path / "a", came("ann"), came("cy"), came("cy", "leave"), event("0", "cy", text("bye")), HELLO)
    done = await loaded(harness.app, MATRIX, path, workspace="closed")
    assert done.assumed_private == {"Town"}
    assert await texts(harness, "closed", room, "ann:hs.org") == ["bye", "hello"]
    assert await texts(harness, "closed", room, "cy:hs.org") is None
    assert await texts(harness, "closed", room, "stranger") is None
    await loaded(harness.app, MATRIX, path, workspace="opened", public=("Town",))
    assert await texts(harness, "opened", room, "stranger") == ["bye", "hello"]
    said = matrix(tmp_path / "b", rule("public"), HELLO)
    await loaded(harness.app, MATRIX, said, workspace="said")
    assert await texts(harness, "said", room, "stranger") == ["hello"]
    with pytest.raises(BadInput, match="stored as private"):
        await loaded(harness.app, MATRIX, path, workspace="closed", public=("Town",))


async def test_a_private_team_is_for_its_members(harness: AppHarness, tmp_path: Path) -> None:
    path = tenant(tmp_path / "e", graph(1, "Ann", "a raise"), graph(2, "Ben", "bye"), privacy="Private")
    done = await loaded(harness.app, TEAMS, path, workspace="acme")
    assert (done.new, done.left_out.files) == (2, 1)
    room = next(name for _, name in done.rooms)
    assert await texts(harness, "acme", room, "id-ann") == ["a raise", "bye"]
    assert await texts(harness, "acme", room, "id-ben") is None


async def test_what_was_loaded_can_be_undone_and_asked_about(harness: AppHarness, tmp_path: Path) -> None:
    run = ImportRun(uuid.uuid4(), "import.jsonl")
    path = mattermost(tmp_path, posted("town-square", "ann", "first"), posted("leads", "ann", "a raise"))
    with ExitStack() as opened:
        exports = open_exports([path], MATTERMOST, ImportOptions(), harness.app.settings, opened)
        await load(harness.app, exports[0], run=run)
        step = await after_import.ask_about(harness.app, exports)
    assert step.startswith("nexus chat -w acme --room town-square, then @nexus …")
    found = next(each for each in await list_imports(harness.app.database) if each.id == run.id)
    undone = await undo_run(harness.app, found, lambda count: None)
    assert undone is not None
    assert undone.messages == 2
    assert await texts(harness, "acme", "leads", "ann") is None


@pytest.mark.parametrize("options", [{"bot": "x"}, {"public": ("nowhere",)}])
async def test_an_option_that_fits_no_such_export_is_refused(
    harness: AppHarness, tmp_path: Path, options: dict[str, Any]
) -> None:
    path = mattermost(tmp_path, posted("town-square", "ann", "first"))
    with ExitStack() as opened, pytest.raises(BadInput):
        open_exports([path], MATTERMOST, ImportOptions(**options), harness.app.settings, opened)


# --- the program -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "status", "said"),
    [
        ([HELLO], 0, "taken to be private for good"),
        ([HELLO, None], 0, "Left out: "),
        ([], 2, "there is no message in it"),
        ([None], 2, "message 1: `event_id` is missing"),
        ([came("ann")], 2, "none of its 1 message can be imported: 1 system notices"),
        ([came("ben", "invite", is_direct=True), HELLO], 2, "1 in private conversations that are not the agent's"),
    ],
)
def test_an_import_says_what_it_left_out_and_fails_when_nothing_is_loaded(
    program: Program, tmp_path: Path, events: list[Any], status: int, said: str
) -> None:
    ran = program.run("import", str(matrix(tmp_path, *events)))
    assert (ran.status, "Traceback" in ran.err) == (status, False)
    assert said in " ".join((ran.out + ran.err).split())


def test_a_room_of_which_nothing_was_loaded_is_a_failure_after_the_others(program: Program, tmp_path: Path) -> None:
    gone = {"type": "post", "post": {"team": "acme", "channel": "gone", "user": "ann", "message": "x", "create_at": 1}}
    path = mattermost(tmp_path, posted("town-square", "ann", "first"), gone)
    ran = program.run("import", str(path), "--json")
    assert ran.status == 2
    assert '"new":1' in ran.out
    assert "Nothing of #acme/gone was imported" in " ".join(ran.err.split())


def test_files_of_several_formats_are_imported_one_by_one(program: Program, tmp_path: Path) -> None:
    log = tmp_path / "2026-05-04.log"
    log.write_text("[12:18] <ann> hi\n")
    ran = program.run("import", str(log), str(matrix(tmp_path, HELLO)))
    assert ran.status == 2
    assert "2026-05-04.log (irc), export.json (matrix). Import them one by one." in " ".join(ran.err.split())
