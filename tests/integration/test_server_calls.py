"""What a turn may send to a tool server is judged before each call: people forget and opt out meanwhile."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from bot.script.places import incoming, place_of
from composer.ingest.rooms import set_room_private, set_room_shared
from composer.settings import Settings
from tests.support.mcp_office import Wiki, at, office_with, serving
from tests.support.model_server import Say
from tests.support.tool_office import LAB, Office, call

Act = Callable[[Office], Awaitable[object]]
CAVE: Final[dict[str, Any]] = {"room": "cave", "private": True}


@pytest.fixture
async def wiki() -> AsyncIterator[Wiki]:
    async with serving(Wiki().add("search")) as wiki:
        yield wiki


@pytest.fixture
async def office(settings: Settings, wiki: Wiki) -> AsyncIterator[Office]:
    async with office_with(settings, wiki=at(wiki, "search")) as office:
        yield office


async def called_twice(office: Office, wiki: Wiki, act: Act, **place: Any) -> list[object]:
    """What was sent by two calls of one turn, if `act` happens while the first one runs."""
    done: list[str] = []

    async def search(_: Any) -> str:
        if not done:
            done.append("begun")
            await act(office)
            done.append("ended")
        return "Found."

    wiki.add("search", search)
    steps = [call("wiki__search", query=query) for query in ("one", "two")]
    office.server.script.extend((*steps, Say(("Done.",))))
    app, at_ = office.harness.app, office.harness.workspace()
    where = place_of(**{"room": None, "dm": None, "session": None, **(place or LAB)})
    asked = incoming(at_, where, "alice", "@nexus hello zebra", office.harness.clock.tick(), id="q")
    await app.receive(at_, [asked])
    await app.turns.settle()
    assert done == ["begun", "ended"], "the control"
    return [arguments["query"] for _, arguments in wiki.calls]


def command(user: str, text: str, **place: Any) -> Act:
    return lambda office: office.harness.command(user, f"/nexus {text}", **(place or LAB))


async def close(office: Office) -> None:
    harness = office.harness
    at_ = harness.workspace()
    agents = harness.app.directory.agents(at_.tenant_id)
    await set_room_private(harness.app.database, at_, agents, "lab", True, harness.clock.tick())


async def share(office: Office) -> None:
    harness = office.harness
    await set_room_shared(harness.app.database, harness.workspace(), "lab", harness.clock.tick())


def outside(office: Office) -> list[str]:
    return [name for name in office.offered() if "__" in name]


async def test_a_turn_calls_twice_if_nothing_changes(office: Office, wiki: Wiki) -> None:
    assert await called_twice(office, wiki, command("alice", "help")) == ["one", "two"]
    assert outside(office) == ["wiki__search"]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (command("alice", "forget message q --yes"), "erased or edited"),
        (command("alice", "forget everything --yes"), "erased or edited"),
        (lambda office: office.harness.change("q", "@nexus hello walnut"), "erased or edited"),
        (command("alice", "opt-out"), "opted out"),
        (command("alice", "memory off"), "stores nothing"),
        (close, "who reads this conversation"),
        (share, "who reads this conversation"),
    ],
    ids=["question forgotten", "everything forgotten", "edited", "opted out", "memory off", "closed", "shared"],
)
async def test_nothing_is_sent_once_it_may_not_be(office: Office, wiki: Wiki, act: Act, why: str) -> None:
    assert await called_twice(office, wiki, act) == ["one"]
    assert why in office.last_results[-1]
    assert outside(office) == [], "and no server is asked any more in this turn"


async def test_nothing_is_sent_once_a_source_of_the_prompt_is_forgotten(office: Office, wiki: Wiki) -> None:
    await office.harness.say("bob", "the vault code is walnut", id="b", **LAB)
    assert await called_twice(office, wiki, command("bob", "forget message b --yes")) == ["one"]
    assert "walnut" in json.dumps(office.server.requests[-1].body["messages"]), "the control: it was in the prompt"
    assert outside(office) == []


async def test_nothing_is_sent_once_what_a_tool_brought_is_forgotten(office: Office, wiki: Wiki) -> None:
    await office.harness.say("bob", "the vault opens with the walnut key", id="b", **LAB)
    await office.chatter(**LAB)

    async def forget(_: Any) -> str:
        if len(wiki.calls) == 1:
            await office.harness.command("bob", "/nexus forget message b --yes", **LAB)
        return "Found."

    wiki.add("search", forget)
    steps = (call("recall", query="vault key"), *(call("wiki__search", query=each) for each in ("one", "two")))
    office.server.script.extend((*steps, Say(("Done.",))))
    at_ = office.harness.workspace()
    asked = incoming(at_, place_of("lab", None, None), "alice", "@nexus hello", office.harness.clock.tick(), id="q")
    await office.harness.app.receive(at_, [asked])
    await office.harness.app.turns.settle()
    assert "walnut" in office.last_results[0], "the control"
    assert [arguments["query"] for _, arguments in wiki.calls] == ["one"]


async def test_nothing_is_sent_for_who_has_left_the_room(settings: Settings, wiki: Wiki) -> None:
    async with office_with(settings, wiki=at(wiki, "search", private=True)) as office:
        leave: Act = lambda office: office.harness.move("alice", "cave", joined=False)  # noqa: E731
        await office.harness.say("alice", "hello", **CAVE)
        assert await called_twice(office, wiki, leave, **CAVE) == ["one"]


async def test_why_names_a_call_that_was_refused(office: Office, wiki: Wiki) -> None:
    await called_twice(office, wiki, share)
    why = (await office.harness.command("alice", "/nexus why --details", **LAB)).text
    assert 'Called wiki__search: {"query": "one"} \u2192 answered' in why
    assert 'Called wiki__search: {"query": "two"} \u2192 refused' in why
