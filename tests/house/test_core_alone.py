"""The tests of the trainer's core pass in a checkout from which every extension was deleted."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.core_runs import EXTENSIONS, extensions
from tests.support.house import Sources, draw, packages, reachable, read_sources
from tests.support.paths import ROOT, find_kit

SOURCES = read_sources(ROOT)
FOLDER = "tests/trainer"
AT_LEAST = 1000
"""Quick tests of the core; raise it as they become more, lower it only with a reason."""


def needed_extensions(sources: Sources) -> list[str]:
    """The modules of extensions to which imports lead from the core's tests and their fixtures.

    A support module that another names as a file, to start it as a program, counts as imported.
    """
    arrows = draw(sources)
    programs = {f'"{name.split(".")[2]}.py"': name for name in sources if name.startswith("tests.support.")}
    for name in [name for name in sources if name.startswith("tests.")]:
        arrows[name] |= {program for file, program in programs.items() if file in sources[name]}
    own = {name for name in sources if name.startswith("tests.trainer.")}
    start = {name for name in own if not name.startswith("tests.trainer.extensions.")} | {"tests.conftest"}
    found = reachable("the core's tests", {**arrows, "the core's tests": start})
    return sorted(name for name in found if name.startswith(f"{EXTENSIONS}."))


def test_no_test_of_the_core_leads_to_an_extension():
    assert needed_extensions(SOURCES) == []


@pytest.mark.parametrize(
    "module",
    ["tests.trainer.data.test_data", "tests.support.flat", "tests.support.trainer_worker", "tests.conftest"],
)
def test_a_planted_import_of_an_extension_is_found(module):
    late = f"\ndef late():\n    import {EXTENSIONS}.loading.packs\n"
    assert f"{EXTENSIONS}.loading.packs" in needed_extensions(SOURCES | {module: SOURCES[module] + late})


def checkout_without_extensions(place: Path) -> Path:
    """A copy of this checkout's packages without the extensions and without their tests."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for package in packages(ROOT):
        shutil.copytree(ROOT / package, place / package, ignore=ignored)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, place)
    for name in extensions():
        shutil.rmtree(place.joinpath(*EXTENSIONS.split("."), name))
    shutil.rmtree(place / FOLDER / "extensions")
    return place


@pytest.mark.thorough
def test_the_cores_tests_pass_where_every_extension_was_deleted(tmp_path):
    place = checkout_without_extensions(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(place), "HYPOTHESIS_PROFILE": "default"}
    if kit := find_kit():
        environment["BERTDATA_REFERENCE_KIT"] = str(kit)

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    there = f"import pkgutil, {EXTENSIONS} as found; print(*pkgutil.iter_modules(found.__path__))"
    assert python("-c", there) == "\n"
    said = python("-m", "pytest", "-q", "-n", "2", "-m", "not thorough", FOLDER)
    passed = re.search(r"^(\d+) passed", said, re.MULTILINE)
    assert passed, said
    assert int(passed[1]) >= AT_LEAST
