"""TensorFlow 2's checkpoints, as the model garden writes them: variables in a graph of objects."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bertdata.io import storage
from trainer.checkpoint.stored import HEADS, MEAN, SQUARE, Checkpoint, StoredTensor, unpadded
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError
from trainer.extensions.formats.absent_parts import completed
from trainer.extensions.formats.config_file import read_config, write_bert_config
from trainer.extensions.formats.model_garden import Objects, find_variables, place_variables
from trainer.extensions.formats.tensor_bundle.bundle import Bundle, BundleWriter, write_bundle
from trainer.extensions.formats.tensor_bundle.object_graph import (
    GRAPH_KEY,
    Node,
    Slot,
    encode_graph,
    escaped,
    parse_graph,
    slot_key,
    value_key,
)
from trainer.extensions.formats.tensor_bundle.wire import WireError
from trainer.extensions.formats.tensorflow1 import write_state_file

_SLOTS = {"m": MEAN, "v": SQUARE}
_HEADS_THERE = "cls."
_OPTIMISER, _ITERATIONS, _COUNTER = "optimizer", "iter", "save_counter"


def read_tensorflow2(bundle: Bundle, model_config: str | None = None) -> Checkpoint:
    """The checkpoint of a bundle. model_config: a file in place of the bert_config.json beside it."""
    try:
        nodes = parse_graph(bundle.read_text(GRAPH_KEY))
    except WireError as error:
        raise CheckpointError(f"{bundle.prefix}: its graph of objects is damaged: {error}") from None
    variables = find_variables(nodes)
    if not variables:
        raise CheckpointError(f"{bundle.index}: no BERT of the model garden: found {len(nodes)} objects")
    weights = {name: _stored(bundle, nodes[number], name) for name, number in variables.items()}
    names = {number: name for name, number in variables.items()}
    moments = {
        f"{_SLOTS[slot.name]}/{names[slot.weight]}": _stored(bundle, nodes[slot.node], names[slot.weight])
        for node in nodes
        for slot in node.slots
        if slot.weight in names and slot.name in _SLOTS
    }
    return Checkpoint(
        kind="tf2",
        path=bundle.prefix,
        config=read_config(storage.parent(bundle.prefix), model_config, tanh=True),
        weights=weights,
        moments=moments,
        updates=_iterations(bundle, nodes),
    )


def _stored(bundle: Bundle, node: Node, name: str) -> StoredTensor:
    """The variable in this model's shape: kernels of heads joined, kernels transposed."""
    if node.key not in bundle.entries:
        raise CheckpointError(f"{bundle.index}: holds no {node.key}, which its graph of objects names")
    key = node.key
    shape = bundle.entries[key].shape
    flat = _Layout.of(name).flat(shape)
    stored = StoredTensor(shape, lambda: bundle.read(key)).changed(flat, lambda tensor: tensor.reshape(flat))
    return stored.transposed() if _Layout.of(name).is_kernel else stored


def _iterations(bundle: Bundle, nodes: list[Node]) -> int | None:
    """The number of updates that an optimiser has counted."""
    for node in nodes:
        number = node.children.get(_ITERATIONS) if node.slots else None
        if number is not None and (key := nodes[number].key) in bundle.entries:
            assert key is not None
            return bundle.read_count(key)
    return None


@dataclass(frozen=True, slots=True)
class _Layout:
    """The form of a variable: a kernel is transposed, attention keeps its heads apart."""

    is_kernel: bool
    ends_in_heads: bool  # query, key, value: [.., heads, size of a head]
    begins_with_heads: bool  # output of the attention: [heads, size of a head, ..]

    @classmethod
    def of(cls, name: str) -> "_Layout":
        is_matrix = name.endswith(".weight") and "LayerNorm" not in name and "_embeddings" not in name
        is_output = ".attention.output.dense." in name
        return cls(is_matrix, ".attention.self." in name, is_matrix and is_output)

    def flat(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape with the heads joined. Unchanged where they are not apart."""
        if self.ends_in_heads and len(shape) == 2 + self.is_kernel:
            return (*shape[:-2], shape[-2] * shape[-1])
        if self.begins_with_heads and len(shape) == 3:
            return shape[0] * shape[1], shape[2]
        return shape

    def apart(self, shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
        """The shape with the heads apart."""
        if self.ends_in_heads:
            return (*shape[:-1], heads, shape[-1] // heads)
        if self.begins_with_heads:
            return heads, shape[0] // heads, shape[1]
        return shape


def write_tensorflow2(checkpoint: Checkpoint, directory: str) -> str:
    """Write bert_model.ckpt-N, ``checkpoint`` and bert_config.json. Returns the prefix."""
    checkpoint = completed(checkpoint, "the model garden's BERT")
    config = checkpoint.expect_config()
    name = f"bert_model.ckpt-{checkpoint.updates or 0}"
    prefix = storage.join(directory, name)
    weights = {
        name: tensor
        for name, tensor in unpadded(checkpoint.weights, config).items()
        if not name.startswith(HEADS) or name.startswith(_HEADS_THERE)
    }
    objects = Objects()
    variables = place_variables(objects, list(weights), config.num_hidden_layers)
    paths = _paths(objects.nodes)
    storage.make_directory(directory)
    with write_bundle(prefix) as bundle:
        for name, number in variables.items():
            key = value_key(paths[number])
            _write(bundle, objects.nodes[number], key, _in_shape(weights[name], name, config))
        _write_optimiser(bundle, objects, variables, paths, checkpoint, config)
        counter = objects.nodes[objects.child(0, _COUNTER)]
        _write(bundle, counter, value_key(_COUNTER), torch.tensor(1))
        bundle.add_text(GRAPH_KEY, encode_graph(objects.nodes))
    write_bert_config(config, directory)
    write_state_file(directory, storage.base_name(prefix))
    return prefix


def _write_optimiser(
    bundle: BundleWriter,
    objects: Objects,
    variables: dict[str, int],
    paths: dict[int, str],
    checkpoint: Checkpoint,
    config: ModelConfig,
) -> None:
    """Write the moments as slots of an optimiser, and the number of its updates."""
    if not checkpoint.moments:
        return
    optimiser = objects.child(0, _OPTIMISER)
    iterations = objects.nodes[objects.child(optimiser, _ITERATIONS)]
    _write(
        bundle, iterations, value_key(f"{_OPTIMISER}/{_ITERATIONS}"), torch.tensor(checkpoint.updates or 0)
    )
    names = {kind: slot for slot, kind in _SLOTS.items()}
    for key, moment in unpadded(checkpoint.moments, config).items():
        kind, _, name = key.partition("/")
        if name not in variables:
            continue
        node = Node()
        objects.nodes.append(node)
        slot = Slot(variables[name], names[kind], len(objects.nodes) - 1)
        objects.nodes[optimiser].slots.append(slot)
        place = slot_key(paths[slot.weight], _OPTIMISER, slot.name)
        _write(bundle, node, place, _in_shape(moment, name, config))


def _in_shape(tensor: StoredTensor, name: str, config: ModelConfig) -> Tensor:
    """The tensor in the shape of its variable."""
    layout = _Layout.of(name)
    whole = tensor.read()
    whole = whole.t() if layout.is_kernel else whole
    return whole.reshape(layout.apart(tuple(whole.shape), config.num_attention_heads))


def _write(bundle: BundleWriter, node: Node, key: str, tensor: Tensor) -> None:
    node.key = node.full_name = key
    bundle.add(key, tensor)


def _paths(nodes: list[Node]) -> dict[int, str]:
    """The shortest path of local names from the root to each node. Of equal ones, the first found."""
    paths = {0: ""}
    for number in (queue := [0]):
        for name, child in nodes[number].children.items():
            if child not in paths:
                paths[child] = f"{paths[number]}/{escaped(name)}".lstrip("/")
                queue.append(child)
    return paths
