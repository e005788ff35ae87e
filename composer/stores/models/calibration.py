"""What an embedder's cosines say, measured on `calibration.txt`: questions with what answers them, in many languages.

Run `python -m composer.stores.models.calibration` after a change of that file: it writes `e5_frame.npy`. The scales of
the embedders that run in this process are constants, which tests compare with what is measured here; that of a model at
an API is measured when Nexus starts with it for the first time.

All vectors of multilingual-e5-small point the same way, and those of one language the same way once more: any two
German texts are more alike than a German question and its answer in Hindi. The frame takes both off. With it the cosine
of a question and an answer is the same whether they share a language or not.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
import structlog

from composer.errors import NexusError, for_operator
from composer.ports.models import MINILM_SCALE, Scale, Vectors
from composer.stores.models import e5

logger = structlog.get_logger()

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]

TEXTS_FILE: Final = Path(__file__).with_name("calibration.txt")
PAIRS: Final = 6  # questions of a language, each with what answers it; small talk follows
LANGUAGE_DIRECTIONS: Final = 20  # of the differences between 29 languages; more change nothing
LEAST_KNOWN: Final = 0.8  # of a language's questions that are nearest to their own answers: the embedder knows it

LARGEST_MEAN: Final = 0.99  # of lines about different things
SCALE_SECONDS: Final = 60.0  # at most, to measure what the cosines of a model say


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
    arguments are the vectors of questions, and of what answers them, shape (languages, questions, width)."""
    cosines = np.einsum("lqd,lad->lqa", questions, others)
    own = np.eye(cosines.shape[1], dtype=bool)
    known = (cosines.argmax(axis=2) == np.arange(len(own))).mean(axis=1) >= LEAST_KNOWN
    known = known if known.any() else np.full_like(known, fill_value=True)
    apart, strange = cosines[known][:, ~own], np.einsum("lad,lbd->lab", others, others)[known][:, ~own]
    spread = round(float(apart.std()), 2)
    if not spread or strange.mean() >= LARGEST_MEAN:
        return MINILM_SCALE  # it tells nothing apart
    return Scale(round(float(apart.mean()), 2), spread, round(float(strange.mean()), 2))


async def kept_or_measured(file: Path, name: str, embed_questions: Embed, embed: Embed) -> Scale:
    """What the cosines of an embedder say: as `file` keeps it of the embedder of this name, else measured now and kept.
    Where the embedder does not answer, it is MiniLM's, and the next start measures again."""
    kept = await asyncio.to_thread(_kept, file, name)
    if kept is not None:
        return kept
    languages = pairs()
    try:
        async with asyncio.timeout(SCALE_SECONDS):
            questions = await embed_questions([text for language in languages for text in language[::2]])
            others = await embed([text for language in languages for text in language[1::2]])
    except (NexusError, TimeoutError) as error:
        logger.warning("embedder.not_measured", error=for_operator(error))
        return MINILM_SCALE
    width = questions.shape[1]
    measured = scale(questions.reshape(len(languages), -1, width), others.reshape(len(languages), -1, width))
    await asyncio.to_thread(_keep, file, name, measured)
    return measured


def _kept(file: Path, name: str) -> Scale | None:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Scale(**kept["scale"]) if kept["model"] == name else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(file: Path, name: str, measured: Scale) -> None:
    with suppress(OSError):  # then the next start measures again
        file.write_text(json.dumps({"model": name, "scale": asdict(measured)}), encoding="utf-8")


def pairs_in_frame(questions: Vectors, others: Vectors) -> tuple[Vectors, Vectors]:
    """What `scale` takes, of vectors as `frame` takes them, seen in a frame of other texts than are measured:
    in its own frame texts are further from each other than texts are. Each half of the pairs is seen in the frame of
    the other, and is a row of its own: first those of all languages with the first, third, … pair, then the others."""
    width = questions.shape[2]
    halves = [[n for n in range(questions.shape[1]) if n // 2 % 2 == half] for half in (0, 1)]
    asked, said = [], []
    for measured, framing in (halves, halves[::-1]):
        made = frame(questions[:, framing], others[:, framing])
        pairs = [n for n in measured if n < 2 * PAIRS]
        asked.append(in_frame(questions[:, [n for n in pairs if n % 2 == 0]].reshape(-1, width), made, 0))
        said.append(in_frame(others[:, [n for n in pairs if n % 2 == 1]].reshape(-1, width), made, 1))
    by_language = [np.concatenate([half.reshape(len(questions), -1, width) for half in each]) for each in (asked, said)]
    return by_language[0], by_language[1]


def in_frame(vectors: Vectors, made: Vectors, middle: int) -> Vectors:
    """Vectors, shape (texts, width), seen in a frame; `middle` is 0 for questions and 1 for other texts."""
    off = vectors - made[middle]
    off -= off @ made[2:].T @ made[2:]
    units: Vectors = off / np.linalg.norm(off, axis=1, keepdims=True)
    return units


def raw_vectors() -> tuple[Vectors, Vectors]:
    """The vectors of multilingual-e5-small as it gives them, of all texts: as questions, and as other texts."""
    model = e5.loaded()
    questions, others = (
        np.stack([[model.raw(f"{kind}{text}")() for text in language] for language in texts()])
        for kind in (e5.QUESTION, e5.PASSAGE)
    )
    return questions, others


if __name__ == "__main__":
    np.save(e5.FRAME_FILE, frame(*raw_vectors()))
