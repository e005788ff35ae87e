"""The ends of sixty long texts, asked for in the words of somebody who has not read them: at least 95% are shown."""

from dataclasses import replace

from bot.script.places import incoming, place_of
from composer.model import Attachment
from tests.deep.integration.test_long_texts import CODE, LOG, MINUTES, TABLE
from tests.support.harness import AppHarness

FILLERS = (LOG, MINUTES, CODE, TABLE)
SIZES = (2_000, 9_000, 30_000)
FACTS = (
    ("The certificate of vault.acme expired on 3 January.", "which certificate expired?"),
    ("We will rent the blue barn for the summer party.", "where is the summer party going to be?"),
    ("Decision: invoices are sent on the tenth of each month.", "when do we send invoices?"),
    ("ERROR 5512: the disk of host kraken is full.", "which host has a full disk?"),
    ("Priya takes over the newsletter from Tom.", "who takes over the newsletter?"),
)


async def test_the_ends_of_sixty_long_texts_are_shown(harness: AppHarness) -> None:
    shown, asked = 0, 0
    for size in SIZES:
        for filler in FILLERS:
            for number, (fact, question) in enumerate(FACTS):
                asked += 1
                name = f"long{asked}"
                whole = f"{(filler * 9)[: size - number]}\n{fact}"
                text, files = (whole, ()) if asked % 2 else ("here", (Attachment("it.txt", "text/plain", whole),))
                at = harness.workspace(name)
                message = incoming(at, place_of("r", None, None), "ann", text, harness.clock.tick(), id=f"{name}-1")
                await harness.app.receive(at, [replace(message, attachments=files)])
                await harness.say_all(
                    "ben", [f"chatter {n} about the lift and the rain" for n in range(10)], room="r", workspace=name
                )
                await harness.say("ben", "here we go on", room="r", thread="q", workspace=name)
                composed = await harness.compose("ben", f"@nexus {question}", room="r", thread="q", workspace=name)
                shown += any(fact in s.text for s in composed.prompt.sections if s.name == "RECALL")
    assert asked == 60
    assert shown >= 57, f"{shown} of 60"
