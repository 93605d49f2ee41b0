"""The warning of a device that waits for data."""

import pytest

from trainer.config.settings import Config
from trainer.run.pending_updates import DataWait


def warnings(times: list[tuple[int, float, float]], **keys: object) -> list[str]:
    said = list[str]()
    wait = DataWait(Config.of(**keys), said.append)
    for updates, seconds, waited in times:
        wait.add(updates, seconds, waited)
    return said


STARVED = [(6, 1.0, 1.0), (10, 1.0, 0.25), (50, 1.0, 0.5)]


def test_a_device_that_waits_is_warned_of_once_with_what_to_do():
    (line,) = warnings(STARVED)
    assert line.startswith(
        "warning: the device waits for data 25% of the time; more cores help (this process has "
    )


@pytest.mark.parametrize(
    "times",
    [
        [(6, 1.0, 1.0), (100, 1.0, 0.1)],  # no more than a tenth
        [(6, 1.0, 1.0), (9, 1.0, 0.9)],  # too short to tell
        [(6, 5.0, 5.0), (10, 1.0, 0.0)],  # the first updates do not count
    ],
)
def test_a_fed_device_or_a_short_time_is_not(times):
    assert warnings(times) == []


def test_work_at_load_is_named_where_it_is_configured():
    (line,) = warnings(STARVED, masking="dynamic", pack_on_load=True)
    assert "masks that are made before" in line
    assert "packs that are made before (bertdata pack)" in line
