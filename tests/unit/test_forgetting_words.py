"""Which messages ask in words to have something forgotten, and which only sound so."""

import pytest

from composer.text.forgetting import Forgetting, asked_to_forget


@pytest.mark.parametrize(
    "text",
    [
        "forget that",
        "Forget that!",
        "@nexus forget that please",
        "please forget this.",
        "Oops, wrong room. Can you delete that?",
        "could you please forget that",
        "forget what I just said",
        "Please forget what I\u2019ve told you about Bob",
        "delete my last message",
        "can you erase everything I said today",
        "please remove my previous two messages",
        "wait, forget that again",
        "delete that from your memory",
        "forget that message",
        "don't remember what I said",
        "please don't remember that",
        "never store that",
    ],
)
def test_what_was_said_before(text: str) -> None:
    assert asked_to_forget(text) in (Forgetting.BEFORE, Forgetting.THIS)


@pytest.mark.parametrize(
    "text",
    [
        "My PIN is 1234, please don't remember this",
        "I'm leaving in May. Don't store this!",
        "please do not keep this: the salary is 91k",
        "The code is 9911. Forget that",
    ],
)
def test_what_the_message_says_itself(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.THIS


@pytest.mark.parametrize(
    "text", ["forget everything", "please delete everything you know about me", "erase all that you remember of me"]
)
def test_everything(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.EVERYTHING


@pytest.mark.parametrize(
    "text",
    [
        "forget it",
        "oh, forget about that",
        "don't forget that we meet at nine",
        "don't forget that!",
        "never forget this",
        "I always forget that",
        "I won't forget that.",
        "forget that meeting",
        "forget that we deploy on Friday",
        "delete that file",
        "how do I delete this?",
        "should I remove that?",
        "did you forget that?",
        "I don't remember that",
        "sorry, don't remember that",
        "don't store this in the fridge",
        "what did I say?",
        "forget me not",
        "",
    ],
)
def test_what_only_sounds_so(text: str) -> None:
    assert asked_to_forget(text) is None
