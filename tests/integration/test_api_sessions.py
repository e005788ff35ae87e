"""Sessions over the API: whose they are, which project they are in, and that nothing said there is lost or repeated."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from bot.web.sessions import QUESTION_ERASED, ApiSessions, EventKind, TurnEvent
from composer.app import open_app
from composer.errors import BadInput, Conflict, NotFound
from composer.memory.forget import RETRACTED
from composer.memory.reminding import _own_dm
from composer.model import Trust, TurnState
from composer.people.sessions.history import list_exchanges, list_sessions
from composer.settings import AgentSettings, Settings, TenantSettings
from composer.visibility import Grants
from tests.support.api_sessions import ALL_GRANTS, Sessions, serve_sessions, valid
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

AGENTS = (AgentSettings(model="gpt-4o"), AgentSettings(slug="scribe", name="Scribe", model="gpt-4o"))


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"agents": AGENTS}), model=model) as harness:
        for user in ("alice", "bob"):
            await harness.say(user, "hello", room="general")
        yield harness


@pytest.fixture
def sessions(harness: AppHarness) -> Sessions:
    return serve_sessions(harness)


async def fetch(settings: Settings, statement: str, *values: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return list(await connection.fetch(statement, *values))
    finally:
        await connection.close()


async def hold(sessions: Sessions, model: Model, text: str, **options: str) -> None:
    """Ask, and wait until the model has begun; it says no more before its gate opens."""
    model.gate, before = asyncio.Event(), len(model.shown)
    await sessions.ask(await sessions.bearer("alice"), text, **options)
    await until(lambda: len(model.shown) > before)


async def test_the_same_user_speaks_over_the_api_and_in_rooms(sessions: Sessions, settings: Settings) -> None:
    alice = await sessions.bearer("alice")
    before = await fetch(settings, "SELECT count(*) FROM users")
    await sessions.answer(alice, "the vault is behind zqorchid")
    assert await fetch(settings, "SELECT count(*) FROM users") == before
    [row] = await fetch(settings, "SELECT user_id, author, namespace FROM messages WHERE text LIKE '%zqorchid'")
    assert (row["user_id"], row["author"]) == (alice.user, "alice")
    assert row["namespace"].startswith(f"session:{alice.user}:")


async def test_what_is_said_in_a_session_is_recalled_there_and_nowhere_else(
    sessions: Sessions, harness: AppHarness, model: Model
) -> None:
    alice, bob = await sessions.bearer("alice"), await sessions.bearer("bob")
    await sessions.answer(alice, "the vault is behind zqorchid")
    for _ in range(3):
        await sessions.answer(alice, "what is the vault behind?")
    assert "zqorchid" in model.shown[-1]
    for bearer, options in ((alice, {"session": "s2"}), (alice, {"agent": "scribe"}), (bob, {})):
        await sessions.answer(bearer, "what is the vault behind?", **options)
        assert "zqorchid" not in model.shown[-1], options
    await harness.ask("alice", "what is the vault behind?", dm="nexus")
    assert "zqorchid" not in model.shown[-1]


async def test_a_terminal_session_of_the_same_name_is_the_same_session(
    sessions: Sessions, harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "said in the terminal", session="s1")
    alice = await sessions.bearer("alice")
    await sessions.answer(alice, "said over the API")
    said = await sessions.said_in(alice)
    assert [each.text for each in said] == ["said over the API", "said in the terminal"]
    assert len({each.session.id for each in said}) == 1


async def test_a_question_sent_again_gets_the_same_answer_and_is_answered_once(
    sessions: Sessions, model: Model
) -> None:
    alice = await sessions.bearer("alice")
    model.says = ["the first"]
    first = await sessions.ask(alice, "which is it?", id="once")
    assert (await sessions.end(first)).text == "the first"
    model.says = ["another"]
    again = await sessions.ask(alice, "which is it?", id="once")
    assert (again.turn, again.new, (await sessions.end(again)).text) == (first.turn, False, "the first")
    with pytest.raises(BadInput, match="used for another message"):
        await sessions.ask(alice, "which is another?", id="once")
    other = await sessions.ask(alice, "which is another?", id="once", session="s2")
    assert (await sessions.end(other)).text == "another"
    assert len(await sessions.said_in(alice)) == 2


async def test_both_who_ask_with_one_id_at_once_get_the_answer(sessions: Sessions, model: Model) -> None:
    alice = await sessions.bearer("alice")
    asked = await asyncio.gather(*(sessions.ask(alice, "which is it?", id="once") for _ in range(4)))
    events = await asyncio.gather(*map(sessions.end, asked))
    assert {event.kind for event in events} == {EventKind.ANSWER}
    assert len({event.text for event in events}) == 1
    assert len(model.shown) == 1


async def test_two_questions_of_one_session_are_answered_in_order(sessions: Sessions, model: Model) -> None:
    alice = await sessions.bearer("alice")
    await hold(sessions, model, "the first question")
    second = await sessions.ask(alice, "the second question")
    assert len(model.shown) == 1
    assert model.gate is not None
    model.gate.set()
    await sessions.end(second)
    newest, oldest = await sessions.said_in(alice)
    assert (oldest.text, newest.text) == ("the first question", "the second question")
    assert oldest.answer == "Answer 1 to what was asked just now."
    assert newest.answer == "Answer 2 to what was asked just now."
    assert "the first question" in model.shown[-1], "the second answer knows of the first question"


async def test_a_stream_ends_once_its_session_is_forgotten_however_fast_its_model_writes(
    sessions: Sessions, model: Model
) -> None:
    # Whether the question is still there was looked at only where the model was silent for a while.
    alice = await sessions.bearer("alice")
    model.gate = asyncio.Event()
    asked = await sessions.ask(alice, "which is it?")
    await sessions.forget(alice, None, "s1", None)
    pieces = 300_000
    for _ in range(pieces):
        asked.listener.events.put_nowait(TurnEvent(EventKind.CHUNK, "zqword"))
    events = [event async for event in sessions.served.follow(asked, valid)]
    assert (events[-1].kind, events[-1].text) == (EventKind.FAILED, QUESTION_ERASED)
    assert len(events) < pieces
    model.gate.set()


async def test_a_stream_says_nothing_more_of_an_answer_once_what_it_is_made_from_is_forgotten(
    sessions: Sessions, harness: AppHarness, model: Model
) -> None:
    # Forgetting reaches every layer. It went on, and was taken back when it was whole.
    alice = await sessions.bearer("alice")
    await sessions.answer(alice, "the vault is behind zqorchid")
    model.gate, model.says, before = asyncio.Event(), ["It is behind zqorchid."], len(model.shown)
    asked = await sessions.ask(alice, "where is the vault?")
    await until(lambda: len(model.shown) > before)
    assert "zqorchid" in model.shown[-1]
    await harness.command("alice", "/nexus forget zqorchid --yes", dm="nexus")
    pieces, heard = 20_000, list[TurnEvent]()
    for _ in range(pieces):
        asked.listener.events.put_nowait(TurnEvent(EventKind.CHUNK, "zqword"))
    async for event in sessions.served.follow(asked, valid):
        heard.append(event)
        if len(heard) == pieces:
            model.gate.set()
    assert sum(event.kind is EventKind.CHUNK for event in heard) < pieces
    assert heard[-2].kind is EventKind.WAIT
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, RETRACTED)


async def test_turns_of_a_dead_process_are_taken_over_by_another(
    sessions: Sessions, harness: AppHarness, settings: Settings, model: Model
) -> None:
    """Another process stores the question and dies before it answers; who waits at a living one gets it."""
    alice = await sessions.bearer("alice")
    other, stuck = settings.model_copy(update={"agents": AGENTS}), Model()
    stuck.gate = asyncio.Event()
    async with open_app(other, clock=harness.clock, model=stuck, index=False) as app:
        dying = ApiSessions(app)
        asked = await dying.ask(alice, sessions.said("which is it?"))
        assert (await sessions.view(alice, asked.turn)).turn.state is TurnState.QUEUED
    model.says = ["it is taken over"]

    async def answered() -> bool:
        await harness.app.take_over()
        return (await sessions.view(alice, asked.turn)).text is not None

    await until(answered)
    assert (await sessions.view(alice, asked.turn)).text == "it is taken over"


async def test_a_session_made_in_a_project_belongs_to_it_from_its_first_message(
    sessions: Sessions, harness: AppHarness, model: Model
) -> None:
    await harness.command("bob", "/nexus project create apollo", room="team")
    await harness.command("bob", "/nexus project assign apollo --yes", room="team")
    await harness.say("bob", "the apollo budget is zqbudget", room="team")
    alice, bob = await sessions.bearer("alice"), await sessions.bearer("bob")
    with pytest.raises(NotFound) as unknown:
        await sessions.ask(alice, "what is the budget?", project="apollo")
    with pytest.raises(NotFound) as missing:
        await sessions.ask(alice, "what is the budget?", project="zeus")
    assert str(unknown.value).replace("apollo", "zeus") == str(missing.value)
    assert await sessions.said_in(alice) == []
    asked = await sessions.ask(bob, "what is the apollo budget?", project="apollo")
    await sessions.end(asked)
    assert "zqbudget" in model.shown[-1]
    assert "everyone in apollo what is said in this session" in asked.session.opens
    assert asked.session.project is not None
    again = await sessions.ask(bob, "and when?", project=str(asked.session.project.id))
    assert (again.session.opens, again.session.conversation.id) == ("", asked.session.conversation.id)
    outside = await sessions.ask(bob, "what is the apollo budget?")
    assert outside.session.conversation.id != asked.session.conversation.id
    await sessions.end(outside)
    assert "zqbudget" not in model.shown[-1]
    await harness.app.indexer.catch_up(bob.workspace.tenant_id)


async def test_a_session_reads_its_project_only_while_its_person_is_a_member(
    sessions: Sessions, harness: AppHarness, model: Model
) -> None:
    await harness.command("bob", "/nexus project create apollo", room="team")
    await harness.command("bob", "/nexus project assign apollo --yes", room="team")
    await harness.command("bob", "/nexus project member add apollo alice read", room="team")
    await harness.command("alice", "/nexus project accept apollo", room="team")
    await harness.say("bob", "the apollo budget is zqbudget", room="team")
    alice = await sessions.bearer("alice")
    asked = await sessions.ask(alice, "what is the apollo budget?", project="apollo")
    await sessions.end(asked)
    assert "zqbudget" in model.shown[-1]
    assert "zqbudget" in " ".join(source.text for source in (await sessions.view(alice, asked.turn)).sources)
    await harness.command("bob", "/nexus project member remove apollo alice", room="team")
    with pytest.raises(NotFound, match="There is no project 'apollo' here"):
        await sessions.ask(alice, "what is the apollo budget?", project="apollo")
    assert not (await sessions.view(alice, asked.turn)).sources, "what it was made from is not hers to read any more"


async def test_a_key_without_projects_reaches_no_session_of_a_project(sessions: Sessions, harness: AppHarness) -> None:
    await harness.command("bob", "/nexus project create apollo", room="team")
    whole = await sessions.bearer("bob")
    asked = await sessions.ask(whole, "what is the plan?", project="apollo")
    await sessions.end(asked)
    assert asked.session.project is not None
    less = await sessions.bearer("bob", grants=frozenset({Grants.READ_ENTRIES}))
    of_it = await sessions.bearer("bob", grants=frozenset({Grants.of_project(asked.session.project.id, "read")}))
    assert await sessions.said_in(less) == []
    assert len(await sessions.said_in(of_it)) == len(await sessions.said_in(whole)) == 1
    for attempt in (
        sessions.ask(less, "what is the plan?", project="apollo"),
        sessions.view(less, asked.turn),
        sessions.forget(less, None, "s1", asked.session.project.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await sessions.view(of_it, asked.turn)).text is not None


async def test_deleting_a_session_forgets_it_with_one_agent_and_leaves_the_others(
    sessions: Sessions, settings: Settings, model: Model
) -> None:
    alice, bob = await sessions.bearer("alice"), await sessions.bearer("bob")
    model.says = ["zqorchid, noted"]
    for bearer, options in ((alice, {}), (alice, {"agent": "scribe"}), (alice, {"session": "s2"}), (bob, {})):
        await sessions.answer(bearer, "the vault is behind zqorchid", **options)
    with pytest.raises(NotFound, match="There is no session 's3' here"):
        await sessions.forget(alice, None, "s3", None)
    [session] = await fetch(
        settings, "SELECT id FROM conversations WHERE name = 's1' AND user_id = $1 AND namespace LIKE $2", alice.user,
        f"%{await agent_id(settings, 'nexus')}%",
    )  # fmt: skip
    receipt = await sessions.forget(alice, None, "s1", None)
    assert receipt.counts["message"] == 1
    assert receipt.id
    left = {(each.session.agent, each.session.name) for each in await sessions.said_in(alice)}
    assert left == {("scribe", "s1"), ("nexus", "s2")}
    assert len(await sessions.said_in(bob)) == 1
    gone = "SELECT m.text FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id WHERE c.id = $1"
    assert [row["text"] for row in await fetch(settings, gone, session["id"])] == [RETRACTED]
    assert "Nothing was erased" in str(await sessions.forget(alice, None, "s1", None))


async def test_the_name_of_a_session_is_forgotten_with_it_and_comes_back_when_it_is_used_again(
    sessions: Sessions, harness: AppHarness, settings: Settings
) -> None:
    alice, named = await sessions.bearer("alice"), "SELECT count(*) AS n FROM conversations WHERE name = 'zqdivorce'"
    for again in range(2):
        asked = await sessions.ask(alice, "what is in the plan?", session="zqdivorce")
        assert asked.session.conversation.name == "zqdivorce"
        await sessions.end(asked)
        assert [each.session.name for each in await sessions.said_in(alice, session="zqdivorce")] == ["zqdivorce"], (
            again
        )
        await sessions.forget(alice, None, "zqdivorce", None)
        assert [row["n"] for row in await fetch(settings, named)] == [0]
    await harness.say("alice", "said in the terminal", session="zqdivorce")
    assert len(await sessions.said_in(alice, session="zqdivorce")) == 1


async def test_the_name_of_a_session_goes_also_where_something_that_was_posted_is_left(
    sessions: Sessions, harness: AppHarness, settings: Settings
) -> None:
    await harness.command("alice", "/nexus remind here in 20 minutes stretch", session="zqdivorce")
    harness.clock.tick(30 * 60)
    await harness.app.due_posts.post_due()
    await harness.app.turns.settle()
    await sessions.forget(await sessions.bearer("alice"), None, "zqdivorce", None)
    [post] = await fetch(settings, "SELECT text FROM messages WHERE starts_with(external_id, 'post:')")
    assert post["text"] == RETRACTED
    assert await fetch(settings, "SELECT name FROM conversations WHERE name = 'zqdivorce'") == []


async def agent_id(settings: Settings, slug: str) -> uuid.UUID:
    [row] = await fetch(settings, "SELECT id FROM agents WHERE slug = $1", slug)
    return uuid.UUID(str(row["id"]))


async def test_who_deletes_the_session_of_an_answer_in_progress_gets_none(
    sessions: Sessions, model: Model, settings: Settings
) -> None:
    alice = await sessions.bearer("alice")
    model.gate = asyncio.Event()
    asked = await sessions.ask(alice, "the vault is behind zqorchid")
    waiting = asyncio.create_task(sessions.end(asked))
    await sessions.forget(alice, None, "s1", None)
    model.gate.set()
    event = await waiting
    assert (event.kind, "zqorchid" in event.text) == (EventKind.FAILED, False)
    with pytest.raises(Conflict, match="was erased"):
        await sessions.ask(alice, "the vault is behind zqorchid", id="q1")
    assert await fetch(settings, "SELECT id FROM messages WHERE text LIKE '%zqorchid%'") == []


async def test_a_person_who_opted_out_is_answered_and_not_stored(
    sessions: Sessions, harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.command("alice", "/nexus opt-out", dm="nexus")
    alice = await sessions.bearer("alice")
    model.says = ["it is there"]
    event = await sessions.end(await sessions.ask(alice, "where is zqorchid?"))
    assert event.text == "it is there"
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(alice.workspace.tenant_id)
    assert await fetch(settings, "SELECT id FROM messages WHERE text LIKE '%zqorchid%'") == []
    assert await sessions.said_in(alice) == []


async def test_a_guest_of_the_platform_is_a_guest_over_the_api(
    sessions: Sessions, harness: AppHarness, model: Model, settings: Settings
) -> None:
    await fetch(settings, "UPDATE users SET admin = true WHERE name = 'bob'")
    await harness.command("bob", "/nexus remember the wifi code is zqwifi --global --yes", room="general")
    alice = await sessions.bearer("alice")
    await sessions.answer(alice, "what is the wifi code?")
    assert "zqwifi" in model.shown[-1]
    here, at = harness.workspace(), harness.clock.tick()
    guest = incoming(here, place_of("general", None, None), "alice", "hello", at, id="g1", trust=Trust.GUEST)
    await harness.app.receive(here, [guest])
    await sessions.answer(alice, "what is the wifi code, again?", session="s2")
    assert "zqwifi" not in model.shown[-1]
    [row] = await fetch(settings, "SELECT trust FROM messages WHERE text LIKE '%again?'")
    assert row["trust"] == "guest"


async def test_of_a_chat_account_of_which_nothing_is_stored_it_is_not_known_that_it_is_no_guest(
    sessions: Sessions, settings: Settings, harness: AppHarness
) -> None:
    alice = await sessions.bearer("alice")
    async with harness.app.database.transaction(alice.workspace.tenant_id) as tx:
        assert await tx.people.trust(alice.user) is Trust.MEMBER
        assert await tx.people.trust(uuid.uuid4()) is Trust.GUEST
        await tx.people.ensure_users("slack", "T1", {"U1": (alice.user, "alice")}, harness.clock.now())
        assert await tx.people.trust(alice.user) is Trust.GUEST


async def test_two_accounts_that_both_use_the_api_can_still_be_linked(settings: Settings) -> None:
    tenants = {"acme": TenantSettings(workspaces=("home", "annex"))}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        object.__setattr__(harness, "name", "home")
        sessions = serve_sessions(harness)
        await harness.say("alice", "hello", dm="nexus")
        await harness.say("alice2", "hello", dm="nexus", workspace="annex")
        one, other = await sessions.bearer("alice"), await sessions.bearer("alice2", workspace="annex")
        await sessions.answer(one, "the first account says zqfirst")
        await sessions.answer(other, "the second account says zqsecond")
        found = re.search(r"link ([A-Z0-9]{8})", (await harness.command("alice", "/nexus link", dm="nexus")).text)
        assert found is not None
        shown = await harness.command("alice2", f"/nexus link {found[1]}", dm="nexus", workspace="annex")
        assert "alice on console (home)" in shown.text
        await harness.command("alice2", f"/nexus link {found[1]} --yes", dm="nexus", workspace="annex")
        assert {each.text for each in await sessions.said_in(one)} == {
            each.text for each in await sessions.said_in(other)
        }
        await harness.say("alice", "hello", dm="nexus")
        assert (await sessions.forget(one, None, "s1", None)).counts["message"] == 1


async def test_a_reminder_asked_for_in_a_session_is_posted_in_the_dm_of_the_account(
    sessions: Sessions, harness: AppHarness, settings: Settings
) -> None:
    alice = await sessions.bearer("alice")
    await sessions.answer(alice, "hello")
    async with harness.app.database.transaction(alice.workspace.tenant_id) as tx:
        [session] = [each.session for each in await sessions.said_in(alice)]
        access = await tx.conversations.access_context(session.id, alice.user, Trust.MEMBER)
        assert access is not None
        agent = harness.app.directory.agents(alice.workspace.tenant_id)[0]
        dm, _ = await _own_dm(tx, access, agent, harness.clock.now())
        assert (await tx.conversations.workspace_of(dm))[0] == "console"


async def test_lists_go_on_with_their_cursor(sessions: Sessions, harness: AppHarness) -> None:
    alice = await sessions.bearer("alice", grants=ALL_GRANTS)
    for number in range(5):
        await sessions.answer(alice, f"message {number}", session=f"s{number % 3}")
    async with harness.app.database.transaction(alice.workspace.tenant_id, "read") as tx:
        page = await list_exchanges(tx, alice, limit=3)
        rest = await list_exchanges(tx, alice, limit=3, before=page.cursor)
        named = await list_sessions(tx, alice, limit=2)
        last = await list_sessions(tx, alice, limit=2, before=named.cursor)
        with pytest.raises(BadInput, match="cursor"):
            await list_sessions(tx, alice, before="nonsense")
    assert [e.text for e in (*page.exchanges, *rest.exchanges)] == [f"message {n}" for n in (4, 3, 2, 1, 0)]
    assert (rest.cursor, last.cursor) == (None, None)
    assert [s.session.name for s in (*named.sessions, *last.sessions)] == ["s1", "s0", "s2"]
