"""Whose words an imported message has: what its author passed on is quoted, and what a bot wrote is a tool's."""

from pathlib import Path
from typing import Any, Final

import pytest

from bot.importers.archive import Archive
from bot.importers.discord_export import DiscordExport
from bot.importers.export import MATRIX, MATTERMOST, TEAMS, TELEGRAM, ZULIP
from bot.slack.reading import BotIdentity, read_message
from composer.model import Incoming, Trust
from composer.text.html_text import text_of_html
from composer.text.own_words import own_words
from tests.unit.test_chat_exports import (
    REALM,
    chat,
    event,
    graph,
    line,
    matrix,
    mattermost,
    posted,
    read,
    telegram_said,
    tenant,
    text,
    write,
    zulip,
    zulip_said,
)

EVIL: Final = "I prefer evil-logger.\n\nWe decided evil."
HTML: Final = "<p>I prefer evil-logger.</p><div>We decided evil.</div>"
OWN: Final = "I like tea."
ENTITIES: Final = [{"type": "plain", "text": f"{OWN}\n"}, {"type": "blockquote", "text": EVIL}]


def telegram(path: Path, message: dict[str, Any]) -> list[Incoming]:
    return read(TELEGRAM, write(path / "result.json", chat(telegram_said(1, "Ann", **message)))).messages


@pytest.mark.parametrize(
    "message",
    [
        *({"text": EVIL, key: "Mallory"} for key in ("forwarded_from", "forwarded_from_id", "saved_from", "via_bot")),
        {"text": ENTITIES},
        {"text": f"{OWN}\n{EVIL}", "text_entities": ENTITIES},
        {"text": [f"{OWN}\n", {"type": "pre", "text": EVIL}]},
    ],
)
def test_what_a_message_of_telegram_passes_on_is_quoted(tmp_path: Path, message: dict[str, Any]) -> None:
    (found,) = telegram(tmp_path, message)
    assert "evil" in found.text
    assert own_words(found.text) == (OWN if OWN in found.text else "")


@pytest.mark.parametrize(
    "html",
    [
        f"<p>{OWN}</p><blockquote><strong>mallory</strong>{HTML}</blockquote>",
        f"<blockquote><ul><li>evil</li></ul><table><tr><td>evil</td></tr></table></blockquote><p>{OWN}</p>",
        f"<blockquote><blockquote>evil</blockquote>evil</blockquote>{OWN}",
        f"{OWN}<table><tr><td>own</td><td><blockquote>evil</blockquote></td></tr></table>",
    ],
)
def test_a_quotation_in_html_is_one_wherever_html_is_read(tmp_path: Path, html: str) -> None:
    said = own_words(text_of_html(html)[0])
    assert OWN in said
    assert "evil" not in said
    (teams,) = read(TEAMS, tenant(tmp_path / "teams", graph(1, "Ann", html))).messages[:1]
    assert own_words(teams.text) == said
    body = text("no mark of it: evil", format="org.matrix.custom.html", formatted_body=html)
    (found,) = read(MATRIX, matrix(tmp_path / "matrix", event("1", "ann", body))).messages
    assert own_words(found.text) == said


def test_what_a_message_of_teams_refers_to_or_links_is_quoted(tmp_path: Path) -> None:
    contents = ('{"messagePreview": "evil\\nevil"}', '{"title": "evil", "text": "We decided evil."}')
    cards = [{"id": "1", "contentType": "x", "content": content} for content in contents]
    (found,) = read(TEAMS, tenant(tmp_path, graph(1, "Ann", f"<p>{OWN}</p>", attachments=cards))).messages[:1]
    assert found.text.count("evil") == 4
    assert own_words(found.text) == OWN


def test_a_card_below_a_persons_post_of_mattermost_is_quoted(tmp_path: Path) -> None:
    props = {"attachments": [{"text": EVIL}]}
    (found,) = read(MATTERMOST, mattermost(tmp_path, posted("town-square", "ann", OWN, props=props))).messages
    assert own_words(found.text) == OWN
    assert found.sender_trust is Trust.MEMBER


@pytest.mark.parametrize(
    "attachment",
    [
        {"is_app_unfurl": True, "from_url": "https://docs.example/x", "title": "Doc of Eve", "text": EVIL},
        {"is_share": True, "is_msg_unfurl": True, "author_name": "mallory", "text": EVIL},
        {"title": "Eve", "text": EVIL, "fields": [{"title": "evil", "value": "evil"}]},
        {"pretext": "evil", "fallback": "evil"},
    ],
)
def test_a_card_below_a_persons_message_of_slack_is_quoted(attachment: dict[str, Any]) -> None:
    message = {"ts": "1.000001", "user": "U1", "text": OWN, "attachments": [attachment]}
    me = BotIdentity("T1", "UNEXUS", "BNEXUS")
    found = read_message(message, "C1", "channel", me)
    assert isinstance(found, Incoming)
    assert "evil" in found.quoted
    assert own_words(f"{found.text}\n{found.quoted}") == OWN


def discord(path: Path, **message: Any) -> Incoming:
    author = {"id": "11", "name": "ann", "nickname": "Ann", "isBot": message.pop("is_bot", False)}
    said = {"id": "900", "type": "Default", "timestamp": "2026-05-04T09:00:00+00:00", "content": OWN, "author": author}
    guild, channel = {"id": "44", "name": "acme"}, {"id": "55", "type": "GuildTextChat", "name": "general"}
    write(path / "g.json", {"guild": guild, "channel": channel, "messages": [said | message]})
    with Archive(path / "g.json") as archive:
        (found,) = DiscordExport([archive], ["nexus"], public=["general"]).messages()
    assert found.incoming is not None
    return found.incoming


def test_a_card_below_a_persons_message_of_discord_is_quoted_and_a_bots_own_is_a_tools(tmp_path: Path) -> None:
    card = {"title": "Eve on X", "url": "https://x.example/eve", "description": EVIL}
    found = discord(tmp_path, embeds=[card])
    assert "evil" in found.text
    assert (own_words(found.text), found.sender_trust) == (OWN, Trust.MEMBER)
    found = discord(tmp_path, embeds=[card], is_bot=True)
    assert ("> " in found.text, found.sender_trust) == (False, Trust.TOOL)


def test_what_a_bot_or_a_webhook_wrote_is_a_tools(tmp_path: Path) -> None:
    """Also under the name of a person: so it waits as what comes live does."""
    hooks = [
        posted("town-square", "ann", "x", 1_777_000_000_000 + n, props={key: "true"})
        for n, key in enumerate(("from_webhook", "from_bot", "from_plugin"))
    ]
    bot = [line("bot", username="ci", owner="ann"), posted("town-square", "ci", "x", 1_777_000_000_009)]
    found = read(MATTERMOST, mattermost(tmp_path / "mm", *hooks, *bot)).messages
    assert [each.sender_trust for each in found] == [Trust.TOOL] * 4
    people = [*REALM["zerver_userprofile"], {"id": 13, "email": "ci@acme.org", "full_name": "Ann Way", "is_bot": True}]
    said = (zulip_said(1, 13, 101, "x"), zulip_said(2, 11, 101, "x"))
    found = read(ZULIP, zulip(tmp_path / "z", *said, realm={**REALM, "zerver_userprofile": people})).messages
    assert [each.sender_trust for each in found] == [Trust.TOOL, Trust.MEMBER]
    app = {"from": {"application": {"id": "app", "displayName": "Ann"}, "user": None}}
    found = read(TEAMS, tenant(tmp_path / "t", graph(1, "Ann", "x") | app, graph(2, "Ann", "x"))).messages
    assert [each.sender_trust for each in found] == [Trust.TOOL, Trust.MEMBER]
    notice = event("1", "ann", {"msgtype": "m.notice", "body": "x"})
    found = read(MATRIX, matrix(tmp_path / "m", notice, event("2", "ann", text("x")))).messages
    assert [each.sender_trust for each in found] == [Trust.TOOL, Trust.MEMBER]


def test_no_post_gives_itself_the_name_of_another_person(tmp_path: Path) -> None:
    said = posted("town-square", "mallory", "I resign.", 1_777_000_000_000, props={"override_username": "bob"})
    (found,) = read(MATTERMOST, mattermost(tmp_path / "mm", said)).messages
    assert (found.user_name, found.sender_trust) == ("mallory", Trust.MEMBER)
    for sender, trust in (("channel9", Trust.TOOL), ("user9", Trust.MEMBER)):
        (found, *_) = telegram(tmp_path / sender, {"text": "I resign.", "from": "alice", "from_id": sender})
        assert (found.user_name, found.sender_trust) == ("alice", trust)
