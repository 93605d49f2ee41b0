"""The printed commands on Habana's page are those of the reference kit."""

import re

import pytest

from tests.support.published_commands import commands
from trainer.programs.choice import find_program

PROGRAM = find_program("habana/demo_bert.py")
PRINTED = [
    " ".join(one["argv"][1:]) for one in commands("habana-pytorch demo_bert.py") if one["kind"] == "train"
]


def flags(line: str) -> dict[str, str]:
    """The flags of a command line but for its data; they stand in any order."""
    words = re.sub(r"--data_dir.*", "", line)
    found = re.findall(r"--(\w+)((?: (?!--)\S+)*)", words)
    return {name: value.strip() for name, value in found}


@pytest.mark.parametrize("line", PRINTED)
def test_each_printed_command_is_on_the_page(line):
    known = [flags(one) | {"": one.split()[0]} for one in PROGRAM.also_published]
    assert flags(line) | {"": line.split()[0]} in known


def test_no_command_is_there_twice():
    assert len(set(PROGRAM.also_published)) == len(PROGRAM.also_published) == 21
