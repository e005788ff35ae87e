"""What somebody takes back while a turn asks tool servers: it leaves no more, whatever it stands in."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import mcp.types as types
import pytest
from mcp import MCPError

from bot.script.places import incoming, place_of
from composer.ingest.changes import change_message
from composer.model import Attachment
from composer.settings import Settings, TenantSettings
from composer.stores.models import mcp_server
from composer.turn.server_calls import ServerCalls
from composer.turn.tool_servers import OutsideTools
from tests.support.harness import AppHarness
from tests.support.mcp_office import Wiki, at, office_with, serving
from tests.support.model_server import Say
from tests.support.tool_office import DM, LAB, Office, call
from tests.support.waiting import until

Act = Callable[[Office], Awaitable[object]]
CODES: Final = Attachment("codes.txt", "text/plain", "the vault opens with walnut7", 28, "https://files/codes.txt")
PROJECT: Final = ("project create apollo", "project assign apollo --yes")


@pytest.fixture
async def wiki() -> AsyncIterator[Wiki]:
    async with serving(Wiki().add("search")) as wiki:
        yield wiki


@pytest.fixture
async def office(settings: Settings, wiki: Wiki) -> AsyncIterator[Office]:
    """Its server may be asked everywhere, also where words are private."""
    tenants = {"acme": TenantSettings(workspaces=("acme", "annex"))}
    everywhere = settings.model_copy(update={"tenants": tenants})
    async with office_with(everywhere, wiki=at(wiki, "search", private=True, guests=True)) as office:
        yield office


async def post(harness: AppHarness, user: str, text: str, id: str, *attached: Attachment, **place: Any) -> None:
    where = place_of(**{"room": None, "dm": None, "session": None, **place})
    message = incoming(harness.workspace(), where, user, text, harness.clock.tick(), id=id)
    await harness.app.receive(harness.workspace(), [replace(message, attachments=attached)])


async def called_twice(office: Office, wiki: Wiki, act: Act, *attached: Attachment, **place: Any) -> list[object]:
    """What was sent by two calls of one turn, if `act` happens while the first one runs."""
    done: list[str] = []

    async def search(_: Any) -> str:
        if not done:
            done.append("begun")
            await act(office)
            done.append("ended")
        return "Found."

    wiki.add("search", search)
    office.server.script.extend((*(call("wiki__search", query=each) for each in ("one", "two")), Say(("Done.",))))
    question = "@nexus what is the code of the vault?"
    await post(office.harness, "alice", question, "q", *attached, **(place or LAB))
    await office.harness.app.turns.settle()
    assert done == ["begun", "ended"], "the control"
    return [arguments["query"] for _, arguments in wiki.calls]


def command(user: str, *texts: str, **place: Any) -> Act:
    async def give(office: Office) -> None:
        for text in texts:
            await office.harness.command(user, f"/nexus {text}", **(place or LAB))

    return give


def shown(office: Office) -> str:
    return json.dumps(office.server.requests[-1].body["messages"])


async def detach(office: Office, id: str, text: str, user: str = "alice") -> None:
    """Take the files off a message."""
    harness = office.harness
    here, now = harness.workspace(), harness.clock.tick()
    agents = harness.app.directory.agents(here.tenant_id)
    place = place_of("lab", None, None)
    assert await change_message(harness.app.database, here, agents, place, user, id, text, (), now, ())


async def test_nothing_is_sent_once_a_file_is_taken_off_the_question(office: Office, wiki: Wiki) -> None:
    act: Act = lambda office: detach(office, "q", "@nexus what is the code of the vault?")  # noqa: E731
    assert await called_twice(office, wiki, act, CODES) == ["one"]
    assert "walnut7" in shown(office)


async def test_nothing_is_sent_once_a_file_is_taken_off_a_message_in_view(office: Office, wiki: Wiki) -> None:
    await post(office.harness, "bob", "for later", "b", CODES, **LAB)
    assert await called_twice(office, wiki, lambda office: detach(office, "b", "for later", "bob")) == ["one"]
    assert "walnut7" in shown(office)


async def test_calls_go_on_if_a_file_is_only_added_to(office: Office, wiki: Wiki) -> None:
    await post(office.harness, "bob", "for later", "b", CODES, **LAB)
    assert await called_twice(office, wiki, command("alice", "help")) == ["one", "two"]


async def test_nothing_is_sent_from_a_dm_once_it_is_closed_to_rooms(office: Office, wiki: Wiki) -> None:
    await office.harness.say("alice", "hello", room="cave", private=True)
    await office.harness.say("alice", "the code of the vault is walnut", room="cave")
    await office.harness.command("alice", "/nexus rooms on", **DM)
    assert await called_twice(office, wiki, command("alice", "rooms off", **DM), **DM) == ["one"]
    assert "walnut" in shown(office)


async def test_nothing_is_sent_from_a_dm_once_its_person_left_the_room(office: Office, wiki: Wiki) -> None:
    await office.harness.say("alice", "hello", room="cave", private=True)
    await office.harness.say("alice", "the code of the vault is walnut", room="cave")
    await office.harness.command("alice", "/nexus rooms on", **DM)
    act: Act = lambda office: office.harness.move("alice", "cave", joined=False)  # noqa: E731
    assert await called_twice(office, wiki, act, **DM) == ["one"]
    assert "walnut" in shown(office)


async def in_project(office: Office) -> None:
    """bob's room den and alice's lab are in apollo; alice reads of den in lab."""
    harness = office.harness
    await harness.say("bob", "hello", room="den", private=True)
    await harness.say("bob", "the code of the vault is walnut", room="den")
    await harness.say("alice", "hello", **LAB)
    await command("bob", "project create apollo", room="den")(office)
    await command("bob", "project assign apollo --pool --yes", room="den")(office)
    await command("bob", "project member add apollo alice write", room="den")(office)
    await command("alice", "project accept apollo")(office)
    await command("alice", "project assign apollo --yes")(office)


@pytest.mark.parametrize(
    ("user", "text", "room"),
    [
        ("bob", "project unassign --yes", "den"),
        ("bob", "project assign apollo --yes", "den"),
        ("alice", "project unassign --yes", "lab"),
    ],
    ids=["the room left", "the room is pooled no more", "this room left"],
)
async def test_nothing_is_sent_once_the_pool_is_another(
    office: Office, wiki: Wiki, user: str, text: str, room: str
) -> None:
    await in_project(office)
    assert await called_twice(office, wiki, command(user, text, room=room)) == ["one"]
    assert "walnut" in shown(office)


async def test_nothing_is_sent_from_a_session_once_its_person_is_no_member(office: Office, wiki: Wiki) -> None:
    await in_project(office)
    await office.harness.say("alice", "hello", session="s")
    await command("alice", "project assign apollo --yes", session="s")(office)
    act = command("bob", "project member remove apollo alice", room="den")
    assert await called_twice(office, wiki, act, session="s") == ["one"]
    assert "walnut" in shown(office)


async def test_nothing_is_sent_once_a_note_is_filed_where_it_is_not_read(office: Office, wiki: Wiki) -> None:
    harness = office.harness
    await harness.say("bob", "hello", room="hall")
    at_ = harness.workspace()
    async with harness.app.database.transaction(at_.tenant_id) as tx:
        await tx.people.set_admin((await tx.people.find_user_ids(at_.platform, at_.name, ["bob"]))["bob"], True)
    await command("bob", "remember the code of the vault is walnut --global --yes", room="hall")(office)
    text = (await harness.command("bob", "/nexus share", room="hall")).text
    id = next(line.split()[0] for line in text.splitlines() if "walnut" in line)
    act = command("bob", f"share {id} here --yes", room="hall")
    assert await called_twice(office, wiki, act) == ["one"]
    assert "walnut" in shown(office)


class Held:
    """A judgement after which the request is looked for while nothing may be erased yet."""

    def __init__(self, wiki: Wiki, begin: Act, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[bool, int]] = []
        real = ServerCalls.sending

        @asynccontextmanager
        async def sending(calls: ServerCalls, *given: Any) -> AsyncIterator[None]:
            async with real(calls, *given):
                forgetting = asyncio.ensure_future(begin(office))
                await waiting(office, forgetting)
                yield
                await until(lambda: bool(wiki.calls))  # it is on its way before an erasure may end
                self.seen.append((forgetting.done(), len(wiki.calls)))
            self.forgetting = forgetting

        monkeypatch.setattr(ServerCalls, "sending", sending)


async def waiting(office: Office, act: asyncio.Future[Any]) -> None:
    """Wait until an act waits for a lock, or has ended, which it must not."""

    async def stopped() -> bool:
        return act.done() or bool((await office.rows("SELECT count(*) FROM pg_locks WHERE NOT granted"))[0][0])

    await until(stopped)


async def test_an_erasure_ends_only_after_a_judged_request_has_left(
    office: Office, wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(wiki, command("alice", "forget message q --yes"), office, monkeypatch)
    office.server.script.extend((call("wiki__search", query="one"), Say(("Done.",))))
    await post(office.harness, "alice", "@nexus what is the code of the vault?", "q", **LAB)
    await office.harness.app.turns.settle()
    assert held.seen == [(False, 1)]
    await held.forgetting


async def test_what_is_forgotten_while_the_server_is_connected_to_is_not_sent(
    office: Office, wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection was lost since the tools were listed; a new one may take long."""
    done: list[str] = []

    @asynccontextmanager
    async def opened(settings: Any) -> AsyncIterator[Any]:
        async with real(settings) as client:
            if not done:
                done.append("forgotten")
                await command("alice", "forget message q --yes")(office)
            yield client

    real = mcp_server._opened
    first = call("recall", query="vault")
    office.server.script.extend((first, call("wiki__search", query="one"), Say(("Done.",))))
    listed = OutsideTools.keep

    def kept(self: OutsideTools, tools: Any) -> None:
        listed(self, tools)
        server: Any = office.harness.app.tool_servers._servers[0].server
        server._drop()
        monkeypatch.setattr(mcp_server, "_opened", opened)

    monkeypatch.setattr(OutsideTools, "keep", kept)
    await post(office.harness, "alice", "@nexus what is the code of the vault?", "q", **LAB)
    await office.harness.app.turns.settle()
    assert done == ["forgotten"], "the control"
    assert wiki.calls == []


async def test_a_server_has_no_request_sent_again_without_a_judgement(office: Office, wiki: Wiki) -> None:
    """It refuses a request because of its headers, and then the SDK would list its tools and send it once more."""

    async def refuse(_: Any) -> Any:
        if len(wiki.calls) == 1:
            await command("alice", "forget message q --yes")(office)
            raise MCPError(code=-32020, message="headers")
        return "Found."

    wiki.add("search", refuse)
    office.server.script.extend((call("wiki__search", query="one"), Say(("Done.",))))
    await post(office.harness, "alice", "@nexus what is the code of the vault?", "q", **LAB)
    await office.harness.app.turns.settle()
    assert len(wiki.calls) == 1


async def test_a_request_that_is_refused_for_its_headers_is_judged_and_sent_again(office: Office, wiki: Wiki) -> None:
    async def refuse(_: Any) -> Any:
        if len(wiki.calls) == 1:
            raise MCPError(code=-32020, message="headers")
        return "Found."

    wiki.add("search", refuse)
    await office.ask("alice", "@nexus hello", call("wiki__search", query="one"), **LAB)
    assert len(wiki.calls) == 2
    assert "Found." in office.last_results[-1]


async def test_a_server_that_asks_for_more_input_gets_no_further_request(office: Office, wiki: Wiki) -> None:
    asked = types.InputRequiredResult(input_requests={}, request_state="again")
    wiki.add("search", lambda _: asked)  # type: ignore[arg-type, return-value]
    await office.ask("alice", "@nexus hello", call("wiki__search", query="one"), **LAB)
    assert len(wiki.calls) == 1


@pytest.mark.parametrize("number", [10**400, -(10**400), 4111111111111111, 1e308], ids=str)
async def test_a_number_of_any_size_fails_no_answer(office: Office, wiki: Wiki, number: float) -> None:
    wiki.add("count", schema={"type": "object", "properties": {"n": {"type": "number"}}})
    reply = await office.ask("alice", "@nexus hello", call("wiki__search", query="x", n=number), **LAB)
    assert reply.text == "Done."
    assert not any("4111111111111111" in json.dumps(given) for _, given in wiki.calls)
