"""Models filled from checkpoints: whole, or refused with the tensor's name."""

import pytest
import torch
from torch import Tensor

from bertdata.errors import DataError
from tests.support.made_checkpoints import checkpoint_of
from tests.support.small_models import ours
from trainer.checkpoints.any_checkpoint import Checkpoint, StoredTensor
from trainer.checkpoints.filling import fill_model

LAYER = "bert.encoder.layer.1.output.dense.weight"
TABLE = "bert.embeddings.word_embeddings.weight"


def checkpoint(weights: dict[str, Tensor]) -> Checkpoint:
    stored = {name: StoredTensor.of(tensor) for name, tensor in weights.items()}
    return Checkpoint(kind="model", path="PLACE", config=ours().config, weights=stored)


def test_a_model_filled_from_another_has_its_weights():
    model, other = ours(), ours(seed=1)
    assert fill_model(other, checkpoint_of(model)) == []
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())


def test_heads_and_pooler_may_be_missing_and_keep_their_values():
    given, model, untouched = ours(seed=1).state_dict(), ours(), ours()
    heads = [name for name in given if name.startswith(("cls.", "bert.pooler."))]
    assert fill_model(model, checkpoint({name: given[name] for name in given if name not in heads})) == heads
    assert all(torch.equal(model.state_dict()[name], untouched.state_dict()[name]) for name in heads)
    assert torch.equal(model.state_dict()[TABLE], given[TABLE])


@pytest.mark.parametrize("fault", ["missing", "extra", "shape", "vocabulary"])
def test_weights_of_another_shape_are_refused_by_name(fault):
    weights, message = dict(ours().state_dict()), LAYER
    if fault == "missing":
        del weights[LAYER]
    elif fault == "extra":
        message = LAYER.replace("layer.1", "layer.7")
        weights[message] = weights[LAYER]
    elif fault == "shape":
        weights[LAYER] = weights[LAYER][:, :10]
    else:
        message = r"word_embeddings.weight has shape \[50, 32\], expected \[104, 32\]"
        weights[TABLE] = weights[TABLE][:50]
    with pytest.raises(DataError, match=f"PLACE: .*{message}"):
        fill_model(ours(), checkpoint(weights))
