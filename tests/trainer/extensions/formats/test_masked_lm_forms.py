"""Models of masked words alone in transformers' form: BertForMaskedLM and RobertaForMaskedLM, both ways."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

from tests.support.made_checkpoints import checkpoint_of
from tests.support.training_runs import refuse, words
from trainer.checkpoint.filling import fill_model
from trainer.checkpoint.stored import StoredTensor, unpadded
from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.extensions.formats.huggingface import read_huggingface, write_huggingface
from trainer.extensions.formats.roberta import to_roberta
from trainer.model.bert import BertForMaskedLM

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


def flat(ids: Tensor, ends: Tensor, labels: Tensor) -> FlatBatch:
    """The sequences in a row, a masked slot for each token. labels: -100 for one that does not count."""
    starts, sizes = ends[:-1], ends.diff()
    used = labels != -100
    return FlatBatch(
        input_ids=ids.int(),
        token_type_ids=torch.zeros_like(ids).int(),
        position_ids=torch.cat([torch.arange(int(size)) for size in sizes]).int(),
        ends=ends.int(),
        first_rows=starts.int(),
        masked_lm_rows=torch.arange(len(ids)).int(),
        masked_lm_ids=torch.where(used, labels, 0).int(),
        masked_lm_weights=used.float(),
        next_sentence_labels=torch.zeros(len(sizes)).int(),
        longest=int(sizes.max()),
        tokens=len(ids),
    )


def filled(path: Path) -> BertForMaskedLM:
    """The model of a directory in transformers' form. Each of its weights is in the file."""
    checkpoint = read_huggingface(str(path))
    model = BertForMaskedLM(checkpoint.expect_config()).eval()
    assert fill_model(model, checkpoint) == []
    return model


@pytest.mark.parametrize("batch", range(3))
def test_hidden_states_logits_and_losses_are_the_original_robertas(kit, batch):
    place = kit / "encoders" / "models" / "roberta"
    model = filled(place)
    with np.load(place / "outputs.npz") as found:
        expected = {
            name.removeprefix(f"batch{batch}/flat/"): torch.from_numpy(found[name])
            for name in found
            if name.startswith(f"batch{batch}/flat/")
        }
    given = flat(*(expected[name].long() for name in ("input_ids", "cu_seqlens", "labels")))
    with torch.no_grad():
        hidden = model.bert.encode(given).normed
        logits = model(given).masked_lm[:, : model.config.vocab_size]
    assert torch.allclose(hidden, expected["hidden_3"], atol=1e-5)
    assert torch.allclose(logits, expected["logits"], atol=1e-5)
    used = given.masked_lm_weights > 0
    loss = torch.nn.functional.cross_entropy(logits[used], given.masked_lm_ids[used].long())
    assert float(loss) == pytest.approx(float(expected["loss"]), abs=1e-5)


def test_norm_and_sum_of_each_gradient_are_the_original_robertas(kit):
    place = kit / "encoders" / "models" / "roberta"
    model = filled(place).eval()
    with np.load(place / "outputs.npz") as found:
        parts = [
            torch.from_numpy(found[f"batch0/flat/{name}"]).long()
            for name in ("input_ids", "cu_seqlens", "labels")
        ]
    given = flat(*parts)
    logits = model(given).masked_lm[:, : model.config.vocab_size]
    used = given.masked_lm_weights > 0
    torch.nn.functional.cross_entropy(logits[used], given.masked_lm_ids[used].long()).backward()
    expected = json.loads((place / "gradients.json").read_text(encoding="utf-8"))
    gradients = {name: StoredTensor.of(weight.grad) for name, weight in model.named_parameters()}
    ours = to_roberta(unpadded(gradients, model.config), model.config)
    assert ours.keys() == expected.keys()
    for name, (norm, total) in expected.items():
        values = ours[name].read().double()
        bound = 1e-5 * norm + 1e-7  # the biases of the keys have no gradient but rounding, some 1e-9
        assert float(values.norm()) == pytest.approx(norm, rel=0, abs=bound), name
        assert float(values.sum()) == pytest.approx(total, rel=0, abs=bound), name


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_transformers_loads_what_is_written_and_it_comes_back_bit_for_bit(tmp_path, kind):
    shape = ModelConfig(**{**SHAPE.as_json(), "model_type": kind, "type_vocab_size": 1, "pad_token_id": 3})
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
    run = words(training_set, tmp_path / "run", "--steps=1", "--warmup=0", "--model-type=roberta")
    assert trainer(*run, "--no-logs").status == 0
    outcome = trainer("convert", tmp_path / "run", tmp_path / "form")
    refuse(outcome, 2, "model_type roberta: the model has a head cls.seq_relationship")
