"""The graph of objects of a TensorFlow 2 checkpoint (TrackableObjectGraph): read, walked and written."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainer.extensions.formats.tensor_bundle.wire import (
    WireError,
    bytes_field,
    expect_bytes,
    expect_int,
    expect_text,
    number_field,
    read_fields,
    read_message,
    text_field,
)

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The name of the graph's text in a bundle."""

_VALUE = "VARIABLE_VALUE"
# In memory a node takes a hundred times its shortest form. BERT-Large with moments has 3,000.
_MOST_NODES = 1 << 18


@dataclass(slots=True)
class Slot:
    """An optimiser's variable beside a weight: the numbers of the weight's node and of its own."""

    weight: int
    name: str
    node: int


@dataclass(slots=True)
class Node:
    """An object: the numbers of its children by name, the key of its value, an optimiser's slots."""

    children: dict[str, int] = field(default_factory=dict)
    key: str | None = None
    full_name: str = ""
    slots: list[Slot] = field(default_factory=list)


def parse_graph(data: bytes) -> list[Node]:
    """The nodes of an object graph, the root first. WireError for other bytes."""
    if sum(number == 1 for number, _ in read_fields(data)) > _MOST_NODES:
        raise WireError(f"a graph of more than {_MOST_NODES} objects")
    nodes = [_parse_node(expect_bytes(value)) for number, value in read_fields(data) if number == 1]
    for node in nodes:
        slots = (number for slot in node.slots for number in (slot.weight, slot.node))
        numbers = [*node.children.values(), *slots]
        if any(not 0 <= number < len(nodes) for number in numbers):
            raise WireError("an object that is not there")
    if not nodes:
        raise WireError("a graph without objects")
    return nodes


def _parse_node(data: bytes) -> Node:
    node = Node()
    for number, value in read_fields(data):
        if number == 1:
            child = read_message(value)
            node.children[expect_text(child.get(2, b""))] = expect_int(child.get(1, 0))
        elif number == 2:
            attribute = read_message(value)
            if attribute.get(1) == _VALUE.encode():
                node.key = expect_text(attribute.get(3, b""))
                node.full_name = expect_text(attribute.get(2, b""))
        elif number == 3:
            slot = read_message(value)
            name = expect_text(slot.get(2, b""))
            node.slots.append(Slot(expect_int(slot.get(1, 0)), name, expect_int(slot.get(3, 0))))
    return node


def encode_graph(nodes: list[Node]) -> bytes:
    """The graph as a message."""
    return b"".join(bytes_field(1, _encode_node(node)) for node in nodes)


def _encode_node(node: Node) -> bytes:
    parts = [
        bytes_field(1, number_field(1, number) + text_field(2, name))
        for name, number in node.children.items()
    ]
    if node.key is not None:
        value = text_field(1, _VALUE) + text_field(2, node.full_name) + text_field(3, node.key)
        parts.append(bytes_field(2, value))
    for slot in node.slots:
        value = number_field(1, slot.weight) + text_field(2, slot.name) + number_field(3, slot.node)
        parts.append(bytes_field(3, value))
    return b"".join(parts)


def value_key(path: str) -> str:
    """The key of the variable at a path of local names."""
    return f"{path}/.ATTRIBUTES/{_VALUE}"


def slot_key(path: str, optimiser: str, name: str) -> str:
    """The key of an optimiser's slot of the variable at a path."""
    return value_key(f"{path}/.OPTIMIZER_SLOT/{optimiser}/{name}")


def escaped(local_name: str) -> str:
    """A local name as a part of a path."""
    return local_name.replace(".", "..").replace("/", ".S")


def walk(nodes: list[Node], start: int, *names: str) -> int | None:
    """The number of the node that the names lead to from another, or None where a name is missing."""
    number: int | None = start
    for name in names:
        if number is None:
            return None
        number = nodes[number].children.get(name)
    return number


def holders(nodes: list[Node], *names: str) -> Iterator[int]:
    """The numbers of the nodes that have children of all these names."""
    for number, node in enumerate(nodes):
        if all(name in node.children for name in names):
            yield number
