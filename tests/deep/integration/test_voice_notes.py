"""Voice notes: what is spoken is transcribed once, and treated as the text of its message from then on."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.script.places import incoming, place_of
from composer.errors import Unavailable
from composer.ingest import file_texts
from composer.model import CONSOLE, Attachment, Message, Place, Turn
from composer.repositories.turns import Answer
from composer.repositories.unread_files import MAX_READING_TRIES
from composer.settings import AgentSettings, BudgetSettings, Settings
from composer.usage.transcription import TranscriptionMeter
from tests.support.harness import open_harness
from tests.support.model_server import Fail, ModelServer, Raw
from tests.support.tool_office import Office
from tests.support.waiting import until

CLIP = b"OggS" + b"speech" * 100
SPOKEN = "the vault opens with the heron key"
DM = place_of(None, "nexus", None, None, None, None)
LAB = place_of("lab", None, None, None, None, None)


class Files:
    """A platform's files (composer.ports.files.FileSource)."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.content: bytes | Exception = CLIP
        self.loading = self.most_at_once = 0
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, limit: int) -> bytes:
        self.fetched.append(attachment.address)
        self.loading += 1
        self.most_at_once = max(self.most_at_once, self.loading)
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            await self.meanwhile()
        self.loading -= 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


class Spoken(Office):
    """An office in which people send voice notes."""

    files: Files

    async def send(self, user: str, place: Place, *, id: str, text: str = "", **note: Any) -> list[Answer]:
        """Send a voice note and wait until all is done; returns the answers."""
        harness, before = self.harness, len(self.harness.delivery.replies)
        here = harness.workspace()
        attached = Attachment("voice.ogg", "audio/ogg; codecs=opus", size=len(CLIP), address=f"https://files/{id}")
        attached = replace(attached, **({"seconds": 6.0} | note))
        message = incoming(here, place, user, text, harness.clock.tick(), id=id, attachments=(attached,))
        await harness.app.receive(here, [message])
        await harness.app.turns.settle()
        for task in list(harness.app.file_texts._tasks.values()):
            await task
        await harness.app.indexer.catch_up(here.tenant_id)
        return harness.delivery.replies[before:]

    @property
    def transcribed(self) -> list[dict[str, Any]]:
        return [each.body for each in self.server.requests if each.path.endswith("/transcriptions")]

    @property
    def asked(self) -> str:
        """The last request to the chat model, as text."""
        return json.dumps([e.body for e in self.server.requests if e.path.endswith("/completions")][-1])


@asynccontextmanager
async def speaking(settings: Settings, **changed: Any) -> AsyncIterator[Spoken]:
    async with ModelServer() as server:
        update = {
            "openai_base_url": server.url,
            "agents": (AgentSettings(model="m"),),
            "prices": {},
            "transcription_model": "whisper",
        }
        async with open_harness(settings.model_copy(update=update | changed)) as harness:
            office, files = Spoken(harness, server), Files()
            object.__setattr__(office, "files", files)
            harness.app.file_texts.register_source("console", files)
            yield office


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Spoken]:
    async with speaking(settings) as office:
        yield office


async def test_a_question_that_is_spoken_is_answered_by_its_words(office: Spoken) -> None:
    await office.harness.say("alice", SPOKEN, dm="nexus")
    await office.harness.say_all("alice", [f"nothing new {number}" for number in range(60)], dm="nexus")
    office.server.spoken.append("which key opens the vault?")
    (reply,) = await office.send("alice", DM, id="asked")
    assert reply.text == "Hello there."
    assert 'voice.ogg\\", audio/ogg; codecs=opus]\\n  | which key opens the vault?' in office.asked
    assert "heron" in office.asked, "it is recalled for what was spoken"
    (sent,) = office.transcribed
    assert (sent["model"], sent["name"], sent["type"], sent["bytes"]) == ("whisper", "voice.ogg", "audio/ogg", CLIP)
    ((attachments,),) = await office.rows("SELECT attachments FROM messages WHERE external_id = 'asked'")
    assert json.loads(attachments)[0]["text"] == "which key opens the vault?"


async def test_what_is_spoken_in_a_room_is_recalled_exported_and_forgotten(office: Spoken) -> None:
    office.server.spoken.append(SPOKEN)
    assert await office.send("bob", LAB, id="told") == [], "it addresses nobody"
    found = await office.harness.command("alice", "/nexus recall heron key", room="lab")
    assert "heron" in found.text
    export = await office.harness.command("bob", "/nexus export", dm="nexus")
    assert export.file is not None
    assert "heron" in export.file.text
    await office.harness.command("bob", "/nexus forget message told --yes", room="lab")
    stored = await office.rows("SELECT attachments::text FROM messages UNION ALL SELECT text FROM messages")
    assert "heron" not in json.dumps(stored)
    assert "heron" not in (await office.harness.command("alice", "/nexus recall heron key", room="lab")).text


async def test_a_message_that_is_delivered_again_is_transcribed_once(office: Spoken) -> None:
    office.server.spoken.append(SPOKEN)
    for _ in range(3):
        await office.send("bob", LAB, id="told")
    assert len(office.transcribed) == 1
    assert office.files.fetched == ["https://files/told"]


async def test_it_is_in_the_ledger_under_a_kind_of_its_own(office: Spoken) -> None:
    await office.send("bob", LAB, id="told")
    query = "SELECT kind, model, calls, prompt_tokens, estimated FROM model_usage"
    assert await office.rows(query) == [("transcription", "whisper", 1, 100, 0)]


async def test_a_budget_holds_it_and_the_message_is_kept(settings: Settings) -> None:
    budget = BudgetSettings(per="day", tokens=150, kind="transcription")
    async with speaking(settings, budgets=(budget,)) as office:
        office.server.spoken.extend([SPOKEN, SPOKEN])
        await office.send("bob", LAB, id="one")
        await office.send("bob", LAB, id="two")
        assert len(office.transcribed) == 1
        assert len(await office.rows("SELECT 1 FROM messages")) == 2


async def test_without_a_model_nothing_is_loaded(settings: Settings) -> None:
    async with speaking(settings, transcription_model=None) as office:
        (reply,) = await office.send("alice", DM, id="asked")
        assert reply.text == "Hello there."
        assert not office.files.fetched
        assert not office.transcribed


@pytest.mark.parametrize(
    "reply", [Fail(401, "bad key"), Fail(400, "broken"), Raw(b"<html>login</html>", "text/html"), Raw(b'{"text": 5}')]
)
async def test_a_failure_is_one_line_of_the_log_and_the_message_is_answered(office: Spoken, reply: Fail | Raw) -> None:
    office.server.spoken.append(replace(reply, type="application/json") if isinstance(reply, Raw) else reply)
    with capture_logs() as logs:
        (answer,) = await office.send("alice", DM, id="asked", text="hello")
    assert answer.text == "Hello there."
    assert [log["event"] for log in logs if log["event"].startswith("voice_note")] == ["voice_note.not_transcribed"]
    assert await office.rows("SELECT count(*) FROM messages WHERE external_id = 'asked'") == [(1,)]


@pytest.mark.parametrize(
    ("note", "content"),
    [
        ({"size": file_texts.MAX_AUDIO_BYTES + 1}, CLIP),
        ({"seconds": file_texts.MAX_AUDIO_SECONDS + 1.0}, CLIP),
        ({}, b"x" * (file_texts.MAX_AUDIO_BYTES + 1)),
        ({}, b""),
        ({}, Unavailable("The platform does not answer.")),
        ({"type": "video/mp4"}, CLIP),
        ({"address": ""}, CLIP),
    ],
)
async def test_what_is_too_long_or_no_voice_note_is_not_sent(
    office: Spoken, note: dict[str, Any], content: bytes | Exception
) -> None:
    office.files.content = content
    (answer,) = await office.send("alice", DM, id="asked", text="hello", **note)
    assert answer.text == "Hello there."
    assert office.transcribed == []


async def test_nothing_is_sent_of_a_message_that_is_not_stored(office: Spoken) -> None:
    await office.harness.say("alice", "hello", room="lab")
    await office.harness.command("alice", "/nexus memory mentions", room="lab")
    await office.harness.command("bob", "/nexus opt-out", dm="nexus")
    await office.send("carol", LAB, id="unheard")
    await office.send("bob", place_of("hall", None, None, None, None, None), id="opted-out")
    assert not office.files.fetched
    assert not office.transcribed


async def test_a_question_of_who_opted_out_is_answered_and_leaves_nothing(office: Spoken) -> None:
    await office.harness.command("alice", "/nexus opt-out", dm="nexus")
    office.server.spoken.append("what is a heron?")
    (reply,) = await office.send("alice", DM, id="asked")
    assert reply.text == "Hello there."
    assert "what is a heron?" in office.asked
    assert "heron" not in json.dumps(await office.rows("SELECT attachments::text FROM messages"))


async def test_what_was_interrupted_is_transcribed_before_it_is_answered(
    office: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that stored the message died before: another one answers it."""
    office.server.spoken.append(SPOKEN)
    app = office.harness.app
    with monkeypatch.context() as patched:
        patched.setattr(type(app), "_read_files", lambda *given: None)
        (reply,) = await office.send("alice", DM, id="asked")
    assert reply.text == "Hello there."
    assert "heron" in office.asked


async def interrupted(office: Spoken, monkeypatch: pytest.MonkeyPatch, tries: int = 1) -> None:
    """A voice note to nobody, whose transcription a process began and did not end."""
    with monkeypatch.context() as patched:
        patched.setattr(type(office.harness.app), "_read_files", lambda *given: None)
        await office.send("bob", LAB, id="told")
    await office.rows(f"UPDATE unread_files SET tries = {tries}")


async def taken_over(office: Spoken, *served: str) -> int:
    app = office.harness.app
    tenants = await app.database.tenants_with_open_work()
    count = await app.file_texts.take_over(tenants, served or app.turns.served)
    await asyncio.gather(*office.harness.app.file_texts._tasks.values())
    return count


async def test_what_a_dead_process_was_interrupted_in_is_transcribed_by_the_next(
    office: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.server.spoken.append(SPOKEN)
    await interrupted(office, monkeypatch)
    assert await taken_over(office, f"{CONSOLE}:another") == 0, "a process of another workspace can't load it"
    assert await taken_over(office) == 1
    assert "heron" in json.dumps(await office.rows("SELECT attachments::text FROM messages"))
    assert await office.rows("SELECT count(*) FROM unread_files") == [(0,)]
    assert await taken_over(office) == 0


async def test_what_was_interrupted_each_time_is_given_up(office: Spoken, monkeypatch: pytest.MonkeyPatch) -> None:
    await interrupted(office, monkeypatch, tries=MAX_READING_TRIES)
    assert await taken_over(office) == 0
    assert not office.transcribed
    assert await office.rows("SELECT count(*) FROM unread_files") == [(0,)]


async def test_what_a_live_process_transcribes_is_left_to_it(office: Spoken, monkeypatch: pytest.MonkeyPatch) -> None:
    await interrupted(office, monkeypatch)
    live = await asyncpg.connect(office.harness.app.settings.database_url)
    try:
        await live.execute("SELECT pg_advisory_lock(process_lock(message_id)) FROM unread_files")
        assert await taken_over(office) == 0
    finally:
        await live.close()
    assert not office.transcribed


async def test_one_that_failed_is_not_tried_again(office: Spoken) -> None:
    office.server.spoken.append(Fail(400, "broken"))
    await office.send("bob", LAB, id="told")
    assert await office.rows("SELECT count(*) FROM unread_files") == [(0,)]


async def test_an_answer_that_recalled_a_voice_note_is_not_taken_for_one_that_used_an_edited_message(
    office: Spoken,
) -> None:
    office.server.spoken.append(SPOKEN)
    await office.send("bob", LAB, id="told")
    await office.chatter(room="lab")
    reply = await office.harness.ask("alice", "@nexus which heron key opens the vault?", room="lab")
    assert reply.text == "Hello there."
    assert reply.prompt is not None
    assert SPOKEN in reply.prompt


async def test_a_message_that_is_forgotten_while_its_note_is_loaded_is_not_sent(office: Spoken) -> None:
    office.server.spoken.append(SPOKEN)

    async def forget() -> None:
        await office.harness.command("bob", "/nexus forget message told --yes", room="lab")

    office.files.meanwhile = forget
    await office.send("bob", LAB, id="told")
    assert office.files.fetched
    assert not office.transcribed
    assert "heron" not in json.dumps(await office.rows("SELECT attachments::text FROM messages"))


@pytest.mark.parametrize("command", ["/nexus forget message told --yes", "/nexus opt-out"])
async def test_a_message_that_is_forgotten_or_opted_out_of_while_it_is_transcribed_gets_no_text(
    office: Spoken, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    office.server.spoken.append(SPOKEN)
    real = TranscriptionMeter.transcribe

    async def transcribe(self: TranscriptionMeter, *given: Any) -> str:
        text = await real(self, *given)
        await office.harness.command("bob", command, room="lab")
        return text

    monkeypatch.setattr(TranscriptionMeter, "transcribe", transcribe)
    await office.send("bob", LAB, id="told")
    assert len(office.transcribed) == 1
    assert "heron" not in json.dumps(await office.rows("SELECT attachments::text FROM messages"))


NO_MORE = [("bob", "/nexus opt-out"), ("alice", "/nexus memory off"), ("alice", "/nexus memory mentions")]


@pytest.mark.parametrize(("user", "command"), NO_MORE)
async def test_a_note_that_a_crash_interrupted_is_given_up_once_it_may_not_be_stored(
    office: Spoken, monkeypatch: pytest.MonkeyPatch, user: str, command: str
) -> None:
    office.server.spoken.append(SPOKEN)
    await office.harness.say("alice", "hello", room="lab")
    await interrupted(office, monkeypatch)
    await office.harness.command(user, command, room="lab")
    await taken_over(office)
    assert not office.files.fetched
    assert not office.transcribed
    assert await office.rows("SELECT count(*) FROM unread_files") == [(0,)]


@pytest.mark.parametrize(("user", "command"), NO_MORE)
async def test_a_note_that_may_not_be_stored_once_it_is_loaded_is_not_sent(
    office: Spoken, user: str, command: str
) -> None:
    office.server.spoken.append(SPOKEN)
    await office.harness.say("alice", "hello", room="lab")

    async def refuse() -> None:
        await office.harness.command(user, command, room="lab")

    office.files.meanwhile = refuse
    await office.send("bob", LAB, id="told")
    assert office.files.fetched
    assert not office.transcribed


async def test_a_question_in_a_room_that_stores_questions_only_is_transcribed(office: Spoken) -> None:
    await office.harness.say("alice", "hello", room="lab")
    await office.harness.command("alice", "/nexus memory mentions", room="lab")
    office.server.spoken.append("which key opens the vault?")
    (reply,) = await office.send("bob", LAB, id="asked", text="@nexus")
    assert reply.text == "Hello there."
    assert len(office.transcribed) == 1
    ((attachments,),) = await office.rows("SELECT attachments FROM messages WHERE external_id = 'asked'")
    assert json.loads(attachments)[0]["text"] == "which key opens the vault?"


async def test_few_voice_notes_are_held_in_memory_at_once(office: Spoken) -> None:
    here = office.harness.workspace()
    note = Attachment("voice.ogg", "audio/ogg", size=len(CLIP), address="https://files/one")
    batch = [
        incoming(here, LAB, "bob", "", office.harness.clock.tick(), id=f"n{number}", attachments=(note,))
        for number in range(12)
    ]
    gate, files = asyncio.Event(), office.files
    files.meanwhile = gate.wait
    await office.harness.app.receive(here, batch)
    share = file_texts.MAX_AT_ONCE // 2  # one person has half of the places
    await until(lambda: _loads(files, share))
    gate.set()
    await asyncio.gather(*office.harness.app.file_texts._tasks.values())
    assert len(files.fetched) == 12
    assert files.most_at_once == share


async def _loads(files: Files, count: int) -> bool:
    return files.loading >= count


@pytest.mark.parametrize(
    ("own_key", "sent"), [(None, "Bearer none"), ("speech-key", "Bearer speech-key")], ids=["no key", "own key"]
)
async def test_the_key_of_the_chat_model_goes_to_no_other_address(
    settings: Settings, own_key: str | None, sent: str
) -> None:
    async with ModelServer() as speech:
        changed = {
            "openai_api_key": SecretStr("chat-key"),
            "transcription_base_url": speech.url,
            "transcription_api_key": None if own_key is None else SecretStr(own_key),
        }
        async with speaking(settings, **changed) as office:
            await office.send("bob", LAB, id="told")
        (request,) = speech.requests
        assert request.headers["Authorization"] == sent


async def test_without_an_address_of_its_own_the_chat_models_is_asked_with_its_key(settings: Settings) -> None:
    async with speaking(settings, openai_api_key=SecretStr("chat-key")) as office:
        await office.send("bob", LAB, id="told")
        assert office.server.requests[-1].headers["Authorization"] == "Bearer chat-key"
