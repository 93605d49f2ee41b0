"""Habana's demo_bert.py: its published commands, and what it refuses."""

import pytest

from tests.support.published_commands import assert_equal, commands, understood

PROGRAM = "habana/demo_bert.py"
PUBLISHED = {one["id"]: one for one in commands("habana-pytorch demo_bert.py") if one["kind"] == "train"}
IN_WORDS = ("task_train_file", "task_eval_file")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_command_has_all_values_of_the_original(name):
    command = PUBLISHED[name]
    found = understood(PROGRAM, command["argv"][1:])
    expected = command["expects"]["phases"]
    assert len(found["phases"]) == len(expected)
    for phase, wanted in zip(found["phases"], expected, strict=True):
        assert_equal(phase, wanted, IN_WORDS)
        for key in IN_WORDS:
            if key in wanted:
                assert phase[key] == f"{phase['task_dir']}/{wanted[key].partition(' ')[0]}"
