"""Sources of answers, memories and decisions lead to their messages on Discord and Slack: for whoever may read these
now, and not out of a private room to who is not in it."""

import re
from html import unescape
from typing import Any, Final

import asyncpg
import httpx2
import pytest

from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness
from tests.support.pages import Person

CODE: Final = "The code of the vault is the heron."
QUESTION: Final = "what is the code of the vault?"
DISCORD_LINK: Final = "https://discord.com/channels/91/92/93"
SLACK_LINK: Final = "https://app.slack.com/client/T1/C2/thread/C2-1700000000.000100"
LINKS: Final = re.compile(r'<a class="to-chat" href="([^"]+)" target="_blank" rel="noopener noreferrer">([^<]+)<')
PLACES: Final = {
    "discord": ("91", "92", DISCORD_LINK, "Open in Discord"),
    "slack": ("T1", "C2", SLACK_LINK, "Open in Slack"),
}


async def on_platform(raw: asyncpg.Connection, room: str, platform: str) -> tuple[str, str]:
    """Let a room of the terminal be one of a chat platform. Returns the link to its message, and what pages call it."""
    workspace, name, link, called = PLACES[platform]
    await raw.execute(
        "UPDATE conversations SET platform = $1, workspace = $2, name = $3, title = $4 WHERE name = $4",
        *(platform, workspace, name, room),
    )
    return link, called


def message_of(platform: str) -> str:
    return "93" if platform == "discord" else "1700000000.000100"


async def pooled(harness: AppHarness, platform: str, room: str, **other: Any) -> None:
    """Say something in a room of the project apollo."""
    await harness.say("alice", CODE, id=message_of(platform), room=room, **other)
    await harness.command("alice", "/nexus project create apollo", room=room)
    await harness.command("alice", f"/nexus project assign apollo {'--pool ' if other else ''}--yes", room=room)


async def sources(client: httpx2.AsyncClient, harness: AppHarness) -> list[Any]:
    key = bearer(await key_of(harness, "alice"))
    asked = await client.post("/v1/chat", json={"content": QUESTION, "project": "apollo"}, headers=key)
    assert asked.status_code == 200, asked.text
    turn = (await client.get(f"/v1/chat/turns/{asked.json()['turn']}", headers=key)).json()
    assert turn["sources"] == asked.json()["sources"]
    return [each["link"] for each in turn["sources"] if "heron" in each["text"]]


def links(page: str) -> list[tuple[str, str]]:
    return [(unescape(link), unescape(words)) for link, words in LINKS.findall(page)]


@pytest.mark.parametrize("platform", PLACES)
async def test_a_source_of_an_answer_leads_to_its_message(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, raw: asyncpg.Connection, platform: str
) -> None:
    await pooled(harness, platform, "hall")
    assert await sources(client, harness) == [None], "the terminal has no links"
    link, called = await on_platform(raw, "hall", platform)
    assert await sources(client, harness) == [link]
    [address] = set(re.findall(r'href="(/ask/[0-9a-f-]{36})"', await alice.page("/ask")))
    assert links(await alice.page(address)) == [(link, called)]
    project = await raw.fetchval("SELECT id FROM projects")
    asked = await alice.press("/ask", text=QUESTION, project=str(project))
    assert (link, called) in links(await alice.page(asked.headers["location"]))
    await raw.execute("UPDATE conversations SET private = true WHERE title = 'hall'")
    assert await sources(client, harness) == [], "what is not pooled any more is no source"
    assert links(await alice.page(asked.headers["location"])) == []


async def test_a_pooled_private_room_is_named_by_no_link(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, raw: asyncpg.Connection
) -> None:
    await pooled(harness, "discord", "cave", private=True)
    await on_platform(raw, "cave", "discord")
    assert await sources(client, harness) == [None]
    [address] = set(re.findall(r'href="(/ask/[0-9a-f-]{36})"', await alice.page("/ask")))
    shown = await alice.page(address)
    assert "heron" in shown
    assert links(shown) == []


@pytest.mark.parametrize("platform", PLACES)
async def test_a_memory_leads_to_where_it_came_from_while_one_may_enter(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, raw: asyncpg.Connection, platform: str
) -> None:
    await harness.say("alice", "We decided to ship on Fridays.", id=message_of(platform), room="hall")
    link, called = await on_platform(raw, "hall", platform)
    key = bearer(await key_of(harness, "alice"))

    async def found() -> tuple[list[Any], list[tuple[str, str]]]:
        items = (await client.get("/v1/memory?q=Fridays", headers=key)).json()["items"]
        item = items[0]["id"]
        traces = (await client.get(f"/v1/memory/{item}", headers=key)).json()["sources"]
        return [each["link"] for each in traces], links(await alice.page(f"/memory/{item}"))

    assert await found() == ([link], [(link, called)])
    await raw.execute("UPDATE conversations SET private = true WHERE title = 'hall'")
    await raw.execute("DELETE FROM members")
    assert await found() == ([None], []), "a private room that she is not in"


async def test_a_decision_leads_to_its_message_on_the_board_and_on_waiting(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "hello", room="hall")
    await harness.say("bob", "After long. We decided to ship on Fridays. Good.", id="93", room="hall")
    link, called = await on_platform(raw, "hall", "discord")
    room = await raw.fetchval("SELECT id FROM conversations WHERE title = 'hall'")
    for page in ("/waiting", f"/rooms/{room}?view=decisions"):
        assert links(await alice.page(page)) == [(link, called)], page
    [decision] = (await alice.get(f"/v1/rooms/{room}/landmarks")).json()["items"]
    assert [each["link"] for each in decision["sources"]] == [link]
