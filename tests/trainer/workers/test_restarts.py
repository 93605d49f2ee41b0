"""Which workers end so that torchrun starts them again after another machine has left the run."""

import pytest

from trainer.errors import ReportedError, StopRequested
from trainer.workers.collective import Stopping
from trainer.workers.restarts import end_for_restart
from trainer.workers.stopping import StopAgreement

AGENT = {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3"}


@pytest.fixture
def two_machines(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment that an agent of torchrun gives its worker, one of two machines."""
    for name, value in {**AGENT, "LOCAL_RANK": "0", "RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def stop_elsewhere() -> Stopping:
    """A worker of rank 1 that has stopped because rank 0 was asked to."""
    stopping = StopAgreement(1, 2, lambda message: None)
    stopping.receive("stop end hold")
    stopping.receive("stop end until 0")
    with pytest.raises(StopRequested):
        stopping.check(exchanges=True)
    return stopping


def test_a_worker_whose_machine_stays_ends_with_an_error_status(two_machines, capsys):
    with pytest.raises(ReportedError) as ended:
        end_for_restart(stop_elsewhere(), resumes=True)
    assert ended.value.exit_status != 0
    assert "another machine was asked to stop" in capsys.readouterr().err


def test_one_line_a_machine(two_machines, capsys):
    two_machines.setenv("LOCAL_RANK", "3")
    with pytest.raises(ReportedError):
        end_for_restart(stop_elsewhere(), resumes=True)
    assert capsys.readouterr().err == ""


def test_a_worker_that_was_asked_itself_ends_as_usual(two_machines):
    stopping = stop_elsewhere()
    stopping.request()
    end_for_restart(stopping, resumes=True)


def test_a_run_that_has_made_all_updates_ends_as_usual(two_machines):
    end_for_restart(StopAgreement(1, 2, lambda message: None), resumes=True)


def test_without_resume_a_restart_would_be_refused(two_machines):
    end_for_restart(stop_elsewhere(), resumes=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("GROUP_WORLD_SIZE", "1"), ("TORCHELASTIC_RESTART_COUNT", "3"), ("TORCHELASTIC_MAX_RESTARTS", "")],
)
def test_where_torchrun_would_not_restart_for_the_other_machines(two_machines, name, value):
    two_machines.setenv(name, value)
    end_for_restart(stop_elsewhere(), resumes=True)
