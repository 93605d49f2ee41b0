"""Words guessed at [MASK]: those of transformers' own pipeline, from a run and from its exported form."""

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


def test_five_words_stand_on_a_line_for_each_mask(trainer, run):
    outcome = trainer("predict", run, TEXT)
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert len(lines) == 2
    assert all(line.count(", ") == 4 and line.count("%") == 5 for line in lines)


def test_casing_is_that_of_the_exported_tokeniser_unless_given(trainer, run, tmp_path):
    form = tmp_path / "bert"
    shutil.copytree(run.parent / "bert", form)
    lower = trainer("predict", form, "[MASK] PARIS", "--json").out
    assert trainer("predict", form, "[MASK] PARIS", "--json", "--no-lower-case").out != lower
    config = json.loads((form / "tokenizer_config.json").read_text(encoding="utf-8"))
    (form / "tokenizer_config.json").write_text(json.dumps({**config, "do_lower_case": False}))
    assert trainer("predict", form, "[MASK] paris", "--json").out == lower
    assert trainer("predict", form, "[MASK] PARIS", "--json").out != lower


def test_wrong_input_is_one_line(trainer, run, tmp_path):
    form = tmp_path / "bert"
    shutil.copytree(run.parent / "bert", form)
    refuse(trainer("predict", run, "no mask here"), 2, "has no [MASK]")
    refuse(trainer("predict", run, "[MASK] " * 600), 2, "sequences of 602 ids, at most")
    refuse(trainer("predict", run, "[MASK]", "--num=0"), 2, "--num 0: expected 1 or more")
    refuse(trainer("predict", tmp_path / "absent", "[MASK]"), 2, "absent: holds no checkpoint")
    (form / "vocab.txt").write_text(
        "".join(f"{n}\n" for n in range(40_000)) + "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
    )
    refuse(trainer("predict", form, "[MASK]"), 1, "has 40005 tokens, the model has vocab_size")
    (form / "vocab.txt").unlink()
    refuse(trainer("predict", form, "[MASK]"), 2, "holds no vocab.txt; give --vocab")


def test_an_encoder_without_a_head_is_refused(trainer, run, tmp_path):
    encoder = transformers.BertModel.from_pretrained(run.parent / "bert")
    encoder.save_pretrained(tmp_path / "encoder")
    shutil.copy(run.parent / "bert" / "vocab.txt", tmp_path / "encoder")
    refuse(trainer("predict", tmp_path / "encoder", "[MASK]"), 1, "without a masked-word head")
