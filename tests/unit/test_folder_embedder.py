"""The embedder of a folder: what it reads there, and what it says of a folder that is no model's."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from composer.errors import Misconfigured
from composer.ports.models import MINILM_SCALE, MeasuredEmbedder, QuestionEmbedder
from composer.settings import Settings
from composer.stores.models.configured import SCALE_FILE, configured_embedder
from composer.stores.models.folder import NETWORKS

WORDS = ("[CLS]", "[UNK]", "tea", "rain", "ask")
ROWS = np.array([[9, 0, 0], [0, 0, 1], [1, 0, 0], [0, 2, 0], [0, 0, 5]], dtype=np.float32)


def write(folder: Path, network: str = NETWORKS[0], inputs: Sequence[str] = ("input_ids",), **files: object) -> Path:
    """A folder with a model whose tokens' vectors are ROWS. `files` are its settings, by names without .json."""
    (folder / network).parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["rows", inputs[0]], ["last_hidden_state"])],
        "words",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "t"]) for name in inputs],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "t", 3])],
        initializer=[numpy_helper.from_array(ROWS, "rows")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), folder / network)
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 0)])
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, table in files.items():
        path = folder / ("1_Pooling/config.json" if name == "pooling" else f"{name}.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(table))
    return folder


def embedder(folder: Path, home: Path) -> Any:
    return configured_embedder(Settings(home=home, embedder=str(folder)))


async def vector(model: Any, text: str) -> list[float]:
    (row,) = await model.embed([text])
    found: list[float] = row.round(4).tolist()
    return found


def unit(*row: float) -> list[float]:
    found: list[float] = (np.array(row, np.float32) / np.float32(np.linalg.norm(row))).round(4).tolist()
    return found


async def test_a_vector_is_the_mean_of_the_tokens(tmp_path: Path) -> None:
    model = embedder(write(tmp_path / "words"), tmp_path)
    await model.load()
    assert model.width == 3
    assert await vector(model, "tea rain") == unit(10, 2, 0)
    many = await model.embed(["tea", "rain", "tea rain"])
    assert many[2].round(4).tolist() == unit(10, 2, 0), "beside others as alone"
    model.close()


async def test_what_the_folder_says_of_its_model_counts(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "words",
        network="model.onnx",
        sentence_bert_config={"max_seq_length": 3},
        config_sentence_transformers={"prompts": {"query": "ask ", "document": "", "other": "tea "}},
    )
    model = embedder(folder, tmp_path)
    assert isinstance(model, QuestionEmbedder) is True
    assert await vector(model, "tea rain rain rain") == unit(10, 2, 0), "of three tokens"
    (question,) = await model.embed_questions(["tea rain"])
    assert question.round(4).tolist() == unit(10, 0, 5), "with the prompt of questions before it"
    model.close()
    first = embedder(write(tmp_path / "first", pooling={"pooling_mode_cls_token": True}), tmp_path)
    assert await vector(first, "rain") == unit(9, 0, 0)
    first.close()


async def test_its_cosines_are_measured_once(tmp_path: Path) -> None:
    model = embedder(write(tmp_path / "words"), tmp_path)
    await model.load()
    assert isinstance(model, MeasuredEmbedder) is True
    kept = json.loads((tmp_path / SCALE_FILE).read_text())
    assert kept["model"] == model.name
    kept["scale"]["apart"] = 0.5
    (tmp_path / SCALE_FILE).write_text(json.dumps(kept))
    again = embedder(tmp_path / "words", tmp_path)
    assert again.scale == MINILM_SCALE, "before it is loaded"
    await again.load()
    assert again.scale.apart == 0.5
    model.close()
    again.close()


async def test_other_weights_in_the_same_folder_have_another_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "words")
    before = embedder(folder, tmp_path)
    write(folder, network="onnx/model.onnx", inputs=("input_ids", "attention_mask"))
    after = embedder(folder, tmp_path)
    assert after.name.startswith("words@")
    write(folder)
    assert before.name.startswith("words@")
    assert after.name != before.name
    before.close()
    after.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "onnx/model.onnx").unlink(), "has no onnx/model.onnx or model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "can't be read as a model"),
        (lambda folder: (folder / "onnx/model.onnx").write_bytes(b"no"), "can't be read as a model"),
        (lambda folder: write(folder, inputs=("pixels",)), "takes pixels, where one of the BERT family"),
    ],
)
async def test_a_folder_of_no_model_is_named_in_one_sentence(tmp_path: Path, spoil: Any, said: str) -> None:
    folder = write(tmp_path / "words")
    spoil(folder)
    with pytest.raises(Misconfigured, match=said):
        await embedder(folder, tmp_path).load()


async def test_nothing_of_it_is_a_model_of_the_api(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder="/models/words", openai_base_url="http://localhost:1", model="chat")
    assert settings.metered_models == ("chat",)
