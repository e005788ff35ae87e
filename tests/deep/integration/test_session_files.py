"""Files that people attach to questions, on the page Ask and over the API: read, shown, refused, and not kept."""

import base64
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from bot.web.session_files import MAX_FILES_BYTES, SentFile, attachments_of
from composer.errors import BadInput
from composer.ingest.file_texts import FileTexts
from composer.model import API
from composer.settings import AgentSettings, Settings
from tests.support.api import bearer, cookie_of, key_of
from tests.support.discord.harness import Model
from tests.support.documents import pdf
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, OWN, SCRIPT, Person

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PLAN = ("plan.pdf", pdf([["The heron lands on Friday at the north gate."]]), "application/pdf")


class SeeingModel(Model):
    """A model that keeps the images that it was shown, too."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def stream(self, agent: Any, messages: Any) -> Any:
        self.seen += [image.type for message in messages for image in message.images]
        return super().stream(agent, messages)


@pytest.fixture
def model() -> SeeingModel:
    return SeeingModel()


@pytest.fixture
async def harness(settings: Settings, model: SeeingModel) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o", images=True),), "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many), model=model) as harness:
        yield harness


async def attached(
    person: Person,
    *files: tuple[str, bytes, str],
    text: str = "what is this?",
    headers: dict[str, str] = OWN,
    **values: str,
) -> httpx2.Response:
    return await person.client.post(
        "/ask",
        data={"csrf": person.csrf, "text": text} | values,
        files=[("files", each) for each in files],
        headers=headers | person._cookie(),
    )


async def test_a_document_is_read_shown_in_the_history_and_found_later(alice: Person, model: SeeingModel) -> None:
    answer = await attached(alice, PLAN)
    assert answer.status_code == 303, answer.text
    assert "The heron lands on Friday" in model.shown[-1]
    shown = await alice.page(answer.headers["location"])
    assert re.search(r"<span dir=\"auto\">plan\.pdf</span> <small>PDF · \d", shown)
    assert "lands on Friday" not in shown, "its text is not read for the list"
    again = {"session": answer.headers["location"].rpartition("/")[2]}
    assert (await alice.press("/ask", text="where does the heron land?", **again)).status_code == 303
    assert "north gate" in model.shown[-1]


async def test_a_picture_is_looked_at_once_and_not_kept(
    harness: AppHarness, alice: Person, model: SeeingModel, raw: Any
) -> None:
    answer = await attached(alice, ("me.jpeg", PNG, "image/jpeg"), headers=SCRIPT)
    assert answer.status_code == 200
    assert "me.jpeg" in answer.text
    assert model.seen == ["image/png"], "what it is, not what it is said to be"
    (stored,) = await raw.fetch("SELECT attachments::text FROM messages WHERE attachments <> '[]'")
    assert '"text": ""' in stored[0]
    sources = harness.app.drafter.images._sources[API]
    assert sources._held == {}  # type: ignore[attr-defined]


async def test_the_api_takes_files_and_lists_them(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: SeeingModel
) -> None:
    key = bearer(await key_of(harness, "alice"))
    file = {"name": "note.txt", "content": base64.b64encode(b"the ibis is blue").decode()}
    answer = await client.post("/v1/chat", json={"content": "", "files": [file], "id": "one"}, headers=key)
    assert answer.status_code == 200, answer.text
    assert "the ibis is blue" in model.shown[-1]
    (episode,) = (await client.get("/v1/episodes", headers=key)).json()["items"]
    assert episode["files"] == [{"name": "note.txt", "type": "text/plain", "size": 16, "note": ""}]
    asked = len(model.shown)
    again = await client.post("/v1/chat", json={"content": "", "files": [file], "id": "one"}, headers=key)
    assert again.json()["turn"] == answer.json()["turn"]
    assert len(model.shown) == asked
    wrong = await client.post("/v1/chat", json={"content": "x", "files": [file | {"content": "%"}]}, headers=key)
    assert wrong.status_code == 422


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("a.exe", b"MZ", "application/pdf-not")], "a.exe is of a kind that is not read"),
        ([("old.doc", b"x", "application/msword")], "old.doc is of a kind that is not read"),
        ([("me.svg", b"<svg/>", "image/svg+xml")], "me.svg is of a kind"),
        ([("a.txt", b"", "text/plain")], "a.txt is empty"),
        ([("a.txt", b"x", "text/plain")] * 5, "At most 4 files"),
        ([("a.txt", b"x" * (MAX_FILES_BYTES // 2 + 1), "text/plain")] * 2, "10 MB together"),
        ([("a.png", PNG + bytes(5 * 2**20), "image/png")], "a picture may have 5 MB"),
    ],
)
async def test_what_is_not_taken_is_said_in_a_sentence(
    alice: Person, model: SeeingModel, files: list[tuple[str, bytes, str]], said: str
) -> None:
    answer = await attached(alice, *files)
    assert answer.status_code == 422
    assert said in answer.text
    assert not model.shown
    assert "what is this?" not in await alice.page("/ask"), "nothing is stored"


async def test_a_form_of_another_page_or_too_long_a_one_is_not_taken(alice: Person, model: SeeingModel) -> None:
    stranger = Person(alice.client, "nxs_wrong", alice.csrf)
    assert (await attached(stranger, PLAN)).headers["location"] == "/login"
    assert (await attached(Person(alice.client, alice.cookie, "0" * 32), PLAN)).status_code == 403
    long = await attached(alice, ("a.txt", b"x" * (MAX_FILES_BYTES + 2**21), "text/plain"))
    assert long.status_code == 413
    assert not model.shown


async def test_nobody_attaches_to_a_conversation_of_somebody_else(
    harness: AppHarness, alice: Person, model: SeeingModel
) -> None:
    session = (await alice.press("/ask", text="hello")).headers["location"].rpartition("/")[2]
    asked = len(model.shown)
    await harness.say("bob", "hello", room="general")
    bob = Person(alice.client, await cookie_of(harness, "bob"))
    await bob.page("/ask")
    assert (await attached(bob, PLAN, session=session)).status_code == 404
    assert len(model.shown) == asked


async def test_names_that_bite_are_shown_as_they_are(alice: Person) -> None:
    for bite in (*BITES, "../../etc/passwd.txt", "C:\\secret\\plan.txt", "x" * 1_000):
        answer = await attached(alice, (f"{bite}.txt", b"words", "text/plain"))
        assert answer.status_code == 303, (bite, answer.text)
        shown = await alice.page(answer.headers["location"])
        assert bite not in shown or not set(bite) & set('<>"&')
        assert "/etc/" not in shown
        assert "secret" not in shown


def test_a_type_that_a_file_has_not_makes_it_no_picture() -> None:
    (read,) = attachments_of([SentFile("a.txt", "image/png", b"words")])
    assert (read.type, read.is_image) == ("text/plain", False)
    with pytest.raises(BadInput, match="no model"):
        attachments_of([SentFile("noise", "audio/mpeg", b"ID3")])


def test_a_voice_note_is_taken_where_it_is_written_down() -> None:
    (note,) = attachments_of([SentFile("note.ogg", "audio/ogg; codecs=opus", b"OggS")], spoken=True)
    assert (note.type, note.is_audio, note.size) == ("audio/ogg", True, 4)


@pytest.mark.parametrize("spoken", [True, False])
async def test_the_page_says_before_whether_voice_notes_are_taken(
    harness: AppHarness, alice: Person, monkeypatch: pytest.MonkeyPatch, spoken: bool
) -> None:
    monkeypatch.setattr(FileTexts, "transcribes", spoken)
    shown = await alice.page("/ask")
    assert ("audio/*" in shown, "what is spoken is written down" in shown) == (spoken, spoken)


async def test_what_is_forgotten_takes_its_files_along(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, raw: Any
) -> None:
    await attached(alice, PLAN)
    key = bearer(await key_of(harness, "alice"))
    (session,) = (await client.get("/v1/chat/sessions", headers=key)).json()["items"]
    forgotten = await client.delete(f"/v1/chat/session/{quote(session['session'])}", headers=key)
    assert forgotten.status_code == 200, forgotten.text
    assert not await raw.fetch("SELECT FROM messages WHERE attachments::text LIKE '%heron%'")
