"""``python -m trainer like``: choice of the program, its flags and ours, workers, devices."""

import json
import logging
import subprocess
import sys
from shlex import split

import pytest

from tests.support.paths import ROOT
from tests.support.published_commands import understood
from tests.support.training_runs import MODEL, refuse
from trainer.__main__ import main
from trainer.checkpoints.reading import choose_checkpoint, read_state
from trainer.programs.choice import find_program, load_programs

HABANA = ("pretraining", "--model_name_or_path=base", "--data_type=fp32", "--data_dir", "a", "b")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["like", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


@pytest.mark.parametrize("name", load_programs())
def test_every_program_has_a_table_with_a_meaning_for_each_flag(name):
    program = find_program(name)
    assert program.name == name
    assert program.source
    assert program.published
    for table in program.commands.values():
        names = [spelling for flag in table.flags for spelling in flag.spellings]
        assert len(names) == len(set(names))
        assert all(flag.meaning or flag.idle for flag in table.flags)


@pytest.mark.parametrize("name", load_programs())
def test_every_programs_help_lists_its_flags(name, capsys):
    program = find_program(name)
    for command, table in program.commands.items():
        with pytest.raises(SystemExit) as caught:
            main(["like", name, *filter(None, [command]), "--help"])
        assert caught.value.code == 0
        shown = capsys.readouterr().out
        assert program.source in " ".join(shown.split())
        assert [flag.name for flag in table.flags if flag.spellings[-1] not in shown] == []


def test_without_a_program_all_are_listed(capsys):
    assert main(["like"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in load_programs() if name not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo_bert.py"], "did you mean habana/demo_bert.py or habana-tf/demo_bert.py?"),
        (
            ["habana/demo_bert.py@9.9"],
            "no such version; known besides the default are @1.0.0, @1.1.0, @1.4.1",
        ),
        (["habana/demo_bert.py"], "expected a sub-command, pretraining or finetuning; found none"),
        (
            ["habana/demo_bert.py", "training"],
            "expected a sub-command, pretraining or finetuning; found 'training'",
        ),
        (
            ["habana/demo_bert.py", *HABANA, "--batch_size", "64"],
            "argument -b/--batch_size: expected 2 arguments",
        ),
        (["habana/demo_bert.py", *HABANA, "--batch_size", "64", "x"], "invalid int value: 'x'"),
        (["habana/demo_bert.py", *HABANA, "--data_type", "fp16"], "invalid choice: 'fp16'"),
        (["habana/demo_bert.py", *HABANA, "--warm_up", "1"], "unrecognized arguments: --warm_up 1"),
        (
            ["habana/demo_bert.py", *HABANA, "--process_per_node", "1"],
            "is a flag of version 1.1.0, 1.4.1: append @1.1.0",
        ),
        (
            ["habana/run_pretraining.py@1.23", "--hmp", "--input_dir=a", "--config_file=b", "--output_dir=c"],
            "--hmp is a flag of the default version: leave out the @",
        ),
        (["habana/demo_bert.py", *HABANA, "--", "--batch_sise=3"], "the nearest known is --batch-size"),
        (["habana/demo_bert.py", *HABANA, "--", "--steps=0"], "steps is 0, expected 1 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(capsys, arguments, said):
    assert said in refusal(capsys, *arguments)


def test_flags_of_ours_go_before_the_programs_and_may_differ_by_phase():
    ours = ("--", "--steps", "2", "3", "--device=cpu", "--train-data-phase2=c", "--hidden-size=8")
    first, second = understood("habana/demo_bert.py", [*HABANA, *ours])["phases"]
    assert (first["steps"], second["steps"]) == (2, 3)
    assert (first["train_data"], second["train_data"]) == ("a", "c")
    assert (first["device"], second["hidden_size"], second["num_hidden_layers"]) == ("cpu", 8, 24)


def test_the_absence_of_the_programs_device_is_an_error_that_names_the_way_around_it(capsys):
    assert main(["like", "habana/demo_bert.py", *HABANA]) == 2
    said = capsys.readouterr().err
    assert "the program runs on hpu, which is not there" in said
    assert "-- --device cpu" in said
    assert main(["like", "habana/demo_bert.py", *HABANA, "--", "--device=auto"]) == 2
    said = capsys.readouterr().err
    assert "which is not there" not in said
    assert said.endswith("trainer: error: a: no such file or directory\n")  # the data come next


def test_a_line_says_what_was_understood(capsys):
    assert main(["like", "habana/demo_bert.py", *HABANA, "--accumulate_gradients", "--print-config"]) == 0
    said = capsys.readouterr().err
    assert said == (
        "Habana demo_bert.py: both phases, 7,038 updates, then 1,563 updates, 1 x 64 x 128 = 8,192, then "
        "1 x 8 x 512 = 4,096 examples an update, fp32, lamb-nvidia, hpu\n"
    )


def test_both_phases_of_a_printed_command_train(trainer, training_set, longer_set, tmp_path):
    settings = split(
        "pretraining --model_name_or_path=large --mode=lazy --data_type=fp32 --batch_size 4 2 "
        "--train_batch_size 8 4 --accumulate_gradients --max_steps 2 2 --warmup 0 0 --max_seq_length 64 96"
    )
    theirs = (*settings, "--data_dir", training_set, longer_set, "-o", tmp_path)
    ours = ("--device=cpu", "--vocab-size=2000", "--max-predictions-per-seq", "10", "15", *MODEL)
    outcome = trainer("like", "habana/demo_bert.py", *theirs, "--", *ours)
    assert outcome.status == 0, outcome.err
    state = read_state(choose_checkpoint(str(tmp_path / "results" / "checkpoints")))
    assert (state.phase, state.step) == (2, 2)


@pytest.mark.thorough
def test_the_workers_that_a_program_starts_are_started(trainer, training_set, tmp_path):
    theirs = ("pretraining", "--model_name_or_path=large", "--data_type=fp32", "--batch_size", "4", "2",
              "--train_batch_size", "4", "2", "--max_steps", "1", "1", "--warmup", "0", "0", "--phase", "1",
              "--max_seq_length", "64", "96", "--data_dir", training_set, "none", "-o", tmp_path,
              "--world_size", "2")  # fmt: skip
    ours = ("--device=cpu", "--vocab-size=2000", "--max-predictions-per-seq=10", *MODEL)
    outcome = trainer("like", "habana/demo_bert.py", *theirs, "--", *ours)
    assert outcome.status == 0, outcome.err
    assert "2 x 4 x 1 = 8 examples an update" in outcome.err
    assert "; with --device=cpu" in outcome.err
    state = read_state(choose_checkpoint(str(tmp_path / "results" / "checkpoints")))
    assert (state.step, state.trained) == (1, 8)
    assert logging.root.manager.disable == logging.NOTSET, "torch's launcher is silenced only while it runs"


def test_a_wrong_command_is_refused_before_anything_is_opened(trainer, tmp_path):
    theirs = (*HABANA, "--max_steps", "0", "1", "-o", tmp_path / "new")
    refuse(trainer("like", "habana/demo_bert.py", *theirs, "--", "--device=cpu"), 2, "steps is 0")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", load_programs())
def test_a_command_is_understood_without_torch(name):
    program = find_program(name)
    code = f"""
import sys
from trainer.__main__ import main
status = main(["like", {name!r}, *{split(program.published[0])!r}, "--print-config"])
sys.exit(status or 3 * ("torch" in sys.modules))
"""
    if name.startswith("rannc/"):  # its settings are variables of the environment
        code = code.replace(repr(split(program.published[0])), "[]")
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["program"] == name


@pytest.mark.parametrize("rank", [0, 1])
def test_of_several_workers_the_first_prints_the_configuration(rank, capsys, monkeypatch):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    nvidia = ["--input_dir=a", "--config_file=b.json", "--bert_model=c", "--output_dir=d", "--do_train"]
    assert main(["like", "nvidia/run_pretraining.py", *nvidia, "--print-config"]) == 0
    shown = capsys.readouterr().out
    assert bool(shown) == (rank == 0)
    if rank == 0:
        assert json.loads(shown)["world_size"] == 2
