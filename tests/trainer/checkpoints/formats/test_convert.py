"""Conversion to Hugging Face form: transformers itself loads what was written, and fills masks."""

import json
import shutil
from pathlib import Path

import pytest
import transformers

from tests.support.training_runs import words
from trainer.__main__ import main


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A finished run of three updates on a copy of the training set, in a directory beside it."""
    place = tmp_path_factory.mktemp("converted")
    shutil.copytree(training_set, place / "set")
    assert main(words(place / "set", place / "run", "--steps=3", "--no-logs")) == 0
    return place / "run"


def test_transformers_fills_masks_with_words_of_the_vocabulary(trainer, run, tmp_path):
    outcome = trainer("convert", run, tmp_path / "bert")
    assert outcome.status == 0
    assert outcome.out.strip().endswith("update 3 in Hugging Face form")
    fill = transformers.pipeline("fill-mask", str(tmp_path / "bert"), top_k=20)
    tokens = (run.parent / "set" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    answers = fill("The [MASK] of the city .")
    assert all(
        answer["token_str"] in {tokens[answer["token"]], tokens[answer["token"]][2:]} for answer in answers
    )
    assert all(answer["sequence"].strip() for answer in answers)


def test_the_tokeniser_makes_the_ids_of_the_training_data(trainer, run, tmp_path, small_vocabulary_file):
    assert trainer("convert", run, tmp_path / "bert").status == 0
    tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")
    assert (tmp_path / "bert" / "vocab.txt").read_bytes() == small_vocabulary_file.read_bytes()
    assert tokeniser("Été THE")["input_ids"] == tokeniser("ete the")["input_ids"]
    assert tokeniser.mask_token == "[MASK]"
    assert tokeniser.model_max_length == 64  # of the examples


def test_casing_is_the_datas_unless_given(trainer, run, tmp_path):
    assert trainer("convert", run, tmp_path / "bert", "--no-lower-case").status == 0
    config = json.loads((tmp_path / "bert" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["do_lower_case"] is False


def test_a_source_that_does_not_exist_is_said_to_be_missing(trainer, tmp_path):
    outcome = trainer("convert", tmp_path / "absent", tmp_path / "form")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"trainer: error: {tmp_path / 'absent'}: no such file or directory\n"


def test_without_vocabulary_and_data_the_vocabulary_is_asked_for(
    trainer, run, tmp_path, small_vocabulary_file
):
    """As in runs of older versions, which keep none."""
    (run.parent / "set").rename(run.parent / "moved")
    (run / "vocab.txt").rename(run.parent / "kept.txt")
    try:
        outcome = trainer("convert", run, tmp_path / "none")
        assert outcome.status == 0
        assert "without a tokeniser: the vocabulary is not at hand; give --vocab" in outcome.out
        assert not (tmp_path / "none" / "vocab.txt").exists()
        for name, flag in {
            "vocabulary": f"--vocab={small_vocabulary_file}",
            "data": f"--train-data={run.parent / 'moved'}",
        }.items():
            assert trainer("convert", run, tmp_path / name, flag).out.strip().endswith("Hugging Face form")
            assert (tmp_path / name / "vocab.txt").read_bytes() == small_vocabulary_file.read_bytes()
        gone = trainer("convert", run, tmp_path / "gone", f"--train-data={run.parent / 'set'}")
        assert gone.status == 2
        assert str(run.parent / "set") in gone.err
    finally:
        (run.parent / "moved").rename(run.parent / "set")
        (run.parent / "kept.txt").rename(run / "vocab.txt")


def test_another_vocabulary_than_the_datas_is_refused(trainer, run, tmp_path):
    other = tmp_path / "vocab.txt"
    other.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n", encoding="utf-8")
    outcome = trainer("convert", run, tmp_path / "bert", f"--vocab={other}")
    assert outcome.status == 2
    assert f"{other}: is another vocabulary than the run was trained with" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "bert").exists()
