"""Models whose word logits have weights of their own: read, trained and written as transformers does."""

from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

from bertdata.errors import DataError
from tests.support.saved_models import (
    DECODER,
    KINDS,
    WORDS,
    new_model,
    our_logits,
    rewrite,
    save,
    their_logits,
)
from tests.support.training_runs import refuse, words
from trainer.checkpoints.formats.huggingface import write_huggingface
from trainer.checkpoints.formats.kinds import read_checkpoint

OURS = "cls.predictions.decoder.weight"


def untied(kind: str, path: Path) -> Path:
    """Save a model with a decoder of its own."""
    return save(new_model(kind, tie_word_embeddings=False), path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_untied_model_answers_as_transformers_does_and_comes_back(tmp_path, kind):
    expected = their_logits(untied(kind, tmp_path / "theirs"))
    torch.testing.assert_close(our_logits(tmp_path / "theirs"), expected, rtol=0, atol=1e-4)
    write_huggingface(read_checkpoint(str(tmp_path / "theirs")), str(tmp_path / "back"))
    loaded, report = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "back", output_loading_info=True
    )
    assert loaded.config.tie_word_embeddings is False
    assert not report["missing_keys"]
    torch.testing.assert_close(their_logits(tmp_path / "back"), expected, rtol=0, atol=1e-4)


def test_the_decoder_is_trained_evaluated_and_exported_apart_from_the_embeddings(
    trainer, block_set, tmp_path
):
    flags = ("--tie-word-embeddings=false", "--warmup=0", "--no-logs")
    first = words(block_set, tmp_path / "first", "--steps=1", *flags)
    assert trainer(*first).status == 0
    start = tmp_path / "first" / "checkpoints" / "step-00000001"
    again = words(block_set, tmp_path / "more", "--steps=2", "--warmup=0", "--no-logs")
    outcome = trainer(*again, f"--start-from-ckpt={start}")
    assert outcome.status == 0, outcome.err
    before = load_file(start / "model.safetensors")
    after = load_file(tmp_path / "more" / "checkpoints" / "step-00000002" / "model.safetensors")
    assert not torch.equal(before[OURS], after[OURS])
    assert not torch.equal(after[OURS], after["bert.embeddings.word_embeddings.weight"])
    assert trainer("convert", tmp_path / "more", tmp_path / "form").status == 0
    form = load_file(tmp_path / "form" / "model.safetensors")
    assert torch.equal(form[OURS], after[OURS][: len(form[OURS])])
    found = []
    for name in ("more", "form"):
        measured = ("evaluate", f"--eval-data={block_set}", f"--start-from-ckpt={tmp_path / name}")
        assert trainer(*measured, f"--output-dir={tmp_path / f'of {name}'}").status == 0
        lines = (tmp_path / f"of {name}" / "eval_results.txt").read_text().splitlines()
        found.append([line for line in lines if "global_step" not in line])
    assert found[0] == found[1]


@pytest.mark.parametrize("to", ["nvidia", "tf1", "tf2"])
def test_programs_whose_output_layer_is_tied_refuse_the_model(trainer, tmp_path, to):
    untied("bert", tmp_path / "theirs")
    outcome = trainer("convert", tmp_path / "theirs", tmp_path / "out", f"--to={to}")
    refuse(outcome, 2, "tie_word_embeddings is false", "whose word logits have weights of their own")


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_beside_tied_embeddings_is_taken_as_transformers_5_takes_it(tmp_path, kind):
    place = save(new_model(kind), tmp_path)
    rewrite(place, lambda tensors: {**tensors, DECODER[kind]: tensors[WORDS[kind]].flip(0)})
    torch.testing.assert_close(our_logits(place), their_logits(place), rtol=0, atol=1e-4)
    [warning] = read_checkpoint(str(place)).warnings
    assert "other values than the word embeddings" in warning


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_decoders_bias_is_taken_as_transformers_5_takes_it(tmp_path, kind, tied):
    """In transformers 4.48 to 5 a RoBERTa's is decoder.bias; a BERT's was predictions.bias before 5."""
    place = save(new_model(kind, tie_word_embeddings=tied), tmp_path)
    name = DECODER[kind].replace("weight", "bias")
    rewrite(place, lambda tensors: {**tensors, name: torch.linspace(-1, 1, 99)})
    torch.testing.assert_close(our_logits(place), their_logits(place), rtol=0, atol=1e-4)
    [warning] = read_checkpoint(str(place)).warnings
    assert "cls.predictions.decoder.bias has other values than cls.predictions.bias" in warning


@pytest.mark.parametrize("kind", KINDS)
def test_an_untied_model_without_its_decoder_is_refused(tmp_path, kind):
    place = untied(kind, tmp_path)

    def without(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in tensors.items() if name != DECODER[kind]}

    rewrite(place, without)
    with pytest.raises(DataError, match="tie_word_embeddings is false, but the file lacks the decoder"):
        read_checkpoint(str(place))


def test_an_untied_encoder_alone_needs_no_decoder(tmp_path):
    save(new_model("bert", tie_word_embeddings=False).bert, tmp_path)
    assert read_checkpoint(str(tmp_path)).expect_config().tie_word_embeddings is False


def test_nvidias_file_with_another_decoder_is_refused(tmp_path):
    model = new_model("bert", tie_word_embeddings=False)
    torch.save({"model": model.state_dict()}, tmp_path / "ckpt_1.pt")
    with pytest.raises(DataError, match="decoder.weight has other values"):
        read_checkpoint(str(tmp_path / "ckpt_1.pt"))
