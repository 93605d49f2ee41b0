"""The Python face refuses outputs that are inputs, as the command line does."""

from collections.abc import Callable
from pathlib import Path

import pytest

import bertdata
from bertdata.errors import SettingsError
from tests.support.outputs_over_inputs import contents, lay_out

FOLDER: list[Callable[[str, str], object]] = [
    lambda given, output: bertdata.extract(given, output),
    lambda given, output: bertdata.segment(given, output),
    lambda given, output: bertdata.segment(given, output, input_kind="blocks"),
    lambda given, output: bertdata.segment("other.txt", output, input_kind="text", books=given),
    lambda given, output: bertdata.create(given, output, vocab="vocab.txt"),
    lambda given, output: bertdata.create(given, output, vocab="vocab.txt", input_kind="blocks"),
    lambda given, output: bertdata.pack(given, output),
]
FILE: list[Callable[[str, str], object]] = [
    lambda given, output: bertdata.write_report(given, output),
    lambda given, output: bertdata.stats(given, picture=output),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay_out(tmp_path)
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("output", ["data", "./data", "link", "data/made"])
@pytest.mark.parametrize("number", range(len(FOLDER)))
def test_a_directory_is_not_written_over_its_input(folder: Path, number: int, output: str) -> None:
    before = contents(folder)
    with pytest.raises(SettingsError, match=r"is an input|lies within the input data"):
        FOLDER[number]("data", output)
    assert contents(folder) == before


@pytest.mark.parametrize(("number", "name"), [(0, "notes.html"), (1, "notes.svg")])
def test_a_file_is_not_written_over_its_input_or_a_file_of_another_kind(
    folder: Path, number: int, name: str
) -> None:
    (folder / name).write_text("Not to be lost.\n")
    before = contents(folder)
    with pytest.raises(SettingsError, match="is an input"):
        FILE[number](name, f"./{name}")
    with pytest.raises(SettingsError, match="is there and is not"):
        FILE[number]("data", name)
    assert contents(folder) == before
