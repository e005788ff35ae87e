"""A misspelt question finds what the right one does, by words that its viewer may read there, and by no others."""

from collections import Counter
from datetime import timedelta

from tests.support.harness import START, AppHarness
from tests.support.receiver import said

LINES = [
    "The repairman for the dishwasher comes on Thursday afternoon.",
    "The deployment of the payment service is blocked by the firewall.",
    "We did the Postgres migration at night, it took four hours.",
    "The cafeteria opens at half past eleven.",
]
RIGHT = ["dishwasher repairman", "what blocks the deployment", "postgres migration", "when does the cafeteria open"]
MISSPELT = ["dishwaser repairmen", "what blocks teh deploymnet", "postgress migraton", "when does teh cafetria open"]


async def fill(harness: AppHarness, lines: list[str]) -> None:
    here = harness.workspace()
    talk = [f"see https://pastebin.com/{n * 7919:x} for ticket {n} of batch {n * 7}" for n in range(70)]
    sent = [said(f"r{n}", text, minute=n) for n, text in enumerate([*lines, *talk])]
    await harness.app.receive(here, sent, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + timedelta(days=4))


async def recalled(harness: AppHarness, question: str, room: str = "general") -> list[str]:
    prompt = (await harness.compose("erin", f"@nexus {question}", room=room)).prompt
    found = [section.text.splitlines()[1:] for section in prompt.sections if section.name == "RECALL"]
    return found[0] if found else []


async def test_a_misspelt_question_finds_first_what_the_right_one_does(harness: AppHarness) -> None:
    await fill(harness, LINES)
    for line, right, misspelt in zip(LINES, RIGHT, MISSPELT, strict=True):
        assert line in (await recalled(harness, right))[0], right
        found = await recalled(harness, misspelt)
        assert found, misspelt
        assert line in found[0], (misspelt, found)


async def test_what_a_room_may_not_read_corrects_no_word_there(harness: AppHarness) -> None:
    await fill(harness, LINES[1:])
    before = await recalled(harness, MISSPELT[0])
    await harness.say("erin", LINES[0], dm="nexus")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert await recalled(harness, MISSPELT[0]) == before


async def test_words_are_compared_only_for_a_word_that_nobody_used(
    harness: AppHarness, statements: Counter[str]
) -> None:
    await fill(harness, LINES)
    for question, compared, searches in ((RIGHT[3], 0, 1), ("is there an aquarium?", 1, 1), (MISSPELT[3], 1, 2)):
        await recalled(harness, question)
        statements.clear()
        await recalled(harness, question)
        assert (statements["recall_words"], statements["recall_search"]) == (compared, searches), question
