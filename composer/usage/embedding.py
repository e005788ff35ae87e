"""The meter of embeddings: requests to an API for vectors are held within budgets and recorded, as answers are."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from composer.model import Usage
from composer.ports.models import (
    MINILM_SCALE,
    ComparingEmbedder,
    Embedder,
    MeasuredEmbedder,
    QuestionEmbedder,
    RemoteEmbedder,
    Scale,
    Tokenizer,
    UsageAccount,
    Vectors,
)
from composer.repositories.usage import Amount
from composer.text.caches import OwnedCache
from composer.text.digests import text_digest
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.usage.ledger import CallLedger
from composer.usage.reported import is_plausible

# Most of what an answer is compared with was in the prompt of the one before. The owner is the conversation.
MAX_COMPARED: Final = 4_000  # vectors; of 3 kB each with `multilingual`
_compared: Final = OwnedCache[NDArray[np.float32]](MAX_COMPARED)


class EmbeddingMeter:
    """Embeds texts (composer.ports.models.MeteredEmbedder). An embedder that runs here uses nothing, so it is asked
    directly; each request to one at an API is estimated by its texts, refused where a budget has no room for it, and
    recorded however it ends."""

    def __init__(self, embedder: Embedder, ledger: CallLedger, tokenizer: Callable[[str], Tokenizer]) -> None:
        """`tokenizer` gives the tokenizer of a model by its name."""
        self._embedder, self._ledger, self._tokenizer = embedder, ledger, tokenizer

    @property
    def scale(self) -> Scale:
        """What the embedder's cosines say."""
        return self._measured.scale if self._measured is not None else MINILM_SCALE

    @cached_property
    def _measured(self) -> MeasuredEmbedder | None:
        return self._embedder if isinstance(self._embedder, MeasuredEmbedder) else None

    @cached_property
    def _of_questions(self) -> QuestionEmbedder | None:
        return self._embedder if isinstance(self._embedder, QuestionEmbedder) else None

    async def embed(
        self, texts: Sequence[str], account: UsageAccount, *, questions: bool = False, compared: bool = False
    ) -> Vectors:
        """As `Embedder.embed`; with `questions` of texts that are searched with, with `compared` of texts that are
        compared with each other alone: their vectors are kept for the conversation. Raises BudgetUsedUp besides."""
        embedder, owner = self._embedder, account.conversation_id
        if compared and owner is not None:
            keys = {text: (embedder.name, text_digest(text)) for text in texts}
            vectors = {text: vector for text, key in keys.items() if (vector := _compared.get(owner, key)) is not None}
            new = [text for text in keys if text not in vectors]
            found = await self._embed_compared(new, account) if new else ()
            for text, vector in zip(new, found, strict=True):
                vectors[text] = vector.copy()
                _compared.put(owner, vectors[text], keys[text])
            return np.array([vectors[text] for text in texts], dtype=np.float32).reshape(-1, embedder.width)
        if questions and self._of_questions is not None:
            return await self._of_questions.embed_questions(texts)
        return await (self._embed_compared if compared else self._embed)(texts, account)

    async def _embed_compared(self, texts: Sequence[str], account: UsageAccount) -> Vectors:
        if isinstance(self._embedder, ComparingEmbedder):
            return await self._embedder.embed_compared(texts)
        return await self._embed(texts, account)

    async def _embed(self, texts: Sequence[str], account: UsageAccount) -> Vectors:
        embedder = self._embedder
        if not isinstance(embedder, RemoteEmbedder):
            return await embedder.embed(texts)
        parts = [np.empty((0, embedder.width), dtype=np.float32)]
        for start in range(0, len(texts), embedder.batch_size):
            batch = texts[start : start + embedder.batch_size]
            async with self._ledger.reserved(account, embedder.name, partial(self._most, embedder.name, batch)):
                parts.append(await self._request(embedder, batch, account))
        return np.concatenate(parts)

    async def _request(self, embedder: RemoteEmbedder, batch: Sequence[str], account: UsageAccount) -> Vectors:
        usage, answered, begun = Usage(), False, await self._ledger.begin(account)
        try:
            embedded = await embedder.request(batch)
            usage, answered = embedded.usage, True
            return embedded.vectors
        finally:
            estimated = answered and not is_plausible(usage, sum(map(len, batch)), 0)
            if estimated:
                usage = usage.at_least(Usage(await self._count(embedder.name, batch)))
            figures = self._ledger.figures(embedder.name, usage, failed=not answered, estimated=estimated)
            await self._ledger.record(account, embedder.name, figures, begun)

    async def _most(self, model: str, batch: Sequence[str]) -> Amount:
        tokens = await self._count(model, batch)
        return Amount(tokens, self._ledger.cost(model, Usage(tokens)))

    async def _count(self, model: str, batch: Sequence[str]) -> int:
        count, chars = self._tokenizer(model).count, sum(map(len, batch))
        return await off_loop(chars // COUNTED_PER_READ, lambda: sum(map(count, batch)))
