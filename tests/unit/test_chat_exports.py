"""The exports of chat systems that Nexus does not connect to: what is read of each, and what is left out and why."""

import io
import json
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.importers.archive import MAX_RATIO, Archive
from bot.importers.chat_export import ChatExport
from bot.importers.detection import format_of
from bot.importers.export import (
    BETWEEN_PEOPLE,
    DELETED,
    MATRIX,
    MATTERMOST,
    MIXED,
    NOTICES,
    ODD,
    PRIVATE_TIME,
    TEAMS,
    TELEGRAM,
    UNKNOWN_PLACE,
    ZULIP,
    RoomOfExport,
)
from bot.importers.export_loading import survey
from bot.importers.matrix import EDITS, ENCRYPTED
from bot.importers.platform_exports import CHATS
from composer.errors import BadInput
from composer.model import Incoming

AT = 1777885200  # 2026-05-04 09:00 UTC


@dataclass
class Read:
    """What was read of an export. `said` is (room, thread, name, text)."""

    said: list[tuple[str, str | None, str, str]]
    skipped: dict[str, int]
    odd: list[str]
    rooms: dict[str, RoomOfExport]
    messages: list[Incoming] = field(default_factory=list)
    files: int = 0
    entries: list[str] = field(default_factory=list)


def read(format: str, *paths: Path, **options: Any) -> Read:
    archives = [Archive(path) for path in paths]
    with closing(ChatExport(CHATS[format](archives), **options)) as export:
        entries = list(export.messages())
        assert [entry.position for entry in export.messages()] == [entry.position for entry in entries]
        found = [entry.incoming for entry in entries if entry.incoming]
        said = [(m.place.name, m.place.thread, m.user_name, m.text) for m in found]
        skipped = dict(Counter(entry.reason for entry in entries if entry.reason))
        odd = [entry.error for entry in entries if entry.error]
        survey(export)
        return Read(said, skipped, odd, dict(export.rooms), found, export.left_out.files, export.left_out.odd)


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode())
    return path


# --- Mattermost ------------------------------------------------------------------------------------------------------


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, kind: fields}


def member(name: str, *channels: str, **more: Any) -> dict[str, Any]:
    teams = [{"name": "acme", "channels": [{"name": channel} for channel in channels]}]
    return line("user", username=name, teams=teams, **more)


def posted(channel: str, user: str, text: str, at: int = AT * 1000, **more: Any) -> dict[str, Any]:
    return line("post", team="acme", channel=channel, user=user, message=text, create_at=at, **more)


MATTERMOST_HEAD: list[dict[str, Any]] = [
    {"type": "version", "version": 1},
    line("team", name="acme", display_name="Acme", type="O"),
    line("channel", team="acme", name="town-square", display_name="Town Square", type="O"),
    line("channel", team="acme", name="leads", display_name="Leads", type="P"),
    member("ann", "town-square", "leads", first_name="Ann", last_name="Way"),
    member("ben", "town-square", nickname="Benny"),
]


def mattermost(path: Path, *lines: Any, head: Sequence[Any] = MATTERMOST_HEAD) -> Path:
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (*head, *lines)]
    return write(path / "import.jsonl", b"\n".join(written) + b"\n")


def test_mattermost_keeps_rooms_people_threads_and_files(tmp_path: Path) -> None:
    replies = [{"user": "ben", "message": "at noon @ann", "create_at": AT * 1000 + 5}]
    found = read(
        MATTERMOST,
        mattermost(
            tmp_path,
            posted("town-square", "ben", "later", AT * 1000 + 9),
            posted("town-square", "ann", "we launch", reactions=[{"user": "ben"}], replies=replies),
            posted("leads", "ann", "a raise", attachments=[{"path": "2026/x/plan.pdf"}]),
            posted("town-square", "ann", "ann joined the channel.", type="system_join_channel"),
            line("direct_channel", members=["ann", "ben"]),
            line("direct_post", channel_members=["ann", "ben"], user="ann", message="psst", create_at=AT * 1000),
            line("emoji", name="tick", image="x.png"),
        ),
    )
    assert found.said == [
        ("town-square", None, "Ann Way", "we launch"),
        ("town-square", f"{AT}000-ann", "Benny", "at noon @ann"),
        ("town-square", None, "Benny", "later"),
        ("leads", None, "Ann Way", "a raise"),
    ]
    assert found.skipped == {NOTICES: 1, BETWEEN_PEOPLE: 1}
    assert [m.workspace for m in found.messages] == ["acme"] * 4
    assert found.messages[1].mentions == ("ann",)
    assert [a.name for a in found.messages[3].attachments] == ["plan.pdf"]
    assert found.rooms["town-square"].private is False
    assert (found.rooms["leads"].private, found.rooms["leads"].members) == (True, ("ann",))


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        (b"{", "this is not a line of JSON"),
        (b"[1]", "this is not a JSON object"),
        (b"[" * 200_000, "this is not a line of JSON"),
        (b'{"type": "post", "post": {"x": "' + b"y" * 2**24 + b'"}}', "the line is too long"),
        (posted("town-square", "", "no author"), "`user` is missing"),
        (posted("town-square", "ann", "x", at=10**30), "is not a time"),
        (posted("town-square", "ann", "x", at=None), "it has no time"),  # type: ignore[arg-type]
        (line("post", team="acme", channel="town-square"), "`user` is missing"),
        (line("channel", team="acme"), "`name` is missing"),
        (line("user", nickname="x"), "`username` is missing"),
    ],
)
def test_an_odd_line_of_mattermost_is_named_and_the_rest_is_read(tmp_path: Path, odd: Any, what: str) -> None:
    found = read(MATTERMOST, mattermost(tmp_path, odd, posted("town-square", "ann", "hello")))
    assert [text for *_, text in found.said] == ["hello"]
    assert found.skipped == {ODD: 1}
    assert found.odd[0].startswith(f"{tmp_path / 'import.jsonl'}:7: ")
    assert what in found.odd[0]


CARD = {"pretext": "Alert", "title": "disk full", "text": "on db1", "fields": [{"title": "free", "value": "1 GB"}]}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"props": {"attachments": [CARD]}}, "hi\n> Alert\n> disk full\n> on db1\n> free: 1 GB"),
        ({"props": json.dumps({"attachments": [CARD]})}, "hi\n> Alert\n> disk full\n> on db1\n> free: 1 GB"),
        ({"props": {"attachments": [{"fallback": "plain"}, None]}}, "hi\n> plain"),
        ({"props": "not json", "replies": None, "attachments": None}, "hi"),
        ({"edit_at": AT * 1000 + 1, "is_pinned": True, "flagged_by": ["ben"]}, "hi"),
    ],
)
def test_a_post_of_mattermost_with_more_than_its_text(tmp_path: Path, more: dict[str, Any], text: str) -> None:
    assert read(MATTERMOST, mattermost(tmp_path, posted("town-square", "ann", "hi", **more))).said[0][3] == text


def test_a_channel_of_mattermost_that_was_made_public_shows_only_what_was_said_since(tmp_path: Path) -> None:
    change = posted("town-square", "ann", "converted", AT * 1000 + 5, type="system_change_chan_privacy")
    found = read(
        MATTERMOST,
        mattermost(
            tmp_path,
            posted("town-square", "ann", "open", AT * 1000 + 6),
            change,
            posted("town-square", "ann", "secret", AT * 1000),
        ),
    )
    assert [text for *_, text in found.said] == ["open"]
    assert found.skipped == {PRIVATE_TIME: 1, NOTICES: 1}


def test_mattermost_leaves_out_what_was_deleted_and_keeps_the_buttons_of_cards(tmp_path: Path) -> None:
    card = {"title": "Where?", "text": "a poll", "actions": [{"name": "Rome"}, {}]}
    gone = posted("town-square", "ann", "gone", AT * 1000 + 1, delete_at=AT * 1000 + 2)
    found = read(
        MATTERMOST, mattermost(tmp_path, posted("town-square", "ann", "", props={"attachments": [card]}), gone)
    )
    assert [text for *_, text in found.said] == ["> Where?\n> a poll\n> (button: Rome)"]
    assert found.skipped == {DELETED: 1}


def test_teams_of_mattermost_are_workspaces_unless_one_is_named(tmp_path: Path) -> None:
    other = [
        line("channel", team="beta", name="town-square", type="O"),
        line("post", team="beta", channel="town-square", user="eve", message="beta", create_at=AT * 1000),
    ]
    path = mattermost(tmp_path, *other, posted("town-square", "ann", "acme"), posted("gone", "ann", "lost"))
    found = read(MATTERMOST, path)
    assert sorted((m.workspace, m.place.name, m.text) for m in found.messages) == [
        ("acme", "town-square", "acme"),
        ("beta", "town-square", "beta"),
    ]
    assert found.skipped == {UNKNOWN_PLACE: 1}
    together = read(MATTERMOST, path, workspace="all")
    assert sorted((m.workspace, m.place.name) for m in together.messages) == [
        ("all", "acme.town-square"),
        ("all", "beta.town-square"),
    ]


def test_the_zip_of_a_mattermost_export_is_read(tmp_path: Path) -> None:
    lines = mattermost(tmp_path, posted("town-square", "ann", "hello"))
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(lines, "import.jsonl")
        archive.writestr("data/20260504/teams/x/plan.json", '{"a": 1}')
        archive.writestr("__MACOSX/._import.jsonl", b"\x00\x05")
    assert format_of(tmp_path / "export.zip") == MATTERMOST
    found = read(MATTERMOST, tmp_path / "export.zip")
    assert ([text for *_, text in found.said], found.files) == (["hello"], 2)


# --- Zulip -----------------------------------------------------------------------------------------------------------

REALM: dict[str, Any] = {
    "zerver_realm": [{"id": 1, "string_id": "acme", "name": "Acme"}],
    "zerver_userprofile": [
        {"id": 11, "email": "user11@acme", "delivery_email": "Ann@acme.org", "full_name": "Ann Way"},
        {"id": 12, "email": "ben@acme.org", "full_name": "Ben"},
    ],
    "zerver_userprofile_crossrealm": [
        {"id": 5, "email": "notification-bot@zulip.com", "full_name": "Notification Bot"}
    ],
    "zerver_stream": [
        {"id": 1, "name": "general", "invite_only": False},
        {"id": 2, "name": "Leads", "invite_only": True},
    ],
    "zerver_recipient": [
        {"id": 101, "type": 2, "type_id": 1},
        {"id": 102, "type": 2, "type_id": 2},
        {"id": 103, "type": 1, "type_id": 12},
        {"id": 104, "type": 3, "type_id": 9},
    ],
    "zerver_subscription": [
        {"user_profile": 11, "recipient": 102, "active": True},
        {"user_profile": 12, "recipient": 102, "active": False},
    ],
}


def zulip_said(id: int, sender: int, recipient: int, content: Any, topic: str = "plans", **more: Any) -> dict[str, Any]:
    return {"id": id, "sender": sender, "recipient": recipient, "subject": topic, "content": content} | {
        "date_sent": AT + id,
        "rendered_content": f"<p>{content}</p>",
        **more,
    }


def zulip(path: Path, *messages: Any, realm: Mapping[str, Any] = REALM, read_by: int = 0) -> Path:
    write(path / "realm.json", realm)
    marks = [{"id": n, "user_profile": 11, "message": 1, "flags_mask": 1} for n in range(read_by)]
    write(path / "messages-000001.json", {"zerver_usermessage": marks, "zerver_message": list(messages)})
    write(path / "uploads" / "records.json", [])
    return path


def test_zulip_keeps_channels_topics_people_and_files(tmp_path: Path) -> None:
    found = read(
        ZULIP,
        zulip(
            tmp_path / "zulip-export",
            zulip_said(2, 12, 101, "at noon, @**Ann Way|11** in #**general>plans**"),
            zulip_said(1, 11, 101, "we launch, see [plan.pdf](/user_uploads/1/ab/plan.pdf)"),
            zulip_said(3, 11, 102, "a raise", topic=""),
            zulip_said(4, 5, 101, "Ann moved this topic"),
            zulip_said(5, 11, 103, "psst"),
            zulip_said(6, 11, 104, "we three"),
            zulip_said(7, 11, 101, "(deleted)"),
            read_by=3,
        ),
    )
    assert found.said == [
        ("general", "plans", "Ann Way", "we launch, see plan.pdf"),
        ("general", "plans", "Ben", "at noon, @Ann Way in #general>plans"),
        ("leads", None, "Ann Way", "a raise"),
    ]
    assert found.skipped == {NOTICES: 2, BETWEEN_PEOPLE: 2}
    assert [(m.workspace, m.user) for m in found.messages] == [
        ("acme", "ann@acme.org"),
        ("acme", "ben@acme.org"),
        ("acme", "ann@acme.org"),
    ]
    assert found.messages[1].mentions == ("ann@acme.org",)
    assert [a.name for a in found.messages[0].attachments] == ["plan.pdf"]
    assert found.rooms["general"].private is False
    assert (found.rooms["leads"].private, found.rooms["leads"].members) == (True, ("ann@acme.org",))
    assert found.files == 1


@pytest.mark.parametrize("suffix", [".tar.gz", ".tgz", ".tar", ".tar.xz", ".zip"])
def test_an_archive_of_zulip_is_read_as_the_folder(tmp_path: Path, suffix: str) -> None:
    folder, path = zulip(tmp_path / "zulip-export-x", zulip_said(1, 11, 101, "hello")), tmp_path / f"export{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for file in folder.rglob("*.json"):
                packed.write(file, file.relative_to(tmp_path))
    else:
        with tarfile.open(path, "w:gz" if suffix.endswith("gz") else "w:xz" if suffix.endswith("xz") else "w") as tar:
            tar.add(folder, folder.name)
    assert format_of(path) == format_of(folder) == ZULIP
    assert read(ZULIP, path).said == read(ZULIP, folder).said == [("general", "plans", "Ann Way", "hello")]


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        (None, "`id` is missing"),
        (zulip_said(2, 11, 101, None), "`content` is missing"),
        ({**zulip_said(2, 11, 101, "x"), "sender": "eleven"}, "`sender` is missing"),
        (zulip_said(2, 11, 101, "x", date_sent="soon"), "'soon' is not a time"),
        (zulip_said(2, 11, 101, "x", date_sent=1e30), "is not a time within"),
    ],
)
def test_an_odd_message_of_zulip_is_named_and_the_rest_is_read(tmp_path: Path, odd: Any, what: str) -> None:
    found = read(ZULIP, zulip(tmp_path / "z", odd, zulip_said(1, 11, 101, "hello")))
    assert ([text for *_, text in found.said], found.skipped) == (["hello"], {ODD: 1})
    assert what in found.odd[0]
    assert "messages-000001.json: message 1: " in found.odd[0]


def test_odd_people_and_channels_of_zulip_are_named(tmp_path: Path) -> None:
    realm = {
        **REALM,
        "zerver_userprofile": [*REALM["zerver_userprofile"], {"full_name": "no id"}, None],
        "zerver_stream": [*REALM["zerver_stream"], {"id": 3}],
        "zerver_subscription": [None, {"user_profile": [], "recipient": {}}, *REALM["zerver_subscription"]],
        "zerver_recipient": [*REALM["zerver_recipient"], {"id": [1]}, 7],
    }
    found = read(ZULIP, zulip(tmp_path / "z", zulip_said(1, 99, 101, "who am I"), realm=realm))
    assert found.said == [("general", "plans", "user99", "who am I")]
    assert [entry.partition("realm.json: ")[2] for entry in found.entries] == [
        "zerver_userprofile 3: `id` is missing, or no number.",
        "zerver_userprofile 4: `id` is missing, or no number.",
        "zerver_stream 3: `name` is missing, or no text.",
    ]


def test_a_channel_of_zulip_that_was_made_public_shows_only_what_was_said_since(tmp_path: Path) -> None:
    change = {"property": "invite_only", "1": True, "2": False}
    log = [
        {"modified_stream": 1, "event_time": AT + 2, "extra_data": change},
        {"modified_stream": 1, "event_time": AT + 9, "extra_data": json.dumps({"property": "name"})},
        {"modified_stream": 7, "extra_data": None},
    ]
    messages = zulip_said(1, 11, 101, "secret"), zulip_said(3, 11, 101, "open")
    found = read(ZULIP, zulip(tmp_path / "z", *messages, realm={**REALM, "zerver_realmauditlog": log}))
    assert ([text for *_, text in found.said], found.skipped) == (["open"], {PRIVATE_TIME: 1})


def test_a_folder_without_a_realm_is_no_export_of_zulip(tmp_path: Path) -> None:
    write(tmp_path / "z" / "messages-000001.json", {"zerver_message": []})
    with pytest.raises(BadInput, match=r"there is no realm\.json in it"):
        read(ZULIP, tmp_path / "z")


# --- tars ------------------------------------------------------------------------------------------------------------


def tar_of(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in entries:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_a_tar_that_leads_outside_or_grows_is_refused_and_its_links_are_left_out(tmp_path: Path) -> None:
    for name in ("../realm.json", "/etc/realm.json"):
        with pytest.raises(BadInput, match="outside itself"):
            Archive(tar_of(tmp_path / "a.tar.gz", (tarfile.TarInfo(name), b"{}")))
    with pytest.raises(BadInput, match="would grow"):
        Archive(tar_of(tmp_path / "b.tar.gz", (tarfile.TarInfo("realm.json"), b" " * (MAX_RATIO * 2**18))))
    link = tarfile.TarInfo("realm.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with Archive(tar_of(tmp_path / "c.tar.gz", (link, b""), (tarfile.TarInfo("x.json"), b"{}"))) as archive:
        assert archive.names == ["x.json"]
    (tmp_path / "d.tar.gz").write_bytes((tmp_path / "c.tar.gz").read_bytes()[:40])
    with pytest.raises(BadInput, match="download it again"):
        Archive(tmp_path / "d.tar.gz")


# --- Telegram --------------------------------------------------------------------------------------------------------


def telegram_said(id: int, name: Any, text: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "date": "2026-05-04T11:00:00",
        "date_unixtime": str(AT + id),
        "from": name,
        "from_id": f"user{len(str(name))}",
        "text": text,
        "text_entities": [],
        **more,
    }


def chat(*messages: Any, type: str = "private_supergroup", name: Any = "Team", id: int = 77) -> dict[str, Any]:
    return {"name": name, "type": type, "id": id, "messages": list(messages)}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "", "text_entities": [{"type": "plain", "text": "hello"}]}, "hello"),
        (
            {"text": ["see ", {"type": "text_link", "text": "it", "href": "https://a.example"}]},
            "see it (https://a.example)",
        ),
        ({"text": "", "todo_list": {"title": "Move", "answers": [{"id": 1, "text": "pack"}]}}, "Move\n- pack"),
        ({"text": "", "invoice_information": {"title": "Ticket", "description": "for two"}}, "Ticket\nfor two"),
        ({"text": "pick", "inline_bot_buttons": [[{"type": "url", "text": "Open"}]]}, "pick\n(button: Open)"),
        (
            {
                "text": "",
                "poll": {"question": {"text": "Where?"}, "answers": [{"text": [{"text": "Rome"}], "voters": 2}]},
            },
            "Where?\n- Rome: 2",
        ),
    ],
)
def test_a_message_of_telegram_is_read_in_each_form(tmp_path: Path, message: dict[str, Any], text: str) -> None:
    path = write(tmp_path / "result.json", chat(telegram_said(1, "Ann", "") | message))
    assert [said for *_, said in read(TELEGRAM, path).said] == [text]


def test_telegram_keeps_a_chat_with_replies_files_and_polls(tmp_path: Path) -> None:
    poll = {
        "question": "Where?",
        "closed": False,
        "answers": [{"text": "Rome", "voters": 2}, {"text": "Oslo", "voters": 0}],
    }
    path = write(
        tmp_path / "result.json",
        chat(
            {"id": 1, "type": "service", "date": "2026-05-04T11:00:00", "actor": "Ann", "action": "create_group"},
            telegram_said(2, "Ann", ["we launch ", {"type": "bold", "text": "Friday"}, "!"]),
            telegram_said(3, "Benny", "ok", reply_to_message_id=2, edited="2026-05-04T12:00:00"),
            telegram_said(4, "Ann", "", file="files/plan.pdf", mime_type="application/pdf"),
            telegram_said(5, "Ann", "look", photo="photos/photo_1.jpg"),
            telegram_said(
                6, "Ann", "", file="(File not included. Change settings.)", file_name="a.mp4", media_type="video"
            ),
            telegram_said(7, "Ann", "", poll=poll),
            telegram_said(8, None, "bye", forwarded_from="News"),
            telegram_said(9, "Ann", "", file="stickers/1.webp", media_type="sticker", sticker_emoji="🎉"),
        ),
    )
    assert format_of(path) == TELEGRAM
    found = read(TELEGRAM, path)
    assert [(name, text) for _, _, name, text in found.said] == [
        ("Ann", "we launch Friday!"),
        ("Benny", "ok"),
        ("Ann", ""),
        ("Ann", "look"),
        ("Ann", ""),
        ("Ann", "Where?\n- Rome: 2\n- Oslo: 0"),
        ("Deleted Account", "> Forwarded from News:\n> bye"),
        ("Ann", "🎉"),
    ]
    assert found.skipped == {NOTICES: 1}
    assert [[a.name for a in m.attachments] for m in found.messages][2:5] == [["plan.pdf"], ["photo_1.jpg"], ["a.mp4"]]
    assert found.messages[1].reply_to == "2"
    assert {m.place.name for m in found.messages} == {"team-77"}
    assert found.rooms["team-77"].private is True
    assert f"{found.messages[0].at:%H:%M:%S}" == "09:00:02"


def test_a_whole_account_of_telegram_brings_its_groups_and_no_private_chats(tmp_path: Path) -> None:
    account = {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 1, "first_name": "Ann"},
        "contacts": {"about": "x", "list": [{"first_name": "Ben"}]},
        "chats": {
            "about": "y",
            "list": [
                chat(telegram_said(1, "Ben", "psst"), type="personal_chat", name="Ben", id=5),
                {"type": "saved_messages", "id": 1, "messages": [telegram_said(1, "Ann", "note")]},
                chat(telegram_said(1, "Bot", "hi"), type="bot_chat", name="Bot", id=6),
                chat(telegram_said(1, "Ann", "a raise"), type="private_group", name="Leads", id=7),
                chat(telegram_said(1, "Ann", "hello all"), type="public_supergroup", name="Town", id=8),
                chat(telegram_said(1, "Ann", "other town"), type="private_supergroup", name="Town", id=9),
                chat(type="private_group", name="Empty", id=10),
            ],
        },
        "left_chats": {"list": [chat(telegram_said(1, "Ben", "news"), type="public_channel", name="News", id=11)]},
    }
    found = read(TELEGRAM, write(tmp_path / "export" / "result.json", account))
    assert sorted((room, text) for room, _, _, text in found.said) == [
        ("leads-7", "a raise"),
        ("news-11", "news"),
        ("town-8", "hello all"),
        ("town-9", "other town"),
    ]
    assert found.skipped == {BETWEEN_PEOPLE: 3}
    assert {room: each.private for room, each in found.rooms.items()} == {
        "leads-7": True,
        "town-8": False,
        "town-9": True,
        "news-11": False,
    }


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        (None, "it has no time"),
        ({"id": 1, "type": "message", "from": "Ann", "text": "x"}, "it has no time"),
        (telegram_said(1, "Ann", "x", date_unixtime="soon"), "'soon' is not a time"),
        ({**telegram_said(1, "Ann", "x"), "id": None}, "`id` is missing"),
        (telegram_said(1, "Ann", "x", date_unixtime=["1"]), "it has no time"),
    ],
)
def test_an_odd_message_of_telegram_is_named_and_the_rest_is_read(tmp_path: Path, odd: Any, what: str) -> None:
    found = read(TELEGRAM, write(tmp_path / "result.json", chat(odd, telegram_said(2, "Ann", "hello"))))
    assert ([text for *_, text in found.said], found.skipped) == (["hello"], {ODD: 1})
    assert found.odd[0] == f"{tmp_path / 'result.json'}: Team: message 1: {found.odd[0].partition('message 1: ')[2]}"
    assert what in found.odd[0]


@pytest.mark.parametrize("cut", [60, 20])
def test_a_file_that_was_cut_off_is_read_up_to_there(tmp_path: Path, cut: int) -> None:
    whole = json.dumps(chat(telegram_said(1, "Ann", "first"), telegram_said(2, "Ann", "second"))).encode()
    found = read(TELEGRAM, write(tmp_path / "result.json", whole[:-cut]))
    assert ([text for *_, text in found.said], found.skipped) == (["first"], {ODD: 1})
    assert "result.json:1: this is not JSON" in found.odd[0]


def test_an_old_export_of_telegram_has_numbers_for_people_and_local_times(tmp_path: Path) -> None:
    old = {
        "id": 1,
        "type": "message",
        "date": "2019-05-04T09:00:00",
        "from": "Ann",
        "from_id": 4311234567,
        "text": "hi",
    }
    found = read(TELEGRAM, write(tmp_path / "result.json", chat(old)))
    assert [(m.user, f"{m.at:%Y-%m-%d %H:%M}") for m in found.messages] == [("user4311234567", "2019-05-04 09:00")]


# --- Matrix ----------------------------------------------------------------------------------------------------------


def event(id: str, sender: str, content: Any, type: str = "m.room.message", at: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "type": type,
        "sender": f"@{sender}:hs.org",
        "event_id": f"${id}",
        "room_id": "!abcdefghijk:hs.org",
        "origin_server_ts": (AT + at) * 1000,
        "content": content,
        **more,
    }


def text(body: str, **more: Any) -> dict[str, Any]:
    return {"msgtype": "m.text", "body": body, **more}


def came(sender: str, membership: str = "join", **content: Any) -> dict[str, Any]:
    return event(
        f"m{sender}{membership}",
        sender,
        {"membership": membership, **content},
        "m.room.member",
        state_key=f"@{sender}:hs.org",
    )


def matrix(path: Path, *events: Any, name: str = "Town") -> Path:
    return write(
        path / "export.json",
        {
            "room_name": name,
            "room_creator": "ann",
            "topic": "",
            "export_date": "4 May 2026",
            "exported_by": "Ann (@ann:hs.org)",
            "messages": list(events),
        },
    )


ROOM = "town-abcdefgh"


def test_matrix_keeps_ends_of_polls_and_what_is_html_alone(tmp_path: Path) -> None:
    html = {"msgtype": "m.text", "body": "", "formatted_body": "<b>we</b> launch"}
    end = {"org.matrix.msc1767.text": "The poll has ended. Top answer: Friday"}
    found = read(
        MATRIX, matrix(tmp_path, event("1", "ann", html), event("2", "ann", end, "org.matrix.msc3381.poll.end", at=1))
    )
    assert [text for *_, text in found.said] == ["we launch", "The poll has ended. Top answer: Friday"]


def test_matrix_keeps_names_threads_replies_edits_and_files(tmp_path: Path) -> None:
    new = {"m.new_content": text("we launch Monday"), "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}
    forged = {"m.new_content": text("forged"), "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}
    bundled = {"m.relations": {"m.replace": event("e", "ben", {"m.new_content": text("yes!")}, at=9)}}
    path = matrix(
        tmp_path,
        came("ann", displayname="Ann Way"),
        event("1", "ann", text("we launch Friday")),
        event(
            "2",
            "ben",
            text("> <@ann:hs.org> we launch\n\nyes", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$1"}}}),
            unsigned=bundled,
            at=1,
        ),
        event("3", "ben", text("in a thread", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$1"}}), at=2),
        event("4", "ann", {"msgtype": "m.file", "body": "plan.pdf", "url": "mxc://x"}, at=3),
        event("5", "ann", {"msgtype": "m.image", "body": "our house", "filename": "h.jpg"}, at=4),
        event(
            "6",
            "ann",
            {"m.poll.start": {"question": {"m.text": "Where?"}, "answers": [{"m.text": [{"body": "Rome"}]}]}},
            "m.poll.start",
            at=5,
        ),
        event("7", "ann", text("* we launch Monday", **new), at=6),
        event("8", "eve", text("* forged", **forged), at=7),
        event("9", "ann", {"msgtype": "m.bad.encrypted", "body": "** Unable to decrypt **"}, at=8),
        event("10", "ann", {}, unsigned={"redacted_because": {}}, at=8),
        event("11", "ann", {"topic": "x"}, "m.room.topic"),
        event("12", "ann", {"m.relates_to": {"rel_type": "m.annotation", "key": "+"}}, "m.reaction"),
    )
    assert format_of(path) == MATRIX
    found = read(MATRIX, path)
    assert found.said == [
        (ROOM, None, "Ann Way", "we launch Monday"),
        (ROOM, None, "ben", "yes!"),
        (ROOM, "$1", "ben", "in a thread"),
        (ROOM, None, "Ann Way", ""),
        (ROOM, None, "Ann Way", "our house"),
        (ROOM, None, "Ann Way", "Where?\n- Rome"),
    ]
    assert found.messages[1].reply_to == "$1"
    assert [[a.name for a in m.attachments] for m in found.messages][3:5] == [["plan.pdf"], ["h.jpg"]]
    assert found.skipped == {NOTICES: 3, EDITS: 2, ENCRYPTED: 1, DELETED: 1}
    assert {m.user for m in found.messages} == {"ann:hs.org", "ben:hs.org"}


def rule(rule: str, at: int = 0, **more: Any) -> dict[str, Any]:
    return event(f"r{at}", "ann", {"join_rule": rule}, "m.room.join_rules", at, state_key="", **more)


HELLO = event("1", "ann", text("hello"), at=5)


@pytest.mark.parametrize(
    ("events", "private", "skipped"),
    [
        ([HELLO], None, {}),
        ([rule("public"), HELLO], False, {NOTICES: 1}),
        ([rule("invite"), HELLO], True, {NOTICES: 1}),
        ([rule("restricted"), HELLO], True, {NOTICES: 1}),
        ([rule("public"), rule("invite", 9), HELLO], True, {NOTICES: 2}),
        ([rule("invite"), rule("public", 9), HELLO], False, {NOTICES: 2, PRIVATE_TIME: 1}),
        ([rule("invite"), rule("public", 2), HELLO], False, {NOTICES: 2}),
        (
            [rule("public", 9, unsigned={"prev_content": {"join_rule": "invite"}}), HELLO],
            False,
            {NOTICES: 1, PRIVATE_TIME: 1},
        ),
        ([came("ben", "invite", is_direct=True), HELLO], None, {NOTICES: 1, BETWEEN_PEOPLE: 1}),
    ],
)
def test_who_may_read_a_room_of_matrix_is_in_its_events(
    tmp_path: Path, events: list[Any], private: bool | None, skipped: dict[str, int]
) -> None:
    found = read(MATRIX, matrix(tmp_path, *events))
    assert found.skipped == skipped
    assert BETWEEN_PEOPLE in skipped or found.rooms[ROOM].private is private


def test_who_left_a_room_of_matrix_is_no_member(tmp_path: Path) -> None:
    events = came("ann"), came("ben"), came("cy"), came("cy", "leave"), event("1", "cy", text("bye")), HELLO
    assert read(MATRIX, matrix(tmp_path, *events)).rooms[ROOM].members == ("ann:hs.org", "ben:hs.org")


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {"type": "m.room.message"},
        {**HELLO, "event_id": 5.5},
        {**HELLO, "origin_server_ts": "soon"},
        {**HELLO, "sender": ""},
    ],
)
def test_an_odd_event_of_matrix_is_named_and_the_rest_is_read(tmp_path: Path, odd: Any) -> None:
    found = read(MATRIX, matrix(tmp_path, odd, HELLO), public=("*",))
    assert ([text for *_, text in found.said], found.skipped) == (["hello"], {ODD: 1})
    assert "export.json: message 1: " in found.odd[0]


# --- Teams -----------------------------------------------------------------------------------------------------------


def graph(id: int, user: str, html: str, channel: str | None = "19:general", **more: Any) -> dict[str, Any]:
    return {
        "id": str(id),
        "messageType": "message",
        "createdDateTime": f"2026-05-04T09:00:{id % 60:02}.123Z",
        "deletedDateTime": None,
        "subject": None,
        "replyToId": None,
        "from": {"application": None, "user": {"id": f"id-{user}", "displayName": user}},
        "body": {"contentType": "html", "content": html},
        "attachments": [],
        "mentions": [],
        "channelIdentity": None if channel is None else {"teamId": "t1", "channelId": channel},
        "chatId": "19:a_b@unq" if channel is None else None,
        **more,
    }


def capital(value: Any) -> Any:
    if isinstance(value, list):
        return [capital(each) for each in value]
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: capital(each) for key, each in value.items()}
    return value


def tenant(path: Path, *messages: dict[str, Any], privacy: str = "Public", kind: str = "standard") -> Path:
    channels = [{"Id": "19:general", "DisplayName": "General", "MembershipType": kind}]
    members = [{"UserId": "id-Ann", "Name": "Ann Way"}]
    write(path / "teams" / "teamsList.json", [{"Name": "Acme", "Privacy": privacy, "GroupsId": "t1"}])
    write(path / "teams" / "t1" / "channels_t1.json", channels)
    write(path / "teams" / "t1" / "teamMembers_t1.json", members)
    write(path / "teams" / "t1" / "teamInstalledApps_t1.json", [{"Id": "x"}])
    write(path / "teams" / "t1" / "messages_t1.json", capital(list(messages)))
    write(path / "users" / "usersList.json", [{"Id": "id-Ben", "DisplayName": "Benny"}])
    write(path / "users" / "u1" / "messages_u1.json", capital([graph(50, "Ann", "<p>psst</p>", None)]))
    return path


CARD_OF_TEAMS = json.dumps(
    {
        "type": "AdaptiveCard",
        "body": [{"type": "TextBlock", "text": "disk full"}, {"facts": [{"title": "free", "value": "1 GB"}]}],
    }
)


def test_a_message_that_is_forwarded_in_teams_is_quoted(tmp_path: Path) -> None:
    content = json.dumps({"originalMessageId": "0", "originalMessageContent": "<p>we launch</p><p>Friday</p>"})
    forwarded = {"id": "a", "contentType": "forwardedMessageReference", "content": content}
    path = tenant(tmp_path / "export", graph(1, "Ann", "<attachment id='a'></attachment>", attachments=[forwarded]))
    assert [text for *_, text in read(TEAMS, path).said] == ["> we launch\n> Friday"]


def test_teams_keeps_channels_threads_and_what_apps_post(tmp_path: Path) -> None:
    alert = graph(5, "x", "<attachment id='1'></attachment>", attachments=[{"name": None, "content": CARD_OF_TEAMS}])
    alert["from"] = {"user": None, "application": {"id": "app", "displayName": "Monitor"}}
    path = tenant(
        tmp_path / "export",
        graph(3, "Ben", "<div>at <b>noon</b> <at id='0'>Ann Way</at></div>", replyToId="1"),
        graph(1, "Ann", "<p>we launch&nbsp;Friday</p><ul><li>a</li><li>b &amp; c</li></ul>", subject="Launch"),
        graph(4, "Ann", "<p>see <a href='https://x.org/p'>the plan</a></p>", attachments=[{"name": "plan.docx"}]),
        alert,
        graph(6, "Ann", "<p>gone</p>", deletedDateTime="2026-05-04T10:00:00Z"),
        graph(7, "Ann", "<systemEventMessage/>", messageType="systemEventMessage"),
        graph(8, "Ann", "<p><img alt='chart.png' src='x'> <emoji alt='🎉'></emoji></p>"),
    )
    assert format_of(path) == TEAMS
    found = read(TEAMS, path)
    room = next(iter(found.rooms))
    assert found.said == [
        (room, None, "Ann Way", "Launch\nwe launch Friday\n- a\n- b & c"),
        (room, "1", "Benny", "at noon @Ann Way"),
        (room, None, "Ann Way", "see the plan (https://x.org/p)"),
        (room, None, "Monitor", "disk full\nfree\n1 GB"),
        (room, None, "Ann Way", "🎉"),
    ]
    assert room.startswith("acme: general-")
    assert [[a.name for a in m.attachments] for m in found.messages] == [[], [], ["plan.docx"], [], ["chart.png"]]
    assert found.skipped == {DELETED: 1, NOTICES: 1, BETWEEN_PEOPLE: 1}
    assert found.files == 1


@pytest.mark.parametrize(
    ("privacy", "kind", "private", "members"),
    [
        ("Public", "standard", False, None),
        ("Private", "standard", True, ("id-ann",)),
        ("Public", "private", True, None),
        ("Public", "shared", True, None),
        ("", "", True, None),
    ],
)
def test_who_may_read_a_channel_of_teams(
    tmp_path: Path, privacy: str, kind: str, private: bool, members: tuple[str, ...] | None
) -> None:
    found = read(TEAMS, tenant(tmp_path / "e", graph(1, "Ann", "hi"), privacy=privacy, kind=kind))
    assert [(room.private, room.members) for room in found.rooms.values()] == [(private, members)]


@pytest.mark.parametrize("form", ["value", "list", "reply"])
def test_messages_of_graph_alone_say_nothing_of_their_channel(tmp_path: Path, form: str) -> None:
    reply = graph(2, "Ben", "<p>yes</p>", replyToId="1")
    first = graph(1, "Ann", "<p>hello</p>", replies=[reply] if form == "reply" else [])
    messages = [first] if form == "reply" else [first, reply]
    path = write(tmp_path / "m.json", messages if form == "list" else {"@odata.context": "x", "value": messages})
    assert format_of(path) == TEAMS
    found = read(TEAMS, path)
    assert [(thread, text) for _, thread, _, text in found.said] == [(None, "hello"), ("1", "yes")]
    assert [room.private for room in found.rooms.values()] == [None]
    assert [room.private for room in read(TEAMS, path, public=("*",)).rooms.values()] == [False]


@pytest.mark.parametrize(
    "odd",
    [None, {"id": "1"}, {**graph(1, "Ann", "x"), "createdDateTime": "soon"}, {**graph(1, "Ann", "x"), "id": None}, 5],
)
def test_an_odd_message_of_teams_is_named_and_the_rest_is_read(tmp_path: Path, odd: Any) -> None:
    found = read(TEAMS, write(tmp_path / "m.json", {"value": [odd, graph(2, "Ann", "<p>hello</p>")]}))
    assert ([text for *_, text in found.said], found.skipped) == (["hello"], {ODD: 1})
    assert "m.json: message 1: " in found.odd[0]


# --- all of them -----------------------------------------------------------------------------------------------------


def one_of_each(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    yield MATTERMOST, mattermost(tmp_path / "mm", posted("leads", "ann", "x"), posted("town-square", "ann", "y"))
    yield ZULIP, zulip(tmp_path / "z", zulip_said(1, 11, 102, "x"), zulip_said(2, 11, 101, "y"))
    yield TELEGRAM, write(tmp_path / "tg" / "result.json", chat(telegram_said(1, "Ann", "x")))
    yield MATRIX, matrix(tmp_path / "mx", rule("invite"), HELLO)
    yield TEAMS, tenant(tmp_path / "te", graph(1, "Ann", "x"), privacy="Private")


def test_nothing_private_is_loaded_into_another_room(tmp_path: Path) -> None:
    for format, path in one_of_each(tmp_path):
        found = read(format, path, room="archive")
        assert {room for room, *_ in found.said} <= {"archive"}
        assert [text for *_, text in found.said] in ([], ["y"])
        assert MIXED in found.skipped, format
        private = next(room.title for room in found.rooms.values() if room.private)
        with pytest.raises(BadInput, match="is private in the export"):
            read(format, path, public=(private,))
        with pytest.raises(BadInput, match="there is no such room"):
            read(format, path, public=("nowhere",))


def test_the_format_of_each_export_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    for format, path in one_of_each(tmp_path):
        assert format_of(path) == format
        folder = path if path.is_dir() else path.parent
        with zipfile.ZipFile(tmp_path / f"{format}.zip", "w") as packed:
            for file in folder.rglob("*.json*"):
                packed.write(file, f"around/{file.relative_to(folder)}")
        assert format_of(tmp_path / f"{format}.zip") == format
    for format, content in {
        "slack-export": None,
        "discord-export": b'{\n  "guild": {"id": "1"},\n  "channel": {"id": "2"},\n  "messages": []\n}',
        "irc": b"--- Log opened Mon May 04 12:18:00 2026\n12:18 < ann> hi\n",
        "irc, with brackets": b"[12:18] <ann> hi\n",
        "jsonl": b'{"type":"message","at":"2026-05-04T09:00:00Z","room":"x","user":"ann","text":"hi"}\n',
    }.items():
        path = tmp_path / f"{format}.x"
        if content is None:
            path = tmp_path / "slack"
            write(path / "channels.json", [])
        else:
            path.write_bytes(content)
        assert format_of(path) == format.partition(",")[0]


def test_a_deep_file_is_named_and_not_followed(tmp_path: Path) -> None:
    deep = b'{"name": "x", "type": "private_group", "id": 1, "messages": [' + b"[" * 200_000
    assert "nested too deeply" in read(TELEGRAM, write(tmp_path / "result.json", deep)).odd[0]
    deep = b'{"room_name": "x", "exported_by": "y", "messages": [' + b'{"a":' * 200_000
    assert "nested too deeply" in read(MATRIX, write(tmp_path / "m" / "export.json", deep)).odd[0]
    deep = b'{"value": [' + b'{"replies":[' * 100_000
    assert "nested too deeply" in read(TEAMS, write(tmp_path / "t" / "m.json", deep)).odd[0]
