"""Other programs' checkpoints: our model's outputs are theirs, and what is written comes back."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bertdata.errors import DataError, MissingInputError, SettingsError
from tests.support.checkpoint_outputs import filled, largest_differences, with_snappy_blocks
from tests.support.made_checkpoints import CONFIG, made
from trainer.checkpoints.any_checkpoint import Checkpoint, StoredTensor
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.kinds import WRITERS, read_checkpoint
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle, write_bundle
from trainer.checkpoints.formats.tensor_bundle.object_graph import GRAPH_KEY, encode_graph, parse_graph
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError
from trainer.model.headed import BertForPreTraining

SEQUENCE, POOLED = "sequence_output_last", "pooled_output"
WORDS, PAIRS = "masked_lm_log_probs", "next_sentence_log_probs"
BOTH_HEADS = {SEQUENCE, POOLED, WORDS, PAIRS}


@pytest.fixture
def checkpoints(kit) -> Path:
    return kit / "checkpoints"


# Reading


@pytest.mark.parametrize(
    ("name", "kind", "outputs", "compared", "lacks"),
    [
        ("tf1_google", "tf1", "outputs.npz", BOTH_HEADS, 0),
        ("tf1_mlperf_lamb", "tf1", "outputs.npz", BOTH_HEADS, 0),
        ("tf2_encoder_2.3.0", "tf2", "outputs.npz", {SEQUENCE, POOLED}, 7),
        ("tf2_pretrainer_2.5.0", "tf2", "outputs.npz", {WORDS}, 2),
        ("pytorch_nvidia", "nvidia", "outputs.npz", BOTH_HEADS, 0),
        ("pytorch_nvidia", "habana", "outputs_habana.npz", BOTH_HEADS, 0),
    ],
)
def test_outputs_are_the_programs(checkpoints, name, kind, outputs, compared, lacks):
    place, google = checkpoints / name, checkpoints / "tf1_google"
    config = None if (place / "bert_config.json").exists() else str(google / "bert_config.json")
    read = read_checkpoint(str(place), "habana" if kind == "habana" else None, config)
    assert read.kind == kind
    model, missing = filled(read)
    assert len(missing) == lacks
    inputs = place if "lamb" in name else google
    found = largest_differences(model, inputs, place / outputs)
    assert found.keys() == compared
    assert max(found.values()) < 1e-5, found


def test_an_index_with_snappy_blocks_is_read(checkpoints, kit, tmp_path):
    place = with_snappy_blocks(kit, tmp_path / "copy")
    model, missing = filled(read_checkpoint(str(place)))
    google = checkpoints / "tf1_google"
    found = largest_differences(model, google, google / "outputs.npz")
    assert (missing, found.keys()) == ([], BOTH_HEADS)
    assert max(found.values()) < 1e-5, found


def test_habana_computes_the_exact_gelu_and_the_others_the_tanh_form(checkpoints):
    place = str(checkpoints / "pytorch_nvidia")
    kinds = {kind: read_checkpoint(place, kind).expect_config().hidden_act for kind in ("nvidia", "habana")}
    assert kinds == {"nvidia": "gelu_new", "habana": "gelu"}
    model, _ = filled(read_checkpoint(place, "habana"))
    google = checkpoints / "tf1_google"
    assert max(largest_differences(model, google, Path(place) / "outputs.npz").values()) > 1e-4


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tf1_google/model.ckpt-3", "tf1"),
        ("tf1_google/model.ckpt-3.index", "tf1"),
        ("tf1_google/model.ckpt-3.data-00000-of-00001", "tf1"),
        ("tf2_pretrainer_2.5.0/bert_model.ckpt-1", "tf2"),
        ("pytorch_nvidia/ckpt_0.pt", "nvidia"),
    ],
)
def test_any_path_of_a_checkpoint_names_it(checkpoints, path, kind):
    assert read_checkpoint(str(checkpoints / path)).kind == kind


def test_moments_are_those_of_the_optimisers_slots(checkpoints):
    for name, slots, optimiser in (
        ("tf1_google", ("adam_m", "adam_v"), "adamw-bert"),
        ("tf1_mlperf_lamb", ("LAMB", "LAMB_1"), "lamb-mlperf"),
    ):
        read = read_checkpoint(str(checkpoints / name))
        bundle = Bundle(str(checkpoints / name / "model.ckpt-3"))
        assert (read.updates, read.optimiser) == (3, optimiser)
        kernel = "bert/encoder/layer_1/intermediate/dense/kernel"
        for slot, kind in zip(slots, ("exp_avg", "exp_avg_sq"), strict=True):
            moment = read.moments[f"{kind}/bert.encoder.layer.1.intermediate.dense.weight"].read()
            assert torch.equal(moment, bundle.read(f"{kernel}/{slot}").t())
        assert {key.partition("/")[2] for key in read.moments} == read.weights.keys()
        assert all(
            read.moments[key].read().min() >= 0 for key in read.moments if key.startswith("exp_avg_sq")
        )


# Names


def listed(checkpoints: Path, name: str) -> dict[str, Tensor]:
    """Tensors of the names, shapes and types of a list, with random values, tied ones the same."""
    draw = torch.Generator().manual_seed(0)
    lines = json.loads((checkpoints / "names" / f"{name}.json").read_text(encoding="utf-8"))
    tensors = {}
    for entry, shape, *kind in lines:
        values = torch.randn(shape, generator=draw)
        tensors[entry] = values.long() if kind == ["torch.int64"] else values
    ties = {
        "decoder.weight": "bert.embeddings.word_embeddings.weight",
        "decoder.bias": "cls.predictions.bias",
    }
    for end, other in ties.items():
        if (tied := f"cls.predictions.{end}") in tensors:
            tensors[tied] = tensors[other]
    return tensors


@pytest.mark.parametrize(
    ("name", "vocab_size", "changes"),
    [
        ("pytorch_habana", 216, {}),
        ("pytorch_graphcore", 211, {}),
        (
            "pytorch_nvidia_squad",
            101,
            {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
             "max_position_embeddings": 40},
        ),
    ],
)  # fmt: skip
def test_every_name_of_the_pytorch_programs_is_known(checkpoints, tmp_path, name, vocab_size, changes):
    tensors = listed(checkpoints, name)
    torch.save({"model": tensors}, tmp_path / "weights.pt")
    read = read_checkpoint(str(tmp_path / "weights.pt"))
    config = ModelConfig(vocab_size=vocab_size, **{**CONFIG, **changes})
    model = BertForPreTraining(config)
    missing = fill_model(model, read)
    heads = {"qa_outputs.weight", "qa_outputs.bias"} if "squad" in name else set()
    assert {entry for entry in read.weights if entry not in model.state_dict()} == heads
    assert all(entry.startswith("cls.") for entry in missing)
    assert bool(missing) == bool(heads)
    for entry in heads:
        assert torch.equal(read.weights[entry].read(), tensors[entry])
    table = model.bert.embeddings.word_embeddings.weight
    assert torch.equal(table[:vocab_size], tensors["bert.embeddings.word_embeddings.weight"])
    layer = model.bert.encoder.layer[1].intermediate
    names = [entry for entry in tensors if ".layer.1.intermediate.dense" in entry and "weight" in entry]
    assert torch.equal(layer.dense.weight, tensors[names[0]])


def test_graphcores_pieces_of_the_word_embeddings_are_joined(checkpoints, tmp_path):
    tensors = listed(checkpoints, "pytorch_graphcore")
    words = tensors.pop("bert.embeddings.word_embeddings.weight")
    for number, piece in reversed(list(enumerate(words.split(20)))):
        tensors[f"bert.embeddings.word_embeddings.split_embeddings.{number}.weight"] = piece.clone()
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    read = read_checkpoint(str(tmp_path), "graphcore")
    stored = read.weights["bert.embeddings.word_embeddings.weight"]
    assert stored.shape == (211, 32)
    assert torch.equal(stored.read(), words)
    assert not any("position_ids" in name or "split" in name for name in read.weights)


def test_pieces_of_the_word_embeddings_with_rows_of_different_sizes_are_one_line(checkpoints, tmp_path):
    tensors = listed(checkpoints, "pytorch_graphcore")
    words = tensors.pop("bert.embeddings.word_embeddings.weight")
    for number, piece in enumerate(words.split(50)):
        piece = piece[:, :20] if number == 1 else piece
        tensors[f"bert.embeddings.word_embeddings.split_embeddings.{number}.weight"] = piece.clone()
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    first = r"\[\[50, 32\], \[50, 20\], \[50, 32\]\]"  # three of five
    message = f"word_embeddings.weight is in pieces of shapes {first}, expected rows of one size"
    with pytest.raises(DataError, match=message):
        read_checkpoint(str(tmp_path), "graphcore")


def test_gradient_accumulators_of_mlperfs_conversion_are_left_out(checkpoints, tmp_path):
    with write_bundle(str(tmp_path / "model.ckpt-0")) as bundle:
        for name, tensor in listed(checkpoints, "tf1_mlperf_with_gradient_accumulators").items():
            bundle.add(name, tensor.long() if name.startswith("global_step") else tensor)
    read = read_checkpoint(str(tmp_path))
    plain = read_checkpoint(str(checkpoints / "tf1_mlperf_lamb"))
    for found, wanted in ((read.weights, plain.weights), (read.moments, plain.moments)):
        assert {name: item.shape for name, item in found.items()} == {
            name: item.shape for name, item in wanted.items()
        }


# Writing


def assert_same(found: Checkpoint, wanted: Checkpoint, *, with_moments: bool = True) -> None:
    """The same tensors, bit for bit, the vocabulary's padding aside."""
    rows = wanted.expect_config().vocab_size
    for parts in ("weights", "moments")[: 1 + with_moments]:
        there, before = getattr(found, parts), getattr(wanted, parts)
        assert there.keys() == before.keys()
        for name, tensor in before.items():
            is_table = name.endswith(("word_embeddings.weight", "predictions.bias"))
            values = (there[name].read(), tensor.read())
            one, other = (value[:rows] if is_table else value for value in values)
            assert there[name].shape == tuple(values[0].shape)
            assert torch.equal(one, other), name


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_what_is_written_comes_back_bit_for_bit(tmp_path, kind, act):
    checkpoint = made(hidden_act=act)
    path = WRITERS[kind](checkpoint, str(tmp_path / "there"))
    for place in (path, str(tmp_path / "there")):
        read = read_checkpoint(place)
        assert read.kind == kind
        assert_same(read, checkpoint, with_moments=kind != "huggingface")
        assert read.config == checkpoint.config
        assert read.updates == (None if kind == "huggingface" else 7)


def test_writing_again_what_was_read_gives_the_same_variables(checkpoints, tmp_path):
    for name in ("tf1_google", "tf1_mlperf_lamb"):
        place = checkpoints / name
        before = Bundle(str(place / "model.ckpt-3"))
        after = Bundle(WRITERS["tf1"](read_checkpoint(str(place)), str(tmp_path / name)))
        assert {name: entry.shape for name, entry in after.entries.items()} == {
            name: entry.shape for name, entry in before.entries.items()
        }
        for variable in before.entries:
            torch.testing.assert_close(after.read(variable), before.read(variable), rtol=1e-6, atol=0)
        assert (tmp_path / name / "checkpoint").read_text() == (place / "checkpoint").read_text()


def test_nvidias_names_are_those_of_its_model(checkpoints, tmp_path):
    source = read_checkpoint(str(checkpoints / "pytorch_nvidia"))
    path = WRITERS["nvidia"](source, str(tmp_path / "there"))
    found = torch.load(path, weights_only=True)["model"]
    original = torch.load(checkpoints / "pytorch_nvidia" / "ckpt_0.pt", weights_only=True)["model"]
    assert found.keys() == original.keys()
    assert all(torch.equal(found[name], original[name]) for name in original)


def test_nvidias_moments_have_the_numbers_that_its_program_gives(tmp_path):
    """Weights with decay first, then the others, each in the order of the model."""
    checkpoint = made()
    path = WRITERS["nvidia"](checkpoint, str(tmp_path / "there"))
    content = torch.load(path, weights_only=True)
    names = [name for name in content["model"] if name != "cls.predictions.decoder.weight"]
    decays = [name for name in names if not any(part in name for part in ("bias", "LayerNorm"))]
    order = decays + [name for name in names if name not in decays]
    groups = content["optimizer"]["param_groups"]
    assert [number for group in groups for number in group["params"]] == list(range(len(order)))
    assert [len(group["params"]) for group in groups] == [len(decays), len(order) - len(decays)]
    assert [(group["weight_decay"], group["step"]) for group in groups] == [(0.01, 7), (0.0, 7)]
    for number, name in enumerate(order):
        moment = content["optimizer"]["state"][number]["exp_avg"]
        assert torch.equal(moment, checkpoint.moments[f"exp_avg/{name.replace('dense_act', 'dense')}"].read())
    order_of_model = [
        name.replace("dense", "dense_act") if "dense" in name else name for name in checkpoint.weights
    ]
    assert [name for name in order_of_model if name in names] == [
        name for name in names if name in order_of_model
    ]


def test_heads_of_fine_tuning_go_along(tmp_path):
    encoder = {name: item for name, item in made().weights.items() if name.startswith("bert.")}
    heads = {
        "qa_outputs.weight": torch.randn(2, 32),
        "qa_outputs.bias": torch.randn(2),
        "classifier.weight": torch.randn(3, 32),
        "classifier.bias": torch.randn(3),
    }
    weights = {**encoder, **{name: StoredTensor.of(tensor) for name, tensor in heads.items()}}
    checkpoint = replace(made(), weights=weights, moments={})
    for kind in ("tf1", "nvidia", "huggingface"):
        read = read_checkpoint(WRITERS[kind](checkpoint, str(tmp_path / kind)))
        for name, tensor in heads.items():
            assert torch.equal(read.weights[name].read(), tensor), (kind, name)
        model, missing = filled(read)
        assert torch.equal(model.bert.pooler.dense.weight, encoder["bert.pooler.dense.weight"].read())
        assert all(name.startswith("cls.") for name in missing)


def test_the_next_sentence_head_of_older_versions_is_found_by_its_full_name(tmp_path):
    """The converters of 2.1 to 2.3 name it so; where it hangs in the graph differs."""
    checkpoint = made()
    source = Bundle(WRITERS["tf2"](checkpoint, str(tmp_path / "there")))
    nodes = parse_graph(source.read_text(GRAPH_KEY))
    model = nodes[nodes[0].children["model"]]
    out = nodes[nodes[nodes[model.children.pop("classification_heads")].children["0"]].children["out_proj"]]
    for name in ("kernel", "bias"):
        nodes[out.children[name]].full_name = f"predictions/transform/logits/{name}"
    with write_bundle(str(tmp_path / "older")) as bundle:
        for name in source.entries:
            if name != GRAPH_KEY:
                bundle.add(name, source.read(name))
        bundle.add_text(GRAPH_KEY, encode_graph(nodes))
    shutil.copy(tmp_path / "there" / "bert_config.json", tmp_path)
    assert_same(read_checkpoint(str(tmp_path / "older")), checkpoint)


# Refused


def test_without_a_description_of_the_model_one_is_asked_for(checkpoints):
    read = read_checkpoint(str(checkpoints / "tf2_encoder_2.3.0"))
    with pytest.raises(CheckpointError, match="no bert_config.json beside it; name one with --model-config"):
        read.expect_config()


def test_a_kind_that_the_files_are_not_is_named(checkpoints, tmp_path):
    with pytest.raises(SettingsError, match=r"is a checkpoint of kind tf1, not tf2"):
        read_checkpoint(str(checkpoints / "tf1_google"), "tf2")
    with pytest.raises(MissingInputError, match=r"found no \.index file"):
        read_checkpoint(str(checkpoints / "pytorch_nvidia"), "tf1")
    (tmp_path / "a.pt").touch()
    (tmp_path / "b.pt").touch()
    with pytest.raises(MissingInputError, match=r"holds 2 \.pt files, expected one; name the file"):
        read_checkpoint(str(tmp_path), "nvidia")


def test_several_tensorflow_checkpoints_in_a_directory_are_told_apart_by_their_names(checkpoints, tmp_path):
    for number in (1, 2):
        for path in (checkpoints / "tf1_google").glob("model.ckpt-3.*0*"):
            shutil.copy(path, tmp_path / path.name.replace("-3", f"-{number}"))
        shutil.copy(
            checkpoints / "tf1_google" / "model.ckpt-3.index", tmp_path / f"model.ckpt-{number}.index"
        )
    with pytest.raises(DataError, match=r"holds 2 TensorFlow checkpoints, the first model.ckpt-1.index"):
        read_checkpoint(str(tmp_path))
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/elsewhere/model.ckpt-2"\n')
    assert read_checkpoint(str(tmp_path)).path == str(tmp_path / "model.ckpt-2")


def test_another_models_variables_are_no_bert(tmp_path):
    with write_bundle(str(tmp_path / "model")) as bundle:
        bundle.add("resnet/conv1/kernel", torch.zeros(3, 3))
    with pytest.raises(CheckpointError, match=r"no BERT: found 1 variables, the first resnet/conv1/kernel"):
        read_checkpoint(str(tmp_path / "model"))


class Loader:
    """A stranger's class, pickled beside the weights as older programs of NVIDIA did with their loaders."""


def test_pickled_loaders_are_refused_with_the_remedy(checkpoints, tmp_path):
    weights = torch.load(checkpoints / "pytorch_nvidia" / "ckpt_0.pt", weights_only=True)["model"]
    torch.save({"model": weights, "data_loader": Loader()}, tmp_path / "old.pt")
    with pytest.raises(DataError) as caught:
        read_checkpoint(str(tmp_path / "old.pt"))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'old.pt'}: not weights that can be read without unpickling")
    assert "test_checkpoints.Loader" in message
    assert message.endswith("save its tensors alone: torch.save({'model': checkpoint['model']}, FILE)")
    assert "\n" not in message
