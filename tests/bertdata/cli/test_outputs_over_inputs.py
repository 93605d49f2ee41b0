"""No command of ``bertdata`` writes over what it reads, however the input is spelled."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from bertdata.cli.main import COMMANDS as KNOWN
from tests.support.outputs_over_inputs import (
    COMMANDS,
    WITHOUT_INPUT,
    WITHOUT_OUTPUT,
    Writing,
    contents,
    lay_out,
)
from tests.support.paths import EXTRACTED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_name(rows: list[Writing]) -> Any:
    return pytest.mark.parametrize("command", rows, ids=lambda row: row.shown)


def make_input(folder: Path, command: Writing) -> str:
    """An input of the command, of bytes that nothing writes."""
    if command.of_directory:
        return "data"
    (folder / f"notes{command.ending}").write_bytes(b"Not to be lost.\n")
    return f"notes{command.ending}"


def test_every_command_is_in_the_table_or_writes_nothing() -> None:
    assert {row.words.split()[0] for row in COMMANDS} | WITHOUT_OUTPUT | WITHOUT_INPUT == set(KNOWN)


@by_name(COMMANDS)
def test_an_output_that_is_the_input_is_refused(bertdata: Any, folder: Path, command: Writing) -> None:
    given = make_input(folder, command)
    before = contents(folder)
    bertdata(*command.line(given)).assert_one_error(2, f"{given}: is an input, which would be lost")
    assert contents(folder) == before


@by_name(COMMANDS)
def test_an_output_that_is_the_input_by_a_link_is_refused(
    bertdata: Any, folder: Path, command: Writing
) -> None:
    given = make_input(folder, command)
    link = folder / f"link{command.ending}"
    link.symlink_to(folder / given)
    before = contents(folder)
    outcome = bertdata(*command.line(given, link.name))
    outcome.assert_one_error(2, f"{link.name}: is an input under the name {given}, which would be lost")
    assert contents(folder) == before
    assert link.is_symlink()


@by_name([row for row in COMMANDS if row.of_directory])
def test_an_output_that_holds_or_lies_within_the_input_is_refused(
    bertdata: Any, folder: Path, command: Writing
) -> None:
    before = contents(folder)
    inside = bertdata(*command.line("data", "data/made"))
    inside.assert_one_error(2, "data/made: lies within the input data; give an output outside of it")
    above = bertdata(*command.line("data", "../" + folder.name))
    above.assert_one_error(2, "holds the input ", "; give an output that holds no input")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "spelling", ["./notes.txt", "data/../notes.txt", "{here}/notes.txt", "file://{here}/notes.txt"]
)
def test_the_same_file_by_another_spelling_is_the_input(bertdata: Any, folder: Path, spelling: str) -> None:
    (folder / "notes.txt").write_text("a b c d e\n")
    output = spelling.format(here=folder)
    outcome = bertdata("train-vocab", "notes.txt", "--output", output, "--size", 100)
    outcome.assert_one_error(2, "notes.txt: is an input under the name notes.txt")
    assert (folder / "notes.txt").read_text() == "a b c d e\n"


def test_a_file_that_a_pattern_or_a_link_in_a_directory_names_is_an_input(
    bertdata: Any, folder: Path
) -> None:
    (folder / "notes.txt").write_text("a b c d e\n")
    outcome = bertdata("train-vocab", "n*.txt", "--output", "notes.txt", "--size", 100)
    outcome.assert_one_error(2, "notes.txt: is an input")
    (folder / "data" / "link.txt").symlink_to(folder / "notes.txt")
    outcome = bertdata(
        "train-vocab", "data", "--input-kind", "blocks", "--output", "notes.txt", "--size", 100
    )
    outcome.assert_one_error(2, "notes.txt: is an input under the name data/link.txt")


def test_articles_may_lie_where_beam_extracts_them_within_the_directory_of_their_text(
    bertdata: Any, folder: Path, punkt_tables: None
) -> None:
    shutil.copytree(EXTRACTED, folder / "text" / "extracted")
    words = ["--eval-articles", 0, "--workers", 1, "--output", "text"]
    outcome = bertdata("segment", "text/extracted", *words)
    outcome.assert_one_error(2, "text: holds the input text/extracted")
    (folder / "text" / "extracted" / "manifest.json").write_text('{"kind": "another"}')
    assert bertdata("segment", "text/extracted", *words).status == 0


# sign replaces nothing but signatures, even with --overwrite.
NOT_REPLACED = {"train-vocab, records", "sign --private-key"}
REPLACED = [row for row in COMMANDS if not row.of_directory and row.shown not in NOT_REPLACED]


@by_name(REPLACED)
def test_a_file_of_another_kind_is_replaced_with_overwrite_alone(
    bertdata: Any, folder: Path, command: Writing
) -> None:
    """With --overwrite the command goes on, here to its next error or to none."""
    given = make_input(folder, command)
    mine = folder / f"mine{command.ending}"
    mine.write_text('{"text": "Not to be lost."}\n')
    separator = ["--"] if command.shown.startswith("like") else []
    outcome = bertdata(*command.line(given, mine.name))
    outcome.assert_one_error(2, f"{mine.name}: is there and is not ", "give another name, or --overwrite")
    assert mine.read_text() == '{"text": "Not to be lost."}\n'
    outcome = bertdata(*command.line(given, mine.name), *separator, "--overwrite")
    assert "is there and is not" not in outcome.err
