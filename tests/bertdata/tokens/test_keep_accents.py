"""--keep-accents: text is lower-cased and keeps its accents, from train-vocab to a run's files."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import normalizers

import bertdata
from bertdata.config.dialects import find_dialect
from bertdata.dataset.discover import find_datasets
from bertdata.dataset.vocabulary import load_dataset_tokenizer
from bertdata.errors import SettingsError
from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.kept_files import make_tokenizer_files, write_tokenizer_files
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.support.commands import Program
from tests.support.model_directories import WORDS

TEXT = "Er MÖCHTE das. É e\u0301 Ä"


def vocabulary_bytes() -> bytes:
    return "".join(f"{word}\n" for word in [*WORDS, "é", "e\u0301"]).encode()


@pytest.mark.parametrize("engine", ["native", "python"])
def test_words_are_lower_case_and_keep_their_accents(engine: Any) -> None:
    google = find_dialect("google")
    vocabulary = parse_vocabulary(vocabulary_bytes(), "made", google)
    tokenizer = WordPieceTokenizer(vocabulary, google, lower_case=True, keep_accents=True, engine=engine)
    words = [vocabulary.words[number] for number in tokenizer.encode_each([TEXT]).ids]
    expected = normalizers.BertNormalizer(lowercase=True, strip_accents=False).normalize_str(TEXT)
    assert words == expected.replace(".", " .").split()


def test_a_dataset_says_that_its_text_keeps_accents(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(vocabulary_bytes())
    (tmp_path / "part.txt").write_text(f"{TEXT}\n\n")
    for recipe in ("google", "electra"):
        output = tmp_path / recipe
        bertdata.create(
            tmp_path / "part.txt", output, vocab=tmp_path / "vocab.txt", recipe=recipe, keep_accents=True
        )
        dataset = next(iter(find_datasets(str(output))))
        file = load_dataset_tokenizer(None, dataset)
        assert isinstance(file, VocabularyFile)
        assert file.keep_accents
        assert json.loads((output / "manifest.json").read_text())["settings"]["tokenizer"]["keep_accents"]


def test_without_the_flag_a_manifest_does_not_speak_of_it(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(vocabulary_bytes())
    (tmp_path / "part.txt").write_text(f"{TEXT}\n\n")
    bertdata.create(tmp_path / "part.txt", tmp_path / "data", vocab=tmp_path / "vocab.txt", recipe="google")
    assert "keep_accents" not in (tmp_path / "data/manifest.json").read_text()


def test_text_that_keeps_its_case_has_no_such_flag(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(vocabulary_bytes())
    (tmp_path / "part.txt").write_text(f"{TEXT}\n\n")
    with pytest.raises(SettingsError, match="keep_accents goes with lower_case"):
        bertdata.create(
            tmp_path / "part.txt",
            tmp_path / "data",
            vocab=tmp_path / "vocab.txt",
            lower_case=False,
            keep_accents=True,
        )


def test_a_run_keeps_a_tokenizer_json_that_says_it(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(vocabulary_bytes())
    path = str(tmp_path / "vocab.txt")
    file = VocabularyFile(path=path, dialect="google", lower_case=True, keep_accents=True)
    assert set(make_tokenizer_files(file)) == {"tokenizer.json", "tokenizer_config.json"}
    (tmp_path / "run").mkdir()
    write_tokenizer_files(file, str(tmp_path / "run"))
    kept = find_tokenizer_json(str(tmp_path / "run"), {})
    assert vocabulary_of(kept).words == vocabulary_of(file).words
    assert list(tokenizer_of(kept).encode_each([TEXT]).ids) == list(
        tokenizer_of(file).encode_each([TEXT]).ids
    )


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json"])
def test_a_vocabulary_is_trained_with_accents(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program(capsys)
    (tmp_path / "part.txt").write_text("Möchte möchte MÖCHTE mehr.\n" * 5)
    words = ("train-vocab", tmp_path / "part.txt", "--output", tmp_path / name, "--size", 60)
    done = program(*words, "--keep-accents")
    assert done.status == 0, done.err
    text = (tmp_path / name).read_text()
    assert "möchte" in text
    assert "mochte" not in text
    program(*words, "--keep-accents", "--no-lower-case").assert_one_error(2, "--keep-accents goes with")
