"""Messages of exports in the forms in which people's programs really write them: words outside the text, members that
are null, numbers for texts. Each is read, or left out as what it is."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bot.importers.export import DISCORD_EXPORT, NOTICES, SLACK_EXPORT, ImportOptions
from bot.importers.platform_exports import open_exports
from composer.model import Incoming
from composer.settings import Settings
from tests.support.exports import (
    ALICE,
    BOB,
    TOWN,
    SlackZip,
    discord_file,
    discord_person,
    discord_said,
    slack_said,
)

TS = "1777885200.000100"
ROOM = {"id": "R1", "name": "Design review", "created_by": ALICE, "participant_history": [ALICE, BOB]}
CANVAS = {"id": "F1", "name": "canvas", "title": "Onboarding plan", "mode": "quip"}
ANN, ALERTS = discord_person("901", "ann"), discord_person("905", "alerts", bot=True)


def read(format: str, path: Path) -> tuple[list[Incoming], list[str]]:
    """The messages of an export, and why others are left out."""
    with ExitStack() as opened:
        settings = Settings(home=path.parent)
        (found,) = open_exports([path], format, ImportOptions(), settings, opened)
        entries = list(found.export.messages())
        return [each.incoming for each in entries if each.incoming], [each.reason for each in entries if each.reason]


def slack(path: Path, *messages: dict[str, Any]) -> tuple[list[Incoming], list[str]]:
    return read(SLACK_EXPORT, SlackZip(days={"general/2026-05-04": list(messages)}).write(path / "export.zip"))


def discord(path: Path, *messages: dict[str, Any]) -> tuple[list[Incoming], list[str]]:
    return read(DISCORD_EXPORT, discord_file(path / "town.json", {"id": TOWN, "name": "town"}, messages))


@pytest.mark.parametrize(
    ("message", "name", "text"),
    [
        (
            {"user": "USLACKBOT", "subtype": "huddle_thread", "room": ROOM},
            "Slackbot",
            "(huddle: Design review: with @Alice, @Bob)",
        ),
        (
            {"user": "USLACKBOT", "subtype": "huddle_thread", "room": {"name": "", "created_by": BOB}},
            "Slackbot",
            "(huddle: with @Bob)",
        ),
        (
            {"user": ALICE, "subtype": "sh_room_created", "room": ROOM | {"participant_history": None}},
            "Alice",
            "(huddle: ",
        ),
        ({"user": "USLACKBOT", "subtype": "slackbot_response", "text": "The code is 7."}, "Slackbot", "The code is 7."),
        ({"user": ALICE, "subtype": "reply_broadcast", "text": "seen"}, "Alice", "seen"),
        ({"user": ALICE, "subtype": "file_comment", "text": "paint the attic"}, "Alice", "paint the attic"),
        ({"user": ALICE, "subtype": "some_new_kind", "text": "a new kind"}, "Alice", "a new kind"),
        ({"user": ALICE, "text": "ask <@U99|zoe>"}, "Alice", "ask @zoe"),
        ({"user": ALICE, "text": "numbers", "ts": 1777885200.0001}, "Alice", "numbers"),
        ({"user": ALICE, "text": "odd lists", "files": [None], "attachments": {}, "blocks": [7]}, "Alice", "odd lists"),
        ({"user": ALICE, "text": "sizes", "files": [{"id": "F", "name": "a.txt", "size": "812"}]}, "Alice", "sizes"),
        (
            {
                "bot_id": "B1",
                "username": "Rollout",
                "blocks": [{"type": "plan", "title": "Rollout", "tasks": [{"title": "Drain db-7"}]}],
            },
            "Rollout",
            "Rollout\nDrain db-7",
        ),
        (
            {
                "bot_id": "B1",
                "username": "Agent",
                "blocks": [
                    {
                        "type": "task_card",
                        "title": "Check db-7",
                        "output": {
                            "type": "rich_text",
                            "elements": [
                                {"type": "rich_text_section", "elements": [{"type": "text", "text": "all good"}]}
                            ],
                        },
                    }
                ],
            },
            "Agent",
            "Check db-7\nall good",
        ),
    ],
)
def test_a_message_of_slack_is_read_in_each_form(tmp_path: Path, message: dict[str, Any], name: str, text: str) -> None:
    said, left_out = slack(tmp_path, {"type": "message", "ts": TS, **message})
    assert left_out == []
    assert said[0].user_name == name
    assert said[0].text.startswith(text)


def test_a_canvas_is_named_by_its_title(tmp_path: Path) -> None:
    files = [CANVAS, {"id": "F2", "name": "plan.pdf", "title": "Plan"}, {"id": "F3"}]
    said, _ = slack(tmp_path, slack_said(TS, ALICE, "", files=files))
    assert [each.name for each in said[0].attachments] == ["Onboarding plan", "plan.pdf", "F3"]


@pytest.mark.parametrize(
    "subtype", ["channel_join", "group_leave", "channel_topic", "pinned_item", "bot_add", "reminder_add", "tombstone"]
)
def test_a_notice_of_slack_is_no_message(tmp_path: Path, subtype: str) -> None:
    said, left_out = slack(tmp_path, slack_said(TS, ALICE, "a notice", subtype=subtype))
    assert (said, left_out) == ([], [NOTICES])


def row(*components: dict[str, Any]) -> dict[str, Any]:
    return {"type": "ActionRow", "components": list(components)}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            {"components": [row({"type": "Button", "label": "Approve", "url": None, "isDisabled": False})]},
            "(button: Approve)",
        ),
        (
            {"components": [{"type": "Container", "components": [{"type": "TextDisplay", "content": "Build failed"}]}]},
            "Build failed",
        ),
        (
            {"components": [row({"type": "StringSelect", "placeholder": "A day", "options": [{"label": "Friday"}]})]},
            "(menu: A day)\n- Friday",
        ),
        (
            {"poll": {"question": "Which day?", "answers": [{"id": 1, "text": "Friday"}, {"id": 2, "text": None}]}},
            "Poll: Which day?\n- Friday",
        ),
        (
            {"poll": {"question": {"text": "Which day?"}, "answers": [{"poll_media": {"text": "Friday"}}]}},
            "Poll: Which day?\n- Friday",
        ),
        ({"type": "24", "embeds": [{"description": "flagged"}]}, "flagged"),
        ({"embeds": [{"title": "Alert", "description": None, "author": None, "fields": None}]}, "Alert"),
        ({"forwardedMessage": {"content": "moved", "attachments": None, "embeds": None}}, "> moved"),
        ({"content": "all null", "attachments": None, "embeds": None, "stickers": None, "mentions": None}, "all null"),
        ({"content": "numbers", "id": 301}, "numbers"),
        ({"content": "file", "attachments": [{"fileName": "a.txt", "url": None, "fileSizeBytes": None}]}, "file"),
        ({"content": "at <t:1777885200:F>, <t:99999999999>"}, "at 2026-05-04 09:00 UTC, <t:99999999999>"),
    ],
)
def test_a_message_of_discord_is_read_in_each_form(tmp_path: Path, message: dict[str, Any], text: str) -> None:
    said, left_out = discord(tmp_path, discord_said("301", ALERTS, "") | message)
    assert left_out == []
    assert said[0].text == text


def test_a_notice_of_discord_is_no_message(tmp_path: Path) -> None:
    kinds = ("ThreadCreated", "ChannelPinnedMessage", "GuildMemberJoin", "Call", "8", "21", "63")
    notices = [discord_said(str(301 + n), ANN, "a notice", type=kind) for n, kind in enumerate(kinds)]
    said, left_out = discord(tmp_path, *notices, discord_said("399", ANN, "hello"))
    assert [each.text for each in said] == ["hello"]
    assert left_out == [NOTICES] * len(kinds)
