"""Files of other programs: what they state is what a command line means, and each fault has its line."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bertdata.cli.common.programs.choice import find_program, list_programs
from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.program_file import read_program
from bertdata.cli.like import DOOR, KEYS
from bertdata.errors import SettingsFileError, UsageError
from golden.cases import load_case
from tests.support.paths import GOLDEN

FACTS = """\
name = "acme/make_data.py"
title = "ACME make_data.py"
purpose = "ACME: text to examples"
source = "acme/bert 1234abcd, make_data.py"
published = ["--text a.txt --out a.tfrecord --vocab vocab.txt"]
"""
FLAGS = """
[keys]
dialect = "graphcore"
remask = true

[flags]
"-t --text" = { required = true, key = "input_file" }
"--out" = { required = true, key = "output_file" }
"--vocab" = { required = true, key = "vocab_file" }
"--lower" = { kind = "yes or no", default = true, key = "lower_case", meaning = "fold capitals" }
"--length" = { kind = "integer", default = 128, key = "max_seq_length" }
"--masks" = { kind = "integer", default = 20, key = "max_predictions_per_seq" }
"--seed" = { kind = "integer", default = 1984, key = "random_seed" }
"--copies" = { kind = "integer", default = 6, key = "dupe_factor" }
"--share" = { kind = "number", default = 0.15, key = "masked_lm_prob" }
"--short" = { kind = "number", default = 0.1, key = "short_seq_prob" }
"--pad" = { kind = "integer", default = 384, key = "pad_position_value" }
"--threads" = { kind = "integer", without_effect = "one thread is enough", warning = "is not read" }
"""


def file_of(place: Path, flags: str = FLAGS, facts: str = FACTS) -> Path:
    path = place / "make_data.toml"
    path.write_text(facts + flags, encoding="utf-8")
    return path


def given(place: Path, flags: str, words: Sequence[str], version: str = "") -> ParsedCommandLine:
    return read_program(str(file_of(place, flags)), DOOR).read(words, version)


# --- a program is a file ------------------------------------------------------------------------


def test_a_program_of_a_file_alone_makes_the_originals_examples(bertdata, tmp_path):
    settings, out = load_case("graphcore-remasked").settings, tmp_path / "out.tfrecord"
    words = [f"--length={settings.max_seq_length}", f"--masks={settings.max_predictions_per_seq}"]
    words += [f"--seed={settings.random_seed}", f"--copies={settings.dupe_factor}"]
    words += [f"--share={settings.masked_lm_prob}", f"--short={settings.short_seq_prob}"]
    words += ["--lower", str(settings.lower_case), "--threads=3"]
    files = ["-t", GOLDEN / "odd.txt", "--out", out, "--vocab", GOLDEN / "vocab.txt"]
    outcome = bertdata("like", file_of(tmp_path), *files, *words, "--", "--engine=native")
    assert outcome.status == 0, outcome.err
    assert "bertdata: warning: --threads: is not read\n" in outcome.err
    originals = json.loads((GOLDEN / "originals.json").read_text(encoding="utf-8"))["examples"]
    assert hashlib.md5(out.read_bytes()).hexdigest() == originals["graphcore-remasked"]["content_md5"]


def test_a_file_in_a_vendors_folder_is_found_by_its_name_and_listed_by_its_position(tmp_path):
    door = replace(DOOR, folder=tmp_path)
    for name, position in (("one", 2), ("two", 1), ("three", None)):
        place = tmp_path / "acme_labs"
        place.mkdir(exist_ok=True)
        facts = FACTS.replace("acme/make_data", f"acme-labs/{name}")
        facts += f"position = {position}\n" if position else ""
        (place / f"{name}.toml").write_text(facts + FLAGS, encoding="utf-8")
    assert list(list_programs(door)) == ["acme-labs/two.py", "acme-labs/one.py", "acme-labs/three.py"]
    assert find_program(door, "acme-labs/one.py").name == "acme-labs/one.py"
    with pytest.raises(UsageError, match=r"did you mean acme-labs/one\.py\?"):
        find_program(door, "acme-labs/one.sh")


def test_a_setting_that_neither_the_file_nor_a_flag_has_is_an_error(bertdata, tmp_path):
    flags = "".join(line for line in FLAGS.splitlines(True) if "dupe_factor" not in line)
    words = ["-t", "a", "--out", "b", "--vocab", "c", "--print-config"]
    outcome = bertdata("like", file_of(tmp_path, flags), *words)
    assert outcome.status == 2
    assert outcome.err.endswith("dupe_factor has no value; state it in [keys] of its file\n")


@pytest.mark.parametrize("name", list_programs(DOOR))
def test_every_shipped_file_lies_where_its_name_says(name):
    vendor, _, file = name.partition("/")
    place = DOOR.folder / vendor.replace("-", "_") / f"{file.rpartition('.')[0]}.toml"
    assert Path(list_programs(DOOR)[name].path) == place


# --- what a file states -------------------------------------------------------------------------


def test_a_flag_without_a_meaning_has_that_of_its_key(tmp_path):
    table = {flag.name: flag for flag in read_program(str(file_of(tmp_path)), DOOR).commands[""].flags}
    assert table["masks"].meaning == KEYS["max_predictions_per_seq"]["description"]
    assert table["lower"].meaning == "fold capitals"
    assert table["threads"].effect == "without effect here: one thread is enough"


VERSIONS = """
[flags]
"--length" = { kind = "integer", default = 128, key = "max_seq_length" }
"--masks" = { kind = "integer", default = 20, key = "max_predictions_per_seq" }

[versions."2"]
follows = "default"
without = ["--masks"]

[versions."2".keys]
remask = true

[versions."2".flags]
"--length" = { kind = "integer", default = 512, key = "max_seq_length" }
"--seed" = { kind = "integer", default = 7, key = "random_seed" }

[versions."3"]
follows = "2"

[versions."3".flags]
"--short" = { kind = "number", default = 0.5, key = "short_seq_prob" }

[versions."4".flags]
"--size" = { kind = "integer", default = 64, key = "max_seq_length" }
"""


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        ("", {"max_seq_length": 128, "max_predictions_per_seq": 20}),
        ("2", {"remask": True, "max_seq_length": 512, "random_seed": 7}),
        ("3", {"remask": True, "max_seq_length": 512, "random_seed": 7, "short_seq_prob": 0.5}),
        ("4", {"max_seq_length": 64}),
    ],
)
def test_a_version_has_the_flags_of_the_one_that_it_follows_with_its_changes(tmp_path, version, keys):
    assert given(tmp_path, VERSIONS, [], version).keys() == keys


def test_what_a_version_lacks_has_the_default_of_the_default_version(tmp_path):
    assert given(tmp_path, VERSIONS, [], "2")["masks"] == 20


COMMANDS = """
[flags]
"--length" = { kind = "integer", default = 128, key = "max_seq_length" }

[commands.short.keys]
short_seq_prob = 0.5

[commands.long.flags]
"--length" = { kind = "integer", default = 512, key = "max_seq_length" }
"--seed" = { kind = "integer", count = 2, default = [1, 2], key = "random_seed" }
"""


def test_sub_commands_share_the_flags_above_them(tmp_path):
    assert given(tmp_path, COMMANDS, ["short"]).keys() == {"max_seq_length": 128, "short_seq_prob": 0.5}
    long = given(tmp_path, COMMANDS, ["long", "--seed", "3", "4"])
    assert [long.keys(phase)["random_seed"] for phase in (0, 1)] == [3, 4]
    assert long.keys()["max_seq_length"] == 512
    assert given(tmp_path, COMMANDS, ["long"]).keys(1)["random_seed"] == 2


def test_hugging_faces_parser_takes_hyphens_a_boolean_alone_and_its_opposite(tmp_path):
    flags = """
    syntax = "hugging face"
    [flags]
    "--lower_case" = { kind = "yes or no", default = true, key = "lower_case" }
    "--whole_word" = { kind = "yes or no", default = false, key = "whole_word_mask" }
    """
    assert given(tmp_path, flags, ["--whole-word"]).keys() == {"lower_case": True, "whole_word_mask": True}
    assert given(tmp_path, flags, ["--no-lower-case"]).keys()["lower_case"] is False
    assert given(tmp_path, flags, ["--no_lower_case"]).keys()["lower_case"] is False


def test_variables_of_the_environment_are_settings_too(tmp_path, monkeypatch):
    flags = """
    [variables]
    LENGTH = { kind = "integer", default = 128, key = "max_seq_length" }
    RULES = { default = "google", key = "dialect" }
    [flags]
    "--length" = { kind = "integer", key = "max_seq_length" }
    """
    monkeypatch.setenv("LENGTH", "64")
    monkeypatch.setenv("RULES", "")
    found = given(tmp_path, flags, [])
    assert found.keys() == {"max_seq_length": 64, "dialect": "google"}
    assert "LENGTH" in found
    assert "RULES" not in found
    assert given(tmp_path, flags, ["--length=32"]).keys()["max_seq_length"] == 32
    monkeypatch.setenv("LENGTH", "x")
    with pytest.raises(UsageError, match="LENGTH is 'x', expected an integer"):
        given(tmp_path, flags, [])


def test_values_stand_for_those_of_the_key(tmp_path):
    flags = '[flags]\n"--rules" = { values = { tf = "google", ipu = "graphcore" }, key = "dialect" }\n'
    assert given(tmp_path, flags, ["--rules", "ipu"]).keys() == {"dialect": "graphcore"}
    with pytest.raises(UsageError, match="invalid choice: 'graphcore'"):
        given(tmp_path, flags, ["--rules", "graphcore"])


def test_flags_of_a_shared_file_come_first(tmp_path):
    (tmp_path / "shared.toml").write_text('[flags]\n"--seed" = { kind = "integer", key = "random_seed" }\n')
    path = file_of(tmp_path, 'flags_of = "shared.toml"\n' + FLAGS.replace('"--seed"', '"--later"'))
    names = [flag.name for flag in read_program(str(path), DOOR).commands[""].flags]
    assert (names[0], names[-1]) == ("seed", "threads")


@pytest.mark.parametrize("syntax", ["argparse", "absl"])
def test_two_dashes_are_no_value(tmp_path, syntax):
    facts = f'{FACTS}syntax = "{syntax}"\n'
    program = read_program(str(file_of(tmp_path, facts=facts)), DOOR)
    with pytest.raises(UsageError, match="argument --out: '--' is no value"):
        program.read(["--text=a", "--out=--", "--vocab=c"])


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("title =", "titel =", 2, "titel is not a known key; the nearest known is title"),
        ('purpose = "ACME: text to examples"', "purpose = 3", 3, "purpose is 3, expected a text"),
        ('name = "acme/make_data.py"', "", None, "name is missing"),
        ('key = "dupe_factor"', 'key = "dupe_facter"', 19, "the nearest known is dupe_factor"),
        ("remask = true", 'remask = "yes"', 9, "remask is 'yes', expected true or false"),
        ("remask = true", "mask = true", 9, "mask is not a known key"),
        ('kind = "integer", default = 6', 'kind = "int", default = 6', 19, "kind is 'int', expected one of"),
        ("default = 6", 'default = "6"', 19, "default is '6', expected an integer"),
        ("default = 6", "default = [6, 6]", 19, "default is [6, 6], expected one value"),
        ("default = 6", "default = 6, count = 2", 19, "default is 6, expected two values"),
        ("default = 6", 'values = { a = "x" }', 19, "dupe_factor is 'x', expected an integer"),
        ("default = 6", "usual = 6", 19, "usual is not a known key"),
        ('"--copies"', '"copies"', 19, "'copies' is no flag: expected --name, or -n --name"),
        ('"--copies"', '"-t"', 19, "-t is the spelling of two flags"),
        ('"--copies"', '"--c-opies" = {kind = "switch", without_effect = ""}\n"--c_opies"', 20, "twice"),
        (', key = "dupe_factor"', "", 19, "--copies has no meaning: say it, or name its key"),
        ('key = "dupe_factor"', 'key = "dupe_factor", without_effect = "x"', 19, "no meaning and no key"),
        ("[flags]", '[versions."2"]\nfollows = "1"\n[flags]', 12, "expected a version above it: default"),
        ("[flags]", '[versions."2"]\nwithout = ["--x"]\n[flags]', 12, "without names --x, which is no flag"),
        ("[flags]", '[flags]\n"--x" = 3', 12, "--x is 3, expected a table"),
        ("[flags]", "[commands]\nx = 3\n[flags]", 12, "x is 3, expected a table"),
        ("[flags]", "[variables]\n--x = {}\n[flags]", 12, "'--x' is no variable"),
        ("[flags]", '[variables]\nX = {kind = "switch"}\n[flags]', 12, "one of text, integer, number"),
        ("[flags]", "[flags", 11, "is not TOML"),
    ],
)
def test_a_fault_of_a_file_is_told_with_its_line(tmp_path, old, new, line, said):
    text = (FACTS + FLAGS).replace(old, new, 1)
    path = file_of(tmp_path, text, "")
    with pytest.raises(SettingsFileError) as caught:
        read_program(str(path), DOOR)
    where = path if line is None else f"{path}:{line}"
    assert str(caught.value).startswith(f"{where}: ")
    assert said in str(caught.value)
