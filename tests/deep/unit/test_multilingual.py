"""The embedder of English and other languages: both vectors side by side, and when it is the default."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from composer.settings import Settings
from composer.stores.models import calibration, configured, e5, minilm, multilingual
from composer.stores.models.configured import configured_embedder
from composer.stores.models.e5 import PASSAGE, QUESTION
from composer.stores.models.minilm import WIDTH, Prepared
from composer.stores.models.multilingual import SHARE, Multilingual, side_by_side
from tests.deep.unit.test_e5 import weighed

DEFAULT = configured.default_embedder  # which tests change
BOTH = "When is Lena on vacation?", "Wann hat Lena Urlaub?"


@weighed
async def test_a_vector_is_both_side_by_side_and_of_another_language_than_english_the_second_alone() -> None:
    embedder = Multilingual(threads=1)
    said, asked = await embedder.embed(BOTH), await embedder.embed_questions(BOTH)
    embedder.close()
    english, second = minilm.loaded(), e5.loaded()
    for vectors, kind in ((said, PASSAGE), (asked, QUESTION)):
        assert vectors.shape == (2, 2 * WIDTH)
        assert vectors[0, :WIDTH] / SHARE**0.5 == pytest.approx(english.prepared(BOTH[0])(), abs=1e-6)
        assert vectors[0, WIDTH:] / (1 - SHARE) ** 0.5 == pytest.approx(second.prepared(f"{kind}{BOTH[0]}")(), abs=1e-6)
        assert not vectors[1, :WIDTH].any()
        assert vectors[1, WIDTH:] == pytest.approx(second.prepared(f"{kind}{BOTH[1]}")(), abs=1e-6)


@weighed
async def test_english_texts_are_compared_as_minilm_does_and_others_as_the_second() -> None:
    embedder = Multilingual(threads=1)
    ones = await embedder.embed(BOTH)
    others = await embedder.embed(["Lena is away in August.", "Lena ist im August nicht da."])
    embedder.close()
    likeness = embedder.scale.compare(ones, others)
    assert likeness.dtype == np.float32
    english, second = minilm.loaded(), e5.loaded()
    assert likeness[0, 0] == pytest.approx(
        english.prepared(BOTH[0])() @ english.prepared("Lena is away in August.")(), abs=1e-5
    )
    for one, other in ((0, 1), (1, 0), (1, 1)):
        texts = (BOTH[one], ("Lena is away in August.", "Lena ist im August nicht da.")[other])
        cosine = np.dot(*(second.prepared(f"{PASSAGE}{text}")() for text in texts))
        assert likeness[one, other] == pytest.approx(e5.E5_SCALE.likeness(cosine), abs=1e-5)


@weighed
async def test_a_question_finds_short_english_lines_and_what_was_said_in_another_language() -> None:
    embedder = Multilingual(threads=1)
    lines = ["I moved to Berlin last weekend!", "haha nice", "Ich bin ab August im Urlaub.", "the build is green again"]
    said = await embedder.embed(lines)
    for question, answer in (("Where does alice live?", 0), ("When is Lena on vacation?", 2)):
        assert int((said @ (await embedder.embed_questions([question]))[0]).argmax()) == answer
    embedder.close()


@weighed
async def test_english_texts_are_compared_by_half_a_vector() -> None:
    embedder, said = Multilingual(threads=1), ["Lena is away in August.", "We ship on Tuesday."]
    scale, whole = embedder.scale, await embedder.embed([*said, BOTH[1]])
    one, other = await embedder.embed_compared(said[:1]), await embedder.embed_compared(said[1:])
    mixed = await embedder.embed_compared([*said, BOTH[1]])
    embedder.close()
    assert not one[:, WIDTH:].any(), "the half that costs most is not computed"
    assert scale.compares(one, other)
    assert scale.compare(one, other) == pytest.approx(scale.compare(whole[:1], whole[1:2]), abs=1e-6)
    assert not scale.compares(whole[2:], one)
    assert not scale.compares(one, whole[2:])
    assert scale.compares(whole, whole)
    assert (mixed == whole).all(), "beside another language all are whole"


@weighed
def test_the_scale_is_that_of_english_texts() -> None:
    english = minilm.loaded()
    frames = calibration.pairs_in_frame(*calibration.raw_vectors())
    pairs = calibration.pairs()[0]
    assert pairs[0] == BOTH[0]
    asked, said = (np.stack([vectors[0], vectors[len(vectors) // 2]]) for vectors in frames)
    joined = [
        np.stack(
            [
                [
                    side_by_side(english.prepared(pairs[half * 2 + kind + n * 4])(), row, SHARE)
                    for n, row in enumerate(rows)
                ]
                for half, rows in enumerate(vectors)
            ]
        )
        for kind, vectors in enumerate((asked, said))
    ]
    measured = calibration.scale(*joined)
    for name in ("apart", "spread", "strange"):
        assert getattr(multilingual.MULTILINGUAL_SCALE, name) == pytest.approx(getattr(measured, name), abs=0.011)


def test_it_is_the_default_where_its_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "default_embedder", DEFAULT)
    monkeypatch.setattr(e5, "find_spec", lambda _: object())
    assert configured_embedder(Settings(home=tmp_path)).name == "multilingual"
    assert configured_embedder(Settings(home=tmp_path), "minilm").name == "minilm", "that of the stored vectors"
    assert configured_embedder(Settings(home=tmp_path, embedder="minilm"), "multilingual").name == "minilm"
    monkeypatch.setattr(e5, "find_spec", lambda _: None)
    assert configured_embedder(Settings(home=tmp_path)).name == "minilm"


async def test_texts_that_are_compared_take_turns_by_the_time_of_one_model() -> None:
    class Counting(Multilingual):
        def _prepare(self, texts: Sequence[str]) -> list[Prepared]:
            steps.append(len(texts))
            return [lambda: np.zeros(2 * WIDTH, dtype=np.float32)] * len(texts)

    steps, embedder = list[int](), Counting(threads=2)
    sources = ["We ship the release on Friday, once the tests are green. " * 4] * 16
    await embedder.embed(sources)
    whole = len(steps)
    await embedder.embed_compared(sources)
    assert (whole, len(steps) - whole) == (4, 2)
    embedder.close()
