"""Graphcore's run_pretraining.py: its published commands."""

import pytest

from tests.support.published_commands import assert_equal, commands, understood

PROGRAM = "graphcore/run_pretraining.py"
PUBLISHED = {one["id"]: one for one in commands("graphcore run_pretraining.py")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_command_has_all_values_of_the_original(name):
    command = PUBLISHED[name]
    found = understood(PROGRAM, command["argv"][1:])
    expected = command["expects"]["phases"]
    assert len(found["phases"]) == len(expected)
    for phase, wanted in zip(found["phases"], expected, strict=True):
        assert_equal(phase, wanted)
