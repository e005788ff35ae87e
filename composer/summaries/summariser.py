"""The writing of a summary: what was said, in a tenth of its words, by a model or by choosing sentences.

The extractive way needs no model: sentences as they were said, with their speakers, chosen for what they begin,
decide and cover, no two alike. It stands in whenever a model is not configured, fails or takes too long.
"""

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
import structlog

from composer.errors import Unavailable
from composer.instructions import template
from composer.memory.index import searchable
from composer.memory.patterns import extract
from composer.model import Agent, Message
from composer.ports.models import ChatMessage, ChatModel, Embedder, Tokenizer, Vectors
from composer.prompt.lines import speaker_label
from composer.prompt.sections import EXTRACTIVE
from composer.text.terms import sentences, terms

logger = structlog.get_logger()

PROMPT_VERSION: Final = "summary.v1"
PATIENCE: Final = 30.0  # seconds that a model may take for one part
MOST_SENTENCES: Final = 600  # that are compared by meaning; of more, the weightiest
LONGEST_SENTENCE: Final = 400  # characters
ALIKE: Final = 0.82  # cosine from which two sentences say the same
WORDS_A_TOKEN: Final = 0.7
PART_OF_WINDOW: Final = 0.5  # how much of a model's window one part of a long text may take

_ADDRESSED = re.compile(r"^\s*@?[\w\[\]|^`{}\\-]{2,24}\s*[:,]\s")
_GOES_ON = re.compile(
    r"^\W*(?:yes|yeah|yep|no|nope|ok|okay|thanks|thank|thx|lol|haha|sure|right|cool|hi|hello|hey|bye|oh|hm+|and|but|so|because"
    r"|it|that|this|they|he|she|then|try|well)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?|\b(?:how|what|why|where|who|which|anyone|anybody|someone|help|problem|trouble|wonder\w*|question|propose|suggest)\b",
    re.IGNORECASE,
)
_WEIGHTY = re.compile(
    r"\b(?:decid\w+|agree[ds]?|agreement|deadline|must|will|action|todo|plan|release|deploy\w*|blocked|approved?|rejected|resolved"
    r"|conclusion|important|owner|due)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a summary is made of: a message, or a summary of the tier below (`author` empty)."""

    author: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A written summary. `model` is who wrote it: a model's name, or `extractive`."""

    text: str
    model: str
    tokens: int

    @property
    def extractive(self) -> bool:
        """Whether it is made of sentences as they were said."""
        return self.model == EXTRACTIVE


def said(message: Message) -> Said:
    """A message as it is summarised, with the text of its attachments."""
    text = "\n".join((message.text, *(f"{a.name}: {a.text}" for a in message.attachments if a.text)))
    return Said(message.author, message.at, text)


class Summariser:
    """Writes summaries. Holds what it writes with, and no state of its own."""

    def __init__(self, embedder: Embedder, model: ChatModel, patience: float = PATIENCE) -> None:
        self._embedder = embedder
        self._model = model
        self._patience = patience

    async def summarise(
        self, pieces: Sequence[Said], budget: int, tokenizer: Tokenizer, agent: Agent | None = None
    ) -> SummaryText:
        """A summary of at most `budget` tokens of pieces that stand oldest first. It never fails.

        `agent` names the model that writes; None, or one without a model, or one that fails: sentences are chosen.
        No pieces, or no budget: an empty text.
        """
        if agent is not None and agent.model and pieces and budget > 0:
            try:
                text = await self._written(pieces, budget, tokenizer, agent)
                if text:
                    return SummaryText(text, agent.model, tokenizer.count(text))
                logger.warning("summary.model_was_silent", model=agent.model)
            except Exception as error:  # whatever a model does, there is a summary
                logger.warning("summary.model_failed", model=agent.model, error=type(error).__name__)
        return await self.extract(pieces, budget, tokenizer)

    async def extract(self, pieces: Sequence[Said], budget: int, tokenizer: Tokenizer) -> SummaryText:
        """The same without a model; without the embedder too when that does not answer."""
        chosen = candidates(pieces)
        vectors: Vectors | None = None
        try:
            if chosen:
                vectors = await self._embedder.embed([searchable(c.text) for c in chosen])
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=str(error))
        return await asyncio.to_thread(extractive, chosen, vectors, budget, tokenizer)

    async def _written(self, pieces: Sequence[Said], budget: int, tokenizer: Tokenizer, agent: Agent) -> str:
        lines = [_line(piece.author, piece.text, f" ({piece.at:%Y-%m-%d %H:%M})") for piece in pieces]
        parts = _parts(lines, max(int(agent.window * PART_OF_WINDOW), 500), tokenizer)
        share = max(budget // len(parts), 1)
        writer = replace(agent, reply_tokens=max(share, 16))
        texts = []
        for part in parts:
            request = [
                ChatMessage("system" if agent.system_role else "user", summary_prompt(share)),
                ChatMessage("user", part),
            ]
            async with asyncio.timeout(self._patience):
                texts.append("".join([chunk.text async for chunk in self._model.stream(writer, request)]).strip())
        return _fitted([line for text in texts for line in text.splitlines() if line.strip()], budget, tokenizer)


def summary_prompt(budget: int) -> str:
    """What a model is told to write a summary of so many tokens."""
    return template(PROMPT_VERSION).format(words=max(int(budget * WORDS_A_TOKEN), 10))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may stand in a summary. `order` is its place; `weight` what speaks for it by itself."""

    order: int
    author: str
    text: str
    stems: frozenset[str]
    weight: float


def candidates(pieces: Sequence[Said]) -> list[Candidate]:
    """The sentences of some pieces that say something, each once, in their order; the weightiest of very many. Pure."""
    found: dict[frozenset[str], Candidate] = {}
    recent: list[frozenset[str]] = []
    speakers: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        known = frozenset().union(*recent[-12:])
        quiet = number - speakers.get(piece.author, -100) > 15
        units = sentences(piece.text)
        for nth, sentence in enumerate(units):
            words = " ".join(sentence.split())[:LONGEST_SENTENCE]
            stems = frozenset(terms(words))
            if len(stems) >= 3 and stems not in found:
                weight = _weight(words, stems, known, first=nth == 0, quiet=quiet, near_end=nth == len(units) - 1)
                found[stems] = Candidate(number * 1000 + min(nth, 999), piece.author, words, stems, weight)
        recent.append(frozenset(terms(piece.text[:2000])))
        speakers[piece.author] = number
    best = sorted(found.values(), key=lambda c: (-c.weight, c.order))[:MOST_SENTENCES]
    return sorted(best, key=lambda c: c.order)


def _weight(
    words: str, stems: frozenset[str], known: frozenset[str], *, first: bool, quiet: bool, near_end: bool
) -> float:
    """What speaks for a sentence: that it brings up something, decides something, and says much."""
    fresh = len(stems - known) / len(stems)
    weight = 0.3 + fresh
    weight += 0.5 * first + 0.1 * near_end + 0.8 * quiet
    weight += 0.6 * bool(_ASKS.search(words)) + 0.3 * bool(_WEIGHTY.search(words))
    weight -= 0.8 * bool(_ADDRESSED.match(words)) + 0.6 * bool(_GOES_ON.match(words))
    weight += 2.0 * any(statement.kind == "decision" for statement in extract(words))
    return max(weight, 0.05) * math.sqrt(min(len(stems), 10))


def extractive(chosen: Sequence[Candidate], vectors: Vectors | None, budget: int, tokenizer: Tokenizer) -> SummaryText:
    """Sentences, best first as far as `budget` tokens go, no two alike, shown in the order they were said. Pure.

    `vectors` are theirs, one to a row; without them sentences are compared by their words.
    """
    lines = [_line(c.author, c.text) for c in chosen]
    costs = np.array([tokenizer.count(line) + 1 for line in lines], dtype=np.float64)
    alike = _similarity(chosen, vectors)
    weights = np.array([c.weight for c in chosen], dtype=np.float64)
    nearest, free = np.zeros(len(chosen)), np.ones(len(chosen), dtype=bool)
    taken: list[int] = []
    left = float(budget)
    while True:
        free &= (costs <= left) & (nearest < ALIKE)
        if not free.any():
            break
        gain = np.where(free, weights * (1 - nearest) / np.sqrt(costs), -1.0)
        best = int(gain.argmax())
        taken.append(best)
        free[best] = False
        left -= float(costs[best])
        nearest = np.maximum(nearest, alike[best])
    text = "\n".join(lines[n] for n in sorted(taken, key=lambda n: chosen[n].order))
    if chosen and not taken:  # each is too long by itself: the beginning of the weightiest is better than nothing
        text = _beginning(lines[int(weights.argmax())], budget, tokenizer)
    return SummaryText(text, EXTRACTIVE, tokenizer.count(text) if text else 0)


def _beginning(line: str, budget: int, tokenizer: Tokenizer) -> str:
    """As many words from the beginning as fit, with a mark that there was more; nothing if none does."""
    words = line.split(" ")
    while words and tokenizer.count(f"{' '.join(words)} …") > budget:
        words = words[: len(words) * 7 // 8]
    return f"{' '.join(words)} …" if words else ""


def _similarity(
    chosen: Sequence[Candidate], vectors: Vectors | None
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """How near any two are, 0 to 1; by meaning, else by the words they share."""
    if vectors is not None:
        return np.clip(vectors.astype(np.float64) @ vectors.T.astype(np.float64), 0.0, 1.0)
    near = np.zeros((len(chosen), len(chosen)))
    for i, one in enumerate(chosen):
        for j, other in enumerate(chosen[:i]):
            near[i, j] = near[j, i] = len(one.stems & other.stems) / (len(one.stems) * len(other.stems)) ** 0.5
    return near


def _line(author: str, text: str, when: str = "") -> str:
    words = " ".join(text.split())
    return f"{speaker_label(author)}{when}: {words}" if author else words


def _parts(lines: Sequence[str], most: int, tokenizer: Tokenizer) -> list[str]:
    """Lines joined to texts of at most about `most` tokens each; a line that is longer by itself is cut."""
    parts: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        shown = line if len(line) <= most * 2 else f"{line[: most * 3 // 2]} … {line[-most // 4 :]}"
        cost = tokenizer.count(shown) + 1
        if parts[-1] and filled + cost > most:
            parts.append([])
            filled = 0
        parts[-1].append(shown)
        filled += cost
    return ["\n".join(part) for part in parts]


def _fitted(lines: Sequence[str], budget: int, tokenizer: Tokenizer) -> str:
    """As many lines from the beginning as fit; of one that alone is too long, as many sentences."""
    kept: list[str] = []
    left = budget
    for line in lines:
        cost = tokenizer.count(line) + 1
        if cost > left:
            units = sentences(line)
            if not kept and len(units) > 1:
                return _fitted(units, budget, tokenizer)
            break
        kept.append(line)
        left -= cost
    return "\n".join(kept)
