"""One corpus in files of seven kinds, by command, Python and Beam, killed or not: the same parts, shards."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bertdata
from beam_pipelines.prepare import main
from bertdata.cli.main import main as command_line
from tests.support.commands import contents
from tests.support.paths import ROOT
from tests.support.pipelines import SMALL, words
from tests.support.record_files import kind_of, make_documents, write

NAMES = ("a.txt", "a.jsonl", "wiki_00", "a.parquet", "a.arrow", "a.csv", "a.jsonl.gz", "a.jsonl.zst")
SHUFFLES = {"plain": None, "global": 3}
PART_SIZE = 0.3

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("punkt_tables")]


@pytest.fixture(params=["own", "kit"])
def documents(request: pytest.FixtureRequest) -> list[str]:
    """Text of our own, or the kit's."""
    if request.param == "own":
        return make_documents(4000)
    results = request.getfixturevalue("kit") / "results"
    text = "\n\n".join((results / f"part-0000{n}-of-00500").read_text().strip("\n") for n in (0, 1))
    return text.split("\n\n")


def kind_flag(name: str) -> str:
    """The kind of the file, in words."""
    return kind_of(name) or name.split(".")[1]


def text_and_shards(output: Path) -> dict[str, bytes]:
    """The parts beside the dataset, and its shards."""
    text = contents(output.with_name(f"{output.name}.text"))
    parts = {name: data for name, data in text.items() if name.startswith("part-")}
    return parts | {name: data for name, data in contents(output).items() if name.endswith(".tfrecord")}


def flags_of(shards: int | None) -> tuple[str, ...]:
    return () if shards is None else ("--shuffle", "global", "--num-shards", str(shards))


def by_command(source: Path, vocabulary: Path, output: Path, shards: int | None) -> None:
    kind = ("--input-kind", kind_flag(source.name), "--part-size", str(PART_SIZE))
    assert command_line(["segment", str(source), "--output", f"{output}.text", "--workers", "2", *kind]) == 0
    common = ("--output", str(output), "--vocab", str(vocabulary), "--workers", "2")
    assert command_line(["create", f"{output}.text", *common, *SMALL, *flags_of(shards)]) == 0


def by_python(source: Path, vocabulary: Path, output: Path, shards: int | None) -> None:
    bertdata.create(
        source,
        output,
        vocab=vocabulary,
        input_kind=kind_flag(source.name),
        part_size=PART_SIZE,
        max_seq_length=64,
        max_predictions_per_seq=10,
        dupe_factor=1,
        shuffle=None if shards is None else "global",
        num_shards=shards,
        workers=1,
    )


def by_beam(source: Path, vocabulary: Path, output: Path, shards: int | None) -> None:
    kind = ("--input-kind", kind_flag(source.name), "--part-size", str(PART_SIZE))
    assert main([*words([source], vocabulary, output, *kind), *SMALL, *flags_of(shards)]) == 0


@pytest.mark.parametrize("shards", SHUFFLES.values(), ids=SHUFFLES)
def test_parts_and_shards_depend_on_the_text_alone(
    shards: int | None, documents: list[str], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    expected: dict[str, bytes] = {}
    for name in NAMES:
        source = write(tmp_path / name, name, documents)
        for make in (by_command, by_python, by_beam):
            output = tmp_path / name / make.__name__
            make(source, small_vocabulary_file, output, shards)
            made = text_and_shards(output)
            expected = expected or made
            assert made == expected, (name, make.__name__)
    assert len([name for name in expected if name.startswith("part-") and name.endswith(".txt")]) > 1


def selecting_flags(directory: Path, documents: list[str]) -> tuple[str, ...]:
    """The flags of all selection. The evaluation set holds every 300th document."""
    evaluation = write(directory, "a.jsonl", documents[::300])
    return ("--exclude", str(evaluation), "--dedup", "exact", "--eval-share", "3%")


@pytest.mark.parametrize("shards", SHUFFLES.values(), ids=SHUFFLES)
@pytest.mark.parametrize(
    ("selects", "sign"),
    [
        (False, "killed.text/part-00001.txt"),
        (False, "killed/unfinished/plan.json"),
        (True, "killed.text/unfinished/plan.json"),
        (True, "killed.text/part-00001.txt"),
        (True, "killed/unfinished/plan.json"),
    ],
    ids=["parts", "shards", "selected, hashes", "selected, parts", "selected, shards"],
)
def test_create_of_records_that_was_killed_is_taken_up_by_the_same_command(
    selects: bool, sign: str, shards: int | None, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    documents = make_documents(20_000)
    source = write(tmp_path / "in", "a.jsonl.zst", [*documents, *documents[::100]])
    flags = ("--part-size", "0.3", "--vocab", str(small_vocabulary_file), *SMALL, *flags_of(shards))
    if selects:
        flags = (*flags, *selecting_flags(tmp_path / "evaluation", documents))
    command = [sys.executable, "-m", "bertdata", "create", str(source), *flags, "--workers", "2"]
    killed = [*command, "--output", str(tmp_path / "killed")]
    with subprocess.Popen(killed, cwd=ROOT, start_new_session=True) as process:
        while process.poll() is None and not (tmp_path / sign).exists():
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)  # workers and all
    assert not (tmp_path / "killed" / "manifest.json").exists()
    for name in ("killed", "whole"):
        subprocess.run([*command, "--output", str(tmp_path / name)], cwd=ROOT, check=True)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    text = contents(tmp_path / "whole.text")
    assert contents(tmp_path / "killed.text") == text
    reasons = {json.loads(line)["reason"] for line in text.get("removed.jsonl", b"").splitlines()}
    assert reasons == ({"excluded", "duplicate", "withheld"} if selects else set())
