"""What goes along when a model is converted: tokeniser, kind, dropout, labels; what is left out by name."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.support.saved_models import add_keys, new_model, rewrite, save
from tests.support.training_runs import refuse, words
from trainer.checkpoints.formats.kinds import read_checkpoint
from trainer.checkpoints.source import open_checkpoint
from trainer.tasks.heads import make_classifier


@pytest.fixture(scope="module")
def form(training_set, tmp_path_factory) -> Path:
    """A model with its tokeniser in transformers' form."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("whole")
    assert main(words(training_set, place / "run", "--steps=1", "--warmup=0", "--no-logs")) == 0
    assert main(["convert", str(place / "run"), str(place / "form")]) == 0
    return place / "form"


def test_the_tokeniser_goes_along_into_the_bertdata_form(trainer, form, tmp_path):
    outcome = trainer("convert", form, tmp_path / "own")
    assert outcome.status == 0
    assert "tokeniser" not in outcome.err
    text = "the [MASK] of stone"
    expected = trainer("predict", form, text, "--json").out
    assert trainer("predict", tmp_path / "own", text, "--json").out == expected


def test_a_model_without_a_tokeniser_says_so(trainer, form, tmp_path):
    place = save(new_model("bert"), tmp_path / "theirs")
    outcome = trainer("convert", place, tmp_path / "own")
    assert outcome.status == 0
    assert "warning: " in outcome.err
    assert "no tokeniser is at hand that could go along; give --vocab" in outcome.err
    outcome = trainer("convert", place, tmp_path / "more", f"--vocab={form / 'vocab.txt'}")
    refuse(outcome, 1, "the model has vocab_size 99")


@pytest.mark.parametrize("to", ["nvidia", "tf1", "tf2"])
def test_a_modernbert_is_refused_for_what_it_is(trainer, tmp_path, to):
    place = save(new_model("modernbert"), tmp_path / "theirs")
    outcome = trainer("convert", place, tmp_path / "out", f"--to={to}")
    refuse(outcome, 2, "is a ModernBERT", "has no such model; expected --to huggingface")
    assert "megatron" not in outcome.err


@pytest.mark.parametrize("to", ["nvidia", "tf1", "tf2"])
@pytest.mark.parametrize(
    ("epsilon", "said"), [(1e-12, ""), (1e-5, ", with layer_norm_eps 1e-12 in place of 1e-05")]
)
def test_a_roberta_comes_back_as_a_roberta_from_a_program_of_berts(trainer, tmp_path, to, epsilon, said):
    place = save(new_model("roberta", layer_norm_eps=epsilon), tmp_path / "theirs")
    outcome = trainer("convert", place, tmp_path / "out", f"--to={to}")
    assert outcome.status == 0
    assert (
        f"a RoBERTa that its program takes for a BERT{said}; read here it is a RoBERTa again" in outcome.out
    )
    there, back = read_checkpoint(str(place)), read_checkpoint(str(tmp_path / "out"))
    assert back.expect_config() == there.expect_config()
    assert back.expect_config().model_type == "roberta"


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_classifier_dropout_is_that_of_transformers(tmp_path, kind):
    place = save(new_model(kind), tmp_path)
    add_keys(place, classifier_dropout=0.4)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(place)
    ours = make_classifier(read_checkpoint(str(place)).expect_config(), 2)
    found = (theirs.dropout if kind == "bert" else theirs.classifier.dropout).p
    assert ours.dropout == found == 0.4
    add_keys(place, classifier_dropout=None)
    assert make_classifier(read_checkpoint(str(place)).expect_config(), 2).dropout == 0.1


def test_classifier_dropout_is_written_back(trainer, tmp_path):
    place = save(new_model("bert"), tmp_path / "theirs")
    add_keys(place, classifier_dropout=0.4)
    assert trainer("convert", place, tmp_path / "own").status == 0
    assert trainer("convert", tmp_path / "own", tmp_path / "back").status == 0
    assert json.loads((tmp_path / "back" / "config.json").read_text())["classifier_dropout"] == 0.4


def test_labels_are_at_hand(tmp_path):
    place = save(new_model("bert"), tmp_path)
    add_keys(place, id2label={"0": "no", "1": "yes"}, problem_type="single_label_classification")
    checkpoint = open_checkpoint(str(place))
    assert checkpoint.label_names == ("no", "yes")
    assert checkpoint.problem == "single_label_classification"


def test_a_classifier_of_tokens_is_left_out_by_name(tmp_path):
    place = save(new_model("bert"), tmp_path)
    rewrite(
        place,
        lambda tensors: {**tensors, "classifier.weight": torch.ones(2, 32), "classifier.bias": torch.ones(2)},
        architectures=["BertForTokenClassification"],
    )
    checkpoint = read_checkpoint(str(place))
    [warning] = checkpoint.warnings
    assert "its classifier is that of a BertForTokenClassification" in warning
    assert not any(name.startswith("classifier.") for name in checkpoint.weights)


def test_an_unknown_key_is_a_warning_of_every_command_that_opens_the_model(
    trainer, form, training_set, tmp_path
):
    place = tmp_path / "theirs"
    place.mkdir()
    for path in form.iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    add_keys(place, hidden_siz=48)
    warning = f"trainer: warning: {place}/config.json: hidden_siz is not a known key and is not read"
    assert warning in trainer("predict", place, "the [MASK]").err
    assert warning in trainer("convert", place, tmp_path / "own").err
    run = words(training_set, tmp_path / "run", "--steps=1", "--warmup=0", "--no-logs")
    outcome = trainer(*run, f"--start-from-ckpt={place}")
    assert outcome.status == 0
    assert outcome.err.count(warning) == 1
    outcome = trainer(*run, f"--output-dir={tmp_path / 'fresh'}", f"--model-config={place / 'config.json'}")
    assert outcome.err.count(warning) == 1
    plan = ("split", f"--model-config={place / 'config.json'}", "--max-seq-length=32", "--batch-size=2")
    outcome = trainer(*plan, "--global-batch-size=4", "--devices=2", "--device-memory=2", "--bandwidth=10")
    assert outcome.err.count(warning) == 1
    assert load_file(tmp_path / "own" / "model.safetensors")


def test_of_two_descriptions_transformers_own_goes_first(tmp_path):
    place = save(new_model("bert", tie_word_embeddings=False), tmp_path)
    (place / "bert_config.json").write_text(json.dumps({"vocab_size": 99, "hidden_size": 48}))
    config = read_checkpoint(str(place)).expect_config()
    assert (config.hidden_size, config.tie_word_embeddings) == (32, False)


def test_a_given_directory_of_a_tokeniser_is_read_whole_too(trainer, form, tmp_path):
    place = tmp_path / "tokeniser"
    place.mkdir()
    (place / "vocab.txt").write_bytes((form / "vocab.txt").read_bytes())
    keys = json.loads((form / "tokenizer_config.json").read_text()) | {"never_split": ["stone"]}
    (place / "tokenizer_config.json").write_text(json.dumps(keys))
    outcome = trainer("predict", form, "the [MASK]", f"--vocab={place}")
    assert outcome.status == 0
    assert "warning: " in outcome.err
    assert "never_split is ['stone'], which is not read" in outcome.err
