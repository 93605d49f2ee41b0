"""The updates since the last row of the logs, as a checkpoint keeps them."""

import json

import pytest

from tests.support.report_records import Clock, Recorder, record
from trainer.logs.reporter import Reporter
from trainer.logs.unfinished_row import UnfinishedRow, read_unfinished_row

METRICS = ("mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy")
LOSSES = (0.1, 0.7, 1e-9, 3.3, 0.2, 0.6, 1.1)
"""Losses whose sum has other last bits in another order."""


def make_reporter(recorder: Recorder, row: UnfinishedRow | None = None) -> Reporter:
    return Reporter([recorder], log_every=len(LOSSES), clock=Clock(), unfinished_row=row)


def add(reporter: Reporter, first: int, last: int) -> None:
    for step in range(first, last + 1):
        reporter.update(record(step, loss=LOSSES[step - 1]))


def through_a_state(row: UnfinishedRow | None, step: int) -> UnfinishedRow | None:
    """The row after it was written to a checkpoint's state and read again."""
    assert row is not None
    return read_unfinished_row(json.loads(json.dumps(row.as_json())), step, METRICS)


@pytest.mark.parametrize("saved", range(1, len(LOSSES)))
def test_a_row_goes_on_after_a_checkpoint_with_the_same_bits(saved):
    straight, resumed = Recorder(), Recorder()
    add(make_reporter(straight), 1, len(LOSSES))
    before = make_reporter(Recorder())
    add(before, 1, saved)
    after = make_reporter(resumed, through_a_state(before.unfinished_row, saved))
    add(after, saved + 1, len(LOSSES))
    (expected,), (found,) = straight.rows, resumed.rows
    names = ("step", "epoch", "loss", *METRICS, "learning_rate", "step_loss")
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert found["total_time"] == 0.5 * (len(LOSSES) - saved)
    assert after.unfinished_row is None


SECONDS = (1.0, 3.0, 0.5, 0.25, 2.0)
SEQUENCES = (4, 4, 8, 8, 16)


def add_timed(reporter: Reporter, first: int, last: int) -> None:
    """Add updates of different lengths, which count for the speed at once."""
    reporter._settling = 0
    for step in range(first, last + 1):
        seconds, sequences = SECONDS[step - 1], SEQUENCES[step - 1]
        reporter.update(
            record(step, seconds=seconds, sequences=sequences, tokens=10 * sequences, data_wait=seconds / 4)
        )


@pytest.mark.parametrize("saved", range(1, len(SECONDS) + 1))
def test_the_times_of_a_row_are_those_of_all_of_its_updates(saved):
    """At the last number, the run was killed before the row was written, and nothing is left to do."""
    before, recorder = Reporter([], log_every=9, clock=Clock()), Recorder()
    add_timed(before, 1, saved)
    after = Reporter(
        [recorder], log_every=9, clock=Clock(), unfinished_row=through_a_state(before.unfinished_row, saved)
    )
    add_timed(after, saved + 1, len(SECONDS))
    after.close("success")
    (row,) = recorder.rows
    seconds, sequences = sum(SECONDS), sum(SEQUENCES)
    assert row["seconds"] == row["seconds_per_update"] == seconds / len(SECONDS)
    assert row["data_wait"] == seconds / len(SECONDS) / 4
    assert row["data_wait_share"] == 0.25
    assert row["sequences_per_second"] == sequences / seconds
    assert row["tokens_per_second"] == 10 * sequences / seconds
    assert row["sequences"] / row["seconds"] == pytest.approx(sequences / seconds)  # of other programs' logs


def test_a_row_of_an_earlier_version_has_the_times_since_the_resume():
    before, recorder = Reporter([], log_every=9, clock=Clock()), Recorder()
    add_timed(before, 1, 2)
    assert before.unfinished_row is not None
    stored = before.unfinished_row.as_json()
    del stored["times"], stored["timed"]
    row = read_unfinished_row(stored, 2, METRICS)
    after = Reporter([recorder], log_every=9, clock=Clock(), unfinished_row=row)
    add_timed(after, 3, len(SECONDS))
    assert after.unfinished_row is not None
    assert after.unfinished_row.updates == 5
    after.close("success")
    (found,) = recorder.rows
    assert found["seconds"] == pytest.approx(sum(SECONDS[2:]) / 3)
    assert found["sequences_per_second"] == pytest.approx(sum(SEQUENCES[2:]) / sum(SECONDS[2:]))


def test_a_run_with_nothing_left_to_do_writes_the_row_that_was_not_written():
    before, recorder = make_reporter(Recorder()), Recorder()
    add(before, 1, 3)
    make_reporter(recorder, through_a_state(before.unfinished_row, 3)).close("success")
    (row,) = recorder.rows
    assert (row["step"], row["loss"], row["step_loss"]) == (3, (0.1 + 0.7 + 1e-9) / 3, 1e-9)
    assert row["seconds"] == 0.5
    assert "total_time" not in row


@pytest.mark.parametrize("status", ["stopped", "aborted"])
def test_a_run_that_ends_before_its_first_update_leaves_the_row_to_the_next(status):
    before, recorder = make_reporter(Recorder()), Recorder()
    add(before, 1, 3)
    make_reporter(recorder, before.unfinished_row).close(status)
    assert recorder.rows == []


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1e301])
def test_numbers_that_no_state_may_hold_leave_the_row_out(odd):
    reporter = make_reporter(Recorder())
    reporter.update(record(1, metrics={"mlm_loss": odd}))
    assert reporter.unfinished_row is not None
    assert reporter.unfinished_row.as_json() == {}


def test_a_row_of_other_metrics_or_of_an_earlier_version_is_not_taken_up():
    reporter = make_reporter(Recorder())
    add(reporter, 1, 2)
    assert reporter.unfinished_row is not None
    assert read_unfinished_row(reporter.unfinished_row.as_json(), 2, ("answer_loss",)) is None
    assert read_unfinished_row({}, 2, METRICS) is None
