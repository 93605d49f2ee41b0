"""TensorFlow 2 checkpoints as the model garden writes them: variables in a graph of objects."""

import torch
from torch import Tensor

from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import HEADS, MEAN, SQUARE, Checkpoint, StoredTensor, unpad_vocabulary
from trainer.checkpoints.formats.absent_parts import add_missing_biases
from trainer.checkpoints.formats.config_file import read_description, write_bert_config
from trainer.checkpoints.formats.model_garden import GraphBuilder, build_object_graph, find_variables
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle, write_bundle
from trainer.checkpoints.formats.tensor_bundle.object_graph import (
    GRAPH_KEY,
    GraphNode,
    OptimiserSlot,
    encode_graph,
    escape_local_name,
    make_slot_key,
    make_value_key,
    parse_graph,
)
from trainer.checkpoints.formats.tensor_bundle.wire import WireError
from trainer.checkpoints.formats.tensorflow1 import write_state_file
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError

_SLOTS = {"m": MEAN, "v": SQUARE}
_SLOT_NAMES = {kind: name for name, kind in _SLOTS.items()}
_HEADS_THERE = "cls."
_OPTIMISER, _ITERATIONS, _COUNTER = "optimizer", "iter", "save_counter"


def read_tensorflow2(bundle: Bundle, model_config: str | None = None) -> Checkpoint:
    """Read the checkpoint in a tensor bundle, which is TensorFlow's pair of an index file and data files.

    model_config: model file to read in place of the bert_config.json next to the bundle.
    """
    try:
        nodes = parse_graph(bundle.read_text(GRAPH_KEY))
    except WireError as error:
        raise CheckpointError(f"{bundle.prefix}: its graph of objects is damaged: {error}") from None
    variables = find_variables(nodes)
    if not variables:
        raise CheckpointError(f"{bundle.index}: no BERT of the model garden: found {len(nodes)} objects")
    weights = {name: _read_variable(bundle, nodes[number], name) for name, number in variables.items()}
    names = {number: name for name, number in variables.items()}
    moments = {
        f"{_SLOTS[slot.name]}/{names[slot.weight]}": _read_variable(
            bundle, nodes[slot.node], names[slot.weight]
        )
        for node in nodes
        for slot in node.slots
        if slot.weight in names and slot.name in _SLOTS
    }
    found = read_description(storage.get_parent(bundle.prefix), model_config, tanh=True)
    return Checkpoint(
        kind="tf2",
        path=bundle.prefix,
        config=found.config,
        warnings=found.file.warnings,
        weights=weights,
        moments=moments,
        updates=_read_iterations(bundle, nodes),
    )


def _read_variable(bundle: Bundle, node: GraphNode, name: str) -> StoredTensor:
    """Return a variable's value as a tensor with the shape that this trainer uses.

    Axes of attention heads are joined with the next axis, and kernels (weight matrices) are transposed.
    """
    if node.key not in bundle.entries:
        raise CheckpointError(f"{bundle.index}: holds no {node.key}, which its graph of objects names")
    key = node.key
    flat = shape = bundle.entries[key].shape
    # The kernel of the query has the shape (hidden, heads, head size), and is reshaped to (hidden, heads x
    # head size). The kernel of the output projection has the shape (heads, head size, hidden), and is
    # reshaped to (heads x head size, hidden). Older versions store kernels that need no reshaping.
    axis = _find_heads_axis(name)
    if axis is not None and len(shape) == 2 + _is_kernel(name):
        flat = (shape[0] * shape[1], shape[2]) if axis == 0 else (*shape[:-2], shape[-2] * shape[-1])
    stored = StoredTensor(shape, lambda: bundle.read(key)).changed(flat, lambda tensor: tensor.reshape(flat))
    return stored.transpose() if _is_kernel(name) else stored


def _is_kernel(name: str) -> bool:
    """Return whether the tensor is a matrix that TensorFlow stores transposed."""
    return name.endswith(".weight") and "LayerNorm" not in name and "_embeddings" not in name


def _find_heads_axis(name: str) -> int | None:
    """Return the axis that TensorFlow's attention splits into (heads, head size), or None.

    It is the last axis for query, key and value, and the first for the output projection.
    """
    if ".attention.self." in name:
        return -1
    return 0 if name.endswith(".attention.output.dense.weight") else None


def _read_iterations(bundle: Bundle, nodes: list[GraphNode]) -> int | None:
    """Return the number of updates that an optimiser has counted, or None."""
    counters = (node.children[_ITERATIONS] for node in nodes if node.slots and _ITERATIONS in node.children)
    keys = (nodes[counter].key for counter in counters)
    return next((bundle.read_count(key) for key in keys if key and key in bundle.entries), None)


def write_tensorflow2(checkpoint: Checkpoint, directory: str) -> str:
    """Write bert_model.ckpt-N, the file ``checkpoint`` that names it, and bert_config.json.

    N is the number of updates. Return the path of bert_model.ckpt-N without the endings of its files.
    """
    prefix = storage.join(directory, f"bert_model.ckpt-{checkpoint.updates or 0}")
    write_tensors_and_graph(checkpoint, prefix)
    write_bert_config(checkpoint.expect_config(), directory)
    write_state_file(directory, storage.get_base_name(prefix))
    return prefix


def write_tensors_and_graph(checkpoint: Checkpoint, prefix: str) -> None:
    """Write the checkpoint's tensors and graph of objects as PREFIX.index and PREFIX.data-00000-of-00001."""
    checkpoint = add_missing_biases(checkpoint, "the model garden's BERT")
    config = checkpoint.expect_config()
    weights = {
        name: tensor
        for name, tensor in unpad_vocabulary(checkpoint.weights, config).items()
        if not name.startswith(HEADS) or name.startswith(_HEADS_THERE)
    }
    objects = GraphBuilder()
    variables = build_object_graph(objects, list(weights), config.num_hidden_layers)
    paths = _find_paths(objects.nodes)
    storage.make_directory(storage.get_parent(prefix))
    with write_bundle(prefix) as bundle:

        def write_variable(number: int, key: str, tensor: Tensor) -> None:
            node = objects.nodes[number]
            node.key = node.full_name = key
            bundle.add(key, tensor)

        for name, number in variables.items():
            write_variable(
                number, make_value_key(paths[number]), _reshape_for_tensorflow(weights[name], name, config)
            )
        if checkpoint.moments:  # moments are slots, which belong to an optimiser object
            optimiser = objects.get_or_add_child(0, _OPTIMISER)
            iterations = objects.get_or_add_child(optimiser, _ITERATIONS)
            write_variable(
                iterations,
                make_value_key(f"{_OPTIMISER}/{_ITERATIONS}"),
                torch.tensor(checkpoint.updates or 0),
            )
        for key, moment in unpad_vocabulary(checkpoint.moments, config).items():
            kind, _, name = key.partition("/")
            if name in variables:
                slot = OptimiserSlot(variables[name], _SLOT_NAMES[kind], objects.add())
                objects.nodes[optimiser].slots.append(slot)
                place = make_slot_key(paths[slot.weight], _OPTIMISER, slot.name)
                write_variable(slot.node, place, _reshape_for_tensorflow(moment, name, config))
        write_variable(objects.get_or_add_child(0, _COUNTER), make_value_key(_COUNTER), torch.tensor(1))
        bundle.add_text(GRAPH_KEY, encode_graph(objects.nodes))


def _reshape_for_tensorflow(tensor: StoredTensor, name: str, config: ModelConfig) -> Tensor:
    """Return the tensor in the shape of TensorFlow's variable."""
    whole = tensor.read()
    whole = whole.t() if _is_kernel(name) else whole
    axis = _find_heads_axis(name)
    return whole if axis is None else torch.unflatten(whole, axis, (config.num_attention_heads, -1))


def _find_paths(nodes: list[GraphNode]) -> dict[int, str]:
    """Return for each node the shortest path of child names from the root, joined by slashes.

    If several paths are equally short, the first is taken.
    """
    paths = {0: ""}
    for number in (queue := [0]):
        for name, child in nodes[number].children.items():
            if child not in paths:
                paths[child] = f"{paths[number]}/{escape_local_name(name)}".lstrip("/")
                queue.append(child)
    return paths
