"""Conversions over an earlier conversion (--overwrite): what is replaced, kept and refused."""

import json
from pathlib import Path

import pytest

from bertdata.errors import DatasetError
from bertdata.io import storage
from tests.support.made_checkpoints import made
from trainer.checkpoints.formats.convert import convert
from trainer.checkpoints.formats.kinds import WRITERS

FORMS = (*WRITERS, "bertdata")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in Hugging Face's form with a vocabulary."""
    place = tmp_path_factory.mktemp("source") / "model"
    place.mkdir()
    WRITERS["huggingface"](made(), str(place))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{number}" for number in range(96))]
    (place / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return place


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("to", FORMS)
def test_the_same_conversion_again_writes_the_same_files(source, tmp_path, to):
    target = tmp_path / "form"
    convert(str(source), str(target), to=to)
    first = read_files(target)
    assert "lineage.json" in first
    assert "vocab.txt" in first
    convert(str(source), str(target), to=to, overwrite=True)
    assert read_files(target) == first


@pytest.mark.parametrize("to", FORMS)
def test_another_vocabulary_of_the_same_size_replaces_the_earlier_one(source, tmp_path, to):
    target, other = tmp_path / "form", tmp_path / "vocab.txt"
    convert(str(source), str(target), to=to)
    text = (source / "vocab.txt").read_text(encoding="utf-8")
    other.write_text(text.replace("word1\n", "werd1\n"), encoding="utf-8")
    convert(str(source), str(target), to=to, vocab=str(other), overwrite=True)
    assert "werd1" in (target / "vocab.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("to", FORMS)
def test_the_record_says_a_casing_that_was_asked_for(source, tmp_path, to):
    target = tmp_path / "form"
    convert(str(source), str(target), to=to, lower_case=False)
    record = json.loads((target / "lineage.json").read_text(encoding="utf-8"))
    assert record["settings"]["lower_case"] is False


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize("name", ["notes.txt", "inner/README.md"])
def test_files_that_the_conversion_does_not_write_are_never_lost(source, tmp_path, to, name):
    target = tmp_path / "form"
    convert(str(source), str(target), to=to)
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).write_text("mine\n")
    before = read_files(target) if name == "notes.txt" else None
    with pytest.raises(DatasetError, match=f"holds {name}, which"):
        convert(str(source), str(target), to=to, overwrite=True)
    assert (target / name).read_text() == "mine\n"
    assert before is None or read_files(target) == before


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A directory that no other test uses."""
    return f"memory://overwritten-exports/{tmp_path.name}/form"


def read_url(url: str) -> dict[str, bytes]:
    return {name: storage.read_bytes(storage.join(url, name)) for name in storage.list_files(url)}


@pytest.mark.parametrize("to", FORMS)
def test_a_url_has_the_files_of_the_directory(source, tmp_path, url, to):
    convert(str(source), str(tmp_path / "form"), to=to)
    convert(str(source), url, to=to)
    assert read_url(url) == read_files(tmp_path / "form")
    with pytest.raises(DatasetError, match="form: is in use; give --overwrite"):
        convert(str(source), url, to=to)


def test_the_files_that_make_a_url_a_checkpoint_come_last(source, url, monkeypatch):
    """A reader of the URL finds no checkpoint before all its weights are there."""
    written: list[str] = []
    upload = storage.upload_copy

    def note_and_upload(path: str, target: str) -> None:
        written.append(storage.get_base_name(target))
        upload(path, target)

    monkeypatch.setattr(storage, "upload_copy", note_and_upload)
    convert(str(source), url, to="bertdata")
    assert len(written) > 3
    assert written[-2:] == ["state.json", "lineage.json"]
    assert written[:-2] == sorted(written[:-2])


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize("name", ["notes.txt", "inner/README.md"])
def test_other_files_at_a_url_are_refused_and_nothing_there_changes(source, tmp_path, url, to, name):
    convert(str(source), url, to=to)
    with storage.open_output(storage.join(url, name)) as file:
        file.write(b"mine\n")
    before, other = read_url(url), tmp_path / "vocab.txt"
    text = (source / "vocab.txt").read_text(encoding="utf-8")
    other.write_text(text.replace("word1\n", "werd1\n"), encoding="utf-8")
    with pytest.raises(DatasetError, match=f"{url}: holds {name}, which this conversion does not write"):
        convert(str(source), url, to=to, vocab=str(other), overwrite=True)
    assert read_url(url) == before


@pytest.mark.parametrize("to", FORMS)
def test_a_conversion_at_a_url_is_replaced(source, tmp_path, url, to):
    convert(str(source), url, to=to)
    other = tmp_path / "vocab.txt"
    text = (source / "vocab.txt").read_text(encoding="utf-8")
    other.write_text(text.replace("word1\n", "werd1\n"), encoding="utf-8")
    convert(str(source), url, to=to, vocab=str(other), overwrite=True)
    found = read_url(url)
    assert b"werd1" in found["vocab.txt"]
    listed = [entry["name"] for entry in json.loads(found["lineage.json"])["files"]]
    assert sorted(listed) == sorted(set(found) - {"lineage.json", "README.md"})


def test_an_edited_card_at_a_url_is_kept(source, url):
    convert(str(source), url, to="huggingface")
    with storage.open_output(storage.join(url, "README.md")) as file:
        file.write(b"# mine\n")
    convert(str(source), url, to="huggingface", overwrite=True)
    assert read_url(url)["README.md"] == b"# mine\n"


def test_moments_of_an_earlier_conversion_go(tmp_path, url):
    place = tmp_path / "tf1"
    place.mkdir()
    WRITERS["tf1"](made(), str(place))
    convert(str(place), url, to="bertdata")
    assert "optimizer.safetensors" in read_url(url)
    convert(str(place), url, to="bertdata", moments=False, overwrite=True)
    convert(str(place), str(tmp_path / "form"), to="bertdata", moments=False)
    assert read_url(url) == read_files(tmp_path / "form")
