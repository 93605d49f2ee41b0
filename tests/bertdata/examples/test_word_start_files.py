"""Examples with word starts in every container, and masks of whole words that are drawn of them."""

from pathlib import Path
from typing import Any

import pytest

import bertdata
from bertdata.cli.main import main
from bertdata.errors import SettingsError
from bertdata.shards.containers import open_reader
from tests.support.word_start_shards import SETTINGS, VOCABULARY, words_of_example, write

FORMATS = ("tfrecord", "hdf5", "parquet")


def read(path: Path, engine: Any = None) -> list[Any]:
    """The examples of a file that tells its objective by itself."""
    with open_reader(str(path), engine) as reader:
        return [example for batch in reader.batches(7) for example in batch.examples()]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("format", FORMATS)
def test_every_container_holds_word_starts_and_tells_the_objective(name, format, tmp_path):
    path = tmp_path / f"a.{format}"
    made = write(path, name)
    assert len(made) > 6
    assert {bit for example in made for bit in example.word_starts} == {0, 1}
    assert read(path) == read(path, "python") == made
    with open_reader(str(path)) as reader:
        assert reader.layout.objective == name
    again = tmp_path / f"b.{format}"
    write(again, name, "python")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("source", FORMATS)
def test_convert_keeps_them(name, source, tmp_path):
    path = tmp_path / f"a.{source}"
    made = write(path, name)
    for format in FORMATS:
        other = tmp_path / f"other.{format}"
        assert main(["convert", str(path), str(other)]) == 0
        assert read(other) == made


def masked(directory: Path, vocabulary: Path, **changes: Any) -> list[Any]:
    data = bertdata.open_dataset(directory, unverified=True)
    return list(data.masked(vocab=vocabulary, masked_lm_prob=0.4, **changes))


@pytest.fixture
def ids_alone_tell_nothing(monkeypatch):
    """Any vocabulary that is loaded stands for one whose ids do not tell where words start."""
    monkeypatch.setattr(
        "bertdata.steps.open_dataset.load_dataset_vocabulary", lambda path, dataset: VOCABULARY
    )


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("format", FORMATS)
def test_whole_words_are_masked_when_the_examples_are_read(
    name, format, tmp_path, ids_alone_tell_nothing, small_vocabulary_file
):
    write(tmp_path / f"a.{format}", name)
    found = masked(tmp_path, small_vocabulary_file, whole_word_mask=True)
    words = [(example, word) for example in found for word in words_of_example(example)]
    for example, word in words:
        assert len(word & set(example.positions)) in (0, len(word))
    assert any(len(word & set(example.positions)) == 3 for example, word in words)
    loose = masked(tmp_path, small_vocabulary_file)
    cut = {len(word & set(example.positions)) for example in loose for word in words_of_example(example)}
    assert {1, 2} < cut


def test_whole_words_of_examples_without_word_starts_are_refused_with_the_remedy(
    tmp_path, ids_alone_tell_nothing, small_vocabulary_file
):
    path = tmp_path / "a.tfrecord"
    made = write(path, "mlm")
    assert len(masked(path, small_vocabulary_file)) == len(made)
    with pytest.raises(SettingsError) as refused:
        masked(path, small_vocabulary_file, whole_word_mask=True)
    assert str(refused.value) == (
        f"{path}: holds no word starts, and its tokeniser's ids do not tell whole words; make the shards "
        "with bertdata create --no-masks, which keeps them"
    )


def test_word_starts_of_a_vocabulary_whose_ids_tell_them_are_refused(
    bertdata, corpus, small_vocabulary_file, tmp_path
):
    outcome = bertdata(
        "create", corpus[0], "--output", tmp_path, "--vocab", small_vocabulary_file,
        "--objective=mlm_word_starts", "--no-masks",
    )  # fmt: skip
    assert outcome.status == 2
    [line] = outcome.err.splitlines()
    assert "objective mlm_word_starts: the ids of" in line
    assert line.endswith("tell where words start; expected mlm")
