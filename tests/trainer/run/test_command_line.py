"""The command line that a run records."""

import sys

import pytest

from trainer import __main__, by_path
from trainer.run.command_line import find_command_line

WORDS = ["pretrain", "--output-dir", "my run", "--dist"]


@pytest.mark.parametrize(
    ("program", "command"),
    [
        (__main__.__file__, "python -m trainer pretrain --output-dir 'my run' --dist"),
        # a worker that --dist has started has the words of the command that started it
        (by_path.__file__, "python -m trainer pretrain --output-dir 'my run' --dist"),
        ("/usr/bin/bertdata-train", "bertdata-train pretrain --output-dir 'my run' --dist"),
        ("/home/user/train.py", None),
        ("-c", None),
    ],
)
def test_a_run_records_the_command_that_starts_it_again(monkeypatch, program, command):
    monkeypatch.setattr(sys, "argv", [program, *WORDS])
    assert find_command_line() == command
