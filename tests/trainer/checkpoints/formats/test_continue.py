"""Pre-training that goes on with a model of Hugging Face's form: its vocabulary and its rows."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

import bertdata as face
from tests.support.tokenizer_files import train_bpe
from tests.support.training_runs import refuse, words
from trainer.__main__ import main
from trainer.checkpoints.any_checkpoint import WORD_BIAS, WORDS
from trainer.checkpoints.source import open_checkpoint
from trainer.checkpoints.vocabulary_fit import fit_vocabulary
from trainer.config.settings import Config

pytestmark = pytest.mark.usefixtures("one_thread")

NEW = ("wikiwiki", "##zzzz", "\u2603")
"""One of known pieces, one that continues a word, one without pieces."""


def make_set(corpus: list[Path], place: Path, vocabulary: Path) -> Path:
    sizes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    face.create(corpus[:1], place, vocab=str(vocabulary), workers=1, **sizes)
    return place


@pytest.fixture(scope="module")
def known(pretrained: Path) -> list[str]:
    """The tokens of the model."""
    return (pretrained / "vocab.txt").read_text(encoding="utf-8").splitlines()


def data_with(corpus: list[Path], place: Path, tokens: list[str]) -> Path:
    place.mkdir()
    file = place / "words.txt"
    file.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return make_set(corpus, place / "set", file)


@pytest.fixture(scope="module")
def wider_set(corpus, known, tmp_path_factory) -> Path:
    return data_with(corpus, tmp_path_factory.mktemp("wider") / "data", [*known, *NEW])


def test_new_tokens_begin_with_the_mean_of_their_pieces(pretrained, known, wider_set):
    said: list[str] = []
    checkpoint = open_checkpoint(str(pretrained))
    config = checkpoint.expect_config()
    shape = type(config)(**config.as_json() | {"vocab_size": len(known) + len(NEW)})
    found = fit_vocabulary(checkpoint, shape, Config.of(train_data=str(wider_set)), said.append)
    ids = {word: number for number, word in enumerate(known)}
    for name in (WORDS, WORD_BIAS):
        before, after = checkpoint.weights[name].read(), found.weights[name].read()
        assert after.shape == (shape.vocab_size, *before.shape[1:])
        assert torch.equal(after[: len(known)], before[: len(known)])
        mean_of_all = before[: len(known)].double().mean(0).float()
        assert torch.equal(after[len(known) + 2], mean_of_all)  # no snowman in the vocabulary
        pieces = greedy("wikiwiki", ids)
        assert len(pieces) > 1
        assert torch.equal(after[len(known)], before[pieces].double().mean(0).float())
        assert torch.equal(after[len(known) + 1], before[greedy("zzzz", ids)].double().mean(0).float())
    assert said == [
        "3 new tokens, 'wikiwiki' to '\u2603': each row is the mean of its pieces' rows, "
        "of 1 without known pieces the mean of all"
    ]


def greedy(word: str, ids: dict[str, int]) -> list[int]:
    """WordPiece by hand."""
    found, start = [], 0
    while start < len(word):
        end = max(
            end for end in range(start + 1, len(word) + 1) if ("##" * (start > 0)) + word[start:end] in ids
        )
        found.append(ids[("##" * (start > 0)) + word[start:end]])
        start = end
    return found


def test_a_run_says_what_is_taken_and_what_is_drawn(trainer, pretrained, wider_set, tmp_path):
    outcome = trainer(
        *words(wider_set, tmp_path / "run", f"--start-from-ckpt={pretrained}", "--steps=1", "--warmup=0")
    )
    assert outcome.status == 0, outcome.err
    assert "trainer: 3 new tokens, 'wikiwiki'" in outcome.err
    assert (
        f"taken from {pretrained}: bert.embeddings, bert.encoder, bert.pooler, cls.predictions" in outcome.err
    )
    assert "drawn anew" not in outcome.err
    form = tmp_path / "form"
    assert trainer("convert", tmp_path / "run", form).status == 0
    assert (form / "vocab.txt").read_text(encoding="utf-8").splitlines()[-3:] == list(NEW)


def test_an_encoder_without_heads_has_them_drawn(trainer, pretrained, training_set, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(pretrained, bare)
    weights = load_file(bare / "model.safetensors")
    save_file(
        {name: one for name, one in weights.items() if name.startswith("bert.e")}, bare / "model.safetensors"
    )
    run = words(training_set, tmp_path / "run", f"--start-from-ckpt={bare}", "--steps=1", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert (
        f"taken from {bare}: bert.embeddings, bert.encoder; "
        "drawn anew: bert.pooler, cls.predictions, cls.seq_relationship"
    ) in outcome.err


def test_other_ids_are_one_error(trainer, pretrained, corpus, known, tmp_path):
    swapped = [*known[:-2], known[-1], known[-2]]
    data = data_with(corpus, tmp_path / "data", swapped)
    outcome = trainer(*words(data, tmp_path / "run", f"--start-from-ckpt={pretrained}"))
    found = f"{pretrained}/vocab.txt: id {len(known) - 2} is {known[-2]!r}, in the data"
    refuse(outcome, 1, found, repr(known[-1]), "make the data with the model's own tokeniser")


def test_unused_tokens_may_become_words(pretrained, corpus, known, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(pretrained, model)
    (model / "vocab.txt").write_text("\n".join([*known[:-1], "[unused7]"]) + "\n", encoding="utf-8")
    data = data_with(corpus, tmp_path / "data", [*known[:-1], "wikiwiki"])
    said: list[str] = []
    checkpoint = open_checkpoint(str(model))
    shape = checkpoint.expect_config()
    found = fit_vocabulary(checkpoint, shape, Config.of(train_data=str(data)), said.append)
    ids = {word: number for number, word in enumerate(known[:-1])}
    before, after = checkpoint.weights[WORDS].read(), found.weights[WORDS].read()
    wanted = before[greedy("wikiwiki", ids)].double().mean(0).float()
    assert torch.equal(after[len(known) - 1], wanted)
    assert said[0].startswith("1 new tokens")


def test_a_model_without_a_tokeniser_goes_on_with_a_warning(trainer, pretrained, training_set, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(pretrained / name, bare / name)
    run = words(training_set, tmp_path / "run", f"--start-from-ckpt={bare}", "--steps=1", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert f"warning: {bare}: no tokeniser beside it" in outcome.err


def test_another_casing_is_a_warning(trainer, pretrained, training_set, tmp_path):
    cased = tmp_path / "cased"
    shutil.copytree(pretrained, cased)
    settings = json.loads((cased / "tokenizer_config.json").read_text(encoding="utf-8"))
    (cased / "tokenizer_config.json").write_text(
        json.dumps(settings | {"do_lower_case": False}), encoding="utf-8"
    )
    run = words(training_set, tmp_path / "run", f"--start-from-ckpt={cased}", "--steps=1", "--warmup=0")
    outcome = trainer(*run)
    assert (
        f"warning: {cased}: its text was read in another way: lower case in the data, case kept"
        in outcome.err
    )


@pytest.fixture(scope="module")
def roberta(corpus, tmp_path_factory) -> Path:
    """A RoBERTa's export, its data, and data of the same tokeniser with a token more."""
    folder = tmp_path_factory.mktemp("roberta")
    lines = [line for part in corpus for line in part.read_text(encoding="utf-8").splitlines()]
    file = train_bpe(folder / "tokenizer.json", lines, 600)
    grown = Tokenizer.from_file(str(file))
    grown.add_tokens(["\u0120Wikipedia"])
    (folder / "grown").mkdir()
    grown.save(str(folder / "grown" / "tokenizer.json"))
    sizes = {"max_seq_length": 48, "max_predictions_per_seq": 7, "dupe_factor": 1}
    for name, one in (("set", file), ("grown-set", folder / "grown" / "tokenizer.json")):
        face.create(corpus[:1], folder / name, tokenizer=one, workers=1, objective="mlm", **sizes)
    more = ("--model-type=roberta", "--type-vocab-size=1", "--steps=1", "--warmup=0", "--no-logs")
    assert main(words(folder / "set", folder / "run", *more)) == 0
    assert main(["convert", str(folder / "run"), str(folder / "form")]) == 0
    return folder


def test_a_roberta_goes_on_with_its_own_tokeniser_and_a_token_more(trainer, roberta, tmp_path):
    run = words(
        roberta / "grown-set",
        tmp_path / "run",
        f"--start-from-ckpt={roberta / 'form'}",
        "--steps=1",
        "--warmup=0",
    )
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert "trainer: 1 new tokens" in outcome.err
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    config = json.loads((tmp_path / "form" / "config.json").read_text(encoding="utf-8"))
    assert (config["model_type"], config["vocab_size"]) == ("roberta", 602)


def test_another_role_is_one_error(trainer, roberta, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(roberta / "form", other)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        given = json.loads((other / name).read_text(encoding="utf-8"))
        (other / name).write_text(
            json.dumps(given | {"mask_token": "<unk>", "unk_token": "<mask>"}), encoding="utf-8"
        )
    outcome = trainer(*words(roberta / "set", tmp_path / "run", f"--start-from-ckpt={other}"))
    refuse(outcome, 1, "the mask token is '<unk>', in the data", "'<mask>'")
