"""A dataset that is named twice, in whatever spelling, is refused, with weights and without."""

import shutil
from pathlib import Path

import pytest

import bertdata
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.errors import DatasetError, SettingsError


@pytest.fixture
def place(training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the dataset a and a link to it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(training_set, "a")
    Path("link").symlink_to("a")
    return tmp_path


OTHERS = ["a", "./a", "b/../a", "link", "file://{}/a", "{}/a"]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("form", "error"), [("a*0.7+{}*0.3", SettingsError), ("a+{}", DatasetError)])
def test_a_second_name_of_a_dataset_is_refused(form: str, error: type, other: str, place: Path) -> None:
    (place / "b").mkdir()
    with pytest.raises(error, match=r"^a: .* twice") as refused:
        open_weighted(form.format(other.format(place)))
    assert str(refused.value).count("\n") == 0
    if other != "a":
        assert other.format(place) in str(refused.value)


@pytest.mark.usefixtures("place")
def test_the_python_face_refuses_it_too() -> None:
    with pytest.raises(SettingsError, match="twice"):
        bertdata.open_dataset({"a": 0.7, "./a": 0.3})
    with pytest.raises(DatasetError, match="twice"):
        bertdata.open_dataset(["a", "./a"])


@pytest.mark.parametrize("form", ["a/part*+./a", "a/part*.tfrecord*0.5+./a*0.5"])
@pytest.mark.usefixtures("place")
def test_a_pattern_and_the_directory_of_its_files_are_refused(form: str) -> None:
    with pytest.raises(DatasetError, match=r"part-.* belongs to both a/part\S* and \./a"):
        open_weighted(form)


@pytest.mark.usefixtures("place")
def test_files_that_two_patterns_name_are_taken_once_where_no_manifest_is_asked() -> None:
    once = open_weighted("a", unverified=True)
    assert open_weighted("a/part*+./a/*00*", unverified=True).examples == once.examples


@pytest.mark.usefixtures("place")
def test_a_copy_is_another_dataset() -> None:
    shutil.copytree("a", "copy")
    assert open_weighted("a+copy").examples == 2 * open_weighted("a").examples
