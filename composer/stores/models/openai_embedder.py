"""Embedding models at an OpenAI-compatible API."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from composer.errors import Misconfigured, Unavailable
from composer.model import Usage
from composer.ports.models import MINILM_SCALE, EmbeddingResult, Scale, Vectors
from composer.stores.models import calibration
from composer.stores.models.openai_connection import ApiSubject, OpenAIConnection
from composer.text.completions import count_of

EMBEDDING_BATCH = 128  # texts of one request; the API accepts at most 2,048
MAX_TEXT_BYTES = 8000  # of a text to embed: no byte-level tokenizer makes more than 8,191 tokens of it
KNOWN_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class OpenAIEmbedder:
    """An embedding model at an OpenAI-compatible API. Each text is cut at 8,000 bytes."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        width: int | None = None,
        timeout: float = 30.0,
        scale_file: Path | None = None,
    ) -> None:
        """`load` asks the server for `width` if it is neither passed nor known; `timeout` is in seconds per request.
        In `scale_file` is kept what was measured of the model's cosines; without it nothing is measured."""
        self._connection = OpenAIConnection(base_url, api_key, timeout)
        self._model = model
        self._width = width or KNOWN_WIDTHS.get(model.rsplit("/", 1)[-1])
        self._subject = ApiSubject(self._connection.host, model, "NEXUS_EMBEDDER")
        self._scale_file, self._scale = scale_file, MINILM_SCALE

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def width(self) -> int:
        """Dimensions of a vector. Raises Misconfigured before `load` if the model is not in KNOWN_WIDTHS."""
        if self._width is None:
            raise Misconfigured(f"The width of {self._model} is not known yet: load the embedder first.")
        return self._width

    @property
    def scale(self) -> Scale:
        """As measured by `load`, else that of MiniLM."""
        return self._scale

    @property
    def batch_size(self) -> int:
        """The most texts that one request may have."""
        return EMBEDDING_BATCH

    async def load(self) -> None:
        """Find out the width, by embedding one word, unless it is known, and what the cosines of the model say, by
        embedding some hundred short texts, unless that is kept from before. Raises as `embed`; where the API does not
        answer about the cosines, the next start asks again."""
        await self._find_width()
        if self._scale_file is not None:
            self._scale = await calibration.kept_or_measured(self._scale_file, self._model, self.embed, self.embed)

    async def _find_width(self) -> None:
        if self._width is None:
            self._width = (await self.request(["width"])).vectors.shape[1]

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        Raises Unavailable when the server does not answer or its vectors are unusable; Misconfigured when it refuses
        the key or the model, or when its vectors have another width than this embedder.
        """
        await self._find_width()
        parts = [np.empty((0, self.width), dtype=np.float32)]
        for start in range(0, len(texts), EMBEDDING_BATCH):
            parts.append((await self.request(texts[start : start + EMBEDDING_BATCH])).vectors)
        return np.concatenate(parts)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def request(self, texts: Sequence[str]) -> EmbeddingResult:
        """The vectors of at most `batch_size` texts, by one request, and what the API says that it used. Raises as
        `embed`."""
        inputs = [_embeddable_text(text) for text in texts]
        vectors, usage = await self._connection.call(
            self._subject, self._connection.timeout, partial(self._request, inputs)
        )
        if self._width is not None and vectors.shape[1] != self._width:
            raise self._subject.error(
                Misconfigured,
                f"gives vectors of {vectors.shape[1]} dimensions with model {self._model}, "
                f"not {self._width}. Check NEXUS_EMBEDDER.",
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms)) or not np.all(norms > 0):
            raise self._subject.error(Unavailable, f"gave a vector without a direction (model {self._model}).")
        return EmbeddingResult(np.asarray(vectors / norms, dtype=np.float32), usage)

    async def _request(self, inputs: list[str]) -> tuple[NDArray[np.float64], Usage]:
        # "float" rather than the SDK's base64, which not every server speaks.
        answer = await self._connection.client.embeddings.create(
            model=self._model, input=inputs, encoding_format="float"
        )
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(inputs))):
            raise ValueError("the answer has other rows than the request")
        vectors = np.asarray([row.embedding for row in rows], dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise ValueError("the answer has no vectors")
        # Servers that are only like the API leave the usage out, or a field of it.
        tokens = getattr(answer.usage, "prompt_tokens", None)
        return vectors, Usage(count_of(tokens) or 0)


def _embeddable_text(text: str) -> str:
    """A text as the API accepts it: not empty, without lone surrogates, not too long."""
    return text.encode("utf-8", "replace")[:MAX_TEXT_BYTES].decode("utf-8", "ignore").strip() or "-"
