"""A model's directory in the trainer: AutoTokenizer's ids, and added tokens that keep their rows."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bertdata.cli.main import main as bertdata_main
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from tests.support.model_directories import COVID, german_directory
from trainer.__main__ import main as trainer_main
from trainer.data.named_tokenizer import find_named_tokenizer

transformers = pytest.importorskip("transformers")

TEXT = "Er möchte covid19."
TOKENS = ["er", "möchte", "covid19", "."]
ROWS = COVID + 1


def model_directory(path: Path) -> Path:
    """A small BERT whose row of covid19 is 9.0, with the tokeniser of german_directory."""
    german_directory(path)
    torch.manual_seed(0)
    shape = transformers.BertConfig(
        vocab_size=ROWS,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    model = transformers.BertForMaskedLM(shape)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[COVID] = 9.0
    model.save_pretrained(path)
    return path


def run(*words: object) -> None:
    assert trainer_main([str(word) for word in words]) == 0


def test_the_row_of_an_added_token_stays_and_the_export_has_the_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, part = model_directory(tmp_path / "m"), tmp_path / "part.txt"
    part.write_text(f"{TEXT}\nDas möchte er.\n\n" * 2)
    words = ["create", part, "--output", tmp_path / "data", "--tokenizer", model]
    words += ["--objective", "mlm", "--no-masks", "--max-seq-length", "32"]
    assert bertdata_main([str(word) for word in words]) == 0
    run("pretrain", "--start-from-ckpt", model, "--base-learning-rate", "1e-12", "--steps", "1",
        "--train-data", tmp_path / "data", "--output-dir", tmp_path / "run", "--masking", "dynamic",
        "--batch-size", "2", "--device", "cpu", "--no-logs")  # fmt: skip
    printed = capsys.readouterr()
    assert "new token" not in printed.out + printed.err
    (weights,) = (tmp_path / "run").glob("checkpoints/*/model.safetensors")
    rows = next(table for name, table in load_file(weights).items() if "word_embeddings" in name)
    assert rows[COVID].tolist() == pytest.approx([9.0] * 16)
    run("convert", tmp_path / "run", tmp_path / "hf")
    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "hf"))
    assert loaded.tokenize(TEXT) == TOKENS


def test_a_model_is_opened_with_autotokenizers_ids(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m")
    file = find_named_tokenizer(str(directory))
    expected = transformers.AutoTokenizer.from_pretrained(str(directory))
    ids = list(tokenizer_of(file).encode_each([TEXT]).ids)
    assert ids == expected(TEXT, add_special_tokens=False)["input_ids"]
    assert [vocabulary_of(file).words[number] for number in ids] == TOKENS


def test_a_class_that_is_not_known_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_directory(tmp_path / "m")
    settings = json.loads((model / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "BertJapaneseTokenizer"
    (model / "tokenizer_config.json").write_text(json.dumps(settings))
    capsys.readouterr()  # transformers shows its progress
    assert trainer_main(["predict", str(model), "Er [MASK]."]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "its tokeniser is BertJapaneseTokenizer, which is not known here" in lines[0]


def test_text_whose_accents_are_read_otherwise_is_told(tmp_path: Path) -> None:
    from bertdata.tokens.files import VocabularyFile
    from trainer.checkpoints.vocabulary_fit import _find_casing

    directory = german_directory(tmp_path / "m")
    vocabulary = VocabularyFile(path=str(directory / "vocab.txt"), dialect="google", lower_case=True)
    assert _find_casing(find_named_tokenizer(str(directory))) == (True, False)
    assert _find_casing(vocabulary) == (True, True)


def test_a_dataset_of_a_directory_is_found_by_that_directory(tmp_path: Path) -> None:
    from bertdata.dataset.discover import find_datasets
    from bertdata.dataset.vocabulary import load_dataset_tokenizer

    # The configuration says other steps than tokenizer.json: no file of the directory is the dataset's.
    directory = german_directory(tmp_path / "m", strip_accents=True)
    (tmp_path / "part.txt").write_text(f"{TEXT}\nDas er.\n\n")
    words = ["create", tmp_path / "part.txt", "--output", tmp_path / "data", "--tokenizer", directory]
    assert (
        bertdata_main([str(word) for word in [*words, "--objective", "mlm", "--max-seq-length", "32"]]) == 0
    )
    dataset = next(iter(find_datasets(str(tmp_path / "data"))))
    file = load_dataset_tokenizer(str(directory), dataset)
    assert file is not None
    assert file.path == str(directory)
