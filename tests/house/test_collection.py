"""The suite runs what it claims: no test file is passed over, and no test is lost unnoticed."""

from pathlib import Path

import pytest

from tests.conftest import COLLECTED
from tests.support.paths import ROOT

AT_LEAST = 7000
"""Tests, thorough ones included; raise it as they become more, lower it only with a reason."""


def _asked(config: pytest.Config) -> list[Path]:
    """The folders that the command names, or all tests."""
    paths = [Path(config.invocation_params.dir, word.partition("::")[0]).resolve() for word in config.args]
    return [path for path in paths if path.is_dir()]


def test_every_test_file_on_disk_is_collected(request: pytest.FixtureRequest) -> None:
    collected = {ROOT / node.partition("::")[0] for node in request.config.stash[COLLECTED]}
    on_disk = {path for folder in _asked(request.config) for path in folder.rglob("test_*.py")}
    assert sorted(on_disk - collected) == []


def test_no_folder_of_tests_is_one_that_pytest_passes_over(request: pytest.FixtureRequest) -> None:
    passed_over = request.config.getini("norecursedirs")
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    names = {parent for folder in folders for parent in folder.relative_to(ROOT).parts}
    assert [name for name in sorted(names) for pattern in passed_over if Path(name).match(pattern)] == []


def test_there_are_at_least_as_many_tests_as_there_were(request: pytest.FixtureRequest) -> None:
    if ROOT / "tests" not in _asked(request.config):
        pytest.skip("a part of the tests was asked for")
    assert len(request.config.stash[COLLECTED]) >= AT_LEAST
