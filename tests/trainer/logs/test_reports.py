"""A run's logs: exact lines and columns, timed updates, and resumed runs."""

import json
import os
import pty
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from bertdata.errors import StorageError
from bertdata.io.terminal import format_duration
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.report_records import (
    COLUMNS,
    Clock,
    Recorder,
    evaluation,
    make_reporter,
    record,
    report,
    train,
)
from trainer.config.settings import Config
from trainer.logs.foreign_logs import read_dllogger
from trainer.logs.reporter import Reporter, RunPlan


def dllogger_lines(folder: Path) -> list[dict]:
    lines = (folder / "dllogger.json").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("DLLL {") for line in lines)
    return [json.loads(line.removeprefix("DLLL ")) for line in lines]


def test_the_first_six_updates_and_six_after_each_save_are_not_timed():
    recorder = Recorder()
    reporter = Reporter([recorder], clock=Clock())
    for step in range(1, 10):
        reporter.update(record(step))
    reporter.saved(9)
    for step in range(10, 18):
        reporter.update(record(step))
    timed = [row["step"] for row in recorder.rows if "sequences_per_second" in row]
    assert timed == [7, 8, 9, 16, 17]


def test_throughput_is_that_of_the_timed_updates():
    reporter = Reporter([], clock=Clock())
    for step in range(1, 9):
        reporter.update(record(step, seconds=100.0 if step <= 6 else 0.5))
    summary = reporter.close()
    assert summary["training_sequences_per_second"] == 64.0
    assert summary["raw_train_time"] == 601.0


@pytest.mark.parametrize("steps", [0, 1, 5, 6])
def test_a_short_run_has_no_throughput(tmp_path, steps):
    summary = report(tmp_path, range(1, steps + 1))
    assert "training_sequences_per_second" not in summary
    lines = dllogger_lines(tmp_path)
    assert not any("sequences_per_second" in line["data"] for line in lines)
    assert "training_sequences_per_second" not in lines[-1]["data"]
    assert summary.get("final_loss") == (8.0 - steps if steps else None)


def test_no_time_at_all_is_no_throughput():
    reporter = Reporter([], clock=Clock())
    for step in range(1, 9):
        reporter.update(record(step, seconds=0.0))
    assert "training_sequences_per_second" not in reporter.close()


def test_rows_are_means_of_their_updates():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=2, clock=Clock())
    reporter.update(record(1, loss=4.0))
    reporter.update(record(2, loss=8.0, learning_rate=0.5, seconds=2.0))
    (row,) = recorder.rows
    assert (row["loss"], row["step_loss"], row["learning_rate"]) == (6.0, 8.0, 0.5)
    assert (row["seconds"], row["total_time"]) == (1.25, 2.5)


def test_the_speed_of_a_row_is_that_of_its_timed_updates():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=8, clock=Clock())
    for step in range(1, 9):
        reporter.update(record(step, seconds=100.0 if step <= 6 else 0.5 * (step - 6)))
    (row,) = recorder.rows
    assert (row["seconds_per_update"], row["sequences_per_second"]) == (0.75, 64 / 1.5)


def test_tokens_operations_and_waiting_are_those_of_the_timed_updates():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=8, devices=2, peak=8e12, clock=Clock())
    for step in range(1, 9):
        slow = {"seconds": 100.0, "tokens": 1, "data_wait": 50.0}
        reporter.update(record(step, **(slow if step <= 6 else {"tokens": 100 * step})))
    (row,) = recorder.rows
    assert (row["tokens_per_second"], row["data_wait_share"]) == (1500.0, 0.1)
    assert (row["tflops"], row["peak_share"]) == (2.0, 0.25)  # of each device


def test_an_unknown_card_has_no_share_of_a_peak_and_a_run_without_tokens_no_rate_of_them():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=7, clock=Clock())
    for step in range(1, 15):
        reporter.update(record(step, tokens=3200 if step <= 7 else 0))
    known, unknown = recorder.rows
    assert "tflops" in known
    assert not {"peak_share"} & set(known)
    assert not {"tokens_per_second", "tflops", "data_wait_share"} & set(unknown)


def test_the_gradient_norm_of_a_row_is_that_of_its_last_update():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=2, clock=Clock())
    for step, norm in enumerate((None, 3.0, 4.0, None), 1):
        reporter.update(record(step, gradient_norm=norm))
    assert recorder.rows[0]["gradient_norm"] == 3.0
    assert "gradient_norm" not in recorder.rows[1]


def test_plain_lines_tell_norm_speed_memory_waiting_and_the_time_left(tmp_path, capsys):
    config = Config.of(output_dir=str(tmp_path), steps=1447, log_every=7, no_logs=True)
    reporter = make_reporter(config, COLUMNS, rank=0, peak=8e12, clock=Clock())
    for step in range(1, 8):
        reporter.update(record(step))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "gradient norm 0.750  64.0 sequences/s  6,400 tokens/s  50% of peak  2.5 GiB  "
        "waiting for data 10%  12 min left"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (61.0, "1 min"),
        (3599.0, "1 h 0 min"),
        (11_100.0, "3 h 5 min"),
        (187_000.0, "2 d 3 h"),
    ],
)
def test_times_are_told_in_one_or_two_units(seconds, words):
    assert format_duration(seconds) == words


def test_a_table_of_an_earlier_version_is_continued(tmp_path):
    head = "step,iteration,epoch,lr,mlm_loss,nsp_loss,mlm_acc,nsp_acc,iter_time,samples_per_sec,total_time"
    (tmp_path / "training.csv").write_text(f"{head}\n1,1,0,0.001,6.5,0.5,0.25,0.75,0.5,,0.5\n")
    for start in (2, 3):
        report(tmp_path, range(start, start + 1), resume_step=start - 1)
    lines = (tmp_path / "training.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", "1", "2", "3"]
    assert lines[1].startswith("1,1,0,0.001,6.5,0.5,0.25,0.75,0.5,,0.5,")
    assert len({line.count(",") for line in lines}) == 1


def test_what_is_left_at_the_end_becomes_a_row():
    recorder = Recorder()
    train(Reporter([recorder], log_every=4, clock=Clock()), range(1, 7))
    assert [row["step"] for row in recorder.rows] == [4, 6]


def test_events_are_nested_as_mlperf_asks():
    recorder = Recorder()
    reporter = Reporter([recorder], clock=Clock())
    reporter.begin()
    reporter.update(record(1))
    reporter.begin_evaluation()
    reporter.evaluation(*evaluation(1))
    reporter.close("aborted")
    assert recorder.events == [
        ("init_start", True),
        ("init_stop", True),
        ("run_start", True),
        ("block_start", True),
        ("block_stop", True),
        ("eval_start", True),
        ("evaluation", 1),
        ("eval_stop", True),
        ("run_stop", "aborted"),
    ]


def test_dllogger_lines_have_nvidias_form(tmp_path):
    report(tmp_path, range(1, 9))
    lines = dllogger_lines(tmp_path)
    rows = [line for line in lines if isinstance(line["step"], list) and line["step"]]
    assert rows[7] == {
        "timestamp": "1000004.0",
        "datetime": str(datetime.fromtimestamp(1_000_004.0)),
        "elapsedtime": "4.0",
        "type": "LOG",
        "step": [0, 8],
        "data": {
            "average_loss": 0.0,
            "step_loss": 0.0,
            "learning_rate": 0.008,
            "seconds_per_update": 0.5,
            "sequences_per_second": 64.0,
            "tokens_per_second": 6400.0,
            "tflops": 4.0,
            "memory_gib": 2.5,
            "gradient_norm": 0.75,
            "data_wait": 0.05,
            "data_wait_share": 0.1,
            "fill": 0.8,
        },
    }
    assert list(rows[0]) == ["timestamp", "datetime", "elapsedtime", "type", "step", "data"]
    assert lines[-1]["step"] == []
    assert lines[-1]["data"] == {
        "e2e_train_time": 4.0,
        "training_sequences_per_second": 64.0,
        "training_tokens_per_second": 6400.0,
        "training_tflops": 4.0,
        "training_fill": 0.8,
        "training_data_wait_share": 0.1,
        "peak_memory_gib": 2.5,
        "final_loss": 0.0,
        "raw_train_time": 4.0,
    }
    assert {"step": "PARAMETER", "data": {"run_start": True}}.items() <= lines[2].items()


PLAN = RunPlan(
    workers=8, accumulation=4, update_examples=32, interval=0, eval_examples=0, trained=0, step=0,
    sequence_length=64,
)  # fmt: skip


def rows_of(folder: Path, form: str) -> list[dict]:
    """The lines of a run of two updates on eight cards, of four micro-batches each."""
    config = Config.of(output_dir=str(folder), steps=2, log_every=1, json_summary_form=form)
    reporter = make_reporter(config, COLUMNS, rank=0, clock=Clock())
    reporter.plan(PLAN)
    train(reporter, range(1, 3))
    return [line for line in dllogger_lines(folder) if line["step"] not in ([], "PARAMETER")]


def test_in_habanas_form_a_step_is_a_micro_batch_and_speed_that_of_a_card(tmp_path):
    first = rows_of(tmp_path, "habana")[0]  # 32 sequences in 0.5 s on 8 cards, in 4 micro-batches
    assert (first["step"], first["data"]["average_training_time_step"]) == ([0, 1], 0.125)
    assert first["data"]["average_perf_per_step"] == 8.0
    assert not {"seconds_per_update", "sequences_per_second"} & first["data"].keys()


def test_in_tensorflows_form_a_line_has_throughput_and_losses_by_name(tmp_path):
    first = rows_of(tmp_path, "tensorflow")[0]
    assert first["step"] == 1
    assert first["data"] == {
        "throughput_train": 64.0,
        "mlm_loss": 6.5,
        "nsp_loss": 0.5,
        "total_loss": 7.0,
        "avg_loss_step": 7.0,
        "learning_rate": "0.001",
    }


@pytest.mark.parametrize("form", ["bertdata", "tensorflow"])
def test_the_lines_of_a_form_are_read_back(tmp_path, form):
    rows_of(tmp_path, form)
    rows = read_dllogger(str(tmp_path / "dllogger.json")).training
    assert [(row["step"], row["loss"]) for row in rows] == [(1, 7.0), (2, 6.0)]


def test_a_log_of_steps_counts_as_many_for_an_update_as_are_given():
    recorder = Recorder()
    reporter = Reporter([recorder], log_every=2, clock=Clock(), steps_of_update=4)
    for step in (1, 2):
        reporter.update(record(step))
    reporter.begin_evaluation(2, 64)
    reporter.evaluation(*evaluation(2))
    assert [row["step"] for row in recorder.rows] == [8]
    assert ("evaluation", 8) in recorder.events


def test_dllogger_lines_go_where_json_summary_says(tmp_path):
    report(tmp_path / "run", range(1, 2), json_summary=str(tmp_path / "results" / "log.json"))
    assert (tmp_path / "results" / "log.json").exists()
    assert not (tmp_path / "run" / "dllogger.json").exists()


def test_training_csv_has_graphcores_columns_then_ours(tmp_path):
    report(tmp_path, range(1, 8))
    lines = (tmp_path / "training.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == (
        "step,iteration,epoch,lr,mlm_loss,nsp_loss,mlm_acc,nsp_acc,iter_time,samples_per_sec,total_time,"
        "tokens_per_second,tflops,peak_share,memory_gib,gradient_norm,data_wait,data_wait_share,fill"
    )
    assert lines[1] == "1,1,0,0.001,6.5,0.5,0.25,0.75,0.5,,0.5,,,,2.5,0.75,0.05,,"
    assert lines[7] == "7,7,0,0.007,0.5,0.5,0.25,0.75,0.5,64.0,3.5,6400.0,4.0,,2.5,0.75,0.05,0.1,0.8"
    assert len(lines) == 8


def test_a_resumed_run_drops_rows_beyond_its_checkpoint_and_appends(tmp_path):
    report(tmp_path, range(1, 9))
    with (tmp_path / "training.csv").open("a", encoding="utf-8") as file:
        file.write("9,9,0,0.00")  # cut by a crash
    report(tmp_path, range(6, 10), resume_step=5)
    rows = [line.split(",") for line in (tmp_path / "training.csv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [str(step) for step in range(1, 10)]
    times = [0.5 * count for count in (1, 2, 3, 4, 5, 1, 2, 3, 4)]  # of each process
    assert [float(row[10]) for row in rows] == times
    assert len([line for line in dllogger_lines(tmp_path) if line["step"] == []]) == 2


def log_phase(folder: Path, steps: range, saved: tuple[int, ...], resume_step: int | None = None) -> None:
    """The lines of a process: what it starts from, its updates, and events of its checkpoints."""
    config = Config.of(output_dir=str(folder), log_every=1, no_progress_bar=True)
    reporter = make_reporter(config, COLUMNS, rank=0, resume_step=resume_step, clock=Clock())
    reporter.describe(start_point="new" if resume_step is None else f"resumed step-{resume_step:08d}")
    for step in steps:
        reporter.update(record(step))
        if step in saved:
            reporter.saved(step)
    reporter.close()


def test_a_resumed_run_drops_the_lines_of_dllogger_beyond_its_checkpoint(tmp_path):
    """After SIGKILL the lines of later updates were there twice, the first of them after half a line."""
    log_phase(tmp_path, range(1, 9), (5, 8))
    log_phase(tmp_path, range(1, 9), (3, 6))  # phase 2 counts from 0 again
    with (tmp_path / "dllogger.json").open("a", encoding="utf-8") as file:
        file.write('another program\'s line\nDLLL {"timestamp": "1.0", "step": [0, 9]')  # cut by a crash
    log_phase(tmp_path, range(4, 10), (6, 9), resume_step=3)
    found = (tmp_path / "dllogger.json").read_text().splitlines()
    assert found.count("another program's line") == 1
    lines = [json.loads(line[5:]) for line in found if line.startswith("DLLL ")]
    rows = [line["step"][-1] for line in lines if line["step"] and isinstance(line["step"], list)]
    assert rows == [*range(1, 9), *range(1, 10)]
    saved = [line["data"]["checkpoint"] for line in lines if "checkpoint" in line["data"]]
    assert saved == [5, 8, 3, 6, 9]
    assert len([line for line in lines if "start_point" in line["data"]]) == 3


def test_a_line_of_dllogger_that_is_cut_off_alone_goes(tmp_path):
    (tmp_path / "dllogger.json").write_text("DLLL {")
    log_phase(tmp_path, range(4, 6), (), resume_step=3)
    steps = [line["step"] for line in dllogger_lines(tmp_path)]
    assert [step[-1] for step in steps if step and isinstance(step, list)] == [4, 5]


def test_a_new_run_sets_an_older_table_aside(tmp_path):
    for length in (2, 3, 4):
        report(tmp_path, range(1, length + 1))
    tables = {path.name: len(path.read_text().splitlines()) for path in tmp_path.glob("training*.csv")}
    assert tables == {"training.1.csv": 3, "training.2.csv": 4, "training.csv": 5}


def test_evaluations_are_key_value_lines_and_a_table(tmp_path):
    reporter = make_reporter(Config.of(output_dir=str(tmp_path)), COLUMNS, rank=0, clock=Clock())
    for step in (10, 20):
        reporter.begin_evaluation()
        reporter.evaluation(*evaluation(step))
    reporter.close()
    assert (tmp_path / "eval_results.txt").read_text(encoding="utf-8") == (
        "examples = 100\n"
        "global_step = 20\n"
        "guess_masked_lm_loss = 7.0\n"
        "guess_next_sentence_accuracy = 0.625\n"
        "guess_next_sentence_loss = 0.75\n"
        "loss = 6.5\n"
        "masked_lm_accuracy = 0.25\n"
        "masked_lm_loss = 6.0\n"
        "most_frequent_accuracy = 0.125\n"
        "next_sentence_accuracy = 0.5\n"
        "next_sentence_loss = 0.5\n"
    )
    assert (tmp_path / "evaluation.csv").read_text(encoding="utf-8").splitlines()[1:] == [
        "10,320,100,6.5,0.25,6.0,0.5,0.5,0.125,7.0,0.625,0.75",
        "20,640,100,6.5,0.25,6.0,0.5,0.5,0.125,7.0,0.625,0.75",
    ]
    lines = [line for line in dllogger_lines(tmp_path) if "masked_lm_accuracy" in line["data"]]
    assert [line["step"] for line in lines] == [[10], [20]]


def test_other_ranks_write_and_print_nothing(tmp_path, capsys):
    config = Config.of(output_dir=str(tmp_path / "run"))
    summary = train(make_reporter(config, COLUMNS, rank=1, clock=Clock()), range(1, 9))
    assert summary["final_loss"] == 0.0
    assert not (tmp_path / "run").exists()
    assert capsys.readouterr() == ("", "")


def test_a_run_that_breaks_off_closes_its_logs(tmp_path):
    reporter = make_reporter(Config.of(output_dir=str(tmp_path)), COLUMNS, rank=0, clock=Clock())
    with pytest.raises(RuntimeError), reporter:  # noqa: PT012
        reporter.begin()
        reporter.update(record(1))
        raise RuntimeError
    lines = dllogger_lines(tmp_path)
    assert lines[-2]["data"] == {"run_stop": "aborted"}
    assert lines[-1]["data"]["final_loss"] == 7.0


def test_logs_that_cannot_be_written_are_an_error_with_the_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file/run: Not a directory"):
        make_reporter(Config.of(output_dir=str(tmp_path / "file" / "run")), COLUMNS, rank=0)
    reporter = make_reporter(Config.of(output_dir=str(tmp_path), log_every=1), COLUMNS, rank=0, clock=Clock())
    (tmp_path / "training.csv").unlink()
    (tmp_path / "training.csv").mkdir()
    with pytest.raises(IsADirectoryError) as caught:  # which the command prints as one line
        reporter.update(record(1))
    assert caught.value.filename == str(tmp_path / "training.csv")


def test_no_logs_leaves_the_terminal_only(tmp_path, capsys):
    report(tmp_path, range(1, 3), no_logs=True)
    assert list(tmp_path.iterdir()) == []
    assert "step 2/1000" in capsys.readouterr().err


def test_plain_lines_are_printed_where_there_is_no_terminal(tmp_path, capsys):
    reporter = make_reporter(
        Config.of(output_dir=str(tmp_path), steps=7, log_every=7), COLUMNS, rank=0, clock=Clock()
    )
    reporter.begin()
    for step in range(1, 8):
        reporter.update(record(step, loss=4.0))
    reporter.evaluation(*evaluation(7))
    reporter.close()
    assert capsys.readouterr().err.splitlines() == [
        "step 7/7  loss 4.0000  mlm accuracy 0.2500  lr 7.00e-03  gradient norm 0.750  "
        "64.0 sequences/s  6,400 tokens/s  2.5 GiB  waiting for data 10%",
        "step 7: evaluated 100 examples: masked_lm_accuracy 0.25000 "
        '(always "the": 0.12500), masked_lm_loss 6.0000 (by frequency: 7.0000), '
        'next_sentence_accuracy 0.50000 (always "is random": 0.62500)',
        "success after 0.0 s, 64.0 sequences/s, 6,400 tokens/s, waiting for data 10%, 2.5 GiB",
    ]


BAR = """
from trainer.logs.progress_bar import ProgressBar
from trainer.logs.reporter import Reporter
from tests.support.report_records import COLUMNS, Clock, evaluation, record, train
reporter = Reporter([ProgressBar(COLUMNS, 8, 0)], clock=Clock())
reporter.begin()
for step in range(1, 9):
    reporter.update(record(step))
reporter.evaluation(*evaluation(8))
reporter.close()
"""


def shown_on_a_terminal(columns: int) -> bytes:
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "PYTHONPATH": str(ROOT)}
    done = subprocess.Popen([forking_python(), "-c", BAR], stderr=child, cwd=ROOT, env=environment)
    os.close(child)
    shown = b""
    while chunk := _read(parent):
        shown += chunk
    os.close(parent)
    assert done.wait() == 0
    return shown


def test_a_terminal_shows_a_bar_with_loss_rate_speed_and_time_left():
    shown = shown_on_a_terminal(160)
    for words in (b"8/8", b"loss 0.0000", b"6,400 tokens/s", b"64.0 sequences/s", b"2.5 GiB", b"0:00:00"):
        assert words in shown
    for words in (b"lr 8.00e-03", b"gradient norm 0.750"):
        assert words in shown
    assert b"step 8: evaluated 100 examples" in shown
    assert b"success after" in shown


def test_a_narrow_terminal_shows_the_loss_and_the_tokens_first():
    shown = shown_on_a_terminal(80)
    for words in (b"8/8", b"loss 0.0000", b"6,400 tokens/s", b"0:00:00"):
        assert words in shown
    for words in (b"sequences/s  ", b"GiB  ", b"lr "):
        assert words not in shown


def _read(parent: int) -> bytes:
    try:
        return os.read(parent, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_stopped_run_ends_with_a_line_that_says_so(tmp_path, capsys):
    config = Config.of(output_dir=str(tmp_path), no_progress_bar=True)
    make_reporter(config, COLUMNS, rank=0).close("stopped")
    printed = capsys.readouterr().err
    assert printed.splitlines()[-1].startswith("stopped after 0.")
    assert "success" not in printed


def test_columns_are_graphcores(tmp_path):
    report(tmp_path, range(1, 2))
    wanted = "step iteration epoch lr mlm_loss nsp_loss mlm_acc nsp_acc iter_time samples_per_sec total_time"
    (head, *_) = (tmp_path / "training.csv").read_text(encoding="utf-8").splitlines()
    assert head.split(",")[:11] == wanted.split()
