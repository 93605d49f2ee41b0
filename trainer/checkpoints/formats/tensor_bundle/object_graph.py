"""The object graph of a TensorFlow 2 checkpoint (TrackableObjectGraph): reading, walking and writing it.

The graph says which Python object held which variable. The root is node 0, and each object has named
children:

    0 (root) --encoder--> 1 --layer_with_weights-0--> 2 --embeddings--> 3 (a variable)
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trainer.checkpoints.formats.tensor_bundle.wire import (
    Value,
    WireError,
    encode_bytes_field,
    encode_message_field,
    read_fields,
    read_message,
)

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""Name of the graph in a bundle."""

_VALUE = "VARIABLE_VALUE"
# A parsed node can take a hundred times as much memory as its bytes in the file, so the number of nodes is
# limited. Without this limit, a small hostile file could fill the memory. BERT-Large with moments has 3,000
# nodes.
_MOST_NODES = 1 << 18


class OptimiserSlot(NamedTuple):
    """A variable that an optimiser has for a weight, such as the running mean of its gradients.

    The checkpoint's object graph numbers its nodes, which are the model's objects and variables.
    weight: number of the node that stands for the weight.
    name: the optimiser's name for the variable.
    node: number of the node that stands for the variable.
    """

    weight: int
    name: str
    node: int


@dataclass(slots=True)
class GraphNode:
    """An object in the graph.

    children: node numbers of its children, by name.
    key: name of its value in the bundle, or None if the object is not a variable.
    full_name: name of the variable, "" if the object is not a variable.
    slots: the optimiser's variables for weights, if the object is an optimiser.
    """

    children: dict[str, int] = field(default_factory=dict)
    key: str | None = None
    full_name: str = ""
    slots: list[OptimiserSlot] = field(default_factory=list)


def parse_graph(data: bytes) -> list[GraphNode]:
    """Return the nodes of an object graph, the root first. WireError if the bytes are not an object graph."""
    if sum(number == 1 for number, _ in read_fields(data)) > _MOST_NODES:
        raise WireError(f"a graph of more than {_MOST_NODES} objects")
    nodes = [_parse_node(value) for number, value in read_fields(data) if number == 1]
    for node in nodes:
        slots = (number for slot in node.slots for number in (slot.weight, slot.node))
        numbers = [*node.children.values(), *slots]
        if any(not 0 <= number < len(nodes) for number in numbers):
            raise WireError("an object that is not there")
    if not nodes:
        raise WireError("a graph without objects")
    return nodes


def _parse_node(message: Value) -> GraphNode:
    """Parse a node: its children (field 1), its variable (2) and an optimiser's slots (3)."""
    node = GraphNode()
    for number, value in read_fields(message):
        if number == 1:
            child, name = read_message(value, int, str)
            node.children[name] = child
        elif number == 2:
            name, full_name, key = read_message(value, str, str, str)
            if name == _VALUE:
                node.key, node.full_name = key, full_name
        elif number == 3:
            node.slots.append(OptimiserSlot(*read_message(value, int, str, int)))
    return node


def encode_graph(nodes: list[GraphNode]) -> bytes:
    """Return the graph as a protocol buffer."""
    return b"".join(encode_bytes_field(1, _encode_node(node)) for node in nodes)


def _encode_node(node: GraphNode) -> bytes:
    """Return a node as a protocol buffer."""
    parts = [encode_message_field(1, child, name) for name, child in node.children.items()]
    if node.key is not None:
        parts.append(encode_message_field(2, _VALUE, node.full_name, node.key))
    return b"".join([*parts, *(encode_message_field(3, *slot) for slot in node.slots)])


def make_value_key(path: str) -> str:
    """Return the bundle's key for the value of a variable.

    path: names of children that lead from the root to the variable, joined by slashes.
    """
    return f"{path}/.ATTRIBUTES/{_VALUE}"


def make_slot_key(path: str, optimiser: str, name: str) -> str:
    """Return the bundle's key for a variable that an optimiser has for a weight, such as a running mean.

    path: names of children that lead from the root to the weight, joined by slashes.
    optimiser: name of the optimiser's object in the graph.
    name: the optimiser's name for its variable.
    """
    return make_value_key(f"{path}/.OPTIMIZER_SLOT/{optimiser}/{name}")


def escape_local_name(local_name: str) -> str:
    """Escape the slashes in a child's name, so that it can be a part of a path with slashes."""
    return local_name.replace(".", "..").replace("/", ".S")


def follow_names(nodes: list[GraphNode], start: int, *names: str) -> int | None:
    """Follow a path of child names from a node. Return the number of the last node, or None if a name is
    missing.
    """
    number: int | None = start
    for name in names:
        if number is None:
            return None
        number = nodes[number].children.get(name)
    return number


def find_nodes_with_children(nodes: list[GraphNode], *names: str) -> Iterator[int]:
    """Yield the numbers of the nodes that have children with all these names."""
    for number, node in enumerate(nodes):
        if all(name in node.children for name in names):
            yield number
