"""Weights under other names than transformers gives them, of other models, and values that are none."""

import os

import pytest
import torch
import transformers
from safetensors.torch import save_model
from torch import Tensor

from bertdata.errors import DataError, MissingInputError
from tests.support.saved_models import WORDS, new_model, our_logits, read_model, rewrite, save, their_logits
from trainer.checkpoints.formats.kinds import read_checkpoint
from trainer.checkpoints.formats.wrapped_names import _find_outer_prefix

KINDS = ("bert", "roberta", "modernbert")


def renamed(prefix: str):
    """The tensors with a part before each name."""
    return lambda tensors: {f"{prefix}{name}": tensor.clone() for name, tensor in tensors.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module.", "network.encoder."]
)
def test_a_wrapped_models_weights_are_its_own(tmp_path, kind, prefix):
    place = save(new_model(kind), tmp_path)
    expected = their_logits(place)
    rewrite(place, renamed(prefix))
    torch.testing.assert_close(our_logits(place), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("encoder", "prefix"),
    [
        ("network.model.bert.", "network.model."),
        ("net.roberta.", "net."),
        ("bert.", ""),
        ("0.auto_model.", "0.auto_model."),
        ("auto_model.", ""),
        ("auto_model.bert.", "auto_model."),
        ("unlike.encoder.", ""),
    ],
)
def test_the_outer_part_of_the_names_is_what_precedes_the_encoder(encoder, prefix):
    """sentence-transformers has the encoder's parts directly in ``auto_model``."""
    names = [f"{encoder}embeddings.word_embeddings.weight", f"{encoder}encoder.layer.0.output.dense.bias"]
    assert _find_outer_prefix(names) == prefix
    assert _find_outer_prefix([*names, "other.weight"]) == ""


def test_a_wrapped_part_of_a_model_is_its_own(tmp_path):
    place = save(new_model("bert"), tmp_path)
    expected = their_logits(place)
    rewrite(
        place,
        lambda tensors: {
            name.replace("bert.encoder.", "bert.encoder._orig_mod."): tensor
            for name, tensor in tensors.items()
        },
    )
    torch.testing.assert_close(our_logits(place), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("key", ["model", "state_dict", "model_state_dict"])
def test_weights_within_a_training_programs_file_are_read(tmp_path, key):
    place = save(new_model("bert"), tmp_path)
    expected = their_logits(place)
    os.remove(place / "model.safetensors")
    tensors = {f"model.{name}": tensor for name, tensor in new_model("bert").state_dict().items()}
    torch.save({key: tensors, "epoch": 3}, place / "pytorch_model.bin")
    torch.testing.assert_close(our_logits(place), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_save_models_file_has_the_embeddings_under_the_decoders_name(tmp_path, kind):
    """safetensors keeps the first of two names of one tensor: of a RoBERTa that of lm_head."""
    model = new_model(kind)
    place = save(model, tmp_path)
    expected = their_logits(place)
    save_model(model, str(place / "model.safetensors"), metadata={"format": "pt"})
    torch.testing.assert_close(our_logits(place), expected, rtol=0, atol=1e-4)


def test_a_tensor_under_two_names_is_refused(tmp_path):
    place = save(new_model("bert"), tmp_path)
    rewrite(place, lambda tensors: tensors | renamed("module.")(tensors))
    with pytest.raises(DataError, match=r"holds bert\.\S+ twice, once as module"):
        read_checkpoint(str(place))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bert.", "distilbert.", "a DistilBERT"),
        ("bert.", "electra.", "an ELECTRA"),
        ("bert.", "base_model.model.bert.", "an adapter of PEFT"),
    ],
)
def test_another_models_weights_are_named_for_what_they_are(tmp_path, old, new, said):
    place = save(new_model("bert"), tmp_path)
    rewrite(place, lambda tensors: {name.replace(old, new, 1): tensor for name, tensor in tensors.items()})
    with pytest.raises(DataError, match=said):
        read_checkpoint(str(place))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensor: tensor.to(torch.int8), "is of the type int8, expected floating-point numbers"),
        (lambda tensor: tensor > 0, "is of the type bool, expected floating-point numbers"),
        (lambda tensor: tensor.index_fill(0, torch.tensor([3]), float("nan")), "no finite numbers"),
        (lambda tensor: tensor.index_fill(0, torch.tensor([3]), float("inf")), "no finite numbers"),
    ],
)
@pytest.mark.parametrize("name", ["bert.pooler.dense.weight", WORDS["bert"]])
def test_weights_that_are_no_numbers_are_refused_by_name(tmp_path, trainer, name, change, said):
    place = save(new_model("bert"), tmp_path / "theirs")

    def changed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors.setdefault("bert.pooler.dense.weight", torch.ones(32, 32))
        tensors["bert.pooler.dense.bias"] = torch.zeros(32)
        return {**tensors, name: change(tensors[name])}

    rewrite(place, changed)
    outcome = trainer("convert", place, tmp_path / "own")
    assert outcome.status == 1
    assert f"{name} " in outcome.err
    assert said in outcome.err
    assert not (tmp_path / "own").exists()


def test_half_precision_is_read(tmp_path):
    place = save(new_model("bert").bfloat16(), tmp_path)
    weight = read_model(place).bert.embeddings.word_embeddings.weight
    assert weight.dtype == torch.float32


@pytest.mark.parametrize("kind", [transformers.XLMRobertaConfig, transformers.CamembertConfig])
def test_the_other_robertas_answer_as_in_transformers(tmp_path, kind):
    shape = new_model("roberta").config.to_dict()
    config = kind(**{name: value for name, value in shape.items() if name != "model_type"})
    torch.manual_seed(3)
    place = save(transformers.AutoModelForMaskedLM.from_config(config), tmp_path)
    torch.testing.assert_close(our_logits(place), their_logits(place), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "said"),
    [("adapter_model.safetensors", "an adapter of PEFT"), ("tf_model.h5", "weights of TensorFlow")],
)
def test_weights_in_a_form_that_is_not_read_are_named(tmp_path, name, said):
    place = save(new_model("bert"), tmp_path)
    os.rename(place / "model.safetensors", place / name)
    with pytest.raises(MissingInputError, match=f"holds {name}, {said}"):
        read_checkpoint(str(place))
