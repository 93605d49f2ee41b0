"""The tables of docs/splitting.md against the code: it has every key."""

import re

from tests.support.paths import ROOT
from trainer.config.settings import list_section_keys

PAGE = (ROOT / "docs" / "splitting.md").read_text(encoding="utf-8")


def test_the_pages_tables_have_every_key_of_the_section():
    assert not [name for name in list_section_keys("split") if name not in words(PAGE)]


def words(text: str) -> set[str]:
    """What stands in back quotes outside of blocks, flags under the names of their keys."""
    quoted = re.findall(r"`([^`]+)`", re.sub(r"```\w*\n(.*?)```", "", text, flags=re.DOTALL))
    return {word.removeprefix("--").split()[0].replace("-", "_") for word in quoted}
