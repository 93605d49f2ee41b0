"""A run as its directory tells it, and other programs' logs."""

import json

import pytest

from bertdata.errors import InputError, MissingInputError
from tests.support.recorded_runs import make_run
from trainer.logs.foreign_logs import read_dllogger
from trainer.logs.recorded_run import read_run


def test_a_run_has_its_rows_its_evaluations_and_what_it_told_of_itself(tmp_path):
    run = read_run(str(make_run(tmp_path / "run")))
    [phase] = run.phases
    assert phase.points(phase.training, "lr") == ([*range(1, 9)], [0.001 * step for step in range(1, 9)])
    assert phase.points(phase.evaluations, "masked_lm_accuracy") == ([4, 8], [0.25, 0.25])
    assert (run.updates, run.log.seconds, run.log.events["run_stop"]) == (8, 4.0, "success")
    assert run.log.starts[0]["workers"] == 2
    assert run.config["steps"] == 8


def test_the_updates_of_phase_2_follow_those_of_phase_1(tmp_path):
    make_run(tmp_path / "run", range(1, 9))
    run = read_run(str(make_run(tmp_path / "run", range(1, 5), evaluated=(4,), phase=2)))
    assert [(phase.name, phase.offset) for phase in run.phases] == [("phase 1", 0), ("phase 2", 8)]
    assert run.phases[1].points(run.phases[1].training, "lr")[0] == [9, 10, 11, 12]
    assert run.phases[1].points(run.phases[1].evaluations, "loss")[0] == [12]
    assert run.updates == 12


def test_a_resumed_run_has_each_update_once_and_both_of_its_starts(tmp_path):
    make_run(tmp_path / "run", range(1, 9))
    run = read_run(str(make_run(tmp_path / "run", range(6, 11), evaluated=(10,), resume_step=5)))
    assert run.phases[0].points(run.phases[0].training, "lr")[0] == [*range(1, 11)]
    assert [start["start_point"] for start in run.log.starts] == ["new", "resumed"]


def test_tables_of_a_run_that_began_anew_are_left_out(tmp_path):
    make_run(tmp_path / "run", range(1, 9))
    run = read_run(str(make_run(tmp_path / "run", range(1, 5), evaluated=(4,))))
    assert [(phase.name, phase.span) for phase in run.phases] == [("", [1, 4])]


def test_a_row_that_a_crash_cut_off_is_left_out(tmp_path):
    with (make_run(tmp_path / "run") / "training.csv").open("a", encoding="utf-8") as file:
        file.write("9,9,0,0.0")
    assert read_run(str(tmp_path / "run")).updates == 8


def test_a_number_that_is_not_finite_is_not_drawn(tmp_path):
    with (make_run(tmp_path / "run") / "training.csv").open("a", encoding="utf-8") as file:
        file.write("9,9,0,0.009,nan" + "," * 14 + "\n")
    [phase] = read_run(str(tmp_path / "run")).phases
    assert phase.points(phase.training, "mlm_loss")[0] == [*range(1, 9)]


def test_a_damaged_checkpoint_leaves_the_curves(tmp_path):
    [state] = make_run(tmp_path / "run").glob("checkpoints/*/state.json")
    state.write_text("{", encoding="utf-8")
    assert read_run(str(tmp_path / "run")).state == {}


def test_what_is_no_run_is_one_line(tmp_path):
    with pytest.raises(MissingInputError, match="none: no such directory"):
        read_run(str(tmp_path / "none"))
    with pytest.raises(
        InputError, match=r"holds no training\.csv, dllogger\.json or trainer_state\.json: give"
    ):
        read_run(str(tmp_path))
    (tmp_path / "training.csv").write_text("step,lr\n1,high\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"training\.csv: line 2: lr is 'high', expected a number"):
        read_run(str(tmp_path))
    (tmp_path / "training.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"training\.csv: line 2: has no step"):
        read_run(str(tmp_path))


DAMAGES = {
    "no UTF-8": (
        lambda data: data.replace(b"0.001", b"\xff", 1),
        r"line 2: byte 0xff at offset \d+ is not UTF-8",
    ),
    "a column more": (lambda data: data + b"1," * 30 + b"\n", r"line 10: has 31 values, expected \d+"),
    "twice": (
        lambda data: data.replace(b"step,iteration", b"step,step", 1),
        "line 1: names the column 'step' twice",
    ),
    "no update": (
        lambda data: data.replace(b"\n1,", b"\n1.5,", 1),
        "line 2: step is 1.5, expected the number",
    ),
    "NaN": (lambda data: data.replace(b"\n1,", b"\nnan,", 1), "line 2: step is nan, expected the number"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_one_line(tmp_path, damage):
    change, told = DAMAGES[damage]
    table = make_run(tmp_path / "run") / "training.csv"
    table.write_bytes(change(table.read_bytes()))
    with pytest.raises(InputError, match=rf"training\.csv: {told}") as raised:
        read_run(str(tmp_path / "run"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [{"config": [1]}, {"phase": "x"}, {"model": 3}, {"model": {"hidden_size": "x"}}, {"versions": [1]}],
    ids=str,
)
def test_a_state_of_other_types_is_left_out(tmp_path, changes):
    [state] = make_run(tmp_path / "run").glob("checkpoints/*/state.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | changes), encoding="utf-8")
    assert read_run(str(tmp_path / "run")).state == {}


@pytest.mark.parametrize("step", ['"x"', "null", "NaN", "-1", "1.5", "1e999", "9" * 5000, "[1]"])
def test_a_step_of_the_trainers_log_that_is_no_number_is_one_line(tmp_path, step):
    text = f'{{"log_history": [{{"step": 1, "loss": 2}}, {{"step": {step}, "loss": 1}}]}}'
    (tmp_path / "trainer_state.json").write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"trainer_state\.json: (has no log_history|log_history, entry 1: step)"
    ):
        read_run(str(tmp_path))


def test_a_loss_of_the_trainers_log_may_be_nan(tmp_path):
    text = '{"log_history": [{"step": 1, "loss": NaN}, {"step": 2, "loss": 1.5}]}'
    (tmp_path / "trainer_state.json").write_text(text, encoding="utf-8")
    [phase] = read_run(str(tmp_path)).phases
    assert phase.points(phase.training, "loss") == ([2], [1.5])


def test_a_run_without_tables_is_read_from_its_dllogger(tmp_path):
    make_run(tmp_path / "run")
    for name in ("training.csv", "evaluation.csv"):
        (tmp_path / "run" / name).unlink()
    for path in (tmp_path / "run", tmp_path / "run" / "dllogger.json"):
        [phase] = read_run(str(path)).phases
        assert phase.points(phase.training, "lr")[0] == [*range(1, 9)]
        assert phase.points(phase.training, "loss")[1] == [8 / step for step in range(1, 9)]
        assert phase.points(phase.evaluations, "masked_lm_loss") == ([4, 8], [6.0, 6.0])


@pytest.mark.parametrize("time", ["NaN", "Infinity", "-1e308", '"soon"'])
def test_a_line_of_dllogger_without_a_time_counts_no_time(tmp_path, time):
    line = 'DLLL {{"timestamp": {}, "step": [1, {}], "data": {{"step_loss": 2.5}}}}\n'
    lines = (line.format(100, 1), line.format(time, 2), line.format(130, 3))
    (tmp_path / "dllogger.json").write_text("".join(lines), encoding="utf-8")
    assert read_dllogger(str(tmp_path / "dllogger.json")).seconds == 30


def test_the_log_of_the_trainer_of_hugging_face_is_read(tmp_path):
    history = [
        {"step": 10, "loss": 2.5, "learning_rate": 0.5, "grad_norm": 1.25, "epoch": 0.5},
        {"step": 20, "eval_loss": 2.0, "eval_accuracy": 0.75, "eval_runtime": 3.0, "epoch": 1.0},
        {"step": 20, "train_runtime": 9.0, "train_loss": 2.2},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
    [phase] = read_run(str(tmp_path)).phases
    assert phase.training == [{"step": 10, "loss": 2.5, "lr": 0.5, "gradient_norm": 1.25, "epoch": 0.5}]
    assert phase.evaluations == [{"step": 20, "loss": 2.0, "accuracy": 0.75}]


@pytest.mark.parametrize("text", ["{}", '{"log_history": [{"loss": 1}]}', '{"log_history": 3}'])
def test_a_log_of_another_form_is_one_line(tmp_path, text):
    (tmp_path / "trainer_state.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"trainer_state\.json: has no log_history with steps"):
        read_run(str(tmp_path))


def test_a_dllogger_without_updates_is_one_line(tmp_path):
    (tmp_path / "dllogger.json").write_text("other\nDLLL {\nDLLL []\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"dllogger\.json: tells of no update"):
        read_run(str(tmp_path))
