"""Write `minilm.onnx` and `e5.onnx`, the forward passes of all-MiniLM-L6-v2 and multilingual-e5-small without their
weights: the second has twice as many layers.

Run `python -m composer.stores.models.minilm_graph` after a change here; it needs the development package `onnx`.
The graph names each weight as the model's safetensors file does, so that `minilm.py` and `e5.py` can supply them. A
matrix is there twice over: `….int8`, transposed and rounded, and `….scale`, a factor for each of its columns. Those of
query, key and value are one matrix, side by side.
"""

import onnx
from onnx import TensorProto, helper

from composer.stores.models import e5
from composer.stores.models.minilm import GRAPH_FILE, JOINED, JOINED_PARTS, WIDTH

# config.json of both models at https://huggingface.co
INNER = 4 * WIDTH
HEADS = 12
LAYERS = 6
EPSILON = 1e-12

MICROSOFT = "com.microsoft"


class _Graph:
    """Collects the nodes, constants and weight names of one ONNX graph."""

    def __init__(self, *, in_blocks: bool) -> None:
        self.in_blocks = in_blocks  # whether matrices are of 4 bits in blocks of 32, and not of 8 bits by columns
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: float) -> str:
        made = helper.make_node(op, inputs, [output], domain=domain, name=output)
        made.attribute.extend(helper.make_attribute(name, value) for name, value in sorted(attributes.items()))
        self.nodes.append(made)
        return output

    def ints(self, name: str, values: list[int]) -> str:
        self.initializers.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def weight(self, name: str, *dims: int, data_type: int = TensorProto.FLOAT) -> str:
        """Declare a tensor that is supplied when the session is created."""
        tensor = TensorProto(name=name, data_type=data_type, dims=dims)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights")
        self.initializers.append(tensor)
        return name

    def dense(self, source: str, output: str, module: str, outputs: int, inputs: int) -> str:
        """Multiply by a matrix of 8-bit integers. The runtime rounds `source` to 8 bits as well, with one scale; where
        the matrix is in blocks, with one for each block, too."""
        if self.in_blocks:
            blocks = inputs // e5.BLOCK
            numbers = self.weight(f"{module}.weight.int4", outputs, blocks, e5.BLOCK // 2, data_type=TensorProto.UINT8)
            factors = self.weight(f"{module}.weight.scale", outputs * blocks)
            shape = {"K": inputs, "N": outputs, "bits": 4, "block_size": e5.BLOCK, "accuracy_level": 4}
            bare = self.node("MatMulNBits", [source, numbers, factors], f"{output}_bare", domain=MICROSOFT, **shape)
            return self.node("Add", [bare, self.weight(f"{module}.bias", outputs)], output)
        matrix = self.weight(f"{module}.weight.int8", inputs, outputs, data_type=TensorProto.INT8)
        weights = [matrix, self.weight(f"{module}.weight.scale", outputs), "", self.weight(f"{module}.bias", outputs)]
        return self.node("DynamicQuantizeMatMul", [source, *weights], output, domain=MICROSOFT)

    def split(self, source: str, outputs: list[str]) -> list[str]:
        """Split columns into equal parts."""
        made = helper.make_node("Split", [source], outputs, name=f"{source}_split")
        made.attribute.extend([helper.make_attribute("axis", 1), helper.make_attribute("num_outputs", len(outputs))])
        self.nodes.append(made)
        return outputs

    def normalised_sum(self, source: str, residual: str, output: str, module: str) -> str:
        weights = [self.weight(f"{module}.weight", WIDTH), self.weight(f"{module}.bias", WIDTH)]
        return self.node(
            "SkipLayerNormalization", [source, residual, *weights], output, domain=MICROSOFT, epsilon=EPSILON
        )

    def encoder_layer(self, number: int, source: str) -> str:
        """Add one transformer layer over rows of tokens [t, WIDTH], and return the name of its output."""
        module, at = f"encoder.layer.{number}", f"layer{number}_"
        joined = self.dense(source, f"{at}joined", f"{module}.attention.self.{JOINED}", 3 * WIDTH, WIDTH)
        rows = self.split(joined, [f"{at}{part}_rows" for part in JOINED_PARTS])
        heads = [self.node("Reshape", [name, "shape"], name.removesuffix("_rows")) for name in rows]
        mixed = self.node("MultiHeadAttention", heads, f"{at}attention", domain=MICROSOFT, num_heads=HEADS)
        mixed = self.node("Reshape", [mixed, "rows"], f"{at}attention_rows")
        mixed = self.dense(mixed, f"{at}attention_dense", f"{module}.attention.output.dense", WIDTH, WIDTH)
        mixed = self.normalised_sum(mixed, source, f"{at}attention_out", f"{module}.attention.output.LayerNorm")
        wide = self.dense(mixed, f"{at}wide", f"{module}.intermediate.dense", INNER, WIDTH)
        wide = self.node("Gelu", [wide], f"{at}gelu")
        narrow = self.dense(wide, f"{at}narrow", f"{module}.output.dense", WIDTH, INNER)
        return self.normalised_sum(narrow, mixed, f"{at}out", f"{module}.output.LayerNorm")


def build(layers: int = LAYERS, *, in_blocks: bool = False) -> bytes:
    """Build the serialised graph of a network of some layers.

    Its input `embedded`, float32 [1, t, WIDTH], is the sum of word, position and type embeddings: they are looked up
    outside the graph, so that the word table is never copied into the runtime. Its output `vector`, float32 [1, WIDTH],
    is the mean over the tokens, L2 norm 1. There is no mask, because there is no padding: `minilm.py` runs each text
    alone.
    """
    graph = _Graph(in_blocks=in_blocks)
    graph.ints("rows", [-1, WIDTH])
    graph.ints("axis1", [1])
    graph.node("Shape", ["embedded"], "shape")
    norm = [graph.weight(f"embeddings.LayerNorm.{part}", WIDTH) for part in ("weight", "bias")]
    graph.node("LayerNormalization", ["embedded", *norm], "normalised", epsilon=EPSILON)
    hidden = graph.node("Reshape", ["normalised", "rows"], "layer_in")
    for number in range(layers):
        hidden = graph.encoder_layer(number, hidden)
    graph.node("Reshape", [hidden, "shape"], "last")
    graph.node("ReduceMean", ["last", "axis1"], "mean", keepdims=0)
    graph.node("LpNormalization", ["mean"], "vector", axis=-1, p=2)
    body = helper.make_graph(
        graph.nodes,
        "minilm",
        [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, [1, "t", WIDTH])],
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, WIDTH])],
        initializer=graph.initializers,
    )
    model = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)], ir_version=9
    )
    # make_model records the version of the onnx package, which the bytes must not depend on.
    model.producer_name, model.producer_version = "nexus", ""
    return bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    GRAPH_FILE.write_bytes(build())
    e5.GRAPH_FILE.write_bytes(build(e5.E5_LAYERS, in_blocks=True))
