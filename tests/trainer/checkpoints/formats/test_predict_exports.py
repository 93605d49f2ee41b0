"""Words guessed at [MASK] by exported models: those of transformers' own pipeline, and of the run."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from tests.support.training_runs import refuse, words
from trainer.__main__ import main

TEXT = "The [MASK] of the old city is Été [MASK] ."


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A finished run of three updates on a copy of the training set, in a directory beside it."""
    place = tmp_path_factory.mktemp("predicting")
    shutil.copytree(training_set, place / "set")
    assert main(words(place / "set", place / "run", "--steps=3", "--no-logs")) == 0
    assert main(["convert", str(place / "run"), str(place / "bert")]) == 0
    return place / "run"


def test_casing_is_that_of_the_exported_tokeniser_unless_given(trainer, run, tmp_path):
    form = tmp_path / "bert"
    shutil.copytree(run.parent / "bert", form)
    lower = trainer("predict", form, "[MASK] PARIS", "--json").out
    assert trainer("predict", form, "[MASK] PARIS", "--json", "--no-lower-case").out != lower
    config = json.loads((form / "tokenizer_config.json").read_text(encoding="utf-8"))
    (form / "tokenizer_config.json").write_text(json.dumps({**config, "do_lower_case": False}))
    assert trainer("predict", form, "[MASK] paris", "--json").out == lower
    assert trainer("predict", form, "[MASK] PARIS", "--json").out != lower


def test_a_vocabulary_two_folders_above_a_checkpoint_of_no_run_is_not_its(trainer, run, tmp_path):
    place = tmp_path / "work" / "starts" / "bert"
    assert trainer("convert", run.parent / "bert", place, "--to=bertdata").status == 0
    (place / "vocab.txt").rename(tmp_path / "work" / "vocab.txt")
    refuse(trainer("predict", place, TEXT), 2, "its vocabulary is not at hand")


def test_an_encoder_without_a_head_is_refused(trainer, run, tmp_path):
    encoder = transformers.BertModel.from_pretrained(run.parent / "bert")
    encoder.save_pretrained(tmp_path / "encoder")
    shutil.copy(run.parent / "bert" / "vocab.txt", tmp_path / "encoder")
    refuse(trainer("predict", tmp_path / "encoder", "[MASK]"), 1, "without a masked-word head")


def test_words_and_probabilities_are_those_of_transformers(trainer, run):
    form = run.parent / "bert"
    tokenizer = transformers.AutoTokenizer.from_pretrained(form)
    model = transformers.AutoModelForMaskedLM.from_pretrained(form).eval()
    batch = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        shares = model(**batch).logits[0].softmax(1)[batch["input_ids"][0] == tokenizer.mask_token_id]
    values, ids = shares.topk(7)
    for source in (run, form, run / "checkpoints" / "step-00000003"):
        outcome = trainer("predict", source, TEXT, "--num=7", "--json")
        assert outcome.status == 0
        guesses = json.loads(outcome.out)
        expected = [tokenizer.convert_ids_to_tokens(one.tolist()) for one in ids]
        assert [[word for word, _ in one] for one in guesses] == expected
        assert [[share for _, share in one] for one in guesses] == [
            pytest.approx(one.tolist(), rel=1e-4) for one in values
        ]


def test_an_export_says_what_its_run_says_whatever_the_directory(trainer, run, tmp_path, monkeypatch):
    shutil.copytree(run, tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    expected = trainer("predict", run, TEXT, "--json").out
    assert trainer("convert", "elsewhere", "bert").out == "bert: update 3 in Hugging Face form\n"
    assert trainer("predict", "bert", TEXT, "--json").out == expected


def test_a_vocabulary_that_does_not_fit_or_is_missing_is_one_line(trainer, run, tmp_path):
    form = tmp_path / "bert"
    shutil.copytree(run.parent / "bert", form)
    (form / "vocab.txt").write_text(
        "".join(f"{n}\n" for n in range(40_000)) + "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
    )
    refuse(trainer("predict", form, "[MASK]"), 1, "has 40005 tokens, the model has vocab_size")
    (form / "vocab.txt").unlink()
    refuse(trainer("predict", form, "[MASK]"), 2, "holds neither vocab.txt nor tokenizer.json; give --vocab")
    refuse(trainer("predict", tmp_path / "absent", "[MASK]"), 2, "absent: no such file or directory")
