"""Shares of masked ids in files: settings, manifest, statistics, and the masks that do not depend on them."""

import json
from contextlib import suppress
from typing import Any

import pytest

from bertdata.cli.main import main
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.masking.settings import MaskingSettings
from golden.cases import GOLDEN, load_case, make

SHARES = {"mask_share": 0.5, "random_share": 0.25, "kept_share": 0.25}
FLAGS = [f"--{name.replace('_', '-')}={share}" for name, share in SHARES.items()]


def create(tmp_path: Any, *flags: str) -> int:
    words = ["create", str(GOLDEN / "single.txt"), "--output", str(tmp_path / "out")]
    words += ["--vocab", str(GOLDEN / "vocab.txt"), "--workers", "1", "--recipe", "google"]
    return main([*words, *flags])


def test_a_manifest_tells_shares_only_where_they_are_not_the_defaults():
    assert not SHARES.keys() & BertSettings().as_json().keys()
    changed = BertSettings(mask_share=0.9, random_share=0.0)
    assert {name: changed.as_json()[name] for name in SHARES} == {
        "mask_share": 0.9,
        "random_share": 0.0,
        "kept_share": 0.1,
    }


def test_settings_of_an_old_manifest_have_the_originals_shares():
    old = {name: value for name, value in BertSettings().as_json().items() if name != "lower_case"}
    assert BertSettings(**old).masking.shares == {"mask_share": 0.8, "random_share": 0.1, "kept_share": 0.1}
    assert MaskingSettings.from_manifest(old).shares == MaskingSettings().shares


def test_masks_in_files_leave_out_cls_and_sep_alone():
    masking = BertSettings().masking
    assert (masking.never_masked, masking.joins_over_special) == (("cls", "sep"), True)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_default_shares_given_by_hand_change_no_example(engine):
    case = load_case("google")
    given = case.settings.with_changes(mask_share=0.8, random_share=0.1, kept_share=0.1)
    expected, _ = make(case, engine)
    found, _ = make(type(case)(case.folder, case.inputs, given), engine)
    assert list(found.batch(0, len(found)).examples()) == list(expected.batch(0, len(expected)).examples())


def test_a_dataset_with_other_shares_says_so(tmp_path, capsys):
    assert create(tmp_path, *FLAGS) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {name: manifest["settings"]["objective"][name] for name in SHARES} == SHARES
    assert main(["verify-md5", str(tmp_path / "out"), "--content"]) == 0
    capsys.readouterr()
    assert main(["stats", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(expected 25%)") == 2
    assert "(expected 50%)" in shown


def test_a_directory_of_other_shares_is_refused(tmp_path, capsys):
    assert create(tmp_path) == 0
    assert create(tmp_path, *FLAGS) == 2
    error = capsys.readouterr().err
    assert "was made with other settings: " in error
    assert "mask_share None, now 0.5" in error


def test_packed_rows_keep_the_shares_of_their_examples(tmp_path):
    assert create(tmp_path, *FLAGS) == 0
    assert main(["pack", str(tmp_path / "out"), "--output", str(tmp_path / "packed"), "--workers", "1"]) == 0
    manifest = json.loads((tmp_path / "packed" / "manifest.json").read_text())
    assert {name: manifest["settings"]["objective"][name] for name in SHARES} == SHARES


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--mask-share=0.9"],
            "--mask-share 0.9, --random-share 0.1, --kept-share 0.1: their sum is 1.1, expected 1",
        ),
        (["--mask-share=1.2"], "--mask-share is 1.2, expected a share from 0 to 1"),
        (["--kept-share=nan"], "argument --kept-share: 'nan' is not a number"),
    ],
)
def test_shares_that_are_no_shares_of_one_whole_are_refused(flags, message, tmp_path, capsys):
    with suppress(SystemExit):  # of the parser, which refuses what is no number
        assert create(tmp_path, *flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
