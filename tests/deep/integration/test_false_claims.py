"""An answer that says to have done what nobody did is corrected below it."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.support.model_server import Fail, Raw, Say
from tests.support.tool_office import LAB, Office, call, opened

PROMISE = "I will remind you tomorrow at 9."


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with opened(settings) as office:
        yield office


def checks(office: Office) -> list[str]:
    """What was asked about answers."""
    return [each.body["messages"][-1]["content"] for each in office.server.requests if "[ANSWER]" in str(each.body)]


@pytest.mark.parametrize(
    ("answer", "verdict", "notice"),
    [
        (PROMISE, "REMIND en", "No reminder was set by that. To set one: /nexus remind WHEN TEXT"),
        (
            "Ich erinnere dich morgen um 9.",
            "REMIND de",
            "Damit wurde keine Erinnerung gesetzt. So geht es: /nexus remind",
        ),
        (
            "Noted, I'll remember that.",
            "STORE en",
            "Nothing was stored by that. To store it: /nexus remember I like tea",
        ),
        ("Lo he guardado.", "STORE es", "Así no se guardó nada. Para guardarlo: /nexus remember I like tea"),
    ],
)
async def test_a_claim_that_nothing_stands_behind_is_said_to_be_none(
    office: Office, answer: str, verdict: str, notice: str
) -> None:
    office.server.script.extend((Say((answer,)), Say((verdict,))))
    reply = await office.harness.ask("alice", "@nexus I like tea", **LAB)
    assert reply.text.startswith(f"{answer}\n\n{notice}")
    offered = ["/nexus remember I like tea"] if verdict.startswith("STORE") else []
    assert [each.command for each in reply.offers] == offered, "with a button that does it"
    (asked,) = checks(office)
    assert answer in asked
    office.server.script.append(Say(("On Thursday.",)))
    await office.harness.ask("alice", "@nexus and when?", **LAB)
    assert notice not in str(office.server.requests[-1].body), "a model does not learn to write it"


@pytest.mark.parametrize(
    "verdict", [Say(("NONE en",)), Say(("It depends.",)), Fail(400), Raw(b"<html>", "text/html"), Say(())]
)
async def test_without_a_clear_verdict_the_answer_stays_as_it_is(office: Office, verdict: Say | Fail | Raw) -> None:
    office.server.script.extend((Say((PROMISE,)), verdict))
    office.server.default = Say(("NONE",))
    assert (await office.harness.ask("alice", "@nexus hello", **LAB)).text == PROMISE


async def test_an_ordinary_answer_and_one_with_sources_ask_nothing_more(office: Office) -> None:
    await office.harness.say("bob", "Carol will remind everyone about the heron key", **LAB)
    await office.chatter(**LAB)
    for answer in ("The launch is on Friday, as Carol wrote.", f"{PROMISE} (s1)"):
        office.server.script.append(Say((answer,)))
        assert (await office.harness.ask("alice", "@nexus who reminds of the heron key?", **LAB)).text == answer
    assert checks(office) == []


async def test_what_was_done_is_not_said_to_be_undone(office: Office) -> None:
    reply = await office.ask("alice", "@nexus remember that I like tea", call("remember", text="I like tea"), **LAB)
    assert "Remembered: I like tea" in reply.text
    assert checks(office) == []
