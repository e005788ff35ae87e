"""Decisions that a model found in a batch of messages: each goes with the messages that it repeats, and not with those
that the model merely saw beside them."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.deep.integration.test_mem0 import FACTS, MESSAGES
from tests.support.extraction import ROOM, Office, extraction_reply, office_on

BESIDE, STATED = MESSAGES[0][1][:9], MESSAGES[1][1][:9]  # the ids of messages; the decision was found in the others
DECISION = str(FACTS[1]["text"])


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as opened:
        yield opened


async def accept(office: Office, decision: str) -> None:
    """Have the model find a decision, in a batch of messages, and alice accept it."""
    await office.post_messages(*MESSAGES)
    office.server.script.append(extraction_reply([FACTS[0], {**FACTS[1], "text": decision}]))
    assert await office.extract() == len(MESSAGES)
    id = (await office.harness.command("alice", "/nexus landmark list", **ROOM)).text.split()[0]
    await office.harness.command("alice", f"/nexus landmark accept {id}", **ROOM)


async def landmarks(office: Office) -> list[tuple[str, str]]:
    """(state, text) of every landmark."""
    return await office.rows("SELECT state, text FROM landmarks")


async def test_an_accepted_decision_stays_when_a_message_beside_its_source_goes(office: Office) -> None:
    await accept(office, DECISION)
    await office.harness.change(BESIDE, None)
    assert await landmarks(office) == [("pinned", DECISION)]


async def test_an_accepted_decision_goes_with_a_message_that_it_repeats(office: Office) -> None:
    await accept(office, DECISION)
    await office.harness.change(STATED, None)
    assert await landmarks(office) == []


async def test_an_accepted_decision_goes_with_a_message_beside_its_source_if_it_repeats_that(office: Office) -> None:
    await accept(office, f"{DECISION}, indented with tabs")
    await office.harness.change(BESIDE, None)
    assert await landmarks(office) == []
