"""Models of masked words alone in transformers' form: BertForMaskedLM and RobertaForMaskedLM, both ways."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.support.kit_models import flat
from tests.support.made_checkpoints import checkpoint_of
from tests.support.training_runs import refuse, words
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.huggingface import read_huggingface, write_huggingface
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.model.headed import BertForMaskedLM

SHAPE = ModelConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=40,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def filled(path: Path) -> BertForMaskedLM:
    """The model of a directory in transformers' form. Each of its weights is in the file."""
    checkpoint = read_huggingface(str(path))
    model = BertForMaskedLM(checkpoint.expect_config()).eval()
    assert fill_model(model, checkpoint) == []
    return model


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_transformers_loads_what_is_written_and_it_comes_back_bit_for_bit(tmp_path, kind):
    changed = {"model_type": kind, "type_vocab_size": 1, "pad_token_id": 3}
    shape = read_model_config({**SHAPE.as_json(), **changed})
    ours = BertForMaskedLM(shape).eval()
    write_huggingface(checkpoint_of(ours), str(tmp_path))
    theirs, report = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == f"{kind.capitalize()}ForMaskedLM"
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ids = torch.randint(5, 99, (1, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = theirs.eval()(input_ids=ids).logits[0]
        found = ours(flat(ids[0], torch.tensor([0, 40]), ids[0])).masked_lm[:, :99]
    assert torch.allclose(found, expected, atol=1e-5)
    again = filled(tmp_path)
    assert again.config == shape
    for name, value in ours.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_what_transformers_saves_of_a_roberta_is_read(tmp_path):
    config = transformers.RobertaConfig(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=42,
        type_vocab_size=1,
    )
    theirs = transformers.RobertaForMaskedLM(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = filled(tmp_path)
    assert ours.config.max_position_embeddings == 40
    ids = torch.randint(5, 99, (1, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = theirs(input_ids=ids).logits[0]
        found = ours(flat(ids[0], torch.tensor([0, 40]), ids[0])).masked_lm[:, :99]
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_run_becomes_a_roberta_that_transformers_fills_masks_with(trainer, block_set, tmp_path):
    run = words(block_set, tmp_path / "run", "--steps=2", "--warmup=0", "--model-type=roberta")
    assert trainer(*run, "--type-vocab-size=1", "--no-logs").status == 0
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    written = load_file(tmp_path / "form" / "model.safetensors")
    assert len(written["roberta.embeddings.position_embeddings.weight"]) == 513
    fill = transformers.pipeline("fill-mask", str(tmp_path / "form"), top_k=5)
    theirs = [answer["token_str"] for answer in fill("a [MASK] of stone")]
    (ours,) = json.loads(trainer("predict", tmp_path / "run", "a [MASK] of stone", "--json").out)
    assert [word.removeprefix("##") for word, _ in ours] == [word.removeprefix("##") for word in theirs]


def test_a_model_of_masked_words_comes_back_without_a_random_head(trainer, block_set, tmp_path):
    assert trainer(*words(block_set, tmp_path / "run", "--steps=2", "--warmup=0", "--no-logs")).status == 0
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    outcome = trainer("convert", tmp_path / "form", tmp_path / "back")
    assert outcome.status == 0
    assert "random" not in outcome.out
    names = load_file(tmp_path / "back" / "model.safetensors")
    assert not [name for name in names if "seq_relationship" in name or "pooler" in name]


def test_a_roberta_with_a_next_sentence_head_is_refused(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path / "run", "--steps=1", "--model-type=roberta")
    assert trainer(*run, "--warmup=0", "--no-logs", "--type-vocab-size=2").status == 0
    outcome = trainer("convert", tmp_path / "run", tmp_path / "form")
    refuse(outcome, 2, "model_type roberta: the model has a head cls.seq_relationship")
