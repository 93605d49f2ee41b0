"""Directories with more than datasets in them: a run beside them hides nothing, an unfinished one is told."""

from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.dataset.discover import find_datasets
from bertdata.errors import DatasetError, ManifestError
from bertdata.io.directory_lock import lock_directory
from tests.support.commands import SMALL


@pytest.fixture
def place(corpus, small_vocabulary_file, tmp_path) -> Path:
    """A directory with a dataset ``set`` below it."""
    flags = ["--recipe=google", "--vocab", str(small_vocabulary_file), *SMALL]
    assert main(["create", *map(str, corpus), "--output", str(tmp_path / "set"), *flags]) == 0
    return tmp_path


def test_a_run_that_writes_beside_the_data_makes_nothing_unfinished(place, bertdata):
    """A training run's lock lies in an ``unfinished/`` below the directory that is read."""
    with lock_directory(str(place / "run" / "unfinished")):
        assert (place / "run" / "unfinished" / "run.lock").is_file()
        assert [one.path for one in find_datasets(str(place))] == [str(place / "set")]
        assert bertdata("verify-md5", place).status == 0


def test_a_directory_without_data_is_told_as_such_while_a_run_writes_below_it(tmp_path):
    with (
        lock_directory(str(tmp_path / "run" / "unfinished")),
        pytest.raises(DatasetError, match="no dataset"),
    ):
        find_datasets(str(tmp_path / "run"))


def test_a_dataset_that_is_being_made_is_unfinished(place):
    (place / "set" / "manifest.json").unlink()
    (place / "set" / "unfinished").mkdir()
    (place / "set" / "unfinished" / "plan.json").write_text("{}")
    with pytest.raises(ManifestError, match="set: is unfinished: no manifest.json yet"):
        find_datasets(str(place))
