"""A day of a team on Slack, whose model answers in its own words: one forgotten message takes with it the one answer
that says it, and no other."""

from collections.abc import AsyncIterator

import pytest

from composer.memory.forget import RETRACTED
from composer.settings import Settings
from tests.support.slack.harness import Office, Running, office_on

FORGOTTEN = "We decided to launch on 12 June, because the table of open bugs is short."
TALK = (
    "I am away at the end of the year",
    "I prefer tea in the morning",
    "the printer on the third floor is out of paper",
    "lunch at noon?",
    "we decided to use Postgres for billing",
    "the meeting notes are in the wiki",
)
IN_ROOM = (
    ("hello", "Hello! How can I help you today?"),
    ("make a table of who drinks what", "| who | drink |\n|---|---|\n| Alice | tea |"),
    ("which database do we use for billing?", "The relational one that was chosen, Postgres."),
    ("where are the notes of the meeting?", "You find them in the wiki."),
    ("when do we launch?", "We go live before summer begins, in the middle of June."),
    ("is the printer working?", "Somebody has to refill its paper first."),
    ("when is Alice away?", "In the last weeks of the year."),
    ("thanks", "You are welcome!"),
    ("what is 12 times 12?", "144."),
    ("tell us a joke about databases", "A query walks up to two tables and asks whether it may join them."),
)
IN_DM = (
    ("good morning", "Good morning! Ready when you are."),
    ("what is for lunch?", "Nobody has said what there is, only that it is at noon."),
    ("how do I write a table in Markdown?", "Put the cells of each row between vertical bars."),
    ("what does Alice drink?", "She likes tea when the day begins."),
    ("what was decided about the billing?", "It is kept in Postgres."),
    ("translate good evening into French", "Bonsoir."),
    ("shorten: the walls of the new house are painted white this year", "The walls are white."),
    ("how do I reset a router?", "Hold the small button for ten seconds."),
    ("where is the wiki?", "I do not know its address."),
    ("thank you", "Any time."),
)


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as office:
        yield office


async def ask(office: Office, running: Running, question: str, answer: str, channel: str) -> None:
    office.model.pieces = (answer,)
    asked = question if channel != office.general else office.mention(question)
    await office.slack.post(channel, office.alice, asked)
    await office.slack.wait_for(lambda: any(each["text"] == answer for each in office.answers(channel)))
    await running.settle()


async def test_of_twenty_answers_the_one_goes_that_says_what_is_forgotten(office: Office) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.alice)
        for text in TALK:
            await office.slack.post(office.general, office.alice, text)
        said = await office.slack.post(office.general, office.bob, FORGOTTEN)
        await running.settle()
        await office.slack.command(im, office.alice, "rooms on --yes")
        for question, answer in IN_ROOM:
            await ask(office, running, question, answer, office.general)
        for question, answer in IN_DM:
            await ask(office, running, question, answer, im)
        await office.slack.command(office.general, office.bob, f"forget message {said} --yes")
        gone = IN_ROOM[4][1]
        await office.slack.wait_for(lambda: all(each["text"] != gone for each in office.answers()))
        await running.settle()
        await office.slack.settled()
        left = [each["text"] for channel in (office.general, im) for each in office.answers(channel)]
        assert left.count(RETRACTED) == 1
        assert {answer for _, answer in (*IN_ROOM, *IN_DM)} - set(left) == {gone}
