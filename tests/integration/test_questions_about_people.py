"""Who is asked about is found by what they said, also long after they were seen: a name is no word to search for."""

from datetime import timedelta

import pytest

from tests.support.harness import START, AppHarness
from tests.support.receiver import said

OWN = [
    ("Lena", "my PTO is 12 to 19 August"),
    ("Marco", "got a job at the aquarium, starting in May"),
    ("Yuki", "I live in a tiny place in Leith since March"),
    ("Owen", "on the bench for three weeks, torn ligament"),
    ("Fatima", "anything but mushrooms please"),
    ("Priya", "my flight lands at 18:40"),
]
ASKED = [
    *("when is Lena on vacation?", "where does Marco work?", "where does Yuki live?"),
    *("what injury does Owen have?", "which food does Fatima dislike?", "when does priya arrive?"),
]


async def fill(harness: AppHarness) -> None:
    here = harness.workspace()
    others = [
        ("dave", f"{name} {['was here', 'says hi', 'called', 'is nice'][n % 4]}")
        for n, (name, _) in enumerate(OWN * 12)
    ]
    talk = [("dave", f"ticket {n}: the build of branch {n * 7} is green") for n in range(70)]
    lines = [*OWN, *others, *talk]
    sent = [said(f"r{n}", text, user=user, minute=n) for n, (user, text) in enumerate(lines)]
    await harness.app.receive(here, sent, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + timedelta(days=4))


async def recalled(harness: AppHarness, question: str) -> list[str]:
    prompt = (await harness.compose("erin", f"@nexus {question}", room="general")).prompt
    found = [section.text.splitlines()[1:] for section in prompt.sections if section.name == "RECALL"]
    return found[0] if found else []


@pytest.mark.parametrize(
    ("question", "own"),
    [("which is Owens injury", 3), ("what is marcos job", 1), ("Was ist Marcos job?", 1), ("Wann ist Lenas PTO?", 0)],
)
async def test_a_genitive_names_somebody(harness: AppHarness, question: str, own: int) -> None:
    await fill(harness)
    found = await recalled(harness, question)
    assert any(OWN[own][1] in line for line in found[:2]), found[:4]


async def test_what_somebody_said_of_themselves_comes_before_what_only_has_their_name(harness: AppHarness) -> None:
    await fill(harness)
    for (_, own), question in zip(OWN, ASKED, strict=True):
        found = await recalled(harness, question)
        assert any(own in line for line in found[:2]), (question, found[:4])
