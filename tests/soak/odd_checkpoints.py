"""Checkpoints of other programs that somebody made to break a reader: .pt files, safetensors, bundles.

Each maker writes one into a directory beside its bert_config.json and returns its path.
"""

import json
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cramjam
import safetensors.torch
import torch
from torch import Tensor

from bertdata.shards.crc32c import compute_masked_checksum
from bertdata.shards.example_proto import encode_varint
from trainer.checkpoints.any_checkpoint import StoredTensor
from trainer.checkpoints.formats.nvidia import split_by_decay
from trainer.checkpoints.formats.tensor_bundle.bundle import BundleEntry, encode_header, write_bundle
from trainer.checkpoints.formats.tensor_bundle.object_graph import GRAPH_KEY, GraphNode, encode_graph
from trainer.config.model import ModelConfig
from trainer.model.headed import BertForPreTraining

SHAPE = ModelConfig(
    vocab_size=16,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=16,
)
WORDS = "bert.embeddings.word_embeddings.weight"
_MAGIC = 0xDB4775248B80FB57

Make = Callable[[Path], Path]


@cache
def weights() -> dict[str, Tensor]:
    """The weights of a sound model."""
    torch.manual_seed(1)
    return dict(BertForPreTraining(SHAPE).state_dict())


@cache
def states() -> dict[int, dict[str, Tensor]]:
    """The state of a sound optimiser."""
    stored = {name: StoredTensor.of(tensor) for name, tensor in weights().items()}
    names = [name for part in split_by_decay(stored) for name in part]
    return {
        number: {kind: torch.zeros_like(weights()[name]) for kind in ("exp_avg", "exp_avg_sq")}
        for number, name in enumerate(names)
    }


# PyTorch's files


def odd_words(change: Callable[[Tensor], Tensor], *, old: bool = False) -> Make:
    """A .pt file whose word embeddings are changed."""

    def make(place: Path) -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = {"model": {**weights(), WORDS: change(weights()[WORDS])}}
            torch.save(content, place / "odd.pt", _use_new_zipfile_serialization=not old)
        return place / "odd.pt"

    return make


def saved(content: Callable[[], Any]) -> Make:
    """A .pt file with this content."""

    def make(place: Path) -> Path:
        torch.save(content(), place / "odd.pt")
        return place / "odd.pt"

    return make


def cut(share: float, *, old: bool = False) -> Make:
    """A .pt file of which the beginning is left."""

    def make(place: Path) -> Path:
        path = odd_words(lambda tensor: tensor, old=old)(place)
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])
        return path

    return make


def odd_optimiser(**changes: Any) -> Make:
    """A .pt file whose optimiser has other items. changes: optimiser, state, groups, group, first (state)."""

    def content() -> Any:
        group = {"params": list(states()), "step": 3, **changes.get("group", {})}
        state = {**states(), 0: {**states()[0], **changes.get("first", {})}}
        optimiser = {"state": changes.get("state", state), "param_groups": changes.get("groups", [group])}
        return {"model": weights(), "optimizer": changes.get("optimiser", optimiser)}

    return saved(content)


WITHOUT_MOMENTS: dict[str, Make] = {
    "optimiser is a list": odd_optimiser(optimiser=[1]),
    "group is a number": odd_optimiser(groups=[1]),
    "params is a number": odd_optimiser(group={"params": 3}),
    "params cannot be hashed": odd_optimiser(group={"params": [[number] for number in range(25)]}),
    "states are numbers": odd_optimiser(state={number: number for number in range(25)}),
}
"""Files that are read without moments: their optimiser is another program's."""

TORCH: dict[str, Make] = {
    "sparse": odd_words(Tensor.to_sparse),
    "sparse, older form": odd_words(Tensor.to_sparse, old=True),
    "sparse rows": odd_words(Tensor.to_sparse_csr),
    "quantised": odd_words(lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8)),
    "meta": odd_words(lambda tensor: tensor.to("meta")),
    "nested": odd_words(lambda tensor: torch.nested.nested_tensor([tensor, tensor])),
    "complex": odd_words(lambda tensor: tensor.to(torch.complex64)),
    "sign turned": odd_words(lambda tensor: torch.complex(tensor, tensor).conj().imag),
    "terabytes": odd_words(lambda tensor: torch.zeros(1).expand(1 << 20, 1 << 20)),
    "no dimension": odd_words(lambda tensor: torch.tensor(1.0)),
    "one tensor": saved(lambda: {"model": {"x": torch.zeros(3)}}),
    "a tensor without a name": saved(lambda: {"model": {"": torch.zeros(3)}}),
    "pieces of several widths": saved(
        lambda: {
            f"bert.embeddings.word_embeddings.split_embeddings.{n}.weight": torch.zeros((2, n + 1)[: n + 1])
            for n in range(2)
        }
    ),
    **{f"cut at {share}": cut(share) for share in (0.0005, 0.01, 0.5, 0.999)},
    **{f"older form, cut at {share}": cut(share, old=True) for share in (0.01, 0.5, 0.999)},
    "updates are several": odd_optimiser(group={"step": torch.zeros(3)}),
    "updates are meta": odd_optimiser(group={"step": torch.zeros((), device="meta")}),
    "updates are nan": odd_optimiser(group={"step": float("nan")}),
    "updates are infinite": odd_optimiser(group={"step": float("inf")}),
    "updates are negative": odd_optimiser(group={"step": -4}),
    "updates are huge": odd_optimiser(group={"step": 1 << 80}),
    "moment is sparse": odd_optimiser(first={"exp_avg": torch.zeros(16, 8).to_sparse()}),
    "moment is meta": odd_optimiser(first={"exp_avg": torch.zeros(16, 8, device="meta")}),
}


# Safetensors


def typed(kind: str, shape: Iterable[int], data: bytes = b"") -> Make:
    """A safetensors file of one tensor."""

    def make(place: Path) -> Path:
        tensor = {"dtype": kind, "shape": list(shape), "data_offsets": [0, len(data)]}
        header = json.dumps({WORDS: tensor}).encode()
        path = place / "odd.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + data)
        return path

    return make


def indexed(text: str) -> Make:
    """A directory with an index of safetensors."""

    def make(place: Path) -> Path:
        (place / "model.safetensors.index.json").write_text(text, encoding="utf-8")
        return place

    return make


def plain(tensors: Mapping[str, Tensor]) -> Make:
    """A safetensors file of these."""

    def make(place: Path) -> Path:
        safetensors.torch.save_file(dict(tensors), place / "odd.safetensors")
        return place / "odd.safetensors"

    return make


SAFETENSORS: dict[str, Make] = {
    "type F4": typed("F4", (16, 8), bytes(64)),
    "type F6": typed("F6_E2M3", (16, 8), bytes(96)),
    "type F8_E8M0": typed("F8_E8M0", (16, 8), bytes(128)),
    "type C64": typed("C64", (16, 8), bytes(1024)),
    "no bytes of a huge shape": typed("F32", (0, 1 << 62, 1 << 62)),
    "a size beyond 63 bits": typed("F32", (0, (1 << 63) + 5)),
    "200 dimensions": typed("F32", [1] * 200, bytes(4)),
    "one tensor of safetensors": plain({"x": torch.zeros(3)}),
    "a tensor of safetensors without a name": plain({"": torch.zeros(3)}),
    "a NUL in an index": indexed('{"weight_map": {"a": "b\\u0000c"}}'),
    "no name in an index": indexed('{"weight_map": {"a": ""}}'),
    "a parent in an index": indexed('{"weight_map": {"a": ".."}}'),
}


# TensorFlow's bundles


def key_entry(shared: int, rest: bytes, value: bytes) -> bytes:
    """An entry of a block: bytes shared with the key before, the others, the value."""
    return encode_varint(shared) + encode_varint(len(rest)) + encode_varint(len(value)) + rest + value


HEADER = key_entry(0, b"", encode_header(1))
"""The first entry of an index."""


def blocks(*bodies: bytes, times: int = 1, snappy: bool = False) -> Make:
    """An index of these blocks, each named so many times, with matching checksums."""

    def make(place: Path) -> Path:
        out = bytearray()

        def put(body: bytes, kind: int = 0) -> bytes:
            stored = bytes(cramjam.snappy.compress_raw(body)) if kind else body
            offset = len(out)
            stored += bytes([kind])
            out.extend(stored + struct.pack("<I", compute_masked_checksum(stored)))
            return encode_varint(offset) + encode_varint(len(stored) - 1)

        handles = [put(body, int(snappy)) for body in bodies] * times
        metaindex = put(block(b""))
        entries = [key_entry(0, b"%06d" % number, handle) for number, handle in enumerate(handles)]
        footer = metaindex + put(block(b"".join(entries)))
        (place / "odd.index").write_bytes(out + footer.ljust(40, b"\0") + struct.pack("<Q", _MAGIC))
        (place / "odd.data-00000-of-00001").write_bytes(b"")
        return place / "odd"

    return make


def block(entries: bytes, restarts: int = 1) -> bytes:
    """The entries with their restart points."""
    return entries + struct.pack("<I", 0) * restarts + struct.pack("<I", restarts)


def long_keys(count: int, size: int) -> bytes:
    """A block of so many keys, each of that size and stored in a few bytes."""
    first = HEADER + key_entry(0, b"a" * size, b"")
    return block(first + b"".join(key_entry(size, b"%05d" % number, b"") for number in range(count)))


def variable(shape: tuple[int, ...], size: int = 0, dtype: int = 1, name: bytes = b"global_step") -> Make:
    """An index of one variable without data."""
    entry = BundleEntry(dtype, shape, 0, 0, size, compute_masked_checksum(b"")).encode()
    return blocks(block(HEADER + key_entry(0, name, entry)))


def graph(text: Callable[[], bytes]) -> Make:
    """A bundle of TensorFlow 2 whose graph of objects has this text."""

    def make(place: Path) -> Path:
        with write_bundle(str(place / "odd")) as bundle:
            bundle.add_text(GRAPH_KEY, text())
        return place / "odd"

    return make


def named(prefix: str) -> Make:
    """A directory whose file ``checkpoint`` names this prefix, with an index without entries."""

    def make(place: Path) -> Path:
        blocks(block(b""))(place)
        (place / "checkpoint").write_text(f'model_checkpoint_path: "{prefix}"\n', encoding="utf-8")
        return place

    return make


def many_layers(count: int) -> bytes:
    """Objects that all lead to the same numbered layers, none of which is one."""
    layers = GraphNode({str(number): 1 for number in range(count)})
    return encode_graph(
        [GraphNode(), GraphNode(), layers, *(GraphNode({"_transformer_layers": 2}) for _ in range(count))]
    )


BUNDLES: dict[str, Make] = {
    "keys that share their beginning": blocks(long_keys(2000, 20_000)),
    "the same, compressed": blocks(long_keys(2000, 300_000), snappy=True),
    "a block named many times": blocks(block(HEADER), times=2000),
    "an empty block named many times": blocks(block(b"", restarts=9000), times=2000),
    "keys out of order": blocks(block(key_entry(0, b"b", b"") + key_entry(0, b"a", b""))),
    "no bytes of a huge shape, bundle": variable((0, 2**63 - 1, 2**63 - 1), name=b"bert/pooler/dense/kernel"),
    "1000 dimensions": variable((1,) * 1000, 4),
    "updates of no bytes": variable((0,), 0, 9),
    "updates without data": variable((), 8, 9),
    "a NUL in the name of the newest": named("a\0b"),
    "layers that all objects share": graph(lambda: many_layers(3000)),
    "a number of 5000 digits": graph(
        lambda: encode_graph([GraphNode({f"layer_with_weights-{'9' * 5000}": 0})])
    ),
    "a graph of 300,000 objects": graph(lambda: encode_graph([GraphNode()]) * 300_000),
}

REFUSED = {**TORCH, **SAFETENSORS, **BUNDLES}


def made(name: str, place: Path) -> Path:
    """The path of the odd checkpoint of that name, written into the place with its configuration."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "bert_config.json").write_text(json.dumps(SHAPE.as_json()), encoding="utf-8")
    return (REFUSED | WITHOUT_MOMENTS)[name](place)
