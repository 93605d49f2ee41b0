"""Printed data commands of MLPerf's README are understood: their files are those of the expected settings."""

import re
from pathlib import Path
from typing import Any

import pytest

from bertdata.shards.containers import open_reader
from tests.support.commands import contents
from tests.support.paths import GOLDEN
from tests.support.published_commands import commands, substituted

CREATE = list(commands("mlperf create_pretraining_data.py"))
PICK = list(commands("mlperf pick_eval_samples.py"))


def expected_file(bertdata: Any, text: Path, output: Path, expects: dict[str, Any]) -> bytes:
    """The shard that ``bertdata create`` makes with every expected setting spelt out."""
    settings = dict(expects)
    lower = "--lower-case" if settings.pop("lower_case") else "--no-lower-case"
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    places = [text, "--output", output, "--vocab", GOLDEN / "vocab.txt", "--workers=1"]
    assert bertdata("create", *places, lower, *flags).status == 0
    (shard,) = [data for name, data in contents(output).items() if name.endswith(".tfrecord")]
    return shard


def run_printed(bertdata: Any, command: dict[str, Any], text: Path, output: Path) -> None:
    """Run a printed create_pretraining_data.py with our files in place of its placeholders."""
    words = []
    for word in command["argv"][1:]:
        flag, _, value = word.partition("=")
        files = {"--input_file": text, "--output_file": output, "--vocab_file": GOLDEN / "vocab.txt"}
        words += substituted([word], {value: files[flag]} if flag in files else {})
    outcome = bertdata("create-pretraining-data", *words)
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.parametrize("command", CREATE, ids=lambda command: command["id"])
def test_printed_examples_are_those_of_the_expected_settings(
    bertdata: Any, tmp_path: Path, command: dict[str, Any]
) -> None:
    text = GOLDEN / "corpus" / "part-00000-of-00003"
    run_printed(bertdata, command, text, tmp_path / "printed")
    expected = expected_file(bertdata, text, tmp_path / "shards", command["expects"]["create"])
    assert (tmp_path / "printed").read_bytes() == expected


@pytest.mark.parametrize("command", PICK, ids=lambda command: command["id"])
def test_printed_picks_are_as_many_and_as_long_as_expected(
    bertdata: Any, tmp_path: Path, command: dict[str, Any]
) -> None:
    run_printed(
        bertdata, CREATE[1], GOLDEN / "corpus" / "part-00000-of-00003", tmp_path / "eval_intermediate"
    )
    words = substituted(
        command["argv"][1:],
        {
            "<path to eval_intermediate from the previous command>": tmp_path / "eval_intermediate",
            "<output path for eval_10k>": tmp_path / "eval_10k",
        },
    )
    expects = command["expects"]["pick"]
    outcome = bertdata("pick-eval", *words)
    assert outcome.status == 0, outcome.err
    (warning,) = outcome.err.splitlines()  # golden's sample has fewer examples than the program's file
    assert re.search(r"holds \d+ records, \d+ were asked for: \d+ are picked a second time", warning)
    assert outcome.out.startswith(f"{tmp_path / 'eval_10k'}: {expects['num_examples']} of ")
    with open_reader(str(tmp_path / "eval_10k"), "native") as reader:
        layout = reader.layout
        assert sum(len(batch) for batch in reader.batches(1000)) == expects["num_examples"]
    assert layout.max_seq_length == expects["max_seq_length"]
    assert layout.max_predictions_per_seq == expects["max_predictions_per_seq"]
