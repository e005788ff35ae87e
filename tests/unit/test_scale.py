"""What an embedder's cosines say: one scale for all that is decided by them."""

import uuid
from datetime import UTC, datetime

import numpy as np
import pytest

from composer.layers.relevance import fits
from composer.memory.wording import PARAPHRASE_LIKENESS
from composer.model import Item, Visibility
from composer.ports.models import APART, MINILM_SCALE, SPREAD, STRANGE, Scale
from composer.repositories.recall import Candidate, Found
from composer.stores.models import calibration
from composer.stores.models.minilm import MiniLM

NARROW = Scale(apart=0.70, spread=0.02, strange=0.75)  # as some models at APIs are


def candidate(meaning: float | None, likeness: float = 0.0, newer_than: str = "") -> Candidate:
    item = Item(
        "semantic",
        "episode",
        str(uuid.UUID(int=1)),
        "a text",
        datetime(2026, 5, 4, tzinfo=UTC),
        "room:here",
        Visibility.PUBLIC,
    )
    return Candidate(item, meaning, 0.0, likeness=likeness, newer_than=newer_than)


def test_the_marks_of_an_embedder_are_those_of_the_scale() -> None:
    for own in (NARROW, Scale(apart=0.08, spread=0.08, strange=0.20)):
        assert own.fit(own.apart) == pytest.approx(APART)
        assert own.fit(own.apart + own.spread) == pytest.approx(APART + SPREAD)
        assert own.likeness(own.strange) == pytest.approx(STRANGE)
        assert own.likeness(1.0) == pytest.approx(1.0)
        assert own.likeness(own.cosine(PARAPHRASE_LIKENESS)) == pytest.approx(PARAPHRASE_LIKENESS)
        climbing = [own.fit(cosine) for cosine in np.linspace(-1, 1, 50).tolist()]
        assert climbing == sorted(climbing)
        assert own.likeness(np.array([own.strange, 1.0])).tolist() == pytest.approx([STRANGE, 1.0])


async def test_the_scale_is_that_of_minilm_in_english() -> None:
    """And its cosines are taken as they are, to the last bit: it is the embedder of most."""
    embedder, pairs = MiniLM(threads=1), calibration.pairs()
    vectors = (await embedder.embed([text for language in pairs for text in language])).reshape(len(pairs), -1, 384)
    embedder.close()
    measured = calibration.scale(vectors[:, ::2], vectors[:, 1::2])
    for name in ("apart", "spread", "strange"):
        assert getattr(measured, name) == pytest.approx(getattr(MINILM_SCALE, name), abs=0.015)
    assert candidate(0.123).on(MINILM_SCALE).meaning == pytest.approx(0.123)
    assert MINILM_SCALE.likeness(0.123) == 0.123


def test_a_question_that_nothing_answers_finds_nothing_with_an_embedder_whose_cosines_are_all_high() -> None:
    def found(meaning: float) -> bool:
        return fits(Found([candidate(meaning).on(NARROW)], {"term": 5.0}, 1_000), "what of it?", ("Nexus",))

    assert not found(0.72)
    assert found(0.88)
    assert fits(Found([candidate(0.72)], {"term": 5.0}, 1_000), "what of it?", ("Nexus",)), "what it was without"


def test_what_is_newer_is_as_like_as_the_scale_says() -> None:
    read = candidate(NARROW.apart, NARROW.apart + 1.0, newer_than="x").on(NARROW)
    assert read.likeness == pytest.approx(APART + 1.0)
    assert candidate(None).on(NARROW).meaning is None, "what has no vector yet has no meaning"


def test_an_embedder_that_tells_nothing_apart_is_taken_as_minilm() -> None:
    same = np.full((3, calibration.PAIRS, 4), 0.5, dtype=np.float32)
    assert calibration.scale(same, same) == MINILM_SCALE


def test_the_texts_are_of_many_languages_and_complete() -> None:
    lines = calibration.TEXTS_FILE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if not line.startswith("#")]
    assert len({row[0] for row in rows}) == len(rows) >= 25
    assert {len(row) for row in rows} == {17}
    assert {len(texts) for texts in calibration.texts()} == {16}
    assert {len(texts) for texts in calibration.pairs()} == {2 * calibration.PAIRS}
