"""Delivery: however it is interrupted, each part is posted once, its id is stored, and it can be retracted."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from bot.delivery import streaming
from bot.delivery.citations import link_marks
from bot.delivery.streaming import EMPTY_PART, OFFER_PART, StreamingDelivery
from bot.platform.retry import Backoff
from composer.errors import NexusError, Refused, Unavailable
from composer.memory.forget import RETRACTED
from composer.model import ConversationKind, Message, Offer, Turn, Visibility
from composer.ports.database import Mode
from composer.repositories.deliveries import Destination
from composer.repositories.explanations import MessageAddress
from composer.repositories.turns import Answer
from composer.tasks.signals import ErasureSignal
from composer.turn.answers import ROOM_OPENED

TEXT = "that is all that I know of it, and it is enough."


class Store:
    """A store of part ids that waits for `allowed` before each write."""

    def __init__(self) -> None:
        self.noted: dict[int, str] = {}
        self.erased = False  # the question
        self.written = False  # the whole answer
        self.allowed = asyncio.Event()
        self.asked = asyncio.Event()
        self.deliveries = self
        self.queued: list[tuple[str, int | None]] = []  # to be retracted: by id, or by number

    @asynccontextmanager
    async def transaction(self, tenant: uuid.UUID, mode: Mode = "share") -> AsyncIterator["Store"]:
        yield self

    async def posted(self, turn: uuid.UUID) -> tuple[Destination, dict[int, str]]:
        to = Destination("discord", "w", ConversationKind.ROOM, "general", None, False, "m1", "u1")
        return to, dict(self.noted)

    async def may_show(self, tenant: uuid.UUID, turn: uuid.UUID) -> bool | None:
        return None if self.written else not self.erased

    async def record_part(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> bool:
        self.asked.set()
        await self.allowed.wait()
        if not self.erased:
            self.noted[part] = external_id
        return not self.erased

    async def queue_retraction(
        self, turn: uuid.UUID, to: Destination, external_id: str, part: int | None = None
    ) -> None:
        self.queued.append((external_id, part))


class Outbox:
    """A platform that answers immediately."""

    edit_interval, limit = 0.0, 2000

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}

    async def find(self, to: Destination, key: str) -> str | None:
        return None

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        self.shown[f"p{len(self.shown)}"] = text
        return f"p{len(self.shown) - 1}"

    async def edit(self, to: Destination, message: str, text: str) -> None:
        self.shown[message] = text


async def test_the_id_of_a_part_that_is_posted_as_the_answer_ends_is_stored() -> None:
    store, outbox = Store(), Outbox()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await store.asked.wait()  # the part is posted, and its id is being stored
    sending = asyncio.create_task(delivery.deliver(answer(turn, TEXT)))
    await asyncio.sleep(0)
    store.allowed.set()
    await sending
    assert outbox.shown == {"p0": TEXT}
    assert store.noted == {0: "p0"}


async def test_an_answer_that_is_written_anew_shows_nothing_of_the_first() -> None:
    # It could not be stored. What it was made from may be forgotten in between: the second is judged by its own prompt.
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    showing = delivery._streams[turn.id].task
    assert showing is not None
    await showing
    assert outbox.shown == {"p0": TEXT}
    delivery.on_start(turn)
    hiding = delivery._streams[turn.id].task
    assert hiding is not None
    await hiding
    assert outbox.shown == {"p0": EMPTY_PART}
    another = "I know nothing of it any more, as far as I can see."
    await delivery.on_chunk(turn, another)
    await delivery.deliver(answer(turn, another))
    assert outbox.shown == {"p0": another}


async def test_a_piece_that_is_being_posted_while_its_answer_is_thrown_away_is_hidden() -> None:
    store, outbox = Store(), Outbox()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await store.asked.wait()  # the piece is posted, and its id is being stored
    showing = delivery._streams[turn.id].task
    assert showing is not None
    delivery.on_start(turn)
    store.allowed.set()
    await showing
    assert outbox.shown == {"p0": EMPTY_PART}


async def test_the_end_of_an_answer_that_is_written_anew_takes_the_place_of_what_a_person_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A notice stood for an answer whose source was forgotten, and the answer stayed: a stopped stream takes no edit.
    store, outbox, closed = Store(), Outbox(), list[uuid.UUID]()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()

    async def close(turn: Turn) -> None:
        closed.append(turn.id)

    monkeypatch.setattr(delivery, "_close_streams", close)
    await delivery.on_chunk(turn, TEXT)
    showing = delivery._streams[turn.id].task
    assert showing is not None
    await showing
    delivery.on_start(turn)
    await delivery.deliver(answer(turn, RETRACTED))
    assert closed == [turn.id]
    assert outbox.shown == {"p0": RETRACTED}


async def as_links(_: Destination, cited: Mapping[str, MessageAddress]) -> Mapping[str, str]:
    return {mark: f"[{mark}](https://chat/{address.external_id})" for mark, address in cited.items()}


def address(id: str) -> MessageAddress:
    return MessageAddress("discord", "G1", ConversationKind.ROOM, "C1", None, id)


async def test_the_marks_of_an_answer_become_links_when_it_is_whole() -> None:
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    text = "It is on the ninth (s1), as Bob said (s2, s7)."
    await delivery.deliver(answer(turn, text, cited={"s1": address("11"), "s2": address("12")}))
    assert outbox.shown == {
        "p0": "It is on the ninth ([s1](https://chat/11)), as Bob said ([s2](https://chat/12), s7)."
    }


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("no mark, s1 alone", "no mark, s1 alone"),
        ("yes (s1).", "yes ([s1](u1))."),
        ("(s1)(s2) (s3)", "([s1](u1))([s2](u2)) (s3)"),
        ("(s1, s3,s2)", "([s1](u1), s3, [s2](u2))"),
        ("`(s1)` and ```\n(s1)\n``` (s1)", "`(s1)` and ```\n(s1)\n``` ([s1](u1))"),
        ("[a link](s1) (s10) (s01)", "[a link](s1) (s10) (s01)"),
        ("```\nnever closed (s1)", "```\nnever closed (s1)"),
        ("``a ` (s1)`` (s1)", "``a ` (s1)`` ([s1](u1))"),
        ("one ` tick (s1)", "one ` tick ([s1](u1))"),
        ("one ` tick\n\n(s1) and ` another", "one ` tick\n\n([s1](u1)) and ` another"),
        ("````\n```\n(s1)\n````\n(s1)", "````\n```\n(s1)\n````\n([s1](u1))"),
        ("~~~\n(s1)\n~~~\n(s1)", "~~~\n(s1)\n~~~\n([s1](u1))"),
        ("> ~~~\n> (s1)\nnever closed (s1)", "> ~~~\n> (s1)\nnever closed (s1)"),
        ("so:\n\n    code (s1)\n\n    more (s1)\nnot (s1)", "so:\n\n    code (s1)\n\n    more (s1)\nnot ([s1](u1))"),
        ("\tcode (s1)", "\tcode (s1)"),
        ("- item\n    goes on (s1)\n\n    and on (s1)", "- item\n    goes on ([s1](u1))\n\n    and on ([s1](u1))"),
        ("- item\n\n    `(s1)`", "- item\n\n    `(s1)`"),
        ("https://a.org/wiki/Foo_(s1) (s1)", "https://a.org/wiki/Foo_(s1) ([s1](u1))"),
        ("<https://a.org/(s1)>(s1)", "<https://a.org/(s1)>([s1](u1))"),
        ("www.a.org/(s1)", "www.a.org/(s1)"),
        ("[see (s1)](https://a.org) (s1)", "[see (s1)](https://a.org) ([s1](u1))"),
        ("[see](a_(s1)) (s1)", "[see](a_(s1)) ([s1](u1))"),
        ("[see] (s1)", "[see] ([s1](u1))"),
    ],
)
def test_marks_in_parentheses_become_links_and_code_and_addresses_stay(text: str, linked: str) -> None:
    assert link_marks(text, {"s1": "[s1](u1)", "s2": "[s2](u2)"}) == linked


def delivery_with(store: Store, outbox: Outbox) -> StreamingDelivery:
    clock = SimpleNamespace(now=lambda: datetime.now(UTC))
    app: Any = SimpleNamespace(database=store, drafter=store, clock=clock, erasures=ErasureSignal())
    platform: Any = outbox
    return StreamingDelivery(app, platform, as_links, backoff=Backoff(first_seconds=0.0))


def answer(turn: Turn, text: str, **more: Any) -> Answer:
    id = uuid.uuid4()
    reply = Message(id, "r1", 2, datetime.now(UTC), None, turn.agent_id, "Nexus", text, "room:1", Visibility.PUBLIC)
    return Answer(turn, reply, in_reply_to="m1", **more)


def a_turn() -> Turn:
    return Turn(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), "discord")


async def test_what_is_shown_stays_while_the_whole_answer_is_being_stored() -> None:
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    for store.written in (False, True):
        await delivery.on_chunk(turn, TEXT)
        task = delivery._streams[turn.id].task
        assert task is not None
        await task
    assert outbox.shown == {"p0": TEXT}


async def test_an_abandoned_answer_is_retracted_and_its_state_is_discarded() -> None:
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await store.asked.wait()
    await delivery.abandon(turn)
    assert outbox.shown == {"p0": RETRACTED}
    assert delivery._streams == {}


async def test_an_abandoned_answer_without_a_posted_part_posts_nothing() -> None:
    outbox = Outbox()
    delivery, turn = delivery_with(Store(), outbox), a_turn()
    await delivery.abandon(turn)
    delivery.on_start(turn)
    await delivery.abandon(turn)
    assert outbox.shown == {}
    await delivery.close()


async def test_a_part_whose_post_was_interrupted_is_found_and_retracted() -> None:
    class HangingOutbox(Outbox):
        """A platform that shows a message immediately, but never answers the request."""

        posted = asyncio.Event()

        async def find(self, to: Destination, key: str) -> str | None:
            return "p0" if self.shown else None

        async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
            self.shown["p0"] = text
            self.posted.set()
            return await asyncio.Future()

    outbox = HangingOutbox()
    delivery, turn = delivery_with(Store(), outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await outbox.posted.wait()
    await delivery.abandon(turn)
    assert outbox.shown == {"p0": RETRACTED}


@pytest.mark.parametrize("error", [Unavailable("Discord can't be reached."), Refused("The channel is archived.")])
@pytest.mark.parametrize("down", [False, True])
async def test_a_retraction_that_the_platform_does_not_take_is_queued(error: NexusError, down: bool) -> None:
    class FailingOutbox(Outbox):
        async def edit(self, to: Destination, message: str, text: str) -> None:
            raise error

    class FailingStore(Store):
        failures = 3 if down else 0

        async def queue_retraction(self, *arguments: Any) -> None:
            self.failures -= 1
            if self.failures >= 0:
                raise Unavailable("The database does not answer.")
            await super().queue_retraction(*arguments)

    store, outbox = FailingStore(), FailingOutbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await store.asked.wait()
    await delivery.abandon(turn)
    await delivery._tasks.join()
    assert store.queued == [("p0", None)]


async def test_a_part_that_may_be_posted_is_queued_to_be_looked_for_while_the_platform_is_down() -> None:
    class SilentOutbox(Outbox):
        """A platform that posts, and then is down."""

        posted = asyncio.Event()

        async def find(self, to: Destination, key: str) -> str | None:
            if self.posted.is_set():
                raise Unavailable("Discord can't be reached.")
            return None

        async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
            self.posted.set()
            return await asyncio.Future()

    store, outbox = Store(), SilentOutbox()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT)
    await outbox.posted.wait()
    await delivery.abandon(turn)
    assert store.queued == [("", 0)]


@pytest.mark.parametrize("text", [RETRACTED, ROOM_OPENED, TEXT])
async def test_what_is_shown_of_an_answer_whose_place_another_text_must_take_is_queued_if_that_is_refused(
    text: str,
) -> None:
    # The turn ended as refused, and what was shown of it stayed.
    class ClosedOutbox(Outbox):
        async def edit(self, to: Destination, message: str, text: str) -> None:
            raise Refused("The channel is archived.")

    store, outbox = Store(), ClosedOutbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    await delivery.on_chunk(turn, TEXT[:30])
    await store.asked.wait()
    with pytest.raises(Refused):
        await delivery.deliver(answer(turn, text))
    assert store.queued == ([] if text == TEXT else [("p0", None)])


async def test_a_part_that_is_posted_while_its_question_is_erased_is_retracted() -> None:
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    store.erased = True  # after the delivery looked up the destination of the answer
    await delivery.deliver(answer(turn, TEXT))
    assert outbox.shown == {"p0": RETRACTED}
    assert delivery._streams == {}


class Typing(Outbox):
    """Counts how often it was shown that an answer is being written."""

    def __init__(self) -> None:
        super().__init__()
        self.signs: list[str] = []
        self.signed = asyncio.Event()

    async def show_typing(self, to: Destination, key: str) -> None:
        self.signs.append(key)
        self.signed.set()


async def test_who_waits_sees_that_they_are_heard_until_the_answer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEARD_SECONDS", "TYPING_SECONDS"):
        monkeypatch.setattr(streaming, name, 0.001)
    store, outbox = Store(), Typing()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    delivery.on_wait(turn)
    for _ in range(2):  # again and again
        outbox.signed.clear()
        await outbox.signed.wait()
    delivery.on_start(turn)
    outbox.signed.clear()
    await outbox.signed.wait()
    await delivery.deliver(answer(turn, TEXT))
    shown = len(outbox.signs)
    await asyncio.sleep(0.02)
    assert len(outbox.signs) == shown
    assert outbox.shown == {"p0": TEXT}


async def test_nobody_is_said_to_write_once_another_process_has_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HEARD_SECONDS", 0.0)
    store, outbox = Store(), Typing()
    store.noted[0] = "p0"
    delivery, turn = delivery_with(store, outbox), a_turn()
    delivery.on_wait(turn)
    await delivery._tasks.join()
    assert outbox.signs == []


async def test_the_buttons_below_an_answer_go_when_it_is_retracted_while_it_is_delivered() -> None:
    store, outbox = Store(), Outbox()
    store.allowed.set()
    delivery, turn = delivery_with(store, outbox), a_turn()
    offer = Offer("Remember it", "/nexus remember walnut")
    await delivery.deliver(answer(turn, TEXT, offers=(offer,)))
    assert outbox.shown == {"p0": TEXT, "p1": "Remember it: `/nexus remember walnut`"}
    assert store.noted == {0: "p0", OFFER_PART: "p1"}
    await delivery.deliver(answer(turn, RETRACTED))
    assert outbox.shown == {"p0": RETRACTED, "p1": RETRACTED}
