"""The script that installs what extras need, without building the checkout again."""

import importlib.util
from types import ModuleType

import pytest

from tests.support.paths import ROOT


@pytest.fixture
def script() -> ModuleType:
    path = ROOT / "tools" / "install_extras.py"
    specification = importlib.util.spec_from_file_location("install_extras", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_requirements_are_those_of_the_extras_named(script: ModuleType) -> None:
    assert [one.partition(">")[0] for one in script.list_requirements(["train"])] == [
        "torch",
        "numpy",
        "safetensors",
        "cramjam",
    ]
    assert script.list_requirements(["wiki"]) == ["wikiextractor==3.1.0"]
    assert script.list_requirements([]) == []


def test_pip_gets_its_options_and_the_requirements(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Done:
        returncode = 3

    seen: list[list[str]] = []
    monkeypatch.setattr(script.subprocess, "run", lambda command, **_: seen.append(command) or Done)
    assert script.main(["-c", "constraints.txt", "wiki"]) == 3
    assert seen[0][1:] == ["-m", "pip", "install", "-c", "constraints.txt", "wikiextractor==3.1.0"]
