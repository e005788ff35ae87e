"""The words of a Slack message, wherever in it they stand."""

from typing import Any

import pytest

from bot.platform.events import MessageChanged
from bot.slack.reading import BotIdentity, read_message
from bot.slack.text import plain
from bot.slack.words import MAX_WORDS_CHARS, other_words, own_words
from composer.model import Incoming, Trust

ME = BotIdentity("T1", "UME", "BME")


@pytest.mark.parametrize("subtype", ["huddle_thread", "slackbot_response", ""])
def test_what_slack_itself_writes_is_nobodys_question(subtype: str) -> None:
    room = {"id": "R1", "name": "Design review", "participants": ["U1"]}
    message = {
        "type": "message",
        "ts": "1.0",
        "user": "USLACKBOT",
        "subtype": subtype,
        "text": "<@UME> hi",
        "room": room,
    }
    event = read_message(message, "D1", "im", ME)
    assert isinstance(event, Incoming)
    assert (event.sender_trust, event.user_name) == (Trust.TOOL, "Slackbot")
    assert "(huddle: Design review: with <@U1>)" in event.quoted


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def text(words: str, kind: str = "mrkdwn") -> dict[str, Any]:
    return {"type": kind, "text": words}


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return block("rich_text", elements=list(elements))


def line(*elements: dict[str, Any], kind: str = "rich_text_section", **more: Any) -> dict[str, Any]:
    return {"type": kind, "elements": list(elements), **more}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        # What Slack's own editor writes stands in the text too.
        (
            {
                "text": "hello *there* <@U2>",
                "blocks": [rich(line(text("hello ", "text"), {"type": "user", "user_id": "U2"}))],
            },
            "",
        ),
        (
            {"text": "", "blocks": [block("header", text=text("Release 4.7", "plain_text"))], "bot_id": "B"},
            "Release 4.7",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [block("section", text=text("*Disk* full"), fields=[text("host: db-7")])],
            },
            "*Disk* full\nhost: db-7",
        ),
        ({"text": "deploy", "blocks": [block("section", text=text("deploy")), block("divider")], "bot_id": "B"}, ""),
        (
            {"text": "Build failed", "bot_id": "B", "blocks": [block("section", text=text("Build failed: 3 tests"))]},
            "Build failed: 3 tests",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [block("context", elements=[text("by ann"), {"type": "image", "alt_text": "a chart"}])],
            },
            "by ann (image: a chart)",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [block("actions", elements=[{"type": "button", "text": text("Approve", "plain_text")}])],
            },
            "(button: Approve)",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [
                    block(
                        "table",
                        rows=[
                            [text("host", "raw_text"), text("load", "raw_text")],
                            [text("db-7", "raw_text"), text("97%", "raw_text")],
                        ],
                    )
                ],
            },
            "host | load\ndb-7 | 97%",
        ),
        (
            {"text": "", "bot_id": "B", "blocks": [block("markdown", text="# Plan\nship <it> & rest")]},
            "# Plan\nship &lt;it&gt; &amp; rest",
        ),
        (
            {"text": "", "bot_id": "B", "blocks": [block("image", alt_text="graph of load", image_url="https://x/y")]},
            "(image: graph of load)",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [
                    block("video", title=text("Demo day", "plain_text"), description=text("of May", "plain_text"))
                ],
            },
            "Demo day\nof May",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [
                    rich(
                        line(
                            line(text("one", "text")), line(text("two", "text")), kind="rich_text_list", style="ordered"
                        ),
                        line(text("said", "text"), kind="rich_text_quote"),
                        line(text("x = 1", "text"), kind="rich_text_preformatted"),
                        line(
                            {"type": "link", "url": "https://a.example", "text": "here"},
                            {"type": "emoji", "name": "tada"},
                        ),
                    )
                ],
            },
            "1. one\n2. two\n> said\n```\nx = 1\n```\n<https://a.example|here>:tada:",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [block("newest_kind", elements=[block("inner", text=text("still read"))])],
            },
            "still read",
        ),
        (
            {"text": "", "attachments": [{"is_share": True, "author_subname": "Zoe", "text": "The server moves."}]},
            "> Zoe wrote: The server moves.",
        ),
        (
            {
                "text": "see",
                "attachments": [
                    {
                        "is_msg_unfurl": True,
                        "author_name": "Zoe",
                        "text": "quoted",
                        "from_url": "https://acme.slack.com/p1",
                    }
                ],
            },
            "> Zoe wrote: quoted",
        ),
        (
            {
                "text": "",
                "attachments": [
                    {
                        "is_share": True,
                        "author_name": "Bot",
                        "message_blocks": [{"message": {"blocks": [block("section", text=text("card text"))]}}],
                    }
                ],
            },
            "> Bot wrote: card text",
        ),
        (
            {
                "text": "",
                "bot_id": "B",
                "attachments": [
                    {
                        "title": "[FIRING] DiskFull",
                        "text": "db-7 is full",
                        "fields": [{"title": "host", "value": "db-7"}],
                    }
                ],
            },
            "[FIRING] DiskFull\ndb-7 is full\nhost: db-7",
        ),
        ({"text": "", "bot_id": "B", "attachments": [{"fallback": "only this"}]}, "only this"),
        ({"text": "", "attachments": [{"is_share": True, "files": [{"name": "plan.pdf"}]}]}, "> (file: plan.pdf)"),
        (
            {
                "text": "<https://site.example>",
                "attachments": [{"from_url": "https://site.example", "title": "A site", "text": "its words"}],
            },
            "",
        ),
        (
            {"text": "all is ok here", "bot_id": "B", "attachments": [{"fields": [{"title": "state", "value": "ok"}]}]},
            "state: ok",
        ),
        ({"text": "a b", "bot_id": "B", "attachments": [{"text": "b"}]}, "b"),
        (
            {
                "text": "",
                "bot_id": "B",
                "blocks": [
                    rich(
                        line(
                            line(text("three", "text")), kind="rich_text_list", style="ordered", offset=2, indent="odd"
                        )
                    )
                ],
            },
            "3. three",
        ),
        ({"text": "x", "blocks": None, "attachments": "odd"}, ""),
        (
            {
                "text": "x",
                "blocks": [7, {"type": "section", "text": 7}, {"type": "table", "rows": [7]}],
                "attachments": [None],
            },
            "7",
        ),
    ],
)
def test_the_words_outside_the_text_are_read(message: dict[str, Any], words: str) -> None:
    assert other_words(message) == words


def test_what_somebody_wrote_without_a_text_is_theirs() -> None:
    message = {"text": "", "blocks": [rich(line(text("when do we ship?", "text")))]}
    assert own_words(message) == "when do we ship?"
    assert other_words(message) == ""


def test_what_is_deep_or_long_is_bounded() -> None:
    deep: dict[str, Any] = {"type": "odd", "text": text("bottom")}
    for _ in range(200):
        deep = {"type": "odd", "elements": [deep]}
    assert other_words({"text": "", "bot_id": "B", "blocks": [deep]}) == ""
    long = {"text": "", "bot_id": "B", "attachments": [{"text": f"word{n} " * 500} for n in range(100)]}
    assert len(other_words(long)) == MAX_WORDS_CHARS


def test_a_forward_keeps_its_words_apart_from_what_addresses_somebody() -> None:
    shared = [{"is_share": True, "author_name": "Zoe", "text": "<@UME> what is the code?"}]
    read = read_message({"ts": "1.000001", "user": "U1", "text": "look", "attachments": shared}, "C1", "channel", ME)
    assert isinstance(read, Incoming)
    assert (read.text, read.quoted) == ("look", "> Zoe wrote: <@UME> what is the code?")


@pytest.mark.parametrize(("state", "changes"), [("resolved", True), ("firing", False)])
def test_an_alert_that_its_app_updates_is_edited(state: str, changes: bool) -> None:
    def alert(words: str) -> dict[str, Any]:
        return {"ts": "1.000001", "bot_id": "B", "subtype": "bot_message", "text": "", "attachments": [{"text": words}]}

    event = {
        "subtype": "message_changed",
        "ts": "2.000001",
        "message": alert(state),
        "previous_message": alert("firing"),
    }
    read = read_message(event, "C1", "channel", ME)
    assert (read is not None) is changes
    if isinstance(read, MessageChanged):
        assert read.quoted == "resolved"


def test_an_old_integration_without_an_id_is_an_app_of_its_name() -> None:
    sent = {"ts": "1.000001", "subtype": "bot_message", "username": "nagios", "text": "db-7 is down"}
    read = read_message(sent, "C1", "channel", ME)
    assert isinstance(read, Incoming)
    assert (read.user, read.sender_trust, read.user_name, read.text) == ("nagios", Trust.TOOL, "nagios", "db-7 is down")


def test_the_preview_of_a_link_is_no_edit() -> None:
    before = {"ts": "1.000001", "user": "U1", "text": "<https://site.example>"}
    after = before | {"attachments": [{"from_url": "https://site.example", "title": "A site"}]}
    event = {"subtype": "message_changed", "ts": "2.000001", "message": after, "previous_message": before}
    assert read_message(event, "C1", "channel", ME) is None


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("in <#C2|>", "in #vacations"),
        ("in <#C2>", "in #vacations"),
        ("in <#C2|holidays>", "in #holidays"),
        ("in <#C3|>", "in #C3"),
        ("<!subteam^S1|@ops> please", "@ops please"),
        ("<!subteam^S1> please", "@a group please"),
        ("<!here> and <!channel>", "@here and @channel"),
    ],
)
def test_channels_and_groups_are_named(markup: str, shown: str) -> None:
    assert plain(markup, {}, rooms={"C2": "vacations"}) == shown
