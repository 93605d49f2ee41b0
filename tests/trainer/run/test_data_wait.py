"""The warning of a device that waits for data."""

from types import SimpleNamespace

import pytest

from tests.support.report_records import record
from trainer.config.settings import Config
from trainer.logs.reporter import Reporter
from trainer.run.pending_updates import PendingUpdates
from trainer.run.slow_data import describe_remedy


@pytest.mark.parametrize(
    ("times", "share"),
    [
        ([(6, 1.0, 1.0), (10, 1.0, 0.25)], 0.25),
        ([(6, 1.0, 1.0), (10, 1.0, 0.25), (10, 1.0, 0.75)], 0.5),
        ([(6, 1.0, 1.0), (9, 1.0, 0.9)], 0.0),  # too short to tell
        ([(6, 5.0, 5.0), (10, 1.0, 0.0)], 0.0),  # the first updates do not count
    ],
)
def test_the_time_in_which_a_worker_waits_is_shared_by_all_but_the_first_updates(times, share):
    report, step = Reporter([], log_every=5), 0
    for updates, seconds, waited in times:
        for _ in range(updates):
            step += 1
            report.update(record(step, seconds=seconds, data_wait=waited))
    assert report.compute_waited_share(10.0) == share


def test_a_device_that_waits_is_warned_of_once_with_what_to_do():
    said, shares = list[str](), iter((0.1, 0.25, 0.5))
    pending = SimpleNamespace(
        _report=SimpleNamespace(compute_waited_share=lambda least_seconds: next(shares)),
        _runtime=SimpleNamespace(log=said.append, config=Config.of()),
        _is_warned=False,
    )
    for _ in range(3):
        PendingUpdates._warn_of_waiting(pending)  # type: ignore[arg-type]
    (line,) = said
    assert line.startswith("warning: the device waits for data 25% of the time; more cores help")


def test_work_at_load_is_named_where_it_is_configured():
    assert describe_remedy(Config.of()).startswith("more cores help (this process has ")
    line = describe_remedy(Config.of(masking="dynamic", pack_on_load=True))
    assert "masks that are made before" in line
    assert "packs that are made before (bertdata pack)" in line
