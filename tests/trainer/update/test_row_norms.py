"""TensorFlow's global norm takes the rows of a lookup before equal ones are added."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.update.row_norms import RowNorms, find_row_tables, has_row_norms


def test_a_word_that_comes_twice_counts_each_time():
    table, other = nn.Embedding(5, 2), nn.Parameter(torch.zeros(3))
    norms = RowNorms([table])
    factors = torch.tensor([[3.0, 0.0], [0.0, 4.0], [1.0, 1.0]])  # gradients of words 2, 2 and 4
    ((table(torch.tensor([2, 2, 4])) * factors).sum() + 2 * other.sum()).backward()
    assert table.weight.grad[2].tolist() == [3, 4]
    found = norms.compute_total([table.weight.grad, other.grad])
    assert found.item() == pytest.approx(math.sqrt(9 + 16 + 2 + 12))
    # A later norm without a new lookup is that of the whole gradients.
    assert norms.compute_total([table.weight.grad, other.grad]).item() == pytest.approx(
        math.sqrt(25 + 2 + 12)
    )


def test_a_table_that_is_the_output_layer_too_counts_whole():
    words, types = nn.Embedding(5, 2), nn.Embedding(2, 2)
    bert = SimpleNamespace(embeddings=SimpleNamespace(word_embeddings=words, token_type_embeddings=types))

    def tables(norm, ties):
        return find_row_tables(SimpleNamespace(bert=bert, ties_words=ties), Config.of(clipping_norm=norm))

    assert tables("word_rows", False) == [words]
    assert tables("word_rows", True) == []
    assert tables("word_and_type_rows", True) == [types]


PER_UPDATE = {"clipping_norm": "word_rows", "clipping": "per_update"}


@pytest.mark.parametrize(
    ("keys", "workers", "has_them"),
    [
        ({}, 1, False),
        (PER_UPDATE, 1, True),
        (PER_UPDATE, 2, False),
        ({**PER_UPDATE, "accumulation": 2}, 1, False),
        ({"clipping_norm": "word_rows", "clipping": "per_micro_batch", "accumulation": 2}, 2, True),
        ({**PER_UPDATE, "batch_size": 4, "global_batch_size": 4}, 1, True),
        ({**PER_UPDATE, "batch_size": 4, "global_batch_size": 8}, 1, False),
    ],
)
def test_rows_are_those_of_one_micro_batch(keys, workers, has_them):
    config = Config.of(**keys)
    assert has_row_norms(config, Cpu(config), workers) == has_them


@pytest.mark.parametrize("property", ["ends_updates", "compiles"])
def test_a_device_that_ends_updates_or_compiles_has_none(property):
    device = SimpleNamespace(**{"ends_updates": False, "compiles": False, property: True})
    assert not has_row_norms(Config.of(**PER_UPDATE), device, 1)
