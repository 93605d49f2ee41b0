"""Checkpoints that somebody made to break the reader are one line that names the file, and leave nothing."""

import resource
import time

import pytest

from benchmarks import odd_checkpoints
from tests.support.training_runs import refuse

MOST_SECONDS = 20
MOST_MIB = 150
"""Memory that reading a file of less than 2 MB may add."""

SAID = {
    "keys that share their beginning": "its keys have more than 64 bytes for each byte of the file",
    "the same, compressed": "its keys have more than 64 bytes for each byte of the file",
    "a block named many times": "its blocks overlap",
    "an empty block named many times": "its blocks overlap",
    "keys out of order": "its keys are not in order",
    "no bytes of a huge shape, bundle": "a shape that no tensor has",
    "1000 dimensions": "a shape that no tensor has",
    "a graph of 300,000 objects": "a graph of more than 262144 objects",
    "cut at 0.5": "is truncated: an archive of torch.save without its end",
}
"""The cause that is told, for files that would be refused for another reason after much memory or time."""


@pytest.mark.parametrize("name", odd_checkpoints.REFUSED)
def test_an_odd_checkpoint_is_one_line_and_leaves_nothing(trainer, tmp_path, name):
    path = odd_checkpoints.made(name, tmp_path / "source")
    began, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for target in ("huggingface", "bertdata"):
        outcome = trainer("convert", path, tmp_path / "out", "--to", target)
        refuse(outcome, 1, str(path), SAID.get(name, ""))
        assert outcome.out == ""
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source"]
    assert time.process_time() - began < MOST_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1024 * MOST_MIB


@pytest.mark.parametrize("name", odd_checkpoints.WITHOUT_MOMENTS)
def test_weights_beside_another_programs_optimiser_are_read(trainer, tmp_path, name):
    path = odd_checkpoints.made(name, tmp_path / "source")
    outcome = trainer("convert", path, tmp_path / "out")
    assert outcome.status == 0, outcome.err
    assert outcome.out.strip().endswith("out: weights to start from (--start-from-ckpt)")
