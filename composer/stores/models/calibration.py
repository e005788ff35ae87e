"""What an embedder's cosines say, measured on `calibration.txt`: questions with what answers them, in many languages.

Run `python -m composer.stores.models.calibration` after a change of that file: it writes `e5_frame.npy`. The scales of
the embedders that run in this process are constants, which tests compare with what is measured here; that of a model at
an API is measured when Nexus starts with it for the first time.

All vectors of multilingual-e5-small point the same way, and those of one language the same way once more: any two
German texts are more alike than a German question and its answer in Hindi. The frame takes both off. With it the cosine
of a question and an answer is the same whether they share a language or not.
"""

from pathlib import Path
from typing import Final

import numpy as np

from composer.ports.models import MINILM_SCALE, Scale, Vectors
from composer.stores.models import e5

TEXTS_FILE: Final = Path(__file__).with_name("calibration.txt")
PAIRS: Final = 6  # questions of a language, each with what answers it; small talk follows
LANGUAGE_DIRECTIONS: Final = 20  # of the differences between 29 languages; more change nothing
LEAST_KNOWN: Final = 0.6  # of a language's questions that are nearest to their own answers: the embedder knows it

LEAST_GAP: Final = 0.03  # between the mean cosines of what answers a question and of what does not


def texts() -> list[list[str]]:
    """The texts of the file, a list of the same length for each language: a question, its answer, and so on; then small
    talk."""
    lines = TEXTS_FILE.read_text(encoding="utf-8").splitlines()
    return [line.split("|")[1:] for line in lines if line and not line.startswith("#")]


def pairs() -> list[list[str]]:
    """Questions, each followed by what answers it: of each language PAIRS."""
    return [language[: 2 * PAIRS] for language in texts()]


def frame(questions: Vectors, others: Vectors) -> Vectors:
    """Where the vectors of an embedder lie, shape (2 + LANGUAGE_DIRECTIONS, width): the middle of questions and that of
    other texts, and the directions in which languages differ (orthonormal). The arguments are the vectors of all texts
    as questions and as other texts, shape (languages, texts, width)."""
    middles = [each.mean(axis=(0, 1)) for each in (questions, others)]
    languages = questions.mean(axis=1) - middles[0] + others.mean(axis=1) - middles[1]
    directions = np.linalg.svd(languages.astype(np.float64), full_matrices=False)[2][:LANGUAGE_DIRECTIONS]
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    return np.vstack([*middles, directions * signs[:, np.newaxis]]).astype(np.float32)


def scale(questions: Vectors, others: Vectors) -> Scale:
    """What the cosines of an embedder say in the languages that it knows (where it knows none: in all of them). The
    arguments are the vectors of questions, and of what answers them, shape (languages, PAIRS, width)."""
    cosines = np.einsum("lqd,lad->lqa", questions, others)
    known = (cosines.argmax(axis=2) == np.arange(PAIRS)).mean(axis=1) >= LEAST_KNOWN
    known = known if known.any() else np.full_like(known, fill_value=True)
    own = np.eye(PAIRS, dtype=bool)
    lines = np.einsum("lad,lbd->lab", others, others)[known]
    means = (cosines[known][:, ~own], cosines[known][:, own], lines[:, ~own])
    apart, answered, strange = (round(float(each.mean()), 2) for each in means)
    if answered - apart < LEAST_GAP or max(answered, strange) >= 1:
        return MINILM_SCALE  # it tells nothing apart
    return Scale(apart, answered, strange)


def raw_vectors() -> tuple[Vectors, Vectors]:
    """The vectors of multilingual-e5-small as it gives them, of all texts: as questions, and as other texts."""
    model = e5.loaded()
    questions, others = (
        np.stack([[model.raw_vector(f"{kind}{text}") for text in language] for language in texts()])
        for kind in (e5.QUESTION, e5.PASSAGE)
    )
    return questions, others


if __name__ == "__main__":
    np.save(e5.FRAME_FILE, frame(*raw_vectors()))
