"""What names a day in its own words is recalled for that day, whenever it was said: the day is seen from then."""

from datetime import timedelta

import pytest

from tests.support.harness import START, AppHarness
from tests.support.receiver import said

DAY = 24 * 60  # minutes; the first one is a Monday, 4 May
SAID = [
    (-4 * DAY, "somebody arrives late for every call, please be on time"),  # last Thursday
    (-4 * DAY + 60, "the courier who arrives at noon has the toner"),
    (-4 * DAY + 120, "am Aufzug wird heute gebohrt"),
    (DAY, "the auditors arrive the day after tomorrow, please tidy your desks"),
    (DAY + 60, "a fortnight ago we switched the coffee supplier"),
    (DAY + 120, "übermorgen wird der Aufzug gewartet"),
    (2 * DAY, "we switched the light in the hall to blue"),
    (DAY - 60, "der Aufzug quietscht"),
]


@pytest.mark.parametrize(
    ("question", "asked", "right"),
    [
        ("who arrives on Thursday?", timedelta(days=2, hours=6), "the auditors"),
        ("who arrived on 7 May?", timedelta(days=20), "the auditors"),
        ("what did we switch on 21 April?", timedelta(days=20), "a fortnight ago"),
        ("was wird am Donnerstag am Aufzug gemacht?", timedelta(days=2, hours=6), "übermorgen"),
    ],
)
async def test_what_means_the_day_that_is_asked_for_comes_first(
    harness: AppHarness, question: str, asked: timedelta, right: str
) -> None:
    here = harness.workspace()
    talk = [(n, f"ticket {n}: the build of branch {n * 7} is green") for n in range(70)]
    lines = sorted([*SAID, *talk, *((2 * DAY + 60 + n, f"deploy {n} is out") for n in range(70))])
    sent = [said(f"r{n}", text, user="dave", minute=minute) for n, (minute, text) in enumerate(lines)]
    await harness.app.receive(here, sent, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + asked)
    prompt = (await harness.compose("erin", f"@nexus {question}", room="general")).prompt
    found = next(section.text.splitlines()[1:] for section in prompt.sections if section.name == "RECALL")
    assert right in found[0], found[:4]
