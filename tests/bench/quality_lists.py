"""Baselines that rank a conversation, to compare with recall: dense, BM25, rank fusion."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from composer.ports.models import Vectors
from composer.text.terms import terms

K1: Final = 1.2
B: Final = 0.75
RRF: Final = 60  # Cormack, Clarke and Büttcher 2009

Scores = np.ndarray[tuple[int], np.dtype[np.float64]]


class Bm25:
    """BM25 over some texts, with the same stems as recall."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._documents = [Counter(terms(text)) for text in texts]
        self._lengths = [sum(document.values()) for document in self._documents]
        self._mean = max(sum(self._lengths) / len(texts), 1e-9)
        self._frequency = Counter(term for document in self._documents for term in document)

    def scores(self, question: str) -> Scores:
        """Return one score for each text."""
        wanted = {term: self._rarity(term) for term in set(terms(question))}
        return np.array([self._score(n, wanted) for n in range(len(self._documents))])

    def _rarity(self, term: str) -> float:
        frequency = self._frequency[term]
        return math.log(1 + (len(self._documents) - frequency + 0.5) / (frequency + 0.5))

    def _score(self, n: int, wanted: dict[str, float]) -> float:
        damped = K1 * (1 - B + B * self._lengths[n] / self._mean)
        document = self._documents[n]
        return sum(rarity * document[term] / (document[term] + damped) for term, rarity in wanted.items())


def orders(question: str, vector: Vectors, vectors: Vectors, words: Bm25) -> dict[str, list[int]]:
    """Return the numbers of the texts, best first, for each baseline."""
    dense = np.argsort(-(vectors @ vector), kind="stable")
    lexical = np.argsort(-words.scores(question), kind="stable")
    fused = np.zeros(len(dense))
    for order in (dense, lexical):
        fused[order] += 1 / (RRF + 1 + np.arange(len(order)))
    return {
        "plain dense": dense.tolist(),
        "plain BM25": lexical.tolist(),
        "both, rank fusion": np.argsort(-fused, kind="stable").tolist(),
    }
