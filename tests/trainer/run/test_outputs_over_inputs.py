"""No command of the trainer writes over what it reads, however the input is spelled."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.outputs_over_inputs import (
    TRAINER,
    TRAINER_WITHOUT_OUTPUT,
    Writing,
    contents,
    lay_out,
)
from tests.support.training_runs import refuse
from trainer.plugins import list_names


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
    assert {row.words.split()[0] for row in TRAINER} | TRAINER_WITHOUT_OUTPUT == set(list_names("command"))


@by_name(TRAINER)
def test_an_output_that_is_the_input_is_refused(trainer: Any, folder: Path, command: Writing) -> None:
    given = make_input(folder, command)
    before = contents(folder)
    refuse(trainer(*command.line(given)), 2, f"{given}: is an input, which would be lost")
    assert contents(folder) == before


@by_name(TRAINER)
def test_an_output_that_is_the_input_by_a_link_is_refused(
    trainer: Any, folder: Path, command: Writing
) -> None:
    given = make_input(folder, command)
    link = folder / f"link{command.ending}"
    link.symlink_to(folder / given)
    before = contents(folder)
    outcome = trainer(*command.line(given, link.name))
    refuse(outcome, 2, f"{link.name}: is an input under the name {given}, which would be lost")
    assert contents(folder) == before


@by_name([row for row in TRAINER if row.of_directory and not row.words.startswith("evaluate")])
def test_an_output_that_lies_within_the_input_is_refused(
    trainer: Any, folder: Path, command: Writing
) -> None:
    before = contents(folder)
    refuse(trainer(*command.line("data", "data/made")), 2, "data/made: lies within the input data")
    assert contents(folder) == before


def test_a_new_run_does_not_begin_where_its_data_are_and_an_older_one_goes_on_there(trainer: Any) -> None:
    words = ["--config", "tiny", "--device", "cpu", "--train-data", "data"]
    outcome = trainer("pretrain", *words, "--output-dir", ".")
    refuse(outcome, 2, ".: holds the input data; give an output that holds no input")
    for place in (".", "data/run"):
        outcome = trainer("pretrain", *words, "--output-dir", place, "--resume")
        assert "the input" not in outcome.err
    outcome = trainer("evaluate", "--eval-data", "data", "--output-dir", "data/run", "--device", "cpu")
    assert "the input" not in outcome.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("split --plan notes.json --output mine.txt", "mine.txt: is there and is not a plan"),
        ("split --plan notes.json --picture mine.svg", "mine.svg: is there and is not an SVG picture"),
        (
            "features --task mrpc data/a.txt --vocab vocab.txt --output mine.txt",
            "mine.txt: is there and is not JSON lines",
        ),
        ("report data --output mine.html", "mine.html: is there and is not a page of HTML"),
        (
            "pretrain --config tiny --train-data data --output-dir run --json-summary mine.txt",
            "mine.txt: is there and is not a log of dllogger's lines; give another name",
        ),
    ],
)
def test_a_file_of_another_kind_is_not_replaced(trainer: Any, folder: Path, words: str, said: str) -> None:
    for name in ("mine.txt", "mine.svg", "mine.html"):
        (folder / name).write_text("Not to be lost.\n")
    before = contents(folder)
    refuse(trainer(*words.split()), 2, said)
    assert contents(folder) == before
