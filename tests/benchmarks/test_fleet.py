"""The simulation of the reading of a fleet."""

import pytest

from benchmarks.fleet import count_checkpoint_bytes, simulate
from trainer.data.reading import Reading

FILES = [(f"part-{number}", 8192) for number in range(16)]


@pytest.mark.parametrize("machines", [2, 4])
def test_machines_share_the_streams_and_all_read_whole_files(machines):
    shared = simulate(FILES, Reading(16, 2048), machines, 8 * machines, 128)
    assert shared.of_file == pytest.approx(1.0)
    assert shared.of_machine == pytest.approx(16 / machines)
    whole = simulate(FILES, Reading(8), machines, 8 * machines, 128)
    assert (whole.of_file, whole.of_machine) == (machines, 16)


def test_a_checkpoint_has_three_numbers_of_four_bytes_for_each_weight():
    # BERT base for pre-training has 110,106,428 weights with 30,522 words, and some more with padding
    assert 12 * 110_000_000 < count_checkpoint_bytes({}) < 12 * 111_000_000
