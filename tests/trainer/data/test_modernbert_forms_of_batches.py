"""ModernBERT learns the same from flat batches, padded rows and packs; long sequences; bert imports none."""

from pathlib import Path

import pytest
import torch

from tests.support.kit_models import flat
from tests.support.training_runs import losses, words
from trainer.config.modernbert import ModernBertConfig
from trainer.devices.cpu import cpu_attention
from trainer.model.headed import BertForMaskedLM

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = ("--model-type=modernbert", "--num-hidden-layers=4", "--local-attention=8", "--warmup=0")
NO_DROPOUT = ("--hidden-dropout-prob=0",)


def same_losses(one: Path, other: Path) -> None:
    for found, expected in zip(losses(one), losses(other), strict=True):
        assert found == pytest.approx(expected, abs=2e-5)


def test_rows_and_flat_batches_have_the_same_losses(trainer, block_set, tmp_path):
    run = (*SHAPE, *NO_DROPOUT, "--steps=4")
    assert trainer(*words(block_set, tmp_path / "flat", *run)).status == 0
    assert trainer(*words(block_set, tmp_path / "rows", *run, "--rows")).status == 0
    same_losses(tmp_path / "rows", tmp_path / "flat")


def test_packs_made_at_load_have_the_same_losses_flat_and_as_rows(trainer, block_set, tmp_path):
    run = (*SHAPE, *NO_DROPOUT, "--steps=3", "--pack-on-load", "--masking=dynamic")
    assert trainer(*words(block_set, tmp_path / "flat", *run)).status == 0
    assert trainer(*words(block_set, tmp_path / "other", *run, "--rows")).status == 0
    same_losses(tmp_path / "other", tmp_path / "flat")


def test_a_sequence_of_8192_tokens_is_that_of_its_parts_where_no_layer_sees_further():
    """The middle of each part sees only tokens of its own part: reach times layers from the edges."""
    shape = ModernBertConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=24,
        global_attn_every_n_layers=8,
        initializer_range=0.3,
    )
    torch.manual_seed(1)
    model = BertForMaskedLM(shape).eval()
    model.bert.attention = cpu_attention
    model.bert.encoder.layer[0].attention.self.reach = shape.reach  # layer 0 sees all otherwise
    ids = torch.randint(5, 64, (8192,))
    with torch.no_grad():
        whole = model.bert.encode(flat(ids, torch.tensor([0, 8192]), ids)).normed
        part = model.bert.encode(flat(ids[4096:6144], torch.tensor([0, 2048]), ids[4096:6144])).normed
    edge = 4 * shape.reach
    assert torch.allclose(whole[4096 + edge : 6144 - edge], part[edge:-edge], atol=2e-4)
    assert not torch.allclose(whole[4096 : 4096 + 8], part[:8], atol=1e-2)
