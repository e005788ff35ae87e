"""A question about a state brings the newer of two statements, though only the older one shares its words."""

import re
from datetime import timedelta

from tests.support.harness import START, AppHarness
from tests.support.receiver import said

PAIRS = [
    (
        "alice",
        "I live in Hamburg, near the harbour.",
        "alice",
        "I moved to Berlin last weekend!",
        "where does alice live?",
    ),
    (
        "bob",
        "My favourite editor is Vim.",
        "bob",
        "Switched to Zed a month ago, never looked back.",
        "which editor does bob use?",
    ),
    (
        "carol",
        "Our CI runs on Jenkins.",
        "bob",
        "Jenkins is switched off, builds are in Actions.",
        "what does our CI run on?",
    ),
    ("alice", "My manager is Frank.", "alice", "Since the reorg I report to Sabine.", "who is alice's manager?"),
    (
        "bob",
        "I drive an old Golf.",
        "bob",
        "The Golf is sold; picked up a Tesla on Saturday.",
        "what car does bob drive?",
    ),
    (
        "carol",
        "The project is codenamed Falcon.",
        "alice",
        "Falcon is taken, so the project goes by Heron.",
        "what is the project's codename?",
    ),
    (
        "alice",
        "Ich wohne in der Altstadt.",
        "alice",
        "Seit Mai habe ich eine neue Bleibe im Westend.",
        "wo wohnt alice?",
    ),
]


async def fill(harness: AppHarness, pairs: list[tuple[str, str, str, str, str]]) -> None:
    """The older statements, other talk, the newer ones, and so much other talk that the view shows none of them."""
    here = harness.workspace()
    talk = [("dave", f"ticket {n}: the build of branch {n * 7} is green") for n in range(60)]
    lines = [*((p[0], p[1]) for p in pairs), *talk, *((p[2], p[3]) for p in pairs), *talk]
    sent = [said(f"r{n}", text, user=user, minute=n) for n, (user, text) in enumerate(lines)]
    await harness.app.receive(here, sent, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + timedelta(days=4))


async def recalled(harness: AppHarness, question: str, room: str = "general") -> list[str]:
    prompt = (await harness.compose("erin", f"@nexus {question}", room=room)).prompt
    return next(section.text for section in prompt.sections if section.name == "RECALL").splitlines()


async def test_the_newer_statement_stands_beside_the_older_one(harness: AppHarness) -> None:
    await fill(harness, PAIRS)
    above = 0
    for _, old, _, new, question in PAIRS:
        lines = await recalled(harness, question)
        newer, older = (next((line for line in lines if each in line), "") for each in (new, old))
        mark = re.search(r"newer than s(\d+)", newer) or re.search(r"older than s(\d+)", older)
        assert mark, (question, lines)
        other = old if mark[0].startswith("newer") else new
        assert other in lines[int(mark[1])], (question, lines)  # the first line is the heading
        above += lines.index(newer) < lines.index(older)
    assert above >= 4, "the newer one stands above the older one"


async def test_the_newer_one_is_marked_where_it_is_the_nearer_to_the_question(harness: AppHarness) -> None:
    pair = (
        *("erin", "Standup happens in room Curie.", "bob", "Standup happens in room Hopper now, Curie is closed."),
        "is room Curie closed?",
    )
    await fill(harness, [pair])
    lines = await recalled(harness, pair[4])
    newer, older = (next(n for n, line in enumerate(lines) if each in line) for each in (pair[3], pair[1]))
    assert newer < older
    assert "older than s1" in lines[older]


async def test_what_a_room_may_not_read_is_not_newer_there(harness: AppHarness) -> None:
    old, new = PAIRS[0][1], PAIRS[0][3]
    await fill(harness, [(*PAIRS[0][:2], "dave", "the harbour is closed", PAIRS[0][4])])
    before = await recalled(harness, PAIRS[0][4])
    await harness.say("alice", new, dm="nexus")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    lines = await recalled(harness, PAIRS[0][4])
    assert any(old in line for line in lines)
    assert lines == before
