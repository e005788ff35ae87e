"""What lies in exports beside messages, and messages of another form than most: left out, counted and named, and never
the end of an import."""

import json
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bot.importers.export import BETWEEN_PEOPLE, DISCORD_EXPORT, ODD, SLACK_EXPORT, UNKNOWN_PLACE, ImportOptions
from bot.importers.platform_exports import open_exports
from composer.errors import BadInput
from tests.deep.integration.test_slack_import import texts
from tests.support.exports import (
    ALICE,
    BOB,
    GENERAL,
    TEAM,
    discord_file,
    discord_person,
    discord_said,
    loaded,
    slack_said,
    slack_user,
)
from tests.support.harness import AppHarness

HELLO = slack_said("1777885200.000100", ALICE, "hello")
CANVAS = [{"id": "F0C", "created": 1730000000, "title": "Notes", "mimetype": "application/vnd.slack-docs"}]
APPLE = b"\x00\x05\x16\x07\x00\x02\x00\x00"


class Unflagged(zipfile.ZipInfo):
    """An entry whose name is written as bytes, without the flag for UTF-8."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("cp437"), 0


def folder(path: Path, files: Mapping[str, Any]) -> Path:
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def packed(path: Path, files: Mapping[str, Any]) -> Path:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path.with_suffix(".zip")


def slack(days: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "users.json": [slack_user(ALICE, "alice"), slack_user(BOB, "bob")],
        "channels.json": [{"id": GENERAL, "name": "general", "members": [ALICE, BOB]}],
        **(days or {"general/2026-05-04.json": [HELLO]}),
        **more,
    }


@pytest.mark.parametrize("pack", [folder, packed])
@pytest.mark.parametrize(
    "name",
    [
        "general/canvas_in_the_conversation.json",
        "canvases.json",
        "integration_logs.json",
        "general/._2026-05-04.json",
        "__MACOSX/general/._2026-05-04.json",
        "general/.DS_Store",
        "general/Thumbs.db",
        "general/desktop.ini",
        "@eaDir/general/2026-05-04.json",
        "general/notes.txt",
        "general/attachments.json",
    ],
)
async def test_what_is_no_message_of_slack_is_left_out_and_counted(
    harness: AppHarness, tmp_path: Path, name: str, pack: Callable[[Path, Mapping[str, Any]], Path]
) -> None:
    content = APPLE if "._" in name or not name.endswith(".json") else CANVAS
    done = await loaded(harness.app, SLACK_EXPORT, pack(tmp_path / "e", slack(None, **{name: content})))
    assert (done.read, done.new, done.left_out.files, done.odd) == (1, 1, 1, [])
    assert done.as_json()["files_without_messages"] == 1
    assert "1 file without messages" in done.sentence()


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        ({"type": "message", "user": ALICE, "text": "no time"}, "`ts`: field required"),
        (slack_said("noon", ALICE, "x"), "`ts`: "),
        (slack_said("1777885300.000100", "U" * 300, "x"), "The name of the user"),
        (None, "input should be a valid dictionary"),
        ("a string", "input should be a valid dictionary"),
        ({**HELLO, "text": {"rich": "text"}}, "`text`: "),
        ({"type": "message", "subtype": "message_changed", "ts": "1777885300.000100"}, "not a message as Slack writes"),
        ({"subtype": "message_deleted", "ts": "1777885300.000100"}, "not a message as Slack writes"),
    ],
)
async def test_an_odd_message_of_slack_is_skipped_and_named(
    harness: AppHarness, tmp_path: Path, odd: Any, what: str
) -> None:
    files = slack({"general/2026-05-04.json": [HELLO, odd]})
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))
    assert (done.read, done.new, dict(done.skipped)) == (2, 1, {ODD: 1})
    assert done.odd[0].startswith(f"{tmp_path / 'e.zip'}: general/2026-05-04.json: message 2: ")
    assert what in done.odd[0]
    assert await texts(harness, GENERAL, BOB) == ["hello"]


@pytest.mark.parametrize("content", [b"", b'[{"ts": ', b"[" * 200_000, b'{"ok": true}', b'["\xff"]'])
async def test_a_day_that_is_no_list_of_messages_is_skipped_and_named(
    harness: AppHarness, tmp_path: Path, content: bytes
) -> None:
    days = {"general/2026-05-03.json": content, "general/2026-05-04.json": [HELLO]}
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", slack(days)))
    assert (done.new, dict(done.skipped)) == (1, {ODD: 1})
    assert "general/2026-05-03.json" in done.odd[0]


@pytest.mark.parametrize("content", [b"", b"{", b'{"ok": false}', b"null"])
async def test_a_list_that_cannot_be_read_is_named_and_its_channels_are_not_loaded(
    harness: AppHarness, tmp_path: Path, content: bytes
) -> None:
    secret = [slack_said("1777885200.000100", ALICE, "secret")]
    files = {**slack(), "groups.json": content, "leads/2026-05-04.json": secret}
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))
    assert (done.new, dict(done.skipped)) == (1, {UNKNOWN_PLACE: 1})
    assert "groups.json" in done.odd[0]


@pytest.mark.parametrize("people", [None, b"", "org"])
async def test_the_workspace_is_taken_from_the_messages_where_no_list_names_it(
    harness: AppHarness, tmp_path: Path, people: Any
) -> None:
    files = slack()
    files.pop("users.json")
    if people is not None:
        users = [{**slack_user(ALICE, "alice"), "team_id": "E0ORG"}]
        files["org_users.json" if people == "org" else "users.json"] = users if people == "org" else people
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))
    assert (done.new, {workspace for workspace, _ in done.rooms}) == (1, {TEAM})


async def test_a_zip_with_backslashes_between_folders_is_read(harness: AppHarness, tmp_path: Path) -> None:
    files = {name.replace("/", "\\"): content for name, content in slack().items()}
    assert (await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))).new == 1


async def test_odd_people_and_channels_are_skipped_and_named(harness: AppHarness, tmp_path: Path) -> None:
    files = slack()
    files["users.json"] += [{"name": "nobody"}, None, {**slack_user("U9", "nil"), "profile": None}]
    files["channels.json"] += [{"name": "no id"}]
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))
    assert done.new == 1
    assert [entry.partition(": ")[2] for entry in done.odd] == [
        "users.json: entry 3: `id`: field required.",
        "users.json: entry 4: input should be a valid dictionary or instance of _User.",
        "channels.json: entry 2: `id`: field required.",
    ]


NAMES = ["café-équipe", "über-uns", "совет", "開発", "한국어-방", "ελληνικά"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("pack", [folder, packed])
async def test_a_channel_is_found_by_its_name_in_each_normal_form(
    harness: AppHarness, tmp_path: Path, name: str, form: Any, pack: Callable[[Path, Mapping[str, Any]], Path]
) -> None:
    files = slack({f"{unicodedata.normalize(form, name)}/2026-05-04.json": [HELLO]})
    files["channels.json"] = [{"id": GENERAL, "name": unicodedata.normalize("NFC", name), "members": [ALICE]}]
    done = await loaded(harness.app, SLACK_EXPORT, pack(tmp_path / "e", files))
    assert (done.new, dict(done.skipped)) == (1, {})


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        *((name, "utf-8") for name in NAMES),
        ("café-équipe", "cp850"),
        ("über-uns", "cp1252"),
        ("совет", "cp866"),
        ("開発", "cp932"),
        ("한국어-방", "cp949"),
        ("ελληνικά", "cp737"),
    ],
)
async def test_a_zip_without_the_flag_for_utf_8_is_read(
    harness: AppHarness, tmp_path: Path, name: str, encoding: str
) -> None:
    files = slack({f"{name.encode(encoding).decode('cp437')}/2026-05-04.json": [HELLO]})
    files["channels.json"] = [{"id": GENERAL, "name": name}]
    path = packed(tmp_path / "e", {})
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in files.items():
            entry = Unflagged(each)
            archive.writestr(entry, json.dumps(content))
    with zipfile.ZipFile(path) as archive:
        assert not any(entry.flag_bits & 0x800 for entry in archive.infolist())
    assert (await loaded(harness.app, SLACK_EXPORT, path)).new == 1


async def test_a_folder_unpacked_with_bytes_or_escapes_in_its_names_is_read(
    harness: AppHarness, tmp_path: Path
) -> None:
    for written in ("caf\udce9", "caf#U00e9", "CAFÉ"):
        place = tmp_path / written.encode("ascii", "replace").decode()
        files = slack({f"{written}/2026-05-04.json": [HELLO]})
        files["channels.json"] = [{"id": GENERAL, "name": "café"}]
        done = await loaded(harness.app, SLACK_EXPORT, folder(place, files))
        assert (done.new + done.known, dict(done.skipped)) == (1, {}), written


async def test_a_grid_export_names_people_from_its_org_users(harness: AppHarness, tmp_path: Path) -> None:
    files = slack()
    files["org_users.json"] = files.pop("users.json")
    await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files), workspace=TEAM)
    workspaces = {
        "org_users.json": [slack_user(ALICE, "alice"), {**slack_user("W9", "walt"), "team_id": "E0ORG"}],
        "dms.json": [],
        **{f"teams/one/{name}": content for name, content in slack().items()},
        **{f"teams/two/{name}": content for name, content in slack().items()},
        "teams/two/users.json": [{**slack_user("W9", "walt"), "team_id": "T2"}],
        "teams/two/general/2026-05-04.json": [slack_said("1777885200.000100", "W9", "hi"), HELLO],
    }
    path = packed(tmp_path / "grid", workspaces)
    with ExitStack() as opened:
        surveyed = open_exports([path], SLACK_EXPORT, ImportOptions(), harness.app.settings, opened)
        found = [(each.survey.workspaces, each.survey.loadable, each.export.people.get(ALICE)) for each in surveyed]
    assert found == [(set(), 0, "Alice"), ({TEAM}, 1, "Alice"), ({"T2"}, 2, "Alice")]


async def test_people_of_other_workspaces_are_called_by_their_names(harness: AppHarness, tmp_path: Path) -> None:
    guest = slack_said("1777885300.000100", "UFAR", "hi", team="TFAR", user_profile={"real_name": "Fara Way"})
    asked = slack_said("1777885301.000100", ALICE, "<@UFAR> and <@UGONE>?")
    unknown = slack_said("1777885302.000100", "UGONE", "bye")
    files = slack({"general/2026-05-04.json": [guest, asked, unknown]})
    done = await loaded(harness.app, SLACK_EXPORT, packed(tmp_path / "e", files))
    assert done.new == 3
    assert await texts(harness, GENERAL, BOB) == ["hi", "@Fara Way and @UGONE?", "bye"]


async def test_a_channel_of_which_nothing_is_read_is_told(harness: AppHarness, tmp_path: Path) -> None:
    days = {
        "general/2026-05-04.json": [HELLO],
        "elsewhere/2026-05-04.json": [HELLO],
        "DXXXXXXXXX/2026-05-04.json": [HELLO],
    }
    with ExitStack() as opened:
        surveyed = open_exports(
            [packed(tmp_path / "e", slack(days))], SLACK_EXPORT, ImportOptions(), harness.app.settings, opened
        )
    found = surveyed[0].survey
    assert dict(found.skipped) == {UNKNOWN_PLACE: 1, BETWEEN_PEOPLE: 1}
    assert found.lost().startswith("Nothing of #elsewhere was imported")
    assert not found.nothing("e")


async def test_a_zip_of_nothing_but_unreadable_messages_is_refused(harness: AppHarness, tmp_path: Path) -> None:
    path = packed(tmp_path / "e", slack({"general/2026-05-04.json": [{"text": "x"}]}))
    with ExitStack() as opened, pytest.raises(BadInput, match="message 1: `ts`: field required"):
        open_exports([path], SLACK_EXPORT, ImportOptions(), harness.app.settings, opened)


# --- Discord ---------------------------------------------------------------------------------------------------------

ann = discord_person("901", "Ann")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("__MACOSX/x/._town.json", APPLE),
        ("._town.json", APPLE),
        ("settings.json", b'{"theme": "dark"}'),
        (".DS_Store", APPLE),
        ("thumbs.db", APPLE),
        ("readme.txt", b"hello"),
        ("town.html", b"<html>"),
        (".vscode/settings.json", b"{}"),
    ],
)
@pytest.mark.parametrize("pack", [folder, packed])
async def test_what_is_no_export_of_discord_is_left_out_and_counted(
    harness: AppHarness,
    tmp_path: Path,
    name: str,
    content: bytes,
    pack: Callable[[Path, Mapping[str, Any]], Path],
) -> None:
    town = discord_file(tmp_path / "town.json", {"id": "200", "name": "town"}, [discord_said("1000", ann, "hello")])
    files = {"town.json": town.read_bytes(), name: content}
    done = await loaded(harness.app, DISCORD_EXPORT, pack(tmp_path / "e", files), public=("*",))
    assert (done.new, done.left_out.files, done.odd) == (1, 1, [])


async def test_a_channel_whose_file_cannot_be_read_is_named(harness: AppHarness, tmp_path: Path) -> None:
    good = discord_file(tmp_path / "town.json", {"id": "200", "name": "town"}, [discord_said("1000", ann, "hello")])
    bad = discord_file(tmp_path / "hall.json", {"id": "hall", "name": "hall"}, [discord_said("1001", ann, "hi")])
    cut = tmp_path / "yard.json"
    cut.write_text('{"guild": {"id": "100"}, "channel"')
    files = {path.name: path.read_bytes() for path in (good, bad, cut)}
    done = await loaded(harness.app, DISCORD_EXPORT, packed(tmp_path / "e", files), public=("*",))
    assert done.new == 1
    assert ["hall.json: `id`" in done.odd[0], "yard.json:1: this is not JSON" in done.odd[1]] == [True, True]
