"""Graphcore's create_pretraining_data.py: its published command, its examples, and what is refused."""

import hashlib
import json

import pytest

from golden.cases import load_case
from tests.support.paths import GOLDEN, find_kit

PROGRAM = "graphcore/create_pretraining_data.py"
ORIGINALS = json.loads((GOLDEN / "originals.json").read_text(encoding="utf-8"))["examples"]
FILES = ("--input-file", "in.txt", "--output-file", "out.tfrecord", "--vocab-file", "vocab.txt")
USUAL = {
    "max_seq_length": 128,
    "max_predictions_per_seq": 20,
    "masked_lm_prob": 0.15,
    "random_seed": 1984,
    "dupe_factor": 6,
    "short_seq_prob": 0.1,
    "lower_case": False,
    "format": "tfrecord",
    "dialect": "graphcore",
    "remask": True,
    "pad_position_value": 384,
    "max_samples": "all",
}


def published():
    """The kit's commands of the program; none without the kit."""
    if kit := find_kit():
        for command in json.loads((kit / "commands.json").read_text(encoding="utf-8"))["commands"]:
            if command["program"] == "graphcore create_pretraining_data.py":
                yield pytest.param(command["argv"][1:], command["expects"]["create"], id=command["id"])


def understood(bertdata, *words, program=PROGRAM):
    outcome = bertdata("like", program, *words, "--print-config")
    assert (outcome.status, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert found["program"] == program
    return found["create"]


@pytest.mark.parametrize(("words", "expected"), list(published()))
def test_a_published_command_has_all_settings_of_the_original(bertdata, words, expected):
    found = understood(bertdata, *words)
    assert {name: found[name] for name in expected} == expected


def test_flags_that_are_not_given_have_the_scripts_defaults(bertdata):
    found = understood(bertdata, *FILES)
    assert {name: found[name] for name in USUAL} == USUAL
    assert (found["input_file"], found["output_file"], found["vocab_file"]) == FILES[1::2]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--do-lower-case"], "lower_case", True),
        (["--sequence-length", "384"], "max_seq_length", 384),
        (["--mask-tokens=58"], "max_predictions_per_seq", 58),
        (["--mask-tokens=-1"], "max_predictions_per_seq", 0),
        (["--seed", "7"], "random_seed", 7),
        (["--duplication-factor", "5"], "dupe_factor", 5),
        (["--dup", "5"], "dupe_factor", 5),
        (["--mlm-prob", "0.2"], "masked_lm_prob", 0.2),
        (["--mlm-prob", "1.5"], "masked_lm_prob", 1.0),
        (["--short-seq-prob", "0.02"], "short_seq_prob", 0.02),
        (["--pad-position-value", "511"], "pad_position_value", 511),
        (["--max-samples", "3"], "max_samples", "all"),
        (["--remask"], "remask", True),
    ],
)
def test_a_flag_sets_its_setting_and_no_other(bertdata, words, name, value):
    found = understood(bertdata, *FILES, *words)
    assert {key: found[key] for key in USUAL} == USUAL | {name: value}


@pytest.mark.parametrize(("words", "remask"), [([], False), (["--remask"], True)])
def test_later_versions_rearrange_where_they_are_asked_to(bertdata, words, remask):
    assert understood(bertdata, *FILES, *words, program=f"{PROGRAM}@2.6")["remask"] is remask


@pytest.mark.parametrize(
    ("version", "words", "name"),
    [
        ("", [], "graphcore-remasked"),
        ("@2.6", [], "graphcore"),
        ("@2.6", ["--remask"], "graphcore-remasked"),
    ],
)
def test_examples_are_those_of_the_original(bertdata, tmp_path, version, words, name):
    settings = load_case(name).settings
    out = tmp_path / "out.tfrecord"
    flags = {
        "--sequence-length": "max_seq_length",
        "--mask-tokens": "max_predictions_per_seq",
        "--seed": "random_seed",
        "--duplication-factor": "dupe_factor",
        "--mlm-prob": "masked_lm_prob",
        "--short-seq-prob": "short_seq_prob",
    }
    given = [f"{flag}={getattr(settings, key)}" for flag, key in flags.items()]
    given += ["--do-lower-case"] * settings.lower_case
    files = [
        f"--input-file={GOLDEN / 'odd.txt'}",
        f"--output-file={out}",
        f"--vocab-file={GOLDEN / 'vocab.txt'}",
    ]
    outcome = bertdata("like", PROGRAM + version, *files, *given, *words, "--", "--engine=native")
    assert outcome.status == 0, outcome.err
    assert hashlib.md5(out.read_bytes()).hexdigest() == ORIGINALS[name]["content_md5"]


def test_several_files_go_by_commas(bertdata, tmp_path):
    text = (GOLDEN / "odd.txt").read_bytes()
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(text)
    inputs = ",".join(str(tmp_path / name) for name in ("a.txt", "b.txt"))
    outputs = ",".join(str(tmp_path / name) for name in ("a.tfrecord", "b.tfrecord"))
    files = [f"--input-file={inputs}", f"--output-file={outputs}", f"--vocab-file={GOLDEN / 'vocab.txt'}"]
    outcome = bertdata("like", PROGRAM, *files, "--do-lower-case", "--max-samples=1")
    assert outcome.status == 0
    assert "--max-samples: the script ignores it; all examples are written" in outcome.err
    assert [line.split(" examples, ")[0].rpartition(" ")[0] for line in outcome.out.splitlines()[:-1]] == [
        f"{tmp_path / name}:" for name in ("a.tfrecord", "b.tfrecord")
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([PROGRAM], "the following arguments are required: --input-file, --output-file, --vocab-file"),
        ([PROGRAM, *FILES, "--dupe-factor=3"], "unrecognized arguments: --dupe-factor=3"),
        ([PROGRAM, *FILES, "--input_file=a"], "(did you mean --input-file?)"),
        ([PROGRAM, *FILES, "--seed=x"], "argument --seed: invalid int value: 'x'"),
        ([f"{PROGRAM}@9", *FILES], "no such version; known besides the default is @2.6"),
        (["create_pretraining_data.py", *FILES], f"did you mean {PROGRAM}?"),
        (["nvidia/run_squad.py"], f"known is {PROGRAM}; programs that train: python -m trainer like"),
        ([PROGRAM, *FILES, "--", "--sequence-length=3"], "--sequence-length is not a known flag"),
    ],
)
def test_what_the_script_refuses_is_refused_in_its_words(bertdata, words, said):
    bertdata("like", *words).assert_one_error(2, said)


def test_several_words_of_a_file_flag_are_joined_by_commas_as_the_readme_means_them(bertdata):
    words = ("--input-file", "a.txt", "b.txt", "--output-file", "a.rec", "b.rec", "--vocab-file", "vocab.txt")
    found = understood(bertdata, *words)
    assert (found["input_file"], found["output_file"]) == ("a.txt,b.txt", "a.rec,b.rec")


def test_a_program_is_known_without_its_ending(bertdata):
    name = PROGRAM.removesuffix(".py")
    assert understood(bertdata, *FILES, program=name)["max_seq_length"] == 128
