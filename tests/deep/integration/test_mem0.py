"""Extraction by a model over a real socket: what the model sees, what is stored, and that nothing is lost."""

import asyncio
import itertools
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.console.doctor import run_doctor
from composer.memory import extraction
from composer.memory.extraction import MAX_BATCH_SIZE
from composer.memory.learner import CLAIM_DURATION, MAX_ATTEMPTS, MAX_WAIT, QUIET_PERIOD
from composer.model import Message
from composer.ports.extraction import ExtractedStatement
from composer.repositories.memories import NewMemory
from composer.settings import Settings, TenantSettings
from composer.stores.models.tokens import tokenizer_for
from tests.support.extraction import ROOM, Office, extraction_reply, office_on
from tests.support.harness import START, open_harness
from tests.support.model_server import Fail, Hang, Raw, Reply, Say

FACTS = [
    {"text": "bob prefers tabs over spaces", "kind": "preference", "sources": [1]},
    {"text": "The team decided to ship the parser on 12 June", "kind": "decision", "sources": [2, 3]},
    {"text": "bob will write the release notes", "kind": "action item", "sources": [3], "attributed_to": "user"},
]
MESSAGES = [
    ("bob", "tabs are so much better than spaces"),
    ("bob", "ok the parser ships on 12 June"),
    ("bob", "release notes: me"),
]


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as opened:
        yield opened


async def test_a_batch_gives_memories_with_kind_speaker_and_source_messages(office: Office) -> None:
    await office.post_messages(*MESSAGES)
    assert await office.extract(1) == 0, "three messages of an active discussion can wait"
    assert await office.texts() == []
    office.server.script.append(extraction_reply(FACTS))
    assert await office.extract() == 3
    rows = await office.rows(
        """
        SELECT m.text, m.kind, m.author, m.visibility, m.origin,
               ARRAY(SELECT s.text FROM lineage AS l JOIN messages AS s ON s.id = l.source_id
                     WHERE l.item_id = m.id AND l.source_kind = 'message' ORDER BY s.seq)
        FROM memories AS m JOIN recall_index AS r ON r.id = m.id AND r.embedding IS NOT NULL ORDER BY m.text
        """
    )
    tabs, parser, notes = (text for _, text in MESSAGES)
    assert rows == [
        ("The team decided to ship the parser on 12 June", "decision", "bob", "public", "extracted", [parser, notes]),
        ("bob prefers tabs over spaces", "preference", "bob", "public", "extracted", [tabs]),
        ("bob will write the release notes", "action item", "bob", "public", "extracted", [notes]),
    ]
    assert len(office.prompts_sent) == 1
    [prompt] = office.prompts_sent
    assert all(f"[{n}] Mon 2026-05-04 09:00 {user}: {text}" in prompt for n, (user, text) in enumerate(MESSAGES, 1))
    assert (await office.extract(), len(office.prompts_sent), await office.waiting()) == (0, 1, 0)


async def test_a_decision_found_by_the_model_is_proposed_as_a_landmark_like_one_found_by_a_pattern(
    office: Office,
) -> None:
    landmarks = """
        SELECT k.text, k.author, k.state, k.visibility, k.decided_at, array_agg(m.external_id ORDER BY m.seq)
        FROM landmarks AS k JOIN lineage AS l ON l.item_id = k.id JOIN messages AS m ON m.id = l.source_id
        WHERE l.source_kind = 'message'
        GROUP BY 1, 2, 3, 4, 5
    """
    await office.post_messages(*MESSAGES)
    office.server.script.append(extraction_reply(FACTS))
    await office.extract()
    text = "The team decided to ship the parser on 12 June"
    ids = [words[:9] for _, words in MESSAGES[1:]]
    when = START + timedelta(seconds=len(MESSAGES))
    assert await office.rows(landmarks) == [(text, "bob", "proposed", "public", when, ids)]
    prompt = (await office.harness.compose("carol", "@nexus when does it ship?", **ROOM)).prompt
    pinned = next(section.text for section in prompt.sections if section.name == "LANDMARKS")
    assert pinned.endswith(f"- 2026-05-04 bob (proposed): {text}")
    await office.harness.change(ids[0], None)
    assert await office.rows("SELECT 1 FROM landmarks") == [], (
        "the landmark is erased with the message that it was found in"
    )


async def test_a_statement_first_read_as_a_fact_is_proposed_once_it_is_read_as_a_decision(office: Office) -> None:
    for number, kind in enumerate(("fact", "decision", "decision")):
        await office.post_messages(("bob", f"{number} the team agreed: we ship on 12 June"))
        office.server.script.append(
            extraction_reply(
                [{"text": f"The team agreed to ship on 12 June{'.' * number}", "kind": kind, "sources": [1]}]
            )
        )
        await office.extract()
        states = await office.rows("SELECT state FROM landmarks")
        assert states == ([] if kind == "fact" else [("proposed",)]), number
    assert await office.texts() == ["The team agreed to ship on 12 June"]


async def test_a_full_batch_does_not_wait_for_silence(office: Office) -> None:
    office.server.default = extraction_reply([])
    await office.post_messages(*(("alice", f"{n} bottles of beer") for n in range(MAX_BATCH_SIZE)))
    assert await office.extract(1) == MAX_BATCH_SIZE


async def test_what_is_sent_besides_the_messages_is_short(settings: Settings) -> None:
    """Counted: the instructions, the headings and the known memories of a full batch. Not counted: the lines of the
    messages, each with its number, time and speaker."""
    async with office_on(settings.model_copy(update={"extraction_batch": 10_000})) as office:
        reasons = [
            f"bottles of beer, for {' '.join(f'reason{number}x{n}' for n in range(size))}"
            for number, size in enumerate((60, 20, 60, 10, 30, 60, 60, 60, 60, 60, 60, 60))
        ]
        office.server.script += [
            extraction_reply([{"text": text, "sources": [number]} for number, text in enumerate(reasons, 1)]),
            extraction_reply([]),
        ]
        await office.post_messages(*(("alice", f"n{number} {text}") for number, text in enumerate(reasons)))
        await office.extract()
        await office.post_messages(*(("alice", f"{n} bottles of beer") for n in range(MAX_BATCH_SIZE)))
        assert await office.extract(1) == MAX_BATCH_SIZE
        request = office.server.requests[-1].body
        lines = "\n".join(message["content"] for message in request["messages"]).split("\n")
        besides = [line for line in lines if not re.match(r"\[\d+\] ", line)]
        assert len(lines) - len(besides) == MAX_BATCH_SIZE
        assert any("reason" in line for line in besides), "known memories are shown"
        assert tokenizer_for("gpt-4o").count("\n".join(besides)) < 1_200
        assert "Memory Extractor" not in str(request), "Mem0's own prompt is not sent"


async def test_every_message_is_dated_by_itself_in_the_tenants_time_zone_and_the_last_one_is_the_present(
    settings: Settings,
) -> None:
    acme = TenantSettings(workspaces=("acme",), timezone="Asia/Tokyo")
    async with office_on(settings.model_copy(update={"tenants": {"acme": acme}})) as office:
        office.server.default = extraction_reply([])
        office.harness.clock.set(datetime(2004, 11, 15, 14, 50, tzinfo=UTC))
        await office.post_messages(("alice", "yesterday the disk died"))
        office.harness.clock.set(datetime(2004, 11, 15, 15, 10, tzinfo=UTC))
        await office.post_messages(("alice", "and today the other one"))
        await office.extract(10 * 365 * 24 * 3_600)
        [prompt] = office.prompts_sent
    assert "[1] Mon 2004-11-15 23:50 alice: yesterday the disk died" in prompt
    assert "[2] Tue 2004-11-16 00:10 alice: and today the other one" in prompt
    assert "Messages until Tue 2004-11-16:" in prompt
    assert "2014" not in prompt


async def test_a_batch_ends_where_its_tokens_are_used_up(settings: Settings) -> None:
    async with office_on(settings.model_copy(update={"extraction_batch": 450})) as office:
        office.server.default = extraction_reply([])
        long = "\n".join(["word " * 100] * 7)
        await office.post_messages(*(("alice", f"{n} " + "word " * 100) for n in range(6)), ("alice", long))
        assert [await office.extract() for _ in range(4)] == [3, 3, 1, 0]
        assert [prompt.count(" alice: ") for prompt in office.prompts_sent] == [3, 3, 1]


async def test_an_active_discussion_is_extracted_once_its_first_message_has_waited_long(office: Office) -> None:
    office.server.default = extraction_reply([])
    await office.post_messages(("alice", "the first one"))
    office.harness.clock.tick(MAX_WAIT.total_seconds() - 2)
    await office.post_messages(("alice", "and another"))
    assert await office.extract(0) == 0
    assert await office.extract(1) == 2


async def test_extraction_uses_its_own_model_where_one_is_set(settings: Settings) -> None:
    async with office_on(settings.model_copy(update={"extraction_model": "small"})) as office:
        office.server.default = extraction_reply([])
        await office.post_messages(*MESSAGES)
        await office.extract()
        assert [each.body["model"] for each in office.server.requests] == ["small"]
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert {each.body["model"] for each in office.server.requests[1:]} == {"m"}


async def test_the_model_sees_neither_replies_nor_memories_of_another_scope(office: Office) -> None:
    office.server.script.append(extraction_reply([{"text": "alice earns zqninety thousand", "sources": [1]}]))
    await office.post_messages(("alice", "my salary is zqninety thousand"), where={"dm": "nexus"})
    assert await office.extract() == 1
    office.server.script.append(extraction_reply([{"text": "the vault code is zqorchid", "sources": [1]}]))
    await office.post_messages(("bob", "vault code zqorchid"), where={"room": "vault"})
    assert await office.extract() == 1
    office.server.script.append(extraction_reply([{"text": "lunch is paid from the petty cash", "sources": [1]}]))
    await office.post_messages(("alice", "lunch comes out of petty cash"))
    assert await office.extract() == 1
    office.server.script += [Say(("the agent guesses a pay rise",)), extraction_reply([])]
    await office.harness.ask("alice", "@nexus what is my salary, and the vault code?", **ROOM)
    before = len(office.prompts_sent)
    assert await office.extract() == 1
    [prompts_sent] = office.prompts_sent[before:]
    assert "lunch is paid from the petty cash" in prompts_sent
    assert "what is my salary" in prompts_sent
    for hidden in ("zqninety", "zqorchid", "guesses", "offline", "RECALL"):
        assert hidden not in prompts_sent, hidden


@pytest.mark.parametrize(
    "bad",
    [
        Say(("I am sorry, I can't do that.",)),
        Say(('{"memory": [{"text": "cut o',)),
        Say(('["a list"]',)),
        Say(('{"memory": ["bare strings"]}',)),
        Say(('{"memory": {"text": "no list"}}',)),
        Raw(b"garbage"),
        Fail(429, headers={"retry-after": "0"}),
        Fail(500, headers={"retry-after": "0"}),
    ],
)
async def test_a_failed_extraction_is_retried_later_and_loses_nothing(office: Office, bad: Reply) -> None:
    await office.post_messages(*MESSAGES)
    office.server.default = bad
    assert await office.extract() == 0
    assert (await office.texts(), await office.waiting()) == ([], 3)
    calls = len(office.prompts_sent)
    assert (await office.extract(1), len(office.prompts_sent)) == (0, calls), "it is not retried at once"
    office.server.default = extraction_reply(
        [*FACTS, "noise", {"text": 5}, {"text": ""}, {"text": "x", "sources": "all"}]
    )
    assert await office.extract(3_600) == 3
    assert len(await office.texts()) == 3
    assert await office.waiting() == 0


async def test_a_batch_that_fails_often_is_parked_and_shown_to_an_admin(office: Office) -> None:
    await office.post_messages(*MESSAGES)
    office.server.default = Say(("no",))
    with capture_logs() as logs:
        for _ in range(MAX_ATTEMPTS):
            await office.extract(24 * 3_600)
    failed = [entry for entry in logs if entry["event"] == "extraction.failed"]
    assert [entry["parked"] for entry in failed] == [False] * (MAX_ATTEMPTS - 1) + [True]
    assert all("not the requested JSON" in entry["error"] for entry in failed)
    calls = len(office.prompts_sent)
    assert calls == MAX_ATTEMPTS
    await office.extract(24 * 3_600)
    assert len(office.prompts_sent) == calls, "a parked batch is left alone"
    [check] = [check for check in await run_doctor(office.harness.app.settings) if check.name == "extraction"]
    assert check.ok is False
    assert "not the requested JSON" in check.detail
    office.server.default = extraction_reply(FACTS)
    async with office.harness.app.database.transaction(office.harness.workspace().tenant_id) as tx:
        assert await tx.learning.unpark() == 1
    assert await office.extract() == 3
    assert len(await office.texts()) == 3


async def test_a_message_whose_statements_cannot_be_stored_is_skipped_alone(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = extraction.extracted_memory

    def failing(statement: ExtractedStatement, messages: Sequence[Message]) -> NewMemory:
        if any("poison" in message.text for message in messages):
            raise OverflowError("poison secret-zqorchid")
        return real(statement, messages)

    monkeypatch.setattr(extraction, "extracted_memory", failing)
    office.server.script += [  # each time another statement: what is known already is not stored again
        extraction_reply([{"text": f"{word} is kept in the {word} box", "kind": "fact", "sources": [1]}])
        for word in map("".join, itertools.permutations("abcd"))
    ]
    said = [f"{each} is kept in a box" for each in ("one", "two", "three", "poison secret-zqorchid", "five")]
    await office.post_messages(*(("alice", text) for text in said))
    with capture_logs() as logs:
        for _ in range(3 * MAX_ATTEMPTS):  # each time the batch fails it is halved, until the message is alone
            await office.extract(24 * 3_600)
    assert await office.waiting() == 0
    without = "".join(prompt for prompt in office.prompts_sent if "poison" not in prompt)
    assert [text for text in said if text not in without] == ["poison secret-zqorchid is kept in a box"]
    [check] = [each for each in await run_doctor(office.harness.app.settings) if each.name == "skipped messages"]
    assert check.detail.startswith("1 message could not be indexed or extracted from")
    assert "zqorchid" not in check.detail + str(logs)


async def test_a_tenant_whose_extraction_fails_waits_alone(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its delay grows with each failure, and begins anew after a success."""
    bad, good = (office.harness.workspace(name).tenant_id for name in ("aaa", "zzz"))
    for name in ("aaa", "zzz"):
        await office.harness.say("alice", "hello", room="general", workspace=name)
    tried: list[uuid.UUID] = []
    broken = True

    async def learn_due(tenant: uuid.UUID) -> int:
        tried.append(tenant)
        if tenant == bad and broken:
            raise RuntimeError("secret-zqorchid")
        return 0

    monkeypatch.setattr(office.extractions, "learn_due", learn_due)

    async def tries_after(seconds: float) -> tuple[int, int]:
        office.harness.clock.tick(seconds)
        tried.clear()
        await office.extractions.learn_all()
        return tried.count(bad), tried.count(good)

    with capture_logs() as logs:
        assert [await tries_after(seconds) for seconds in (0, 0, 61, 61, 60)] == [
            (1, 1),
            (0, 1),
            (1, 1),
            (0, 1),
            (1, 1),
        ]
        broken = False
        assert [await tries_after(seconds) for seconds in (600, 0)] == [(1, 1), (1, 1)]
        broken = True
        assert [await tries_after(seconds) for seconds in (0, 61)] == [(1, 1), (1, 1)], "the first delay again"
    assert "zqorchid" not in str(logs)


async def test_a_batch_of_a_dead_worker_is_taken_over_once_and_its_late_answer_is_dropped(office: Office) -> None:
    await office.post_messages(*MESSAGES)
    tenant = office.harness.workspace().tenant_id
    office.server.script += [Hang(), extraction_reply(FACTS)]
    office.harness.clock.tick(QUIET_PERIOD.total_seconds() + 1)
    dying = asyncio.create_task(office.extractions.learn_due(tenant))
    while not office.prompts_sent:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert (await office.extract(1), await office.waiting()) == (0, 3), "the worker may still be alive"
    assert await office.extract(CLAIM_DURATION.total_seconds()) == 3
    assert len(await office.texts()) == 3


async def test_a_message_edited_during_its_extraction_is_extracted_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.post_messages(*MESSAGES)
    tenant = office.harness.workspace().tenant_id
    edited = asyncio.Event()
    extractor = office.extractions._extractor
    assert extractor is not None
    honest = extractor.extract

    async def slow(*args: Any) -> list[ExtractedStatement]:
        found = await honest(*args)
        if not edited.is_set():
            edited.set()
            await office.harness.change(MESSAGES[0][1][:9], "spaces are fine")
        return found

    monkeypatch.setattr(extractor, "extract", slow)
    office.server.script += [
        extraction_reply(FACTS),
        extraction_reply([{"text": "bob is fine with spaces", "sources": [1]}]),
    ]
    office.harness.clock.tick(QUIET_PERIOD.total_seconds() + 1)
    assert await office.extractions.learn_due(tenant) == 0
    assert await office.texts() == []
    assert await office.extract() == 3
    assert await office.texts() == ["bob is fine with spaces"]
    assert "spaces are fine" in office.prompts_sent[-1]
    assert "tabs" not in office.prompts_sent[-1]


async def test_forgetting_a_message_erases_what_its_batch_gave_and_extracts_the_remaining_messages_again(
    office: Office,
) -> None:
    await office.post_messages(*MESSAGES)
    office.server.script += [
        extraction_reply(FACTS),
        extraction_reply([{"text": "bob writes the release notes", "sources": [2]}]),
    ]
    await office.extract()
    await office.harness.change(MESSAGES[1][1][:9], None)
    assert await office.texts() == [], "which message a statement came from, no model is trusted with"
    assert await office.extract() == 2
    assert await office.texts() == ["bob writes the release notes"]
    assert "parser" not in office.prompts_sent[-1]


async def test_without_a_model_patterns_extract_the_memories(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        assert harness.app.extractions is None
        await harness.say("alice", "I prefer tabs", **ROOM)
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            found = await tx.maintenance.backlog()
            assert (found.unextracted, found.parked, found.why) == (0, 0, "")
