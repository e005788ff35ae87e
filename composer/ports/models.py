"""Models: embedders, tokenizers and chat models."""

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from composer.model import Agent, Usage

TOKENS_PER_MESSAGE: Final = 4  # tokens that chat formats add around each message
# Tokens of one image. An upper estimate: OpenAI counts 85 + 170 for each of at most 8 tiles of 512 x 512 (1,445),
# Anthropic width x height / 750, at most about 1,600.
IMAGE_TOKENS: Final = 1_600
TOKENS_PER_PROMPT: Final = 3  # tokens that chat formats add around the whole prompt
SPEECH_TOKENS_PER_MINUTE: Final = 1_000  # as the prices of models by the token and by the minute compare
SPEECH_BYTES_PER_SECOND: Final = 2_000  # of a voice note whose length is unknown: the least that speech is stored with

Vectors = NDArray[np.float32]
_Vectors = TypeVar("_Vectors", NDArray[np.float32], NDArray[np.float64])
_Cosine = TypeVar("_Cosine", float, NDArray[np.float32], NDArray[np.float64])
# The scale on which everything is decided that a cosine decides, whatever the embedder: the mean of questions and lines
# that do not answer them, how far those are from it (standard deviation), and the mean of lines about different things.
# The same text is at 1. These are MiniLM's cosines in English (composer/stores/models/calibration.py).
APART: Final = 0.08
SPREAD: Final = 0.07
STRANGE: Final = 0.10


@dataclass(frozen=True, slots=True)
class Scale:
    """What the cosines of an embedder say: each has a band of its own. The fields are what the embedder has where the
    common scale has APART, SPREAD and STRANGE: by what fits by chance it is told what does not."""

    apart: float = APART
    spread: float = SPREAD
    strange: float = STRANGE

    def fit(self, cosine: float) -> float:
        """How well a text fits a question, by their cosine."""
        return APART + (cosine - self.apart) * SPREAD / self.spread

    def likeness(self, cosine: _Cosine) -> _Cosine:
        """How much two texts say the same, by their cosine; of many pairs at once, by an array of any shape."""
        if self.strange == STRANGE:
            return cosine
        return (cosine - self.strange) * ((1 - STRANGE) / (1 - self.strange)) + STRANGE

    def compare(self, ones: _Vectors, others: _Vectors) -> _Vectors:
        """The likeness of each of some texts to each of others, by their vectors: shape (len(ones), len(others))."""
        return self.likeness(ones @ others.T)

    def compares(self, ones: _Vectors, others: _Vectors) -> bool:
        """Whether `compare` can tell of each pair: vectors of `embed_compared` may lack what it needs for others."""
        return True

    def cosine(self, likeness: float) -> float:
        """The cosine of texts of a likeness."""
        return self.strange + (likeness - STRANGE) * (1 - self.strange) / (1 - STRANGE)


MINILM_SCALE: Final = Scale()  # of an embedder of which nothing was measured as well


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` and `width` are stored with the vectors."""

    @property
    def name(self) -> str:
        """The model's name, for example `minilm`."""
        ...

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        Raises Unavailable when the model does not answer, Misconfigured when it refuses the key or name.
        """
        ...


@runtime_checkable
class QuestionEmbedder(Embedder, Protocol):
    """An embedder that was trained to take a question in another way than what answers it."""

    async def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """As `embed`, of texts that are searched with."""
        ...


@runtime_checkable
class ComparingEmbedder(Embedder, Protocol):
    """An embedder for which it is less work to compare some texts with each other than to find them."""

    async def embed_compared(self, texts: Sequence[str]) -> Vectors:
        """As `embed`, of texts that `Scale.compare` compares with each other, and that are not kept: of any length."""
        ...


@runtime_checkable
class MeasuredEmbedder(Embedder, Protocol):
    """An embedder of which it was measured what its cosines say."""

    @property
    def scale(self) -> Scale:
        """What its cosines say."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """What one request to an API for embeddings gave: vectors, as of `Embedder.embed`, and what the API says that it
    used (zeros where it says nothing)."""

    vectors: Vectors
    usage: Usage


@runtime_checkable
class RemoteEmbedder(Embedder, Protocol):
    """An embedder at an API. Its requests cost something, so each is made by itself and recorded."""

    @property
    def batch_size(self) -> int:
        """The most texts that one request may have."""
        ...

    async def request(self, texts: Sequence[str]) -> EmbeddingResult:
        """Embed at least one and at most `batch_size` texts, by one request. Raises as `embed`."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingInput:
    """A passage of a stored item without a vector. `version` is its row's: it differs when the row changed."""

    id: uuid.UUID
    part: int
    version: str
    text: str


class Tokenizer(Protocol):
    """Counts tokens as one model does."""

    @property
    def exact(self) -> bool:
        """Whether `count` is exact for this model; False for an estimate."""
        ...

    def __hash__(self) -> int:
        """Equal tokenizers count alike."""
        ...

    def count(self, text: str) -> int:
        """Tokens in `text`. Spellings of special tokens count as ordinary text."""
        ...


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `type` is its media type, detected from its content."""

    type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. `arguments` are texts, (name, what it is) each; those in `optional` may be left
    out. A tool of a server has a JSON schema of them instead, as text: `parameters`."""

    name: str
    description: str
    arguments: tuple[tuple[str, str], ...] = ()
    optional: frozenset[str] = frozenset()
    parameters: str = ""

    @property
    def words(self) -> str:
        """All that a model is told of it, to count its tokens."""
        return " ".join(
            (self.name, self.description, *(word for each in self.arguments for word in each), self.parameters)
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that a model calls: `id` is the model's, `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a model request. `role` is system, user, assistant or tool; `images` follow the text. `calls` are
    those that the assistant made in it; `call_id` is the call whose result a message of the role tool is."""

    role: str
    content: str
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    @property
    def words(self) -> str:
        """Its text with its calls, as they are stored, shown and counted."""
        return "\n".join(filter(None, (self.content, *(f"{call.name}({call.arguments})" for call in self.calls))))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a streamed answer. Those with usage come last: one for each request that was made for the answer.
    `model` is the one that answers, where it is known. `calls` are functions that it calls before it goes on.
    `restarts`: the texts of the earlier chunks were no part of the answer, which begins with this one."""

    text: str = ""
    usage: Usage | None = None
    model: str = ""
    calls: tuple[ToolCall, ...] = ()
    restarts: bool = False


def whole_text(chunks: Iterable[Chunk]) -> str:
    """The text of a whole answer."""
    text = ""
    for chunk in chunks:
        text = chunk.text if chunk.restarts else text + chunk.text
    return text


class ChatModel(Protocol):
    """Streams the answer to a prompt."""

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, in chunks.

        Raises Unavailable (unreachable, timed out, rate limited, after retries) or
        Misconfigured (wrong key, unknown model, request refused), each with one plain sentence.
        """
        ...


@runtime_checkable
class ToolModel(ChatModel, Protocol):
    """A chat model that may be able to call functions."""

    def takes_tools(self, agent: Agent) -> bool:
        """Whether the agent's model can call functions, as far as is known: until it has refused them."""
        ...

    def stream_with_tools(
        self, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool]
    ) -> AsyncIterator[Chunk]:
        """As `stream`; the last chunks may hold calls of `tools`. A model that refuses them is asked without them."""
        ...


class WorkKind(StrEnum):
    """What models are asked for. Compactions are summaries; embeddings are recorded where an API makes them;
    transcription is of voice notes; gateway is what people's tools ask for themselves; probes are the questions of
    `nexus doctor`."""

    ANSWER = "answers"
    EXTRACTION = "extraction"
    SUMMARY = "summaries"
    EMBEDDING = "embeddings"
    TRANSCRIPTION = "transcription"
    GATEWAY = "gateway"
    PROBE = "probes"


@dataclass(frozen=True, slots=True)
class UsageAccount:
    """Under whose name work is recorded, and whose budgets hold it. `agent` is the one that it is done for; `user_id`
    is who asks, or whose DM or session it is about."""

    tenant_id: uuid.UUID
    kind: WorkKind
    agent: Agent | None = None
    conversation_id: uuid.UUID | None = None
    user_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What a model is asked for: under whose name it is recorded, and the agent whose model is asked. `user_id` is who
    asks, or whose DM or session it is about. `tools` are offered to the model."""

    tenant_id: uuid.UUID
    kind: WorkKind
    agent: Agent
    conversation_id: uuid.UUID | None = None
    user_id: uuid.UUID | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def account(self) -> UsageAccount:
        """Under whose name the work is recorded."""
        return UsageAccount(self.tenant_id, self.kind, self.agent, self.conversation_id, self.user_id)


class MeteredModel(Protocol):
    """A chat model that is asked within budgets, and whose use is recorded (composer.usage.meter.Meter)."""

    def stream(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, in chunks. Raises as `ChatModel.stream`, and BudgetUsedUp."""
        ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is spoken in a voice note, and what its API says that it used (zeros where it says nothing)."""

    text: str
    usage: Usage


def speech_tokens(seconds: float) -> int:
    """How many tokens so much speech counts as."""
    return max(round(seconds * SPEECH_TOKENS_PER_MINUTE / 60), 1)


class SpeechModel(Protocol):
    """Writes down what is spoken."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def transcribe(self, name: str, media_type: str, content: bytes) -> Transcript:
        """What is spoken in a voice note; `name` and `media_type` are its file's. Raises Unavailable or Misconfigured,
        each with one plain sentence."""
        ...


class MeteredEmbedder(Protocol):
    """An embedder whose use is recorded and held within budgets (composer.usage.embedding.EmbeddingMeter)."""

    @property
    def scale(self) -> Scale:
        """What its cosines say."""
        ...

    async def embed(
        self, texts: Sequence[str], account: UsageAccount, *, questions: bool = False, compared: bool = False
    ) -> Vectors:
        """As `Embedder.embed`; with `questions` of texts that are searched with, with `compared` of texts that are
        compared with each other alone. Raises BudgetUsedUp besides."""
        ...
