"""Text held out of training, eval.txt and NVIDIA's test shards, stays out of the training data."""

import shutil
from pathlib import Path

import pytest

from bertdata.config.text_files import held_out
from tests.support.commands import SMALL, Program
from tests.support.paths import EXTRACTED, GOLDEN

VOCABULARY = GOLDEN / "vocab.txt"
TEXT = {
    "mlperf": ("--eval-articles", "3", "--block-size", "0.2"),
    "nvidia": ("--recipe", "nvidia", "--training-shards", "2", "--test-shards", "2"),
}
TRAINING = {
    "mlperf": ["part-00000-of-00500"],
    "nvidia": ["wikicorpus_en_training_0.txt", "wikicorpus_en_training_1.txt"],
}


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture
def text(request: pytest.FixtureRequest, bertdata: Program, tmp_path: Path, punkt_tables: None) -> Path:
    """The text directory of the recipe that the test names, in a new directory."""
    place = tmp_path / "text"
    words = ["segment", EXTRACTED, "--output", place, "--workers", "1", *TEXT[request.param]]
    assert bertdata(*words).status == 0
    return place


def create(bertdata: Program, *parts: object, output: Path):
    return bertdata("create", *parts, "--output", output, "--vocab", VOCABULARY, *SMALL)


def shards(output: Path) -> list[str]:
    return sorted(path.name.removesuffix(".tfrecord") for path in output.glob("*.tfrecord"))


@pytest.mark.parametrize(("text", "recipe"), [(name, name) for name in TEXT], indirect=["text"])
def test_a_directory_gives_the_parts_to_train_on(text, recipe, bertdata, tmp_path):
    outcome = create(bertdata, text, output=tmp_path / "shards")
    assert outcome.status == 0
    assert shards(tmp_path / "shards") == TRAINING[recipe]
    assert ("2 test shards" in outcome.out) == (recipe == "nvidia")
    by_name = create(bertdata, *(text / name for name in TRAINING[recipe]), output=tmp_path / "by-name")
    assert by_name.status == 0
    manifest = (tmp_path / "by-name" / "manifest.json").read_bytes()
    assert (tmp_path / "shards" / "manifest.json").read_bytes() == manifest


@pytest.mark.parametrize(("text", "recipe"), [(name, name) for name in TEXT], indirect=["text"])
def test_files_held_out_are_refused_beside_those_to_train_on_and_taken_alone(
    text, recipe, bertdata, tmp_path
):
    held = {"mlperf": "eval.txt", "nvidia": "wikicorpus_en_test_0.txt"}[recipe]
    both = [text / held, *(text / name for name in TRAINING[recipe])]
    outcome = create(bertdata, *both, output=tmp_path / "shards")
    outcome.assert_one_error(2, f"{text / held}: is held out of training", f"give {text}, ")
    assert not (tmp_path / "shards").exists()
    assert create(bertdata, text / held, output=tmp_path / "alone").status == 0


@pytest.mark.parametrize("text", ["mlperf"], indirect=True)
def test_every_file_of_a_text_directory_is_refused_with_the_directory_as_the_remedy(text, bertdata, tmp_path):
    outcome = create(bertdata, f"{text}/*", output=tmp_path / "shards")
    outcome.assert_one_error(2, f"{text}/", f"give {text}, ")
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("name", ["MD5SUMS", "eval.md5", "removed.jsonl"])
def test_lists_are_no_parts(name, bertdata, tmp_path):
    path = tmp_path / name
    path.write_text("d41d8cd98f00b204e9800998ecf8427e  part\n")
    create(bertdata, path, output=tmp_path / "shards").assert_one_error(
        2, f"{path}: is a list of ours, expected text"
    )


def test_directories_that_hold_no_text_say_what_they_hold(bertdata, tmp_path, corpus):
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(GOLDEN / "odd.txt", plain)
    outcome = create(bertdata, plain, output=tmp_path / "shards")
    outcome.assert_one_error(2, f"{plain}: is a directory without manifest.json", f"{plain}/*")
    assert create(bertdata, corpus[0], output=tmp_path / "made").status == 0
    outcome = create(bertdata, tmp_path / "made", output=tmp_path / "shards")
    outcome.assert_one_error(2, f"{tmp_path / 'made'}: is a directory of dataset, expected one of text")
    text = tmp_path / "text"
    (text / "unfinished").mkdir(parents=True)
    (text / "unfinished" / "plan.json").write_text("{}")
    create(bertdata, text, output=tmp_path / "shards").assert_one_error(1, f"{text}: is unfinished")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["wiki_training_0.txt", "wiki_test_0.txt"], ["wiki_test_0.txt"]),
        (["train/wiki_training_0.txt", "test/wiki_test_0.txt"], ["test/wiki_test_0.txt"]),
        (["wiki_training_0.txt.bin-01.hdf5", "wiki_test_3.txt.bin-00.hdf5"], ["wiki_test_3.txt.bin-00.hdf5"]),
        (["wiki_test_0.txt", "books_training_0.txt"], []),  # of two corpora
        (["wiki_test_0.txt", "wiki_test_1.txt"], []),
        (["part-00000-of-00500", "eval.txt"], ["eval.txt"]),
        (["a/part-00000-of-00500.tfrecord", "eval.txt.tfrecord"], ["eval.txt.tfrecord"]),
        (["part-00000.txt", "eval-00000.txt", "eval-00001.txt"], ["eval-00000.txt", "eval-00001.txt"]),
        (["part-00000.txt.tfrecord", "eval-00000.txt.tfrecord"], ["eval-00000.txt.tfrecord"]),
        (["eval-00000.txt", "eval-00001.txt"], []),
        (["eval.txt"], []),
        (["eval.txt", "wiki.txt"], []),
        (["latest_test.txt", "training.txt", "protest_0"], []),
    ],
)
def test_held_out_files_are_told_by_name_where_those_to_train_on_are_there(names, expected):
    assert held_out(names) == expected
