"""A program of the trainer is a TOML file, and where it computes a function with the same name beside it."""

import inspect
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.published_commands import assert_equal, refusal, told, understood
from tests.support.training_runs import MODEL
from trainer.checkpoints.reading import choose_checkpoint, read_state
from trainer.programs.choice import DOOR, TRANSLATORS, find_program, load_programs

PROGRAM = """\
name = "acme/train.py"
title = "ACME train.py"
purpose = "ACME: both phases"
source = "acme/bert 1234abcd, train.py"
published = ["--data phase1 phase2"]
work = "both phases"

[keys]
optimiser = "adamw"
lr_schedule = "polynomial_decay"
warmup = 0
mode = "lazy"

[flags]
"-d --data" = { count = 2, required = true, key = "train_data" }
"--out" = { default = "out", key = "output_dir" }
"--lr" = { kind = "number", default = 1e-3, key = "base_learning_rate" }
"--steps" = { kind = "integer", count = 2, default = [4, 2], key = "steps" }
"--batch" = { kind = "integer", default = 8, key = "batch_size", meaning = "examples of a micro-batch" }
"--half" = { values = { no = "fp32", yes = "bf16" }, default = "no", key = "precision", meaning = "16 bits" }
"--verbose" = { kind = "switch", without_effect = "logs have this trainer's own form" }
"--workers" = { kind = "integer", default = 4, without_effect = "", warning = "no worker of ACME is started" }
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "train.toml"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def test_a_new_program_is_a_file_and_nothing_else(program):
    first, second = understood(program, ["-d", "a", "b", "--half=yes", "--steps", "7", "3", "--verbose"])[
        "phases"
    ]
    assert_equal(first, {"train_data": "a", "steps": 7, "precision": "bf16", "optimiser": "adamw"})
    assert_equal(second, {"train_data": "b", "steps": 3, "base_learning_rate": 1e-3, "batch_size": 8})
    assert first["device_options"]["mode"] == "lazy"


def test_the_example_of_the_architectures_page_is_such_a_file(tmp_path):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Another program's command line")[2]
    example = section.partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "train.toml"
    path.write_text(example, encoding="utf-8")
    (phase,) = understood(str(path), ["-d", "a", "--half=yes", "--verbose"])["phases"]
    assert_equal(phase, {"train_data": "a", "precision": "bf16", "optimiser": "adamw", "device": "cuda"})


def test_its_summary_and_its_warnings_are_told(program):
    assert told(program, ["-d", "a", "b", "--workers=2"]).splitlines() == [
        "ACME train.py: both phases, 4 updates, then 2 updates, 1 x 8 x 1 = 8, then 1 x 8 x 1 = 8 examples "
        "an update, fp32, adamw, auto",
        "trainer: warning: --workers: no worker of ACME is started",
    ]


def test_it_trains(program, trainer, training_set, longer_set, tmp_path):
    theirs = ("--data", training_set, longer_set, "--steps", "2", "1", "--batch=4", "--out", tmp_path / "run")
    ours = ("--device=cpu", "--vocab-size=2000", "--max-predictions-per-seq", "10", "15", *MODEL)
    ours += ("--max-seq-length", "64", "96")
    outcome = trainer("like", program, *theirs, "--", *ours)
    assert outcome.status == 0, outcome.err
    state = read_state(choose_checkpoint(str(tmp_path / "run")))
    assert (state.phase, state.step) == (2, 1)
    assert state.config["optimiser"] == "adamw"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "train.toml: the following arguments are required: -d/--data"),
        (["-d", "a", "b", "--bach=3"], "unrecognized arguments: --bach=3 (did you mean --batch?)"),
        (["-d", "a", "b", "--half=true"], "argument --half: invalid choice: 'true'"),
    ],
)
def test_what_its_parser_refuses_is_refused(program, words, said):
    assert said in refusal(program, words)


def test_a_wrong_file_is_an_error_with_its_line(program):
    Path(program).write_text(PROGRAM.replace('"base_learning_rate"', '"learning_rate"'), encoding="utf-8")
    assert f"{program}:17: learning_rate is not a known key" in refusal(program, ["-d", "a", "b"])
    Path(program).write_text(PROGRAM.replace('"adamw"', '"adam"'), encoding="utf-8")
    assert f"{program}:9: optimiser is 'adam', expected one of" in refusal(program, ["-d", "a", "b"])


def test_a_file_of_a_users_own_runs_no_function_of_ours(program):
    Path(program).write_text(PROGRAM.replace("acme/train.py", "nvidia/run_squad.py"), encoding="utf-8")
    assert len(understood(program, ["-d", "a", "b"])["phases"]) == 2


@pytest.mark.parametrize("name", load_programs())
def test_every_program_lies_where_its_name_says_and_its_function_beside_it(name):
    vendor, _, file = name.partition("/")
    place = DOOR.folder / vendor.replace("-", "_") / f"{file.rpartition('.')[0]}.toml"
    assert Path(find_program(name).path) == place
    if name in TRANSLATORS:
        assert Path(inspect.getfile(TRANSLATORS[name])) == place.with_suffix(".py")


@pytest.mark.parametrize("name", [name for name in load_programs() if "checkpoint" not in name])
def test_every_program_that_trains_says_what_was_run_beside_it(name):
    assert find_program(name).compared


def test_every_function_is_that_of_a_program():
    assert TRANSLATORS.keys() <= load_programs().keys()
