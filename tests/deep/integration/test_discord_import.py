"""Importing DiscordChatExporter files: messages have the content and ids of the live adapter, and nothing leaks."""

import base64
import json
import zipfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from discord.http import Route
from pydantic import SecretStr

from bot.importers.export import DISCORD_EXPORT, ODD, ImportOptions
from bot.importers.platform_exports import open_exports
from composer import visibility
from composer.errors import BadInput
from composer.ingest.rooms import set_room_private
from composer.model import (
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Place,
    Trust,
    Workspace,
    agent_id,
    conversation_id,
    room_id,
    thread_id,
    user_id,
)
from composer.settings import Settings
from composer.visibility import readable_conversation
from tests.deep.integration.test_history_import import everything
from tests.support.discord.server import DiscordServer
from tests.support.documents import pdf
from tests.support.exports import (
    ANN,
    BEN,
    GUILD,
    NEXUS,
    STAFF,
    TOWN,
    discord_file,
    discord_person,
    discord_said,
    loaded,
)
from tests.support.harness import AppHarness, open_harness

ann, ben = discord_person(ANN, "ann", nickname="Ann"), discord_person(BEN, "ben", nickname="Ben")
agent = discord_person(NEXUS, "Nexus", bot=True)
THREAD, CLOSED = "300", "301"


def town(folder: Path) -> Path:
    return discord_file(
        folder / "town.json",
        {"id": TOWN, "name": "town"},
        [
            discord_said("1000", ann, "@Ben we launch Friday, <@!900> <@902> <#200> <#201>", mentions=[ben, agent]),
            discord_said("1001", ben, "Pinned a message.", type="ChannelPinnedMessage"),
            discord_said("1002", agent, "I noted it."),
            discord_said("1003", ben, "", attachments=[{"id": "1", "url": "x", "fileName": "plan.txt"}]),
            discord_said(
                "1004", ben, "right, @Nexus", type="Reply", mentions=[ann, agent], reference={"messageId": "1"}
            ),
        ],
    )


def thread(folder: Path) -> Path:
    channel = {"id": THREAD, "type": "GuildPublicThread", "name": "noon", "categoryId": TOWN, "category": "town"}
    return discord_file(folder / "thread.json", channel, [discord_said("1010", ben, "at noon")])


def closed(folder: Path) -> Path:
    channel = {"id": CLOSED, "type": "GuildPrivateThread", "name": "raises", "categoryId": TOWN, "category": "town"}
    return discord_file(folder / "closed.json", channel, [discord_said("1020", ann, "ben gets a raise")])


def dm(folder: Path, *people: dict[str, Any], type: str = "DirectTextChat", name: str = "dm.json") -> Path:
    posts = [discord_said(str(1030 + n), person, f"hello from {person['name']}") for n, person in enumerate(people)]
    return discord_file(folder / name, {"id": "400", "type": type, "name": "x", "categoryId": None}, posts, guild="0")


def workspace_of(harness: AppHarness, guild: str = GUILD) -> Workspace:
    return harness.app.directory.workspace("discord", guild)


async def read(harness: AppHarness, id: Any, user: str) -> tuple[Conversation | None, list[Message] | None]:
    workspace = workspace_of(harness)
    async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(id, user_id(workspace, user), Trust.MEMBER)
        if access is None:
            return None, None
        if not visibility.may_participate(access):
            return access.conversation, None
        return access.conversation, await tx.messages.latest(
            readable_conversation(access), access.conversation, 100, None
        )


async def texts(harness: AppHarness, room: str, user: str, thread: str | None = None) -> list[str] | None:
    id = room_id(workspace_of(harness), room)
    _, messages = await read(harness, id if thread is None else thread_id(id, thread), user)
    return None if messages is None else [message.text for message in messages]


async def private_messages(harness: AppHarness, user: str) -> list[str]:
    place, tenant = Place(ConversationKind.DM, "nexus"), workspace_of(harness).tenant_id
    id = conversation_id(workspace_of(harness), place, user_id(workspace_of(harness), user), agent_id(tenant, "nexus"))
    return [message.text for message in (await read(harness, id, user))[1] or []]


async def test_imported_messages_keep_their_content_and_have_the_ids_of_the_live_adapter(
    harness: AppHarness, tmp_path: Path
) -> None:
    files = [town(tmp_path), thread(tmp_path), closed(tmp_path), dm(tmp_path, ann, agent)]
    done = await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, public=("town",))
    room, posts = await read(harness, room_id(workspace_of(harness), TOWN), BEN)
    assert room is not None
    assert (room.name, room.private) == ("town", False)
    assert [(m.external_id, m.author, m.text) for m in posts or []] == [
        ("1000", "Ann", "@Ben we launch Friday, @nexus @Ben #town #a channel"),
        ("1003", "Ben", ""),
        ("1004", "Ben", "right, @nexus"),
    ]
    assert posts is not None
    assert posts[0].at == datetime(2026, 5, 4, 9, 40, tzinfo=UTC)
    assert [m.mentions for m in posts] == [(user_id(workspace_of(harness), BEN),), (), ()]
    assert [(a.name, a.type) for a in posts[1].attachments] == [("plan.txt", "text/plain")]
    assert await texts(harness, TOWN, ANN, thread=THREAD) == ["at noon"]
    assert await private_messages(harness, ANN) == ["hello from ann"]
    assert (done.read, done.new, sorted(done.skipped.values())) == (9, 6, [1, 2])
    assert done.assumed_private == set()


async def test_a_private_thread_becomes_a_room_for_those_who_posted_in_it(harness: AppHarness, tmp_path: Path) -> None:
    await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), closed(tmp_path), bot=NEXUS, public=("*",))
    assert await texts(harness, CLOSED, ANN) == ["ben gets a raise"]
    assert await texts(harness, CLOSED, BEN) is None
    assert "ben gets a raise" not in (await texts(harness, TOWN, BEN) or [])


async def test_a_channel_of_unknown_visibility_is_imported_as_private(harness: AppHarness, tmp_path: Path) -> None:
    done = await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), thread(tmp_path), bot=NEXUS)
    room, _ = await read(harness, room_id(workspace_of(harness), TOWN), ANN)
    assert room is not None
    assert room.private
    assert await texts(harness, TOWN, "999") is None
    assert await texts(harness, TOWN, "999", thread=THREAD) is None
    assert await texts(harness, TOWN, BEN, thread=THREAD) == ["at noon"]
    assert "#town" in done.warning("3f2a91bc")
    assert "nexus import --undo 3f2a91bc, then import it again with --public" in done.warning("3f2a91bc")


async def test_the_visibility_known_to_the_live_adapter_overrides_the_import_option(
    harness: AppHarness, tmp_path: Path
) -> None:
    agents = harness.app.directory.agents(workspace_of(harness).tenant_id)
    await set_room_private(
        harness.app.database, workspace_of(harness), agents, TOWN, False, harness.clock.now(), create=True
    )
    await set_room_private(
        harness.app.database, workspace_of(harness), agents, STAFF, True, harness.clock.now(), create=True
    )
    staff = discord_file(tmp_path / "staff.json", {"id": STAFF, "name": "staff"}, [discord_said("1040", ann, "hush")])
    done = await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), staff, bot=NEXUS, public=("*",))
    assert len(await texts(harness, TOWN, "999") or []) == 3
    assert await texts(harness, STAFF, BEN) is None
    assert await texts(harness, STAFF, ANN) == ["hush"]
    assert done.assumed_private == set()


async def test_discord_is_asked_who_may_view_a_channel(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DiscordServer() as server:
        monkeypatch.setattr(Route, "BASE", server.api)
        guild = await server.add_guild("Acme")
        open_, shut = await server.add_channel(guild, "open"), await server.add_channel(guild, "shut", only=[])
        files = [
            discord_file(
                tmp_path / f"{channel.id}.json",
                {"id": str(channel.id), "name": channel.name},
                [discord_said("1000", ann, f"said in {channel.name}")],
                guild=str(guild.id),
            )
            for channel in (open_, shut)
        ]
        with_token = settings.model_copy(update={"discord_token": SecretStr(server.token)})
        async with open_harness(with_token) as harness:
            done = await loaded(harness.app, DISCORD_EXPORT, *files)
            workspace = workspace_of(harness, str(guild.id))
            async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
                found = [await tx.conversations.get(room_id(workspace, str(c.id))) for c in (open_, shut)]
    assert [None if c is None else c.private for c in found] == [False, True]
    assert done.assumed_private == set()


async def test_an_imported_message_delivered_by_the_live_adapter_is_a_duplicate(
    harness: AppHarness, tmp_path: Path
) -> None:
    files = [town(tmp_path), thread(tmp_path), closed(tmp_path), dm(tmp_path, ann, agent)]
    await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, public=("town",))
    at = datetime(2026, 5, 4, 9, tzinfo=UTC)
    again = [
        (Place(ConversationKind.ROOM, TOWN, private=False), ANN, "1000"),
        (Place(ConversationKind.THREAD, TOWN, thread=THREAD), BEN, "1010"),
        (Place(ConversationKind.ROOM, CLOSED, private=True), ANN, "1020"),
        (Place(ConversationKind.DM, "nexus"), ANN, "1030"),
    ]
    messages = [Incoming("discord", GUILD, place, user, user, id, "again", at) for place, user, id in again]
    received = await harness.app.receive(workspace_of(harness), messages, answer=False)
    assert (received.new, received.skipped) == ((), 4)


async def test_importing_again_changes_nothing(harness: AppHarness, tmp_path: Path) -> None:
    files = [town(tmp_path), thread(tmp_path), closed(tmp_path), dm(tmp_path, ann, agent)]
    await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, public=("town",))
    before = await everything(harness, workspace_of(harness))
    harness.clock.tick()
    done = await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS)
    assert (done.new, done.known) == (0, 6)
    assert await everything(harness, workspace_of(harness)) == before
    assert len(before["messages"]) == 6


async def test_dms_that_are_not_with_the_agent_alone_are_counted_and_skipped(
    harness: AppHarness, tmp_path: Path
) -> None:
    files = [
        town(tmp_path),
        dm(tmp_path, ann, ben),
        dm(tmp_path, ann, ben, agent, type="DirectGroupTextChat", name="group.json"),
    ]
    done = await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, public=("*",))
    assert sum(count for why, count in done.skipped.items() if "not the agent's" in why) == 5
    unknown = await loaded(harness.app, DISCORD_EXPORT, dm(tmp_path, ann, agent, name="a.json"))
    assert (unknown.new, unknown.skipped.total()) == (0, 2)


async def test_dms_of_a_user_whose_guild_is_unknown_need_a_workspace(harness: AppHarness, tmp_path: Path) -> None:
    path = dm(tmp_path, ann, agent)
    done = await loaded(harness.app, DISCORD_EXPORT, path, bot=NEXUS)
    assert any("--workspace" in why for why in done.skipped)
    await loaded(harness.app, DISCORD_EXPORT, path, bot=NEXUS, workspace=GUILD)
    assert await private_messages(harness, ANN) == ["hello from ann"]


async def test_the_bot_is_identified_by_its_token(harness: AppHarness, tmp_path: Path) -> None:
    token = base64.urlsafe_b64encode(NEXUS.encode()).decode().rstrip("=") + ".x.y"
    settings = harness.app.settings.model_copy(update={"discord_token": SecretStr(token)})
    with ExitStack() as opened:
        found = open_exports([town(tmp_path)], DISCORD_EXPORT, ImportOptions(), settings, opened)[0].survey
    assert (found.read, found.loadable) == (5, 3)


async def test_a_folder_and_a_zip_are_read_alike(harness: AppHarness, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    files = [town(folder), thread(folder), closed(folder)]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as packed:
        for file in files:
            packed.write(file, file.name)
    assert (await loaded(harness.app, DISCORD_EXPORT, folder, bot=NEXUS)).new == 5
    assert (await loaded(harness.app, DISCORD_EXPORT, tmp_path / "export.zip", bot=NEXUS)).known == 5


async def test_importing_into_one_room_adds_no_private_messages(harness: AppHarness, tmp_path: Path) -> None:
    files = [town(tmp_path), closed(tmp_path)]
    done = await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, room="archive", public=("town",))
    assert "ben gets a raise" not in (await texts(harness, "archive", BEN) or ["ben gets a raise"])
    assert any("does not load into another room" in why for why in done.skipped)
    undeclared = await loaded(harness.app, DISCORD_EXPORT, *files, bot=NEXUS, room="archive")
    assert (undeclared.new, undeclared.known) == (0, 0), "nothing says that #town is public"


# --- bad input -------------------------------------------------------------------------------------------------------


def refusal_of(path: Path, harness: AppHarness) -> str:
    with ExitStack() as opened, pytest.raises(BadInput) as error:
        open_exports([path], DISCORD_EXPORT, ImportOptions(), harness.app.settings, opened)
    return str(error.value)


def test_a_misspelt_name_of_a_public_channel_is_refused(harness: AppHarness, tmp_path: Path) -> None:
    path = town(tmp_path)
    for public in (("twon",), ("town", "twon")):
        with ExitStack() as opened, pytest.raises(BadInput) as error:
            open_exports([path], DISCORD_EXPORT, ImportOptions(public=public), harness.app.settings, opened)
        assert str(error.value) == ("--public names twon, and there is no such room in these files, which have: town.")


async def test_what_cannot_be_read_is_named_with_its_position_and_the_rest_is_read(
    harness: AppHarness, tmp_path: Path
) -> None:
    path = town(tmp_path)
    whole = path.read_text()
    messages = (await loaded(harness.app, DISCORD_EXPORT, path)).new
    others = messages - 1
    cut = whole[: whole.index('"right,')]
    for content, named, known in (
        (cut, f"{path}:{cut.count(chr(10)) + 1}: this is not JSON (", others),
        (whole.replace('"1003"', '"m1003"'), f"{path}: message 4: `id`: ", others),
        (
            whole.replace("2026-05-04T09:40:00.000+00:00", "yesterday"),
            f"{path}: message 1: `timestamp`: ",
            messages - 1,
        ),
        (whole.replace('"content": "', '"content": 7, "was": "', 1), f"{path}: message 1: `content`: ", others),
        (whole + "x", f"{path}:{whole.count(chr(10)) + 1}: this is not JSON (there is more after the end", messages),
    ):
        path.write_text(content)
        done = await loaded(harness.app, DISCORD_EXPORT, path)
        assert done.odd[0].startswith(named)
        assert (done.known, done.skipped[ODD]) == (known, 1), named
        assert named in done.odd_sentence()


async def test_an_error_names_its_file_and_position(harness: AppHarness, tmp_path: Path) -> None:
    path = town(tmp_path)
    whole = path.read_text()
    path.write_text('{"hello": "world"}')
    assert "no guild and channel" in refusal_of(path, harness)
    path.write_text("[1, 2]")
    assert refusal_of(path, harness) == f"{path}:1: this is not JSON ('{{' was expected)."
    path.write_bytes(whole.encode().replace(b"noted", b"not\xffd"))
    assert "not UTF-8" in refusal_of(path, harness)
    path.write_text('{"guild": ' + "[" * 200_000)
    assert refusal_of(path, harness).startswith(f"{path}:1: ")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no JSON file of DiscordChatExporter here" in refusal_of(empty, harness)


async def test_a_long_file_is_read_in_chunks_without_loss(harness: AppHarness, tmp_path: Path) -> None:
    posts = [
        discord_said(str(1000 + n), ann, f"{n} " + 'wörds, "quoted" ]}, \u00e4\U0001f600 ' * 400) for n in range(300)
    ]
    path = discord_file(tmp_path / "long.json", {"id": TOWN, "name": "town"}, posts)
    assert path.stat().st_size > 2**22
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False), encoding="utf-8-sig")
    await loaded(harness.app, DISCORD_EXPORT, path, public=("*",))
    messages = (await read(harness, room_id(workspace_of(harness), TOWN), ANN))[1] or []
    expected = {entry["id"]: entry["content"] for entry in posts}
    assert {m.external_id: m.text for m in messages}.items() <= expected.items()
    assert len(messages) == 100


async def test_a_channel_stored_as_private_is_not_made_public_by_an_option(harness: AppHarness, tmp_path: Path) -> None:
    await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), bot=NEXUS)
    before = await texts(harness, TOWN, ANN)
    with pytest.raises(BadInput, match="#town is stored as private, and what was stored in private stays private"):
        await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), thread(tmp_path), bot=NEXUS, public=("town",))
    again = await loaded(harness.app, DISCORD_EXPORT, town(tmp_path), bot=NEXUS, public=("*",))
    assert again.new == 0
    assert await texts(harness, TOWN, ANN) == before
    assert await texts(harness, TOWN, ANN, thread=THREAD) is None
    assert await texts(harness, TOWN, "999") is None


async def test_text_attachments_in_the_export_are_read_as_the_live_adapter_reads_them(
    harness: AppHarness, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    media = folder / "town.json_Files"
    media.mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("outside")
    (media / "plan-AB.md").write_text("the codename is marigold")
    (media / "data-CD.json").write_text('{"colour": "teal"}')
    (media / "large-EF.txt").write_text("x" * 300_001)
    (media / "vans-GH.pdf").write_bytes(pdf([["Two vans."]]))
    (media / "locked-IJ.pdf").write_bytes(pdf([["no"]], password="heron"))
    names = {"plan.md": "plan-AB.md", "data.json": "data-CD.json", "large.txt": "large-EF.txt", "cat.png": "no.png"}
    names |= {"vans.pdf": "vans-GH.pdf", "locked.pdf": "locked-IJ.pdf"}
    files = [{"fileName": name, "url": f"town.json_Files/{at}", "fileSizeBytes": 9} for name, at in names.items()]
    files.append({"fileName": "out.txt", "url": "../secret.txt"})
    channel = {"id": TOWN, "type": "GuildTextChat", "name": "town", "categoryId": None}
    discord_file(folder / "town.json", channel, [discord_said("1000", ann, "see", attachments=files)])
    done = await loaded(harness.app, DISCORD_EXPORT, folder, bot=NEXUS, public=("town",))
    _, posts = await read(harness, room_id(workspace_of(harness), TOWN), ANN)
    assert posts is not None
    read_as = [a.text or a.note for a in posts[0].attachments]
    assert read_as[:2] == ["the codename is marigold", '{"colour": "teal"}']
    assert [len(read_as[2]), posts[0].attachments[2].note] == [300_000, "only its first 300,000 characters are read"]
    assert read_as[3:] == ["", "# Page 1\nTwo vans.", "could not be read: it needs a password", ""]
    assert (done.read, done.new) == (1, 1)


async def test_a_role_has_its_name_where_one_who_has_it_has_written(harness: AppHarness, tmp_path: Path) -> None:
    ops = {"id": "77", "name": "ops", "color": None, "position": 1}
    of_agent = {"id": "78", "name": "Nexus"}
    carla = {**discord_person("905", "carla"), "roles": [ops, of_agent, {"id": "79"}, "odd"]}
    said = [discord_said("2000", carla, "<@&77> and <@&78>, look"), discord_said("2001", ann, "<@&79> too")]
    path = discord_file(tmp_path / "roles.json", {"id": TOWN, "name": "town"}, said)
    await loaded(harness.app, DISCORD_EXPORT, path, bot=NEXUS, public=("town",))
    assert await texts(harness, TOWN, ANN) == ["@ops and Nexus, look", "@a role too"]
