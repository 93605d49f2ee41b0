"""Footprints of fake tensors beside those of real ones, and counts by hand."""

import pytest
import torch

from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.model.headed import BertForMaskedLM, BertForPreTraining
from trainer.splitting.plan.footprint import LiveBytes, measure_footprints, measure_part
from trainer.splitting.plan.parts import Shape, list_layer_names, list_part_names, make_part
from trainer.tasks.heads import make_answerer
from trainer.tasks.pretraining import MaskedWords

MODEL = {"vocab_size": 96, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}


def config(pre_norm=False):
    return ModelConfig(**MODEL, intermediate_size=64, megatron_residual_connection=pre_norm)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", ["scores", "flat"])
@pytest.mark.parametrize("head", ["pretraining", "masked_words"])
@pytest.mark.thorough_after_first
def test_fake_tensors_count_as_real_ones_do(head, attention, precision, pre_norm):
    shape = Shape(rows=2, length=8, masked=2, attention=attention)
    counted = measure_footprints(config(pre_norm), shape, precision, head)
    for name in list_part_names(config()):
        part = make_part(name, config(pre_norm), shape, head)
        assert measure_part(part, shape, precision) == counted[name], name


def test_the_parts_have_all_parameters_of_the_model():
    shape = Shape(rows=1, length=8, masked=2, attention="fused")
    parts = measure_footprints(config(), shape, "fp32", "pretraining")
    layers = config().num_hidden_layers * parts["layer"].parameters
    whole = parts["embeddings"].parameters + layers + parts["heads"].parameters
    assert whole == BertForPreTraining(config()).count_weights()
    assert parts["heads"].tied == 96 * 16


def test_masked_words_alone_have_neither_pooler_nor_next_sentence_head():
    shape = Shape(rows=2, length=8, masked=2, attention="fused")
    both, alone = (
        measure_footprints(config(), shape, "fp32", head) for head in ("pretraining", "masked_words")
    )
    pooler, pairs = 16 * 16 + 16, 2 * 16 + 2
    assert both["heads"].parameters - alone["heads"].parameters == pooler + pairs
    assert both["heads"].forward.flops - alone["heads"].forward.flops == 2 * 2 * (16 * 16 + 2 * 16)
    assert alone["heads"].tied == both["heads"].tied
    assert (alone["embeddings"], alone["layer"]) == (both["embeddings"], both["layer"])


class OwnTask(MaskedWords):
    """A task of one's own on masked words."""

    name = f"{__name__}:OwnTask"


def test_a_task_of_ones_own_says_by_its_model_what_is_planned():
    shape = Shape(rows=2, length=8, masked=2, attention="fused")
    own = measure_footprints(config(), shape, "fp32", OwnTask.name)
    assert own == measure_footprints(config(), shape, "fp32", "masked_words")


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_layer_hands_over_one_tensor_or_two(pre_norm):
    shape = Shape(rows=2, length=8, masked=2, attention="fused")
    parts = measure_footprints(config(pre_norm), shape, "fp32", "pretraining")
    assert parts["layer"].handed == (1 + pre_norm) * 2 * 8 * 16 * 4


def test_live_bytes_follow_tensors():
    with LiveBytes() as live:
        first = torch.ones(100)
        second = first + first
        del first
    assert (live.now, live.peak) == (400, 800)
    assert live.moved == 400 + 3 * 400
    del second
    assert live.now == 0


def modern() -> ModernBertConfig:
    return ModernBertConfig(**MODEL | {"num_hidden_layers": 5}, intermediate_size=24, local_attention=8)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", ["scores", "flat"])
@pytest.mark.thorough_after_first
def test_fake_tensors_of_a_modernbert_count_as_real_ones_do(attention, precision):
    shape = Shape(rows=2, length=24, masked=2, attention=attention)
    counted = measure_footprints(modern(), shape, precision, "masked_words")
    assert list(counted) == ["embeddings", "layer", "local layer", "heads"]
    for name in list_part_names(modern()):
        part = make_part(name, modern(), shape, "masked_words")
        assert measure_part(part, shape, precision) == counted[name], name


def test_the_parts_of_a_modernbert_have_all_its_parameters():
    shape = Shape(rows=1, length=8, masked=2, attention="fused")
    parts = measure_footprints(modern(), shape, "fp32", "masked_words")
    layers = sum(parts[name].parameters for name in list_layer_names(modern()))
    whole = parts["embeddings"].parameters + layers + parts["heads"].parameters
    assert whole == BertForMaskedLM(modern()).count_weights()
    small = measure_footprints(modern(), shape, "fp32", "squad")
    whole = small["embeddings"].parameters + layers + small["heads"].parameters
    assert whole == make_answerer(modern()).count_weights()


@pytest.mark.parametrize("attention", ["flat", "fused"])
def test_a_local_layer_has_the_operations_of_its_window_and_keeps_as_much(attention):
    length, heads, size = 512, 2, 8
    shape = Shape(rows=1, length=length, masked=2, attention=attention)
    parts = measure_footprints(modern(), shape, "fp32", "masked_words")
    whole, local = parts["layer"], parts["local layer"]
    assert local.kept == whole.kept
    seen = (whole.forward.flops - local.forward.flops) / (4 * length * heads * size)
    assert length - 9 > seen > length - 80  # blocks of at least 32 tokens see as many more
