"""Graphcore's TensorFlow 1 checkpoints: variables by its program's names, query, key and value in one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.support.made_checkpoints import made
from trainer.checkpoints.any_checkpoint import Checkpoint, StoredTensor
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.kinds import read_checkpoint
from trainer.checkpoints.formats.names import to_tensorflow
from trainer.checkpoints.formats.tensor_bundle.bundle import write_bundle
from trainer.model.headed import BertForPreTraining

SLOTS = {"exp_avg": "/lamb_m", "exp_avg_sq": "/lamb_v"}
THIRDS = ("query", "key", "value")


def graphcores(tensors: dict[str, StoredTensor], ending: str = "") -> Iterator[tuple[str, Tensor]]:
    """Name and values of Graphcore's variables."""
    for name, tensor in tensors.items():
        variable, is_transposed = to_tensorflow(name)
        value = tensor.read()[:101] if name.endswith("word_embeddings.weight") else tensor.read()
        variable = variable.replace("/attention/output/", "/attention/projection/")
        variable = variable.replace("/LayerNorm/", "/GroupNorm/")
        if variable.startswith("bert/pooler/"):
            variable = variable.removeprefix("bert/")
        if "/attention/self/" not in variable:
            yield variable + ending, (value.t() if is_transposed else value).contiguous()
        elif "/self/query/" in variable:
            values = [tensors[name.replace(".query.", f".{third}.")].read() for third in THIRDS]
            kind = "weight" if is_transposed else "bias"
            joined = torch.cat([value.t() if is_transposed else value for value in values], -1)
            yield variable.partition("query/")[0] + f"qkv_{kind}{ending}", joined.contiguous()


def write(checkpoint: Checkpoint, prefix: str) -> None:
    with write_bundle(prefix) as bundle:
        bundle.add("lamb_step_counter", torch.tensor([8]))
        for name, value in graphcores(dict(checkpoint.weights)):
            bundle.add(name, value)
        for kind, slot in SLOTS.items():
            own = {
                key.partition("/")[2]: value
                for key, value in checkpoint.moments.items()
                if key.startswith(f"{kind}/")
            }
            for name, value in graphcores(own, slot):
                bundle.add(name, value)


def held(keys: dict[str, bool]) -> Checkpoint:
    """A checkpoint of a model with these keys."""
    whole = made()
    shape = replace(whole.expect_config(), **keys)
    names = BertForPreTraining(shape).state_dict()
    return replace(
        whole,
        config=shape,
        weights={name: value for name, value in whole.weights.items() if name in names},
        moments={key: value for key, value in whole.moments.items() if key.partition("/")[2] in names},
    )


@pytest.mark.parametrize(
    "keys",
    [
        {},
        dict.fromkeys(
            ("use_qkv_bias", "use_attention_projection_bias", "use_cls_layer", "use_prediction_bias"), False
        ),
    ],
)
def test_graphcores_variables_are_read_under_our_names(tmp_path: Path, keys: dict[str, bool]) -> None:
    wanted = held(keys)
    write(wanted, str(tmp_path / "ckpt_last-7"))
    read = read_checkpoint(str(tmp_path / "ckpt_last-7"))
    assert (read.kind, read.optimiser) == ("tf1", "lamb-graphcore")
    for kind in ("weights", "moments"):
        found, before = getattr(read, kind), getattr(wanted, kind)
        assert set(found) == set(before)
        for name, tensor in found.items():
            assert torch.equal(tensor.read(), before[name].read()[: tensor.shape[0]]), name
    assert fill_model(BertForPreTraining(wanted.expect_config()), read) == []
