"""The objects of the model garden's BERT, found by walking the graph of a TensorFlow 2 checkpoint.

Local names differ between versions of the model garden, and so do the keys of the variables. What stays is
the order of ``layer_with_weights-I`` and what each of these objects holds: embeddings of words, positions
and segments, a norm, the layers, the pooler.
"""

from collections.abc import Iterator

from trainer.extensions.formats.names import MODEL_GARDEN_HEADS, MODEL_GARDEN_LAYER
from trainer.extensions.formats.tensor_bundle.object_graph import Node, holders, walk

ENDS = {"weight": ("kernel", "gamma", "embeddings"), "bias": ("bias", "beta")}
"""Local names of the variables of a layer, for this model's ends of names."""

_NUMBERED = "layer_with_weights-"
_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_PAIRS = {
    "predictions/transform/logits/kernel": "cls.seq_relationship.weight",
    "predictions/transform/logits/bias": "cls.seq_relationship.bias",
}
"""Full names of the next-sentence head's variables in versions that convert it."""

_NAMED = {
    "_embedding_layer": "bert.embeddings.word_embeddings",
    "_position_embedding_layer": "bert.embeddings.position_embeddings",
    "_type_embedding_layer": "bert.embeddings.token_type_embeddings",
    "_embedding_norm_layer": "bert.embeddings.LayerNorm",
    "_pooler_layer": "bert.pooler.dense",
}
"""Local names of the encoder's objects in versions that give them."""


def find_variables(nodes: list[Node]) -> dict[str, int]:
    """The node of each tensor's variable, by this model's name, or empty where there is no encoder."""
    found: dict[str, int] = {}
    for encoder in range(len(nodes)):
        parts = dict(_numbered_parts(nodes, encoder)) or dict(_named_parts(nodes, encoder))
        if any(".layer.0." in name for name in parts):
            found |= _variables(nodes, parts)
            break
    if not found:
        return found
    for head in holders(nodes, "dense", "layer_norm", "embedding_table"):
        parts = {
            name: number for name, way in MODEL_GARDEN_HEADS.items() if (number := walk(nodes, head, *way))
        }
        found |= _variables(nodes, parts)
        bias = walk(nodes, head, "output_bias/bias") or walk(nodes, head, "bias")
        table = walk(nodes, head, "embedding_table")
        found |= {"cls.predictions.bias": bias} if bias else {}
        if table:
            found.setdefault("bert.embeddings.word_embeddings.weight", table)
    for heads in holders(nodes, "classification_heads"):
        out = walk(nodes, heads, "classification_heads", "0", "out_proj")
        found |= _variables(nodes, {"cls.seq_relationship": out} if out else {})
    named = {node.full_name: number for number, node in enumerate(nodes) if node.full_name in _PAIRS}
    for full_name, number in named.items():
        found.setdefault(_PAIRS[full_name], number)
    return found


def _numbered_parts(nodes: list[Node], encoder: int) -> Iterator[tuple[str, int]]:
    """(name of a part, its node) of an encoder whose layers are numbered, if this object is one."""
    children = nodes[encoder].children
    numbered = [
        name for name in children if name.startswith(_NUMBERED) and _is_number(name[len(_NUMBERED) :])
    ]
    tables, layers = iter(_TABLES), 0
    for name in sorted(numbered, key=lambda name: int(name[len(_NUMBERED) :])):
        number = children[name]
        held = nodes[number].children
        if "embeddings" in held and (table := next(tables, None)):
            yield f"bert.embeddings.{table}", number
        elif "_attention_layer" in held:
            yield from _layer_parts(nodes, number, layers)
            layers += 1
        elif "gamma" in held and not layers:
            yield "bert.embeddings.LayerNorm", number
        elif "kernel" in held and layers:
            yield "bert.pooler.dense", number


def _named_parts(nodes: list[Node], encoder: int) -> Iterator[tuple[str, int]]:
    """The same for an encoder whose parts have names."""
    children = nodes[encoder].children
    layers = walk(nodes, encoder, "_transformer_layers")
    first = None if layers is None else nodes[layers].children.get("0")
    if layers is None or first is None or not any(_layer_parts(nodes, first, 0)):
        return  # many objects may lead to these layers: all of them are looked at for one only
    yield from ((name, children[local]) for local, name in _NAMED.items() if local in children)
    for local, number in nodes[layers].children.items():
        if _is_number(local):
            yield from _layer_parts(nodes, number, int(local))


def _is_number(text: str) -> bool:
    """True for a layer's number in digits. int() refuses thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _layer_parts(nodes: list[Node], layer: int, place: int) -> Iterator[tuple[str, int]]:
    """(name of a part, its node) of an encoder's layer."""
    for name, way in MODEL_GARDEN_LAYER.items():
        number = walk(nodes, layer, *way)
        if number is None and name == "attention.output.dense":
            number = walk(nodes, layer, "_attention_output_dense")
        if number is not None:
            yield f"bert.encoder.layer.{place}.{name}", number


def _variables(nodes: list[Node], parts: dict[str, int]) -> dict[str, int]:
    """The nodes of the variables of these parts that have a value, by this model's names."""
    found = {}
    for part, number in parts.items():
        for end, locals_ in ENDS.items():
            for local in locals_:
                variable = nodes[number].children.get(local)
                if variable is not None and nodes[variable].key is not None:
                    found[f"{part}.{end}"] = variable
    return found


class Objects:
    """A graph of objects that grows from its root."""

    def __init__(self) -> None:
        self.nodes = [Node()]

    def child(self, parent: int, *names: str) -> int:
        """The node at the end of the names, made where it is missing."""
        for name in names:
            children = self.nodes[parent].children
            if name not in children:
                self.nodes.append(Node())
                children[name] = len(self.nodes) - 1
            parent = children[name]
        return parent

    def link(self, parent: int, name: str, node: int) -> None:
        """Give a node another parent."""
        self.nodes[parent].children[name] = node


def place_variables(objects: Objects, names: list[str], layers: int) -> dict[str, int]:
    """The node of the variable of each tensor, in objects as the versions from 2.3 to 2.5 have them.

    Under ``model`` stands what is at once an encoder (its layers) and a pre-trainer (its encoder_network,
    masked_lm and classification_heads), under ``encoder`` the encoder again: programs restore either.
    """
    encoder = objects.child(0, "encoder")
    masked = objects.child(0, "masked_lm")
    found = {}
    for name in names:
        part, _, end = name.rpartition(".")
        owner = _owner(objects, encoder, masked, part, layers)
        local = _local(part, end)
        found[name] = objects.child(owner, local)
        if name == "cls.predictions.bias":
            objects.link(masked, "bias", found[name])
        if name == "bert.embeddings.word_embeddings.weight":
            objects.link(masked, "embedding_table", found[name])
    model = objects.child(0, "model")
    objects.nodes[model].children |= objects.nodes[encoder].children
    objects.link(model, "encoder_network", encoder)
    objects.link(model, "masked_lm", masked)
    return found


def _owner(objects: Objects, encoder: int, masked: int, part: str, layers: int) -> int:
    """The object of a part of the model."""
    if part.startswith("bert.encoder.layer."):
        number, _, rest = part.removeprefix("bert.encoder.layer.").partition(".")
        layer = objects.child(encoder, f"{_NUMBERED}{4 + int(number)}")
        owner = objects.child(layer, *MODEL_GARDEN_LAYER[rest])
        if rest == "attention.output.dense":  # its other name, in version 2.3
            objects.link(layer, "_attention_output_dense", owner)
        return owner
    if part == "bert.pooler.dense":
        return objects.child(encoder, f"{_NUMBERED}{4 + layers}")
    if part == "bert.embeddings.LayerNorm":
        return objects.child(encoder, f"{_NUMBERED}3")
    if part.startswith("bert.embeddings."):
        return objects.child(encoder, f"{_NUMBERED}{_TABLES.index(part.rpartition('.')[2])}")
    if part == "cls.seq_relationship":
        return objects.child(0, "model", "classification_heads", "0", "out_proj")
    return objects.child(masked, *MODEL_GARDEN_HEADS.get(part, ()))


def _local(part: str, end: str) -> str:
    """The local name of a variable in its object."""
    if part == "cls.predictions":
        return "output_bias/bias"
    if part.endswith("_embeddings"):
        return "embeddings"
    weight, _, _ = ENDS["weight"]
    if part.endswith("LayerNorm"):
        return "gamma" if end == "weight" else "beta"
    return weight if end == "weight" else "bias"
