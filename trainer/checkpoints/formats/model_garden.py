"""Finding the variables of a BERT of TensorFlow's model garden in a checkpoint's graph of Python objects.

In the graph, each object has named children. A name that leads from an object to a child is called a local
name. The names differ between versions of the model garden. But in all versions the encoder's children
``layer_with_weights-0``, ``layer_with_weights-1`` and so on have the same order: the embeddings of words,
positions and segments, a norm, the layers, the pooler. So each child is recognised by its place and content.
"""

from collections.abc import Iterator

from trainer.checkpoints.any_checkpoint import WORD_BIAS, WORDS
from trainer.checkpoints.formats.tensor_bundle.object_graph import (
    GraphNode,
    find_nodes_with_children,
    follow_names,
)

_VARIABLE_NAMES = {"weight": ("kernel", "gamma", "embeddings"), "bias": ("bias", "beta")}
"""For weight and bias, the names that TensorFlow's layers may give to this variable."""

_NUMBERED = "layer_with_weights-"
_PARTS_BEFORE_LAYERS = {
    "bert.embeddings.word_embeddings": "_embedding_layer",
    "bert.embeddings.position_embeddings": "_position_embedding_layer",
    "bert.embeddings.token_type_embeddings": "_type_embedding_layer",
    "bert.embeddings.LayerNorm": "_embedding_norm_layer",
}
"""The parts of the encoder before its layers, in order. In versions whose encoder names its children, the
value is the child's name.
"""

_POOLER, _POOLERS_NAME = "bert.pooler.dense", "_pooler_layer"
_LAYERS = "bert.encoder.layer."
_LAYER_PATHS = {
    "attention.self.query": ("_attention_layer", "_query_dense"),
    "attention.self.key": ("_attention_layer", "_key_dense"),
    "attention.self.value": ("_attention_layer", "_value_dense"),
    "attention.output.dense": ("_attention_layer", "_output_dense"),
    "attention.output.LayerNorm": ("_attention_layer_norm",),
    "intermediate.dense": ("_intermediate_dense",),
    "output.dense": ("_output_dense",),
    "output.LayerNorm": ("_output_layer_norm",),
}
"""For each part of a layer, the path of child names that leads to it from the layer's object."""

_PROJECTION, _PROJECTION_OF_2_3 = "attention.output.dense", "_attention_output_dense"
_MASKED = "masked_lm"
_HEAD_PATHS = {
    "cls.predictions": (_MASKED,),
    "cls.predictions.transform.dense": (_MASKED, "dense"),
    "cls.predictions.transform.LayerNorm": (_MASKED, "layer_norm"),
    "cls.seq_relationship": ("model", "classification_heads", "0", "out_proj"),
}
"""For each part of the heads, the path of child names that leads to it from the graph's root."""

_BIAS = "output_bias/bias"
_CONVERTED_NAMES = {
    "predictions/transform/logits/kernel": "cls.seq_relationship.weight",
    "predictions/transform/logits/bias": "cls.seq_relationship.bias",
}
"""Full names of the next-sentence head's variables in converted checkpoints, and this trainer's names."""


def find_variables(nodes: list[GraphNode]) -> dict[str, int]:
    """Find the variables in a graph. Return their node numbers by the names that this trainer gives to the
    tensors.

    The result is empty if the graph has no encoder.
    """
    found: dict[str, int] = {}
    # 1. The encoder is the first object whose children look like one: numbered parts in most versions, named
    # parts in others. At least a layer 0 must be found.
    for encoder in range(len(nodes)):
        parts = dict(_find_numbered_parts(nodes, encoder)) or dict(_find_named_parts(nodes, encoder))
        if any(".layer.0." in name for name in parts):
            found = _find_part_variables(nodes, parts)
            break
    if not found:
        return found
    # 2. The masked-word head is an object with a dense layer, a norm and the table of word embeddings. In
    # some versions the table is only reachable from here.
    for head in find_nodes_with_children(nodes, "dense", "layer_norm", "embedding_table"):
        found |= _find_part_variables(nodes, _find_head_parts(nodes, head, _MASKED))
        children = nodes[head].children
        found.setdefault(WORDS, children["embedding_table"])
        if bias := children.get(_BIAS) or children.get("bias"):
            found[WORD_BIAS] = bias
    # 3. The next-sentence head: by its object, or in converted checkpoints by its variables' full names.
    for heads in find_nodes_with_children(nodes, "classification_heads"):
        found |= _find_part_variables(nodes, _find_head_parts(nodes, heads, "model"))
    for number, node in enumerate(nodes):
        if node.full_name in _CONVERTED_NAMES:
            found.setdefault(_CONVERTED_NAMES[node.full_name], number)
    return found


def _find_head_parts(nodes: list[GraphNode], owner: int, name: str) -> dict[str, int]:
    """Return the node number of each part of a head that can be reached from the head's object.

    owner: node number of the head's object.
    name: the first name of the part's path in ``_HEAD_PATHS``, which leads from the root to this object.
    """
    ways = {part: rest for part, (first, *rest) in _HEAD_PATHS.items() if first == name and rest}
    found = {part: follow_names(nodes, owner, *way) for part, way in ways.items()}
    return {part: number for part, number in found.items() if number is not None}


def _find_numbered_parts(nodes: list[GraphNode], encoder: int) -> Iterator[tuple[str, int]]:
    """Yield (this trainer's name, node number) for each part of an encoder with numbered child objects.

    The children are called ``layer_with_weights-0`` and so on. Yield nothing for an object without such
    children.
    """
    children = nodes[encoder].children
    numbered = [
        name for name in children if name.startswith(_NUMBERED) and _is_number(name[len(_NUMBERED) :])
    ]
    tables, layers = iter(list(_PARTS_BEFORE_LAYERS)[:3]), 0
    # Walk the parts in order and recognise each by its content: three embedding tables, a norm (with gamma)
    # before any layer, the layers (with an attention), then the pooler (with a kernel).
    for name in sorted(numbered, key=lambda name: int(name[len(_NUMBERED) :])):
        number = children[name]
        held = nodes[number].children
        if "embeddings" in held and (table := next(tables, None)):
            yield table, number
        elif "_attention_layer" in held:
            yield from _find_layer_parts(nodes, number, layers)
            layers += 1
        elif "gamma" in held and not layers:
            yield "bert.embeddings.LayerNorm", number
        elif "kernel" in held and layers:
            yield _POOLER, number


def _find_named_parts(nodes: list[GraphNode], encoder: int) -> Iterator[tuple[str, int]]:
    """Yield (this trainer's name, node number) for each part of an encoder that names its child objects.

    Yield nothing for an object that is not such an encoder.
    """
    children = nodes[encoder].children
    layers = follow_names(nodes, encoder, "_transformer_layers")
    first = None if layers is None else nodes[layers].children.get("0")
    if layers is None or first is None or not any(_find_layer_parts(nodes, first, 0)):
        return  # many objects may lead to these layers, so stop after the first layer if it does not fit
    named = _PARTS_BEFORE_LAYERS | {_POOLER: _POOLERS_NAME}
    yield from ((name, children[local]) for name, local in named.items() if local in children)
    for local, number in nodes[layers].children.items():
        if _is_number(local):
            yield from _find_layer_parts(nodes, number, int(local))


def _is_number(text: str) -> bool:
    """Return whether the text is a layer's number. int() refuses thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _find_layer_parts(nodes: list[GraphNode], layer: int, place: int) -> Iterator[tuple[str, int]]:
    """Yield (this trainer's name, node number) for each part of a layer, such as the query's dense layer.

    layer: number of the layer's node.
    place: number of the layer in the encoder.
    """
    for name, way in _LAYER_PATHS.items():
        number = follow_names(nodes, layer, *way)
        if number is None and name == _PROJECTION:
            number = follow_names(nodes, layer, _PROJECTION_OF_2_3)
        if number is not None:
            yield f"{_LAYERS}{place}.{name}", number


def _find_part_variables(nodes: list[GraphNode], parts: dict[str, int]) -> dict[str, int]:
    """Return the node numbers of the parts' weights and biases, by this trainer's names for the tensors.

    A variable without a stored value is left out.
    parts: for each part of the model, the number of its node.
    """
    found = {}
    for part, number in parts.items():
        for end, locals_ in _VARIABLE_NAMES.items():
            for local in locals_:
                variable = nodes[number].children.get(local)
                if variable is not None and nodes[variable].key is not None:
                    found[f"{part}.{end}"] = variable
    return found


class GraphBuilder:
    """A graph of objects under construction. It starts with the root."""

    def __init__(self) -> None:
        self.nodes = [GraphNode()]

    def get_or_add_child(self, parent: int, *names: str) -> int:
        """Follow a path of child names from a node, and create missing nodes. Return the number of the last
        node.
        """
        for name in names:
            children = self.nodes[parent].children
            if name not in children:
                children[name] = self.add()
            parent = children[name]
        return parent

    def add(self) -> int:
        """Add a node without a parent and return its number."""
        self.nodes.append(GraphNode())
        return len(self.nodes) - 1

    def add_to_parent(self, parent: int, name: str, node: int) -> None:
        """Make an existing node the child of a further parent."""
        self.nodes[parent].children[name] = node


def build_object_graph(objects: GraphBuilder, names: list[str], layers: int) -> dict[str, int]:
    """Build the graph of objects as in versions 2.3 to 2.5 of the model garden, with a node for each tensor.

    Return the number of each variable's node by the tensor's name.

    Some programs restore the object ``model`` and others ``encoder``, so the graph has both. ``model`` serves
    as an encoder, with the layers as its children, and as a pre-training model, with the children
    encoder_network, masked_lm and classification_heads. ``encoder`` has the same layers again.
    """
    encoder, masked = objects.get_or_add_child(0, "encoder"), objects.get_or_add_child(0, _MASKED)
    found = {}
    for name in names:
        part, _, end = name.rpartition(".")
        way = _find_part_path(part, layers)
        owner = objects.get_or_add_child(0, *way)
        if part.endswith(_PROJECTION):
            objects.add_to_parent(objects.get_or_add_child(0, *way[:2]), _PROJECTION_OF_2_3, owner)
        found[name] = objects.get_or_add_child(owner, _find_local_name(part, end))
        if name == WORD_BIAS:
            objects.add_to_parent(masked, "bias", found[name])
        if name == WORDS:
            objects.add_to_parent(masked, "embedding_table", found[name])
    model = objects.get_or_add_child(0, "model")
    objects.nodes[model].children |= objects.nodes[encoder].children
    objects.add_to_parent(model, "encoder_network", encoder)
    objects.add_to_parent(model, _MASKED, masked)
    return found


def _find_part_path(part: str, layers: int) -> tuple[str, ...]:
    """Return the path of child names that leads from the root to a part of the model."""
    if part in _HEAD_PATHS:
        return _HEAD_PATHS[part]
    first = list(_PARTS_BEFORE_LAYERS)
    if part in first:
        return "encoder", f"{_NUMBERED}{first.index(part)}"
    if part == _POOLER:
        return "encoder", f"{_NUMBERED}{len(first) + layers}"
    number, _, rest = part.removeprefix(_LAYERS).partition(".")
    return "encoder", f"{_NUMBERED}{len(first) + int(number)}", *_LAYER_PATHS[rest]


def _find_local_name(part: str, end: str) -> str:
    """Return the name of a variable among the children of its object."""
    if part == "cls.predictions":
        return _BIAS
    kernel, gamma, table = _VARIABLE_NAMES["weight"]
    if part.endswith("_embeddings"):
        return table
    if part.endswith("LayerNorm"):
        return gamma if end == "weight" else "beta"
    return kernel if end == "weight" else "bias"
