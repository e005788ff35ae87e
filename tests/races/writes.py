"""Every way in which words of people are stored, or leave."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from bot.commands.table import run_command
from bot.console import schedule
from bot.delivery.retraction import Retraction
from bot.delivery.streaming import StreamingDelivery
from bot.script.changes import change_message
from bot.script.places import incoming, place_of
from composer import visibility
from composer.memory.remember import amend_landmark
from composer.memory.review import approve
from composer.model import CONSOLE, Offer, Trust, room_id
from composer.repositories.deliveries import Destination
from composer.repositories.gateway_exchanges import ExchangeOwner, GatewayExchange
from tests.races.erasures import (
    EDITED,
    ENTRIES,
    ENTRY,
    ENTRY_WORDS,
    GUEST,
    HERE,
    IMPORTED,
    MESSAGE,
    OLD,
    PERSON,
    PROJECT,
    ROOM_ALL,
    ROOM_ITSELF,
    SESSION,
    WORDS,
)
from tests.races.stage import ROOM, SAID, SECRET, Act, Stage, Write

THREAD: Final[dict[str, Any]] = {"room": "general", "thread": "t1"}
DM: Final[dict[str, Any]] = {"dm": "nexus"}
IN_ROOM: Final = frozenset({WORDS, PERSON, HERE, ROOM_ALL, ROOM_ITSELF, PROJECT})
OF_MESSAGE: Final = IN_ROOM | {MESSAGE, EDITED, IMPORTED, OLD}
IN_ONE: Final = frozenset({MESSAGE, EDITED, WORDS})  # of what one transaction stores with something else here
OF_GUEST: Final = frozenset({GUEST, ROOM_ALL, ROOM_ITSELF, PROJECT})
OF_ENTRY: Final = frozenset({WORDS, PERSON, ENTRY, ENTRIES})


def said_in(**place: Any) -> Act:
    """Alice says it."""

    async def act(stage: Stage) -> None:
        await stage.receive("alice", SAID, id="said", **place)

    return act


def will_be_said_in(**place: Any) -> Act:
    async def act(stage: Stage) -> None:
        stage.place_of_said = place_of(place.get("room"), place.get("dm"), None, place.get("thread"))

    return act


async def _said(stage: Stage) -> None:
    await stage.receive("alice", SAID, id="said", **ROOM)


async def _said_and_indexed(stage: Stage) -> None:
    await _said(stage)
    await stage.index()


async def _said_of_nothing(stage: Stage) -> None:
    await stage.receive("alice", "Nothing is known of it.", id="said", **ROOM)
    await stage.index()


async def _index(stage: Stage) -> None:
    await stage.index()


async def _edit(stage: Stage) -> None:
    stage.harness.clock.tick()
    await change_message(stage.harness.app, stage.harness.workspace(), "said", SAID)


async def _said_a_day_ago(stage: Stage) -> None:
    await _said_and_indexed(stage)
    for number in range(12):  # which is worth a summary, and too long to stand whole
        text = f"Then point {number} of the plan for the harbour is next, as far as we know."
        await stage.receive("carol", text, id=f"t{number}", **ROOM)
    await stage.index()
    stage.harness.clock.set(stage.harness.clock.now() + timedelta(days=1))


async def _extract(stage: Stage) -> None:
    await stage.extract()


async def _summarise(stage: Stage) -> None:
    assert (await schedule.run(stage.harness.app, "session", stage.harness.clock.now())).done


async def _ask(stage: Stage) -> None:
    at = stage.harness.workspace()
    question = incoming(
        at, place_of("general", None, None), "bob", "@nexus what of the vault?", stage.harness.clock.tick(), id="asked"
    )
    await stage.harness.app.receive(at, [question])
    await stage.harness.app.turns.settle()


async def _said_and_much_more(stage: Stage) -> None:
    await _said(stage)
    for number in range(30):
        filling = " ".join(f"detail{number}x{n}" for n in range(15))
        await stage.receive("carol", f"How do we go on with point {number}? {filling}", id=f"t{number}", **ROOM)
    await stage.index()


class Screen:
    """A platform on which answers are shown (bot.delivery.outbox.Outbox)."""

    edit_interval, limit = 0.0, 2_000

    def __init__(self) -> None:
        self.shown = ""

    async def find(self, to: Destination, key: str) -> str | None:
        return None

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        self.shown = text
        return "part"

    async def edit(self, to: Destination, message: str, text: str) -> None:
        self.shown = text

    async def show_typing(self, to: Destination, key: str) -> None:
        pass


async def _said_before_a_screen(stage: Stage) -> None:
    await _said_and_indexed(stage)
    stage.kept["screen"] = screen = Screen()

    async def no_links(*_: object) -> dict[str, str]:
        return {}

    stage.harness.app.turns.serve(CONSOLE, StreamingDelivery(stage.harness.app, screen, no_links))


async def _look_at_the_screen(stage: Stage) -> None:
    await Retraction(stage.harness.app, CONSOLE, stage.kept["screen"]).catch_up()
    stage.outgoing = stage.kept["screen"].shown


def command(text: str, **place: Any) -> Act:
    """Alice gives a command."""

    async def act(stage: Stage) -> None:
        await stage.command(text, **(place or ROOM))

    return act


async def _guest_remembers(stage: Stage) -> None:
    at = stage.harness.workspace()
    given = incoming(
        at,
        place_of("general", None, None),
        "mallory",
        f"/nexus remember the vault is {SECRET}",
        stage.harness.clock.tick(),
        id="given",
        trust=Trust.GUEST,
    )
    await run_command(stage.harness.app, at, given)


async def _ids(stage: Stage, name: str) -> tuple[uuid.UUID, uuid.UUID]:
    """Of a person, and of the room."""
    at, database = stage.harness.workspace(), stage.harness.app.database
    async with database.transaction(at.tenant_id, "read") as tx:
        user = await tx.people.find_user(at.platform, at.name, name)
    assert user is not None
    return user.id, room_id(at, "general")


async def _approve(stage: Stage) -> None:
    harness, tenant = stage.harness, stage.harness.workspace().tenant_id
    alice, room = await _ids(stage, "alice")
    async with harness.app.database.transaction(tenant, "alone") as tx:
        access = await tx.conversations.access_context(room, alice, Trust.MEMBER)
        assert access is not None
        reviewable = visibility.reviewable(access, room_admin=True)
        for item in await tx.quarantine.find_pending(reviewable):
            await approve(tx, item, harness.clock.now())


async def _amend(stage: Stage) -> None:
    harness, tenant = stage.harness, stage.harness.workspace().tenant_id
    bob, room = await _ids(stage, "bob")
    async with harness.app.database.transaction(tenant) as tx:
        access = await tx.conversations.access_context(room, bob, Trust.MEMBER)
        assert access is not None
        for before in await tx.landmarks.find(visibility.readable(access, []), harness.clock.now()):
            text = f"The vault opens with {SECRET}, on Friday"
            await amend_landmark(tx, before, text, "bob", access.asker, "event", harness.clock.now())


async def _said_and_bob_is_there(stage: Stage) -> None:
    await stage.harness.say("bob", "good morning", **ROOM)
    await _said_and_indexed(stage)


async def _write_entry(stage: Stage) -> None:
    made = await stage.request("POST", "/v1/entries", content=f"the vault is behind {SECRET}")
    stage.kept["entry"] = made.json().get("id")


async def _another_entry(stage: Stage) -> None:
    made = await stage.request("POST", "/v1/entries", content="the vault is somewhere")
    stage.kept["entry"] = made.json()["id"]


async def _change_entry(stage: Stage) -> None:
    await stage.request("PATCH", f"/v1/entries/{stage.kept['entry']}", content=f"the vault is behind {SECRET}")


async def _entry_and_index(stage: Stage) -> None:
    await _write_entry(stage)
    await stage.index()


async def _trashed_entry(stage: Stage) -> None:
    await _entry_and_index(stage)
    await stage.request("DELETE", f"/v1/entries/{stage.kept['entry']}")


async def _restore_entry(stage: Stage) -> None:
    await stage.request("POST", f"/v1/entries/{stage.kept['entry']}/restore")


async def _query(stage: Stage) -> None:
    answer = await stage.request("POST", "/v1/query", question="where is the vault?", answer=True)
    stage.outgoing = answer.text if answer.status_code == 200 else ""


async def _exchange(stage: Stage) -> None:
    harness = stage.harness
    alice, _ = await _ids(stage, "alice")
    exchange = GatewayExchange(uuid.uuid4(), f"the vault is {SECRET}", harness.clock.now())
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.gateway_exchanges.put(ExchangeOwner(alice, "cursor"), exchange, harness.clock.now())


async def _chat(stage: Stage) -> None:
    await stage.request("POST", "/v1/chat", content=f"the vault is {SECRET}", session="s1")


async def _chat_before(stage: Stage) -> None:
    await stage.request("POST", "/v1/chat", content="hello", session="s1")


async def _share(stage: Stage) -> None:
    [[id]] = await stage.rows(f"SELECT id FROM {stage.kept['table']} LIMIT 1") or [[uuid.uuid4()]]
    await stage.command(f"share {id.hex[:8]} here --yes", **ROOM)


def stored_in_dm(text: str, table: str) -> Act:
    """Alice stores it in her DM."""

    async def act(stage: Stage) -> None:
        stage.kept["table"] = table
        await stage.harness.say("alice", "good morning", **DM)
        await stage.command(text, **DM)

    return act


WRITES: Final = (
    Write("a message", said_in(**ROOM), IN_ROOM | {MESSAGE, EDITED, IMPORTED, OLD}, "messages_append"),
    Write(
        "a message in a thread", said_in(**THREAD), IN_ROOM | {MESSAGE}, "messages_append", will_be_said_in(**THREAD)
    ),
    Write(
        "a message in a new room",
        said_in(room="new"),
        frozenset({WORDS, PERSON, MESSAGE}),
        "messages_append",
        will_be_said_in(room="new"),
    ),
    Write(
        "a direct message", said_in(**DM), frozenset({WORDS, PERSON, MESSAGE}), "messages_append", will_be_said_in(**DM)
    ),
    Write("an edit", _edit, IN_ROOM | {MESSAGE, EDITED}, "message_edit", _said_of_nothing),
    Write("an episode", _index, OF_MESSAGE, "recall_insert", _said, derived=True),
    Write("a memory by pattern", _index, IN_ONE, "memories_insert", _said, derived=True),
    Write("a decision by pattern", _index, IN_ONE, "landmarks_insert", _said, derived=True),
    Write("a vector", _index, OF_MESSAGE, "recall_store_vectors", _said, derived=True, asks="embedder"),
    Write(
        "a memory by a model",
        _extract,
        OF_MESSAGE,
        "memories_insert",
        _said_and_indexed,
        derived=True,
        extracts=True,
        asks="model",
    ),
    Write("a summary", _summarise, OF_MESSAGE, "summary_insert", _said_a_day_ago, derived=True, asks="model"),
    Write(
        "a compaction",
        _ask,
        OF_MESSAGE,
        "compaction_insert",
        _said_and_much_more,
        derived=True,
        asks="model",
        window=4_000,
    ),
    Write("an answer", _ask, OF_MESSAGE - {OLD}, "turn_answer", _said_and_indexed, derived=True, asks="model"),
    Write(
        "a posted part of an answer",
        _ask,
        OF_MESSAGE - {OLD, ROOM_ITSELF},
        "delivery_record",
        _said_before_a_screen,
        derived=True,
        finish=_look_at_the_screen,
    ),
    Write("/nexus remember", command(f"remember the vault is {SECRET}"), IN_ROOM, "memories_insert"),
    Write("/nexus fact set", command(f'fact set vault "{SECRET}"'), IN_ROOM, "fact_insert"),
    Write("/nexus landmark add", command(f"landmark add the vault is {SECRET} --yes"), IN_ROOM, "landmarks_insert"),
    Write("/nexus remind", command(f"remind here in 20 minutes the vault is {SECRET}"), IN_ROOM, "reminder_insert"),
    Write("/nexus remember by a guest", _guest_remembers, OF_GUEST, "quarantine_insert"),
    Write(
        "an approval",
        _approve,
        OF_GUEST,
        "memories_insert",
        _guest_remembers,
        derived=True,
    ),
    Write("an amended landmark", _amend, OF_MESSAGE - {OLD}, "landmarks_insert", _said_and_bob_is_there, derived=True),
    Write(
        "a shared memory",
        _share,
        frozenset({WORDS, PERSON}),
        "sharing_move",
        stored_in_dm(f"remember the vault is {SECRET}", "memories"),
        derived=True,
    ),
    Write(
        "a shared fact",
        _share,
        frozenset({WORDS, PERSON}),
        "sharing_file_fact",
        stored_in_dm(f'fact set vault "{SECRET}"', "facts"),
        derived=True,
    ),
    Write(
        "a shared landmark",
        _share,
        frozenset({WORDS, PERSON}),
        "sharing_move",
        stored_in_dm(f"landmark add the vault is {SECRET} --yes", "landmarks"),
        derived=True,
    ),
    Write("an entry", _write_entry, frozenset({WORDS, PERSON, ENTRIES}), "entry_insert"),
    Write("a changed entry", _change_entry, OF_ENTRY | {ENTRY_WORDS}, "entry_update", _another_entry),
    Write("a restored entry", _restore_entry, OF_ENTRY, "entry_trash", _trashed_entry, derived=True),
    Write(
        "an answer over the API", _query, OF_ENTRY | {ENTRY_WORDS}, None, _entry_and_index, derived=True, asks="model"
    ),
    Write("a message of a session", _chat, frozenset({WORDS, PERSON, SESSION}), "messages_append", _chat_before),
    Write("a request to a model", _exchange, frozenset({WORDS, PERSON}), "gateway_exchange_put"),
)
