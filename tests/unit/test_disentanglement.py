"""Disentanglement: which messages of a busy room belong to the question's discussion."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from composer.layers.disentanglement import is_busy, related_messages, relatedness
from composer.layers.working import BUSY_SHOWN_MESSAGES, RELATED_MESSAGES, busy_room_window, is_busy_room, latest_window
from composer.model import Conversation, ConversationKind, Message, Visibility
from tests.support.harness import START

ROOM = uuid.uuid5(uuid.NAMESPACE_DNS, "room")
HELPED = ("ann", "ben", "cat", "dan")


def message(number: int, author: str, text: str, *, mentions: Sequence[str] = (), answers: str = "") -> Message:
    """Make a message in a room. `answers`: the id of the message that an agent's message answers."""
    who = person(author)
    return Message(
        uuid.uuid5(ROOM, str(number)),
        f"reply:{answers}:nexus" if answers else f"m{number}",
        number,
        START + timedelta(minutes=number),
        None if answers else who,
        who if answers else None,
        author,
        text,
        f"room:{ROOM}",
        Visibility.PUBLIC,
        mentions=tuple(person(name) for name in mentions),
    )


def person(name: str) -> uuid.UUID:
    return uuid.uuid5(ROOM, name)


def room(count: int) -> list[Message]:
    """Make messages of four people who talk in pairs, interleaved; no message names anyone outside its pair."""
    messages = []
    for n in range(1, count + 1):
        asks = HELPED[n % 4]
        messages.append(message(n, f"{asks}s-helper", f"{asks}: try it") if n // 4 % 2 else message(n, asks, "no luck"))
    return messages


def conversation(kind: ConversationKind = ConversationKind.ROOM) -> Conversation:
    return Conversation(ROOM, ROOM, kind, "general", f"room:{ROOM}")


def chosen(messages: Sequence[Message], question: Message, limit: int) -> list[int]:
    return [found.seq for found, _ in related_messages(messages, question, len(messages), limit)]


def test_earlier_messages_of_the_same_discussion_are_more_related_than_later_ones_of_others() -> None:
    messages = room(80)
    for who in range(4):
        question = message(81, HELPED[who], "@nexus what now?")
        assert all(n % 4 == who for n in chosen(messages, question, 5))


def test_messages_of_a_person_who_is_named_or_mentioned_belong_to_the_discussion() -> None:
    messages = [message(n, ("ann", "ben", "cat", "dan", "eve", "flo")[n % 6], "hm") for n in range(1, 40)]
    question = message(40, "new", "@nexus what does dan mean?")
    assert chosen(messages, question, 1) == [39 - (39 - 3) % 6]
    question = message(40, "new", "@nexus what is meant?", mentions=("eve",))
    assert chosen(messages, question, 1) == [39 - (39 - 4) % 6]


def test_a_reply_belongs_to_the_discussion_of_the_message_it_replies_to() -> None:
    messages = [message(n, f"guest{n}", "words of my own") for n in range(1, 20)]
    question = replace(message(20, "eve", "and then?"), reply_to="m4")
    assert [m.external_id for m, _ in related_messages(messages, question, 10, 1)] == ["m4"]
    assert [m.external_id for m, _ in related_messages(messages, replace(question, reply_to="m99"), 10, 1)] != ["m4"]


def test_an_agents_answer_belongs_to_the_discussion_of_its_question_only() -> None:
    messages = [
        message(1, "ann", "@nexus which port?"),
        message(2, "Nexus", "443", answers="m1"),
        *(message(n, ("ben", "cat", "dan")[n % 3], "lunch?") for n in range(3, 30)),
        message(30, "ben", "@nexus who pays?"),
        message(31, "Nexus", "you", answers="m30"),
        *(message(n, ("cat", "dan")[n % 2], "soup") for n in range(32, 40)),
    ]
    related = relatedness(messages, message(40, "ann", "@nexus and the host?"))
    assert related[1] > related[30]
    related = relatedness(messages, message(40, "ben", "@nexus how much?"))
    assert related[30] > related[1]


def test_a_rare_word_links_messages_and_a_common_one_does_not() -> None:
    messages = [message(n, f"p{n}", "the kernel panics" if n == 5 else "it works") for n in range(1, 30)]
    assert chosen(messages, message(30, "new", "my kernel does too"), 2) == [5, 29]
    assert chosen(messages, message(30, "new", "it works here"), 2) == [29], (
        "the message just before, by its place alone"
    )


def test_after_a_pause_only_what_is_said_links_messages() -> None:
    messages, later = room(80), timedelta(days=1)

    def asked(author: str, text: str, reply_to: str | None = None) -> list[int]:
        question = replace(message(81, author, text), at=START + later, reply_to=reply_to)
        return chosen(messages, question, 10)

    assert asked("new", "@nexus what happened last week?") == []
    assert asked("ann", "@nexus what happened last week?") == [], "nor does who says it"
    assert all(n % 4 == 0 for n in asked("new", "@nexus what did anns-helper say?"))
    assert 3 in asked("new", "@nexus what of this?", "m3")
    soon = replace(message(81, "ann", "@nexus what now?"), at=messages[-1].at + timedelta(minutes=59))
    assert chosen(messages, soon, 10)


def test_a_chain_that_is_as_weak_as_a_guess_relates_nothing() -> None:
    messages = [message(n, f"p{n}", "hm") for n in range(1, 60)]
    assert chosen(messages, message(60, "new", "@nexus what happened?"), 10) == [59]


def test_a_room_is_busy_when_many_people_hold_several_discussions() -> None:
    assert is_busy(room(40))
    assert not is_busy([message(n, ("ann", "ben", "cat")[n % 3], "hm") for n in range(1, 41)]), "too few people"
    circle = [message(n, f"p{n % 8}", f"p{(n - 1) % 8} p{(n + 1) % 8}: yes") for n in range(1, 41)]
    assert not is_busy(circle), "eight people in one discussion"


def test_a_quiet_room_a_thread_and_a_dm_show_their_latest_messages() -> None:
    assert is_busy_room(conversation(), room(60))
    assert not is_busy_room(conversation(), room(39)), "all messages are shown"
    for kind in (ConversationKind.THREAD, ConversationKind.DM, ConversationKind.SESSION):
        assert not is_busy_room(conversation(kind), room(60))
    assert [m.seq for m in latest_window(room(60)).shown] == list(range(21, 61))


def test_a_busy_rooms_window_always_has_the_latest_messages_and_keeps_its_beginning_for_twenty() -> None:
    for count in range(200, 240):
        messages = room(count)
        window = busy_room_window(messages[-200:], message(count + 1, "ann", "@nexus what now?"))
        assert [m.seq for m in window.recent] == list(range(count - BUSY_SHOWN_MESSAGES - count % 20 + 1, count + 1))
        assert len(window.related) == RELATED_MESSAGES
        places = [m.seq for m in window.shown]
        assert places == sorted(set(places))
        assert sum(n % 4 == 0 for n in places[:RELATED_MESSAGES]) > RELATED_MESSAGES / 2
        assert window.candidates == 180 + count % 20


def test_whether_a_room_is_busy_changes_only_when_the_window_moves() -> None:
    messages = room(60) + [message(n, "ann", "ben: on and on") for n in range(61, 140)]
    found = [is_busy_room(conversation(), messages[:count][-60:]) for count in range(60, 140)]
    assert found[0]
    assert not found[-1]
    changes = [60 + n for n in range(1, len(found)) if found[n] != found[n - 1]]
    assert all(count % 20 == 0 for count in changes)


def test_the_selection_depends_only_on_the_messages() -> None:
    messages, question = room(120), message(121, "ben", "@nexus what now?")
    other = [message(m.seq, m.author, m.text) for m in messages]
    assert relatedness(messages, question) == relatedness(other, question)
    assert relatedness([], question) == []
