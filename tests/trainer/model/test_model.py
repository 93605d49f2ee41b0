"""The model against transformers' BertForPreTraining, and against plain references in this module."""

import itertools
import math

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn import functional as F

from bertdata.config.declared import derive_schemas
from bertdata.config.value_check import list_types
from bertdata.errors import SettingsError
from tests.support.flat import flatten
from tests.support.small_models import (
    SMALL,
    B,
    P,
    S,
    assert_equal_transformers,
    assert_norms_in_32_bits,
    make_batch,
    ours,
)
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.sections.model import MODEL_SECTION
from trainer.devices.cpu import cpu_attention
from trainer.model.bert import check_memory
from trainer.model.headed import BertForPreTraining
from trainer.model.layers import ACTIVATIONS, SelfAttention
from trainer.model.padded_attention import padded_attention
from trainer.tasks.pretraining import compute_pretraining_loss, cross_entropy


@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
@pytest.mark.parametrize("padded", [True, False])
def test_logits_losses_and_gradients_equal_transformers(hidden_act, padded):
    examples = make_batch(padded=padded)
    slots = (examples.masked_lm_positions.long() + S * torch.arange(B)[:, None])[
        examples.masked_lm_weights > 0
    ]
    assert_equal_transformers(ours(hidden_act=hidden_act), flatten(examples), examples, slots)


def test_parameters_have_transformers_names():
    config = transformers.BertConfig(**SMALL)
    wanted = {name for name, _ in transformers.BertForPreTraining(config).named_parameters()}
    assert {name for name, _ in ours().named_parameters()} == wanted
    assert set(ours().state_dict()) == wanted


def test_rows_beyond_the_vocabulary_have_no_mass_and_no_gradient():
    batch = flatten(make_batch())
    model = ours()
    with torch.no_grad():
        model.cls.predictions.bias[99:] = 50
    logits = model(batch)
    assert logits.masked_lm.shape[1] == 104
    assert (logits.masked_lm.softmax(1)[:, 99:] == 0).all()
    compute_pretraining_loss(logits, batch).loss.backward()
    assert (model.bert.embeddings.word_embeddings.weight.grad[99:] == 0).all()
    assert (model.cls.predictions.bias.grad[99:] == 0).all()


@pytest.mark.parametrize("attention", [padded_attention, cpu_attention])
@pytest.mark.parametrize("options", [{}, {"megatron_residual_connection": True}, {"scale_query_key": True}])
def test_padding_to_a_budget_changes_no_loss_and_no_gradient(options, attention):
    examples, found = make_batch(), []
    for batch in (flatten(examples), flatten(examples, budget=B * S + 7, slots=B * P - 3)):
        model = ours(**options)
        model.bert.attention = attention
        outcome = compute_pretraining_loss(model(batch), batch)
        outcome.loss.backward()
        found.append((outcome, [parameter.grad for parameter in model.parameters()]))
    assert len(batch.input_ids) > batch.tokens
    (wanted, gradients), (padded, of_padded) = found
    torch.testing.assert_close(padded, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_padded, gradients, rtol=1e-5, atol=1e-5)


def test_sums_are_those_of_a_plain_count():
    batch = flatten(make_batch())
    model = ours()
    logits = model(batch)
    outcome = compute_pretraining_loss(logits, batch)
    correct = loss = weight = 0.0
    for row, (scores, wanted) in enumerate(zip(logits.masked_lm, batch.masked_lm_ids.flatten(), strict=True)):
        share = float(batch.masked_lm_weights.flatten()[row])
        correct += share * (int(scores.argmax()) == int(wanted))
        loss -= share * float(scores.detach().double().log_softmax(0)[wanted])
        weight += share
    right = int((logits.next_sentence.argmax(1) == batch.next_sentence_labels).sum())
    labels = batch.next_sentence_labels.long()
    pair_loss = float(F.cross_entropy(logits.next_sentence.detach(), labels, reduction="sum"))
    sums = [loss, weight, correct, weight, pair_loss, B, right, B]
    assert outcome.sums.tolist() == pytest.approx(sums, rel=1e-5)
    assert outcome.loss.item() == pytest.approx(loss / weight + pair_loss / B, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy_is_stable_and_equals_pytorchs(dtype):
    logits = torch.tensor([[1e4, -1e4, 0], [-300, -301, -300.5], [0.5, 0.25, 3]], dtype=dtype)
    logits.requires_grad_()
    ids = torch.tensor([1, 0, 2])
    found, right = cross_entropy(logits, ids)
    (found * torch.tensor([0.5, 2, 1])).sum().backward()
    twin = logits.detach().float().requires_grad_()
    wanted = F.cross_entropy(twin, ids, reduction="none")
    (wanted * torch.tensor([0.5, 2, 1])).sum().backward()
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(logits.grad.float(), twin.grad, rtol=1e-2, atol=1e-6)
    assert found.dtype == torch.float32
    assert right.tolist() == [0, 1, 1]


def test_a_batch_without_masks_has_loss_zero():
    examples = make_batch()
    examples.masked_lm_weights.zero_()
    batch = flatten(examples, slots=3)
    losses = compute_pretraining_loss(ours()(batch), batch)
    losses.loss.backward()
    assert losses.sums[:4].tolist() == [0, 0, 0, 0]
    assert losses.loss.item() == pytest.approx(float(losses.sums[4] / B))


def megatron(model: BertForPreTraining, ids: Tensor, types: Tensor) -> Tensor:
    """Pre-norm BERT, one sequence, written out: the final vectors (S, hidden)."""
    weights = {name.removeprefix("bert."): value for name, value in model.state_dict().items()}
    heads = model.config.num_attention_heads

    def norm(x, name):
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-12).sqrt()
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    tables = "embeddings.{}_embeddings.weight"
    x = weights[tables.format("word")][ids] + weights[tables.format("token_type")][types]
    x = x + weights[tables.format("position")][: len(ids)]
    before_attention = "embeddings.LayerNorm"
    for number in range(model.config.num_hidden_layers):
        layer = f"encoder.layer.{number}"
        normed = norm(x, before_attention)
        q, k, v = (linear(normed, f"{layer}.attention.self.{name}") for name in ("query", "key", "value"))
        seen = [
            torch.softmax(a @ b.T / math.sqrt(a.shape[1]), dim=1) @ c
            for a, b, c in zip(q.chunk(heads, 1), k.chunk(heads, 1), v.chunk(heads, 1), strict=True)
        ]
        x = x + linear(torch.cat(seen, 1), f"{layer}.attention.output.dense")
        normed = norm(x, f"{layer}.attention.output.LayerNorm")
        wide = F.gelu(linear(normed, f"{layer}.intermediate.dense"))
        x = x + linear(wide, f"{layer}.output.dense")
        before_attention = f"{layer}.output.LayerNorm"
    return norm(x, before_attention)


@pytest.mark.parametrize("scaled", [True, False])
def test_megatron_form_equals_the_written_out_one(scaled):
    batch = flatten(make_batch())
    model = ours(megatron_residual_connection=True, scale_query_key=scaled)
    found = model.bert(batch)[0]
    for start, end in itertools.pairwise(batch.ends[: B + 1].tolist()):
        wanted = megatron(model, batch.input_ids[start:end], batch.token_type_ids[start:end])
        torch.testing.assert_close(found[start:end], wanted, rtol=1e-4, atol=1e-5)


def test_scaled_query_and_key_give_the_same_numbers():
    batch = flatten(make_batch())
    plain, scaled = ours()(batch), ours(scale_query_key=True)(batch)
    torch.testing.assert_close(scaled.masked_lm, plain.masked_lm, rtol=0, atol=1e-5)


@pytest.mark.parametrize("number", [1, 2, 96])
def test_scores_of_scaled_query_and_key_are_those_of_rannc(number):
    torch.manual_seed(1)
    head = 64
    query, key = torch.randn(2, 5, head, dtype=torch.float64)
    divisor = math.sqrt(number * math.sqrt(head))
    rannc = (query / divisor) @ (key / divisor).T * number
    attention = SelfAttention(ModelConfig(hidden_size=2 * head, num_attention_heads=2, scale_query_key=True))
    scale = attention.query_key_scale
    assert scale is not None
    torch.testing.assert_close((query * scale) @ (key * scale).T, rannc)


def test_weights_start_with_the_wanted_deviations():
    for deep in (False, True):
        torch.manual_seed(1)
        model = BertForPreTraining(
            ModelConfig(**{**SMALL, "hidden_size": 128, "num_hidden_layers": 8}, deep_weight_init=deep)
        )
        for name, value in model.named_parameters():
            if name.endswith("LayerNorm.weight"):
                assert (value == 1).all(), name
            elif value.dim() == 1:
                assert (value == 0).all(), name
            elif value.numel() > 4000:
                residual = name.endswith("output.dense.weight")
                wanted = 0.2 / 4 if deep and residual else 0.2
                assert float(value.detach().std()) == pytest.approx(wanted, rel=0.05), name
        assert (model.bert.embeddings.word_embeddings.weight[99:] == 0).all()


def test_dropout_follows_the_seed():
    batch = flatten(make_batch())
    model = ours().train()
    runs = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        runs.append(model(batch).masked_lm)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize("first", [False, True])
def test_autocast_keeps_the_residual_in_16_bits_and_norms_in_32(first):
    assert_norms_in_32_bits(ours(megatron_residual_connection=first), flatten(make_batch()))


def test_a_sequence_longer_than_the_positions_is_refused():
    with pytest.raises(SettingsError, match="sequences of 24 ids, the model has max_position_embeddings 20"):
        ours(max_position_embeddings=20)(flatten(make_batch()))


# Configurations


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hiden_size": 32}, "hiden_size is not a known key; the nearest known is hidden_size"),
        ({"num_attention_heads": 5}, "hidden_size is 32, no multiple of num_attention_heads (5)"),
        (
            {"hidden_act": "swish"},
            "hidden_act is 'swish', expected one of gelu, gelu_new, gelu_pytorch_tanh, relu, silu",
        ),
        ({"hidden_dropout_prob": 1}, "hidden_dropout_prob is 1, expected less than 1"),
        ({"hidden_size": "32"}, "hidden_size is '32', expected an integer"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0, expected 1 or more"),
        ({"deep_weight_init": 1}, "deep_weight_init is 1, expected true or false"),
        ({"model_type": "gpt2"}, "model_type is 'gpt2', expected one of bert, roberta"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    ],
)
def test_wrong_configurations_are_refused_by_name(changes, message):
    with pytest.raises(SettingsError) as caught:
        read_model_config({**SMALL, **changes}, "DIR/config.json")
    assert str(caught.value).startswith("DIR/config.json: ")
    assert message in str(caught.value)


def test_whole_numbers_are_whole_however_json_writes_them():
    config = read_model_config({**SMALL, "hidden_size": 32.0, "hidden_dropout_prob": 0})
    assert (type(config.hidden_size), type(config.hidden_dropout_prob)) == (int, float)
    assert config == ModelConfig(**SMALL, hidden_dropout_prob=0.0)


def test_activations_are_those_declared_and_each_key_of_a_shape_can_be_given_inline():
    schema, own = derive_schemas(ModelConfig), derive_schemas(MODEL_SECTION)
    assert schema["hidden_act"]["enum"] == list(ACTIVATIONS)
    assert set(own) - set(schema) == {"model_config", "gelu"}
    for name in schema:
        assert {*list_types(own[name])} - {"null"} == {*list_types(schema[name])} - {"null"}, name
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        assert [own[name].get(one) for one in bounds] == [schema[name].get(one) for one in bounds], name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_size": 10**9, "num_attention_heads": 1},
            "hidden_size is 1000000000, expected at most 262144",
        ),
        ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000, expected at most 4096"),
        ({"vocab_size": 2**40}, "vocab_size is 1099511627776, expected at most 2097152"),
    ],
)
def test_a_shape_beyond_any_model_is_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        read_model_config(changes, "config.json")


def test_a_model_beyond_any_machine_is_refused():
    """Its weights by hand: embeddings and their norm, layers, the head of words, pooler and head of pairs."""
    width, inner, layers = 262_144, 1_048_576, 64
    dense, norm = width * width + width, 2 * width
    layer = 4 * dense + 2 * norm + 2 * width * inner + inner + width
    heads = dense + norm + 30_528 + dense + 2 * width + 2
    weights = (30_528 + 512 + 2) * width + norm + layers * layer + heads
    shape = {"hidden_size": width, "intermediate_size": inner, "num_attention_heads": 1}
    with torch.device("meta"):
        model = BertForPreTraining(ModelConfig(**shape, num_hidden_layers=layers))
    found = f"a model of {weights:,} parameters takes .* GiB, this machine has .* GiB"
    with pytest.raises(SettingsError, match=found):
        check_memory(model.count_weights())
