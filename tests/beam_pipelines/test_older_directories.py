"""Directories of older manifests under the Beam pipeline: kept and finished as ``bertdata create`` does."""

import shutil
from pathlib import Path

import pytest

from tests.support.commands import contents
from tests.support.paths import ROOT
from tests.support.pipelines import prepare

OLDER = ROOT / "tests" / "bertdata" / "dataset" / "older_manifests"
VERSION_2 = OLDER / "version_2"
VOCABULARY = VERSION_2 / "bert" / "vocab.txt"
PARTS = sorted((OLDER / "text").glob("part-*"))
FLAGS = ("--max-seq-length=24", "--max-predictions-per-seq=4", "--dupe-factor=2")


def test_a_whole_directory_of_version_2_is_kept(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(VERSION_2 / "bert", tmp_path / "bert"))
    assert prepare(PARTS, VOCABULARY, directory, *FLAGS) == 0
    assert contents(directory) == contents(VERSION_2 / "bert")


def test_a_half_made_directory_of_version_2_is_finished(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(VERSION_2 / "unfinished", tmp_path / "unfinished"))
    assert prepare(PARTS, VOCABULARY, directory, *FLAGS) == 0
    assert prepare(PARTS, VOCABULARY, tmp_path / "new", *FLAGS) == 0
    assert contents(directory) == contents(tmp_path / "new")


def test_a_directory_of_other_settings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = Path(shutil.copytree(VERSION_2 / "bert", tmp_path / "bert"))
    assert prepare(PARTS, VOCABULARY, directory, *FLAGS, "--no-lower-case") == 2
    assert "was made with other settings: lower_case True, now False" in capsys.readouterr().err
    assert contents(directory) == contents(VERSION_2 / "bert")
