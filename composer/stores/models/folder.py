"""An embedder of a folder on disk: a model as sentence-transformers keeps it, with its network as ONNX.

Such folders have these files: `onnx/model.onnx` (or `model.onnx`), `tokenizer.json`, and, where they say something,
`sentence_bert_config.json` (how many tokens of a text count), `1_Pooling/config.json` (the vector is the mean of all
tokens, or that of the first) and `config_sentence_transformers.json` (what stands before a question and before other
texts). Nothing in the folder is run.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from composer.errors import Misconfigured
from composer.ports.models import MINILM_SCALE, Scale, Vectors
from composer.settings import configure_onnxruntime
from composer.stores.models import calibration
from composer.stores.models.minilm import MiniLM, Prepared, without_surrogates

NETWORKS: Final = ("onnx/model.onnx", "model.onnx")
TOKENIZER: Final = "tokenizer.json"
MAX_TOKENS: Final = 512  # of a text, where the folder allows more: attention takes the square of it
DEFAULT_TOKENS: Final = 256  # where the folder says nothing
PROMPTS: Final = ({"query"}, {"passage", "document"})  # their names: before a question, and before other texts
INPUTS: Final = {"input_ids", "attention_mask", "token_type_ids"}


class _LoadedFolder:
    """The loaded tokenizer and network. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """Raises Misconfigured when a file is missing or is none that Nexus can run."""
        network = next((folder / name for name in NETWORKS if (folder / name).is_file()), None)
        if network is None or not (folder / TOKENIZER).is_file():
            missing = TOKENIZER if network else " or ".join(NETWORKS)
            raise Misconfigured(
                f"NEXUS_EMBEDDER is the folder {folder}, which has no {missing}: name a folder of a "
                "sentence-transformers model that has its network as ONNX, or leave NEXUS_EMBEDDER out."
            )
        configure_onnxruntime()
        import onnxruntime  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        try:
            self._session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        except Exception as error:  # both libraries raise classes of their own, and plain Exceptions
            raise Misconfigured(f"NEXUS_EMBEDDER: {folder} can't be read as a model ({error}).") from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        if not {"input_ids"} <= self._inputs <= INPUTS:
            raise Misconfigured(
                f"NEXUS_EMBEDDER: the network of {folder} takes {', '.join(sorted(self._inputs))}, where one of the "
                f"BERT family takes {', '.join(sorted(INPUTS))}."
            )
        most = _setting(folder, "sentence_bert_config.json").get("max_seq_length")
        self._tokenizer.enable_truncation(
            min(most if isinstance(most, int) and most > 2 else DEFAULT_TOKENS, MAX_TOKENS)
        )
        self._tokenizer.no_padding()
        self._first_token = bool(_setting(folder, "1_Pooling/config.json").get("pooling_mode_cls_token"))
        prompts = _setting(folder, "config_sentence_transformers.json").get("prompts")
        named = prompts if isinstance(prompts, dict) else {}
        self.question, self.passage = (
            next((str(text) for name, text in named.items() if name in names), "") for names in PROMPTS
        )
        # The name says which weights made the vectors: those of others, in the same folder, are never mixed with them.
        with network.open("rb") as file:
            self.name = f"{folder.name}@{hashlib.file_digest(file, 'sha256').hexdigest()[:8]}"
        self.width = len(self.prepared("width")())

    def prepared(self, text: str) -> Prepared:
        """One text, tokenised. It runs alone and unpadded, so its vector, shape (width,), depends on its text alone."""
        ids = np.array([self._tokenizer.encode(without_surrogates(text)).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return partial(self._vector, {name: given[name] for name in self._inputs})

    def _vector(self, given: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        first, *_ = self._session.run(None, given)
        rows = np.asarray(first, dtype=np.float32)[0]  # of tokens, or the vector of the text
        pooled = rows if rows.ndim == 1 else rows[0] if self._first_token else rows.mean(axis=0)
        vector: NDArray[np.float32] = pooled / np.linalg.norm(pooled)
        return vector


def _setting(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder; nothing where it is not there or holds no table."""
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class FolderEmbedder(MiniLM):
    """The embedder of a folder: nothing leaves the process. Loaded and shared by turns as MiniLM is."""

    def __init__(self, folder: Path, scale_file: Path) -> None:
        """In `scale_file` is kept what was measured of the model's cosines."""
        super().__init__(folder)
        self._folder, self._scale_file, self._scale = folder, scale_file, MINILM_SCALE

    @property
    def name(self) -> str:
        """The folder's name and the first digits of its network's SHA-256, as `bge-small@1f0c2a9d`."""
        return self._opened.name

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        return self._opened.width

    @property
    def scale(self) -> Scale:
        """As measured by `load`."""
        return self._scale

    async def load(self) -> None:
        """Load the model, and find out what its cosines say, by embedding some hundred short texts, unless that is kept
        from before. Raises Misconfigured when the folder is not a model's."""
        await super().load()
        self._scale = await calibration.kept_or_measured(self._scale_file, self.name, self.embed_questions, self.embed)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As `MiniLM.embed`, of texts that are searched."""
        return await super().embed([f"{self._opened.passage}{text}" for text in texts])

    async def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """As `MiniLM.embed`, of texts that are searched with."""
        return await super().embed([f"{self._opened.question}{text}" for text in texts])

    @property
    def _opened(self) -> _LoadedFolder:
        model = self._load_model()
        assert isinstance(model, _LoadedFolder)
        return model

    def _open(self) -> _LoadedFolder:
        return _LoadedFolder(self._folder)
