"""What stands at the end of a long text is found, shown with its place in the whole, and erased with its message."""

from dataclasses import replace

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer.model import Attachment, Item
from composer.settings import Settings
from tests.integration.test_forget import SECRET, tables_with_secret
from tests.support.harness import AppHarness

LOG = "\n".join(f"entry{n} status{n % 7} nothing to report from host{n % 50}." for n in range(250))
MINUTES = "\n\n".join(
    f"## Item {n}\nWe talked about item {n} and agreed to come back to it in spring." for n in range(90)
)
CODE = "\n".join(f"def function_{n}(value):\n    return value * {n}\n" for n in range(150))
TABLE = "name,team,seat\n" + "\n".join(f"person{n},team{n % 9},seat{n}" for n in range(300))
TEXTS = {
    "a log": (LOG, "FATAL: the certificate of vault.acme expired on 3 January.", "which certificate expired?"),
    "minutes": (MINUTES, "The cafeteria will close for repairs on 12 March.", "when does the cafeteria close?"),
    "code": (CODE, "def rotate_keys():\n    # the master key lives in slot 9", "where does the master key live?"),
    "a table": (TABLE, "Ottilie Krüger,legal,window seat", "which seat has Ottilie Krüger?"),
    "German": ("Der Fahrstuhl war heute in Ordnung. " * 200, "Die Prüfung ist am 4. Mai.", "Wann ist die Prüfung?"),
    "Japanese": ("今日は特に何もありませんでした。" * 200, "金庫の鍵は受付にあります。", "金庫の鍵は?"),
}


async def post(harness: AppHarness, user: str, text: str, id: str, *files: Attachment, **place: str) -> None:
    where = place_of(place.get("room", "general"), None, None)
    message = incoming(harness.workspace(), where, user, text, harness.clock.tick(), id=id)
    await harness.app.receive(harness.workspace(), [replace(message, attachments=files)])
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)


async def recalled(harness: AppHarness, question: str) -> list[Item]:
    """What is recalled in another thread, where the window does not show the room."""
    await harness.say("ben", "here we go on", room="general", thread="later")
    composed = await harness.compose("ben", f"@nexus {question}", room="general", thread="later")
    return [i for s in composed.prompt.sections if s.name == "RECALL" for i in s.sources]


@pytest.mark.parametrize(("kind", "as_file"), [*((kind, False) for kind in TEXTS), ("a log", True)])
async def test_the_end_of_a_long_text_is_found_and_shown(harness: AppHarness, kind: str, as_file: bool) -> None:
    text, last, question = TEXTS[kind]
    whole = f"{text}\n{last}"
    if as_file:
        await post(harness, "ann", "here it is", "long", Attachment("it.txt", "text/plain", whole))
    else:
        await post(harness, "ann", whole, "long")
    await harness.say_all(
        "ben", [f"chatter number {n} about the lift and the weather" for n in range(12)], room="general"
    )
    found = next(item for item in await recalled(harness, question) if item.messages == ("long",))
    assert last in found.text
    assert len(found.text) < 3_000
    number, of = found.passage.removeprefix("parts ").removeprefix("part ").split(" of ")
    assert number.endswith(of)
    composed = await harness.compose("ben", f"@nexus {question}", room="general", thread="later")
    section = next(s for s in composed.prompt.sections if s.name == "RECALL")
    assert f"({found.passage}, " in section.text


DILUTED = {
    "a table": (
        "".join(f"| {n} | Person {n} | Town {n % 40} |\n" for n in range(600)),
        "| 601 | Zoltan Varga | Szeged |",
        "where does Zoltan Varga live?",
    ),
    "German": (
        "".join(f"TOP {n}: Der Punkt {n} wurde besprochen und vertagt auf Woche {n % 50}.\n" for n in range(300)),
        "Beschluss: Die Kantine schließt ab Januar um 15 Uhr.",
        "wann schließt die Kantine?",
    ),
    "Japanese": (
        "".join(f"議題{n}\uff1a前回の確認、特に変更なし。\n" for n in range(500)),
        "決定\uff1a新しい倉庫は横浜に置く。",
        "新しい倉庫はどこですか\uff1f",
    ),
}


@pytest.mark.parametrize("kind", DILUTED)
async def test_one_line_of_a_passage_of_many_is_found(harness: AppHarness, kind: str) -> None:
    text, last, question = DILUTED[kind]
    await post(harness, "ann", text + last, "long")
    where, now = place_of("general", None, None), harness.clock.tick()
    chatter = [
        incoming(harness.workspace(), where, "eve", f"lift number {n} is slow", now, id=f"lift{n}") for n in range(70)
    ]
    await harness.app.receive(harness.workspace(), chatter)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert last in next(item.text for item in await recalled(harness, question) if item.messages == ("long",))


async def test_a_short_text_file_is_shown_whole_with_its_name(harness: AppHarness) -> None:
    await post(harness, "ann", "for later", "note", Attachment("plan.md", "text/markdown", "The ferry leaves at 6."))
    (found,) = await recalled(harness, "when does the ferry leave?")
    assert found.text == "for later\nplan.md\nThe ferry leaves at 6."
    assert not found.passage


async def test_nobody_else_finds_the_end_of_a_long_text_in_a_private_room(harness: AppHarness) -> None:
    await harness.say("ann", "hello", room="cave", private=True)
    await post(harness, "ann", f"{LOG}\nThe quokka sleeps in the vault.", "long", room="cave")
    await harness.say("ben", "hello", room="general")
    assert await recalled(harness, "where does the quokka sleep?") == []
    await harness.say("ann", "here we go on", room="cave", thread="later", private=True)
    own = await harness.compose("ann", "@nexus where does the quokka sleep?", room="cave", thread="later", private=True)
    assert any("quokka" in s.text for s in own.prompt.sections if s.name == "RECALL")


@pytest.mark.parametrize("as_file", [False, True])
async def test_each_passage_goes_with_its_message(harness: AppHarness, settings: Settings, as_file: bool) -> None:
    whole = f"{LOG}\nThe key is {SECRET}.\n{LOG}"
    files = (Attachment("it.log", "text/plain", whole),) if as_file else ()
    await post(harness, "ann", "see this" if as_file else whole, "long", *files)
    assert len(await passages_of(settings)) > 20
    await harness.change("long", None)
    assert await passages_of(settings) == []
    assert await tables_with_secret(settings) == set()


async def test_an_edit_replaces_every_passage(harness: AppHarness, settings: Settings) -> None:
    await post(harness, "ann", f"{LOG}\nThe key is {SECRET}.", "long")
    await harness.change("long", "It was nothing.")
    assert await passages_of(settings) == [(1, 0, None)]
    assert await tables_with_secret(settings) == set()


async def test_the_database_cuts_the_same_words_as_were_indexed(harness: AppHarness, settings: Settings) -> None:
    files = (
        Attachment("", "text/plain", f"a {LOG}"),
        Attachment("voice.ogg", "audio/ogg", "spoken words"),
        Attachment("photo.png", "image/png", "a caption"),
        Attachment("empty.txt", "text/plain"),
        Attachment("last.log", "text/plain", "the end"),
    )
    await post(harness, "ann", "@ben é😀日 look", "long", *files)
    connection = await asyncpg.connect(settings.database_url)
    try:
        words = await connection.fetchval(
            "SELECT message_words(text, attachments) FROM messages WHERE external_id = 'long'"
        )
    finally:
        await connection.close()
    assert words == f"@ben é😀日 look\na {LOG}\nspoken words\nlast.log\nthe end"
    passages = await passages_of(settings)
    assert passages[-1][1] + (passages[-1][2] or 0) == len(words)


async def passages_of(settings: Settings) -> list[tuple[int, int, int | None]]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        rows = await connection.fetch(
            "SELECT part, start, chars FROM recall_index WHERE kind = 'episode' ORDER BY id, part"
        )
    finally:
        await connection.close()
    return [tuple(row) for row in rows]
