"""The examples in docstrings give the results that they show."""

import doctest
import importlib

import pytest

from tests.support.paths import ROOT

PACKAGES = ("bertdata", "trainer", "beam_pipelines", "tools")


def find_modules() -> list[str]:
    """Return the names of the modules with an example."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    with_examples = [path for path in files if ">>> " in path.read_text(encoding="utf-8")]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in with_examples]


@pytest.mark.parametrize("name", find_modules())
def test_the_examples_of_a_module_are_right(name):
    result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert result.attempted > 0
    assert result.failed == 0
