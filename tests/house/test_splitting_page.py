"""docs/splitting.md and its reference against the code: what the commands print, keys."""

import re
import shlex

import pytest

from tests.support.paths import ROOT
from trainer.__main__ import main
from trainer.config.keys import section_keys

TEXT = (ROOT / "docs" / "splitting.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "splitting-reference.md").read_text(encoding="utf-8")
BLOCK = r"```\n(.*?)```"
EXAMPLES = re.findall(rf"{BLOCK}\n\n{BLOCK}", TEXT, re.DOTALL)
"""(command, what it prints)."""


def test_there_is_a_plan_and_a_refusal():
    assert [("error" in printed) for _, printed in EXAMPLES] == [False, True]


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_commands_print_what_the_page_shows(command, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[3:]) == (2 if "error" in printed else 0)
    found = capsys.readouterr()
    assert found.out + found.err == printed


def test_the_pages_tables_have_every_key_of_the_section():
    assert not [name for name in section_keys("split") if name not in words(REFERENCE)]


def words(text: str) -> set[str]:
    """What stands in back quotes outside of blocks, flags under the names of their keys."""
    quoted = re.findall(r"`([^`]+)`", re.sub(BLOCK, "", text, flags=re.DOTALL))
    return {word.removeprefix("--").split()[0].replace("-", "_") for word in quoted}
