"""Importing a Slack export: messages keep their data, get the ids of the live adapter, and leak nowhere."""

import json
import zipfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.importers.export import SLACK_EXPORT, ImportOptions
from bot.importers.export_loading import load_export
from bot.importers.platform_exports import open_exports
from composer import visibility
from composer.errors import BadInput, for_operator
from composer.ingest.changes import change_message
from composer.ingest.rooms import add_room_id, set_room_private
from composer.model import (
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Place,
    RecordingPolicy,
    Trust,
    Workspace,
    agent_id,
    conversation_id,
    room_id,
    thread_id,
    user_id,
)
from composer.visibility import readable_conversation
from tests.deep.integration.test_history_import import everything
from tests.support.exports import (
    ALICE,
    BOB,
    BOT,
    CAROL,
    GENERAL,
    LEADS,
    TEAM,
    SlackZip,
    loaded,
    slack_said,
)
from tests.support.harness import AppHarness

WHOLE = {
    "general/2026-05-04": [
        slack_said("1777885200.000100", ALICE, "<@UBOB> we launch &lt;Friday&gt; in <#CGENERAL|general>, <@UNEXUS>"),
        slack_said("1777885260.000100", ALICE, "joined", subtype="channel_join"),
        slack_said("1777885320.000100", BOB, "at noon", thread_ts="1777885200.000100"),
        slack_said("1777885380.000100", BOT, "I noted it.", bot_id="BNEXUS"),
    ],
    "general/2026-05-05": [
        slack_said("1777971600.000100", BOB, "", files=[{"id": "F1", "name": "plan.txt", "mimetype": "text/plain"}]),
        {
            "type": "message",
            "subtype": "bot_message",
            "bot_id": "BCI",
            "username": "ci",
            "text": "build 7 is green",
            "ts": "1777971660.000100",
        },
    ],
    "leads/2026-05-04": [
        slack_said("1777885200.000100", ALICE, "carol gets a raise"),
        slack_said("1777885300.000100", CAROL, "thank you", thread_ts="1777885200.000100"),
        slack_said("1777885400.000100", BOB, "I am leaving this channel"),
    ],
    "DHUMANS/2026-05-04": [slack_said("1777885200.000100", BOB, "between you and me")],
    "DAGENT/2026-05-04": [
        slack_said("1777885200.000100", ALICE, "my salary is 91k"),
        slack_said("1777885201.000100", BOT, "Noted.", bot_id="BNEXUS"),
    ],
}


def here(harness: AppHarness) -> Workspace:
    return harness.app.directory.workspace("slack", TEAM)


async def read(harness: AppHarness, conversation: Any, user: str) -> tuple[Conversation | None, list[Message] | None]:
    """A conversation as a user sees it; the messages are None when the user may not read them."""
    workspace = here(harness)
    async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(conversation, user_id(workspace, user), Trust.MEMBER)
        if access is None:
            return None, None
        if not visibility.may_participate(access):
            return access.conversation, None
        return access.conversation, await tx.messages.latest(
            readable_conversation(access), access.conversation, 100, None
        )


async def texts(harness: AppHarness, room: str, user: str, thread: str | None = None) -> list[str] | None:
    id = room_id(here(harness), room)
    _, messages = await read(harness, id if thread is None else thread_id(id, thread), user)
    return None if messages is None else [message.text for message in messages]


async def test_messages_keep_their_data_and_get_the_ids_of_the_adapter(harness: AppHarness, tmp_path: Path) -> None:
    done = await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    room = room_id(here(harness), GENERAL)
    general, stored = await read(harness, room, BOB)
    assert general is not None
    assert not general.private
    assert general.name == "general"
    assert stored is not None
    assert [(m.external_id, m.author, m.text) for m in stored] == [
        ("1777885200.000100", "Alice", "@Bob we launch <Friday> in #general, @nexus"),
        ("1777971600.000100", "Bob", ""),
        ("1777971660.000100", "ci (app)", "build 7 is green"),
    ]
    assert stored[0].at == datetime(2026, 5, 4, 9, 0, 0, 100, tzinfo=UTC)
    assert stored[0].mentions == (user_id(here(harness), BOB),)
    assert stored[0].user_id == user_id(here(harness), ALICE)
    assert [(a.name, a.type) for a in stored[1].attachments] == [("plan.txt", "text/plain")]
    assert await texts(harness, GENERAL, BOB, thread="1777885200.000100") == ["at noon"]
    dm = Place(ConversationKind.DM, "nexus")
    alice, agent = user_id(here(harness), ALICE), agent_id(here(harness).tenant_id, "nexus")
    private, progress = await read(harness, conversation_id(here(harness), dm, alice, agent), ALICE)
    assert private is not None
    assert private.user_id == alice
    assert [m.text for m in progress or []] == ["my salary is 91k"]
    assert (done.read, done.new, done.known) == (12, 8, 0)
    assert sorted(done.skipped.values()) == [1, 1, 2]
    assert "8 new" in done.sentence()
    assert "private conversations" in done.sentence()


async def test_a_private_channel_is_readable_only_to_its_present_members(harness: AppHarness, tmp_path: Path) -> None:
    await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    stored = ["carol gets a raise", "I am leaving this channel"]
    assert await texts(harness, LEADS, CAROL) == stored
    assert await texts(harness, LEADS, ALICE) == stored
    assert await texts(harness, LEADS, BOB) is None, "bob posted there, and has left it"
    assert await texts(harness, LEADS, CAROL, thread="1777885200.000100") == ["thank you"]
    assert await texts(harness, LEADS, BOB, thread="1777885200.000100") is None


async def test_an_imported_message_that_the_adapter_delivers_too_is_stored_once(
    harness: AppHarness, tmp_path: Path
) -> None:
    await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    at = datetime(2026, 5, 4, 9, tzinfo=UTC)
    again = [
        (Place(ConversationKind.ROOM, GENERAL, private=False), ALICE, "1777885200.000100"),
        (Place(ConversationKind.THREAD, GENERAL, thread="1777885200.000100"), BOB, "1777885320.000100"),
        (Place(ConversationKind.ROOM, LEADS, private=True), ALICE, "1777885200.000100"),
        (Place(ConversationKind.THREAD, LEADS, thread="1777885200.000100"), CAROL, "1777885300.000100"),
        (Place(ConversationKind.DM, "nexus"), ALICE, "1777885200.000100"),
    ]
    messages = [Incoming("slack", TEAM, place, user, user, id, "again", at) for place, user, id in again]
    received = await harness.app.receive(here(harness), messages, answer=False)
    assert received.new == ()
    assert received.skipped == 5
    assert received.not_recorded == 0


async def test_importing_again_changes_nothing(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    await loaded(harness.app, SLACK_EXPORT, path, bot=BOT)
    before = await all_slack_rows(harness)
    harness.clock.tick()
    done = await loaded(harness.app, SLACK_EXPORT, path, bot=BOT)
    assert done.new == 0
    assert done.known == 8
    assert await all_slack_rows(harness) == before


async def all_slack_rows(harness: AppHarness) -> dict[str, list[str]]:
    rows = await everything(harness, here(harness))
    assert rows["messages"]
    return rows


async def test_without_the_name_of_the_agent_no_private_conversation_is_imported(
    harness: AppHarness, tmp_path: Path
) -> None:
    done = await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"))
    assert done.skipped.total() == 1 + 3, "a system message, and all private messages"
    dm = conversation_id(
        here(harness),
        Place(ConversationKind.DM, "nexus"),
        user_id(here(harness), ALICE),
        agent_id(here(harness).tenant_id, "nexus"),
    )
    assert await read(harness, dm, ALICE) == (None, None)


async def test_the_agent_is_identified_by_the_app_of_its_token(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    with ExitStack() as opened:
        token = harness.app.settings.model_validate({"home": tmp_path, "slack_app_token": "xapp-1-A0NEXUS-1-abc"})
        found = open_exports([path], SLACK_EXPORT, ImportOptions(), token, opened)[0].survey
    assert found.loadable == 8


async def test_a_group_dm_is_private_and_imported_only_if_the_agent_is_a_member(
    harness: AppHarness, tmp_path: Path
) -> None:
    mpims = [
        {"id": "GWITH", "name": "mpdm-with", "members": [ALICE, BOB, BOT]},
        {"id": "GWITHOUT", "name": "mpdm-without", "members": [ALICE, BOB, CAROL]},
    ]
    days = {
        "mpdm-with/2026-05-04": [slack_said("1777885200.000100", BOB, "with")],
        "mpdm-without/2026-05-04": [slack_said("1777885200.000100", BOB, "without")],
    }
    await loaded(harness.app, SLACK_EXPORT, SlackZip(days, mpims=mpims).write(tmp_path / "e.zip"), bot=BOT)
    assert await texts(harness, "GWITH", ALICE) == ["with"]
    assert await texts(harness, "GWITH", CAROL) is None
    assert (await read(harness, room_id(here(harness), "GWITHOUT"), BOB))[0] is None


async def test_messages_from_before_a_channel_became_public_stay_private(harness: AppHarness, tmp_path: Path) -> None:
    days = {
        "general/2026-05-04": [slack_said("1777885200.000100", ALICE, "in private")],
        "general/2026-05-05": [
            slack_said("1777971600.000100", ALICE, "opened", subtype="channel_convert_to_public"),
            slack_said("1777971700.000100", ALICE, "in the open"),
        ],
    }
    done = await loaded(harness.app, SLACK_EXPORT, SlackZip(days).write(tmp_path / "e.zip"))
    assert await texts(harness, GENERAL, BOB) == ["in the open"]
    assert any("private that is public now" in why for why in done.skipped)


async def test_a_private_channel_that_became_public_since_the_export_gets_nothing_of_it(
    harness: AppHarness, tmp_path: Path
) -> None:
    agents = harness.app.directory.agents(here(harness).tenant_id)
    await set_room_private(harness.app.database, here(harness), agents, LEADS, False, harness.clock.now(), create=True)
    await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    assert await texts(harness, LEADS, ALICE) == []


async def test_of_a_channel_that_became_public_again_only_later_messages_are_imported(
    harness: AppHarness, tmp_path: Path
) -> None:
    agents = harness.app.directory.agents(here(harness).tenant_id)
    for private in (True, False):
        await set_room_private(
            harness.app.database, here(harness), agents, GENERAL, private, harness.clock.now(), create=True
        )
    at = datetime(2026, 5, 5, tzinfo=UTC)
    first = Incoming("slack", TEAM, Place(ConversationKind.ROOM, GENERAL), ALICE, "Alice", "1777939200.0", "open", at)
    await harness.app.receive(here(harness), [first], answer=False)
    await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    assert await texts(harness, GENERAL, ALICE) == ["open", "", "build 7 is green"]


async def test_a_public_channel_that_became_private_since_the_export_stays_private(
    harness: AppHarness, tmp_path: Path
) -> None:
    agents = harness.app.directory.agents(here(harness).tenant_id)
    await set_room_private(harness.app.database, here(harness), agents, GENERAL, True, harness.clock.now(), create=True)
    days = {"general/2026-05-04": [slack_said("1777885200.000100", ALICE, "hello")]}
    await loaded(harness.app, SLACK_EXPORT, SlackZip(days).write(tmp_path / "e.zip"))
    general, _ = await read(harness, room_id(here(harness), GENERAL), ALICE)
    assert general is not None
    assert general.private


async def test_opt_outs_and_recording_policies_are_respected(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    hello = Incoming(
        "slack", TEAM, Place(ConversationKind.ROOM, LEADS, private=True), BOB, "Bob", "1.0", "hi", harness.clock.now()
    )
    await harness.app.receive(here(harness), [hello], answer=False)
    async with harness.app.database.transaction(here(harness).tenant_id, "alone") as tx:
        await tx.people.set_opted_out(user_id(here(harness), BOB), True)
        leads = room_id(here(harness), LEADS)
        await tx.conversations.set_recording_policy(leads, RecordingPolicy.OFF, harness.app.clock.now())
    done = await loaded(harness.app, SLACK_EXPORT, path, bot=BOT)
    assert done.new == 3, "the messages of alice and a bot, except in the room that stores nothing"
    assert sum(count for why, count in done.skipped.items() if "opted out" in why) == 5


async def test_importing_into_one_room_adds_nothing_private_to_it(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    done = await loaded(harness.app, SLACK_EXPORT, path, room="archive", bot=BOT)
    stored = await texts(harness, "archive", BOB)
    assert stored is not None
    assert "carol gets a raise" not in stored
    assert "build 7 is green" in stored
    assert any("does not load into another room" in why for why in done.skipped)
    again = await loaded(harness.app, SLACK_EXPORT, path, room="archive", bot=BOT)
    assert again.new == 0
    await loaded(harness.app, SLACK_EXPORT, path, room="leads", bot=BOT)
    assert "carol gets a raise" in (await texts(harness, LEADS, ALICE) or [])
    assert await texts(harness, LEADS, BOB) is None, "the import does not change the privacy of the room"


async def test_a_folder_and_a_zip_with_a_folder_around_it_are_read_alike(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip", prefix="Acme export/")
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path / "unpacked")
    assert (await loaded(harness.app, SLACK_EXPORT, path, bot=BOT)).new == 8
    assert (await loaded(harness.app, SLACK_EXPORT, tmp_path / "unpacked", bot=BOT)).known == 8


async def test_a_folder_that_no_list_names_is_not_imported(harness: AppHarness, tmp_path: Path) -> None:
    days = WHOLE | {"mystery/2026-05-04": [slack_said("1777885200.000100", ALICE, "whose is this?")]}
    done = await loaded(harness.app, SLACK_EXPORT, SlackZip(days).write(tmp_path / "e.zip"), bot=BOT)
    assert done.new == 8
    assert any("of an unknown kind" in why for why in done.skipped)


# --- bad input -------------------------------------------------------------------------------------------------------


def refused(path: Path, harness: AppHarness, **wanted: Any) -> str:
    with ExitStack() as opened, pytest.raises(BadInput) as error:
        open_exports([path], SLACK_EXPORT, ImportOptions(**wanted), harness.app.settings, opened)
    return for_operator(error.value)


async def test_an_error_names_its_file_and_position(harness: AppHarness, tmp_path: Path) -> None:
    path = tmp_path / "e.zip"
    general = "general/2026-05-04.json"
    SlackZip().write(path, extra={general: '[{"type": "message",\n "ts": }]'})
    assert f"{general}:2: this is not JSON" in refused(path, harness)
    SlackZip().write(path, extra={general: '{"ok": true}'})
    assert f"{general}: a day's file must be a list" in refused(path, harness)
    SlackZip({"general/2026-05-04": [slack_said("noon", ALICE, "x")]}).write(path)
    assert f"{general}: message 1: `ts`" in refused(path, harness)
    SlackZip({"general/2026-05-04": [slack_said("2.0", "U" * 300, "x")]}).write(path)
    assert f"{general}: message 1: The name of the user" in refused(path, harness)
    SlackZip(channels=[], groups=[], dms=[]).write(path)
    assert "is not a Slack export" in refused(path, harness)
    SlackZip(users=[]).write(path)
    assert "--workspace" in refused(path, harness)
    assert refused(tmp_path / "nothing.zip", harness).endswith("can't be read: No such file or directory.")


async def test_a_damaged_or_malicious_zip_is_refused(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "cut.zip")
    path.write_bytes(path.read_bytes()[:200])
    assert "is not a zip file" in refused(path, harness)
    for name in ("../../etc/passwd.json", "/etc/passwd.json", "C:/x.json", "a\\..\\b.json"):
        path = SlackZip(WHOLE).write(tmp_path / "outside.zip", extra={name: "[]"})
        assert "outside itself" in refused(path, harness)
    bomb = SlackZip(WHOLE).write(tmp_path / "bomb.zip", extra={"general/2026-05-06.json": " " * 2**25})
    assert "grows from" in refused(bomb, harness)
    linked = SlackZip(WHOLE).write(tmp_path / "linked.zip")
    with zipfile.ZipFile(linked, "a") as file:
        link = zipfile.ZipInfo("general/2026-05-07.json")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    assert "is a link to another file: give a zip without links" in refused(linked, harness)
    swapped = SlackZip(WHOLE).write(tmp_path / "swapped.zip")
    content = swapped.read_bytes()
    with zipfile.ZipFile(swapped) as file:
        start = file.getinfo("general/2026-05-04.json").header_offset + 80
    swapped.write_bytes(
        content[:start] + bytes(byte ^ 0xFF for byte in content[start : start + 20]) + content[start + 20 :]
    )
    assert "damaged" in refused(swapped, harness)


async def test_symlinks_out_of_a_folder_are_not_followed(harness: AppHarness, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps([slack_said("1777885200.000100", ALICE, "from elsewhere")]))
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path / "unpacked")
    (tmp_path / "unpacked" / "general" / "2026-05-09.json").symlink_to(outside)
    assert (await loaded(harness.app, SLACK_EXPORT, tmp_path / "unpacked", bot=BOT)).new == 8


async def test_an_interrupted_import_gives_nobody_access(harness: AppHarness, tmp_path: Path) -> None:
    path = SlackZip(WHOLE).write(tmp_path / "e.zip")
    with ExitStack() as opened:
        surveyed = open_exports([path], SLACK_EXPORT, ImportOptions(bot=BOT), harness.app.settings, opened)[0]
        progress: list[int] = []

        def interrupt(count: int) -> None:
            progress.append(count)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await load_export(harness.app, surveyed.export, surveyed.survey, interrupt)
    assert progress
    assert await texts(harness, LEADS, CAROL)
    assert await texts(harness, LEADS, BOB) is None


# docs/architecture.md: what was erased is never stored again. A channel that has another id since is stored by its
# first one: an export that has the other one brought back what was erased there, in a room of its own.
@pytest.mark.parametrize("split", [False, True])
async def test_an_export_brings_back_nothing_under_a_later_id_of_a_channel(
    harness: AppHarness, tmp_path: Path, *, split: bool
) -> None:
    workspace, agents = here(harness), harness.app.directory.agents(here(harness).tenant_id)

    async def say_and_erase(room: str, user: str, ts: str) -> None:
        place = Place(ConversationKind.ROOM, room, private=True)
        said = Incoming("slack", TEAM, place, user, user, ts, "zq", datetime(2026, 5, 4, 9, tzinfo=UTC))
        await harness.app.receive(workspace, [said], answer=False)
        await change_message(harness.app.database, workspace, agents, place, user, ts, None, [], harness.clock.now())

    await say_and_erase("GFIRST", ALICE, "1777885200.000100")
    if split:  # before Slack told whose id it is
        await say_and_erase(LEADS, BOB, "1777885400.000100")
    await add_room_id(harness.app.database, workspace, "GFIRST", LEADS)
    done = await loaded(harness.app, SLACK_EXPORT, SlackZip(WHOLE).write(tmp_path / "e.zip"), bot=BOT)
    assert not await texts(harness, LEADS, ALICE)
    assert await texts(harness, "GFIRST", ALICE) == ([] if split else ["I am leaving this channel"])
    assert await texts(harness, "GFIRST", BOB) is None
    assert done.known == (2 if split else 1)
