"""A part that cannot be read fails the run by name, or is left out, counted and listed in the manifest."""

import json
import os
import shutil
import subprocess
import sys
from hashlib import md5
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from tests.support.commands import SMALL, Program, contents, dataset_files, files_below
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.pipelines import PROCESSES

SETTINGS = SMALL[:-1]  # --workers is no flag of the pipeline
PARTS, BAD = 50, 17
BAD_BYTES = b"A good line.\n\nA line with \xff in it.\n"
REASON = "line 3: byte 0xff at offset 26 is not UTF-8"
ROUTES = ("create", "create in two processes", "Beam in memory", "Beam in two processes")
WITH_SLOW = [*ROUTES[:3], pytest.param(ROUTES[3], marks=pytest.mark.thorough)]


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Fifty tiny parts, one of them with a byte that is not UTF-8."""
    (tmp_path / "parts").mkdir()
    paths = [tmp_path / "parts" / f"part-{number:05d}-of-00050" for number in range(PARTS)]
    for number, path in enumerate(paths):
        path.write_text(f"the house is {number} years old .\nit stands by a river .\n\nshe saw {number} .\n")
    paths[BAD].write_bytes(BAD_BYTES)
    return paths


def run(route: str, parts: list[Path], vocabulary: Path, output: Path, *flags: str) -> tuple[int, str, str]:
    """Exit status, standard output and errors of one of the ROUTES in a process of its own."""
    common = ["--output", str(output), "--vocab", str(vocabulary), *SETTINGS, *flags]
    names = [str(path) for path in parts]
    if route.startswith("create"):
        python, command = (
            sys.executable,
            ["bertdata", "create", *names, "--workers", "2" if "two" in route else "1"],
        )
    else:
        python = forking_python("beam")
        command = ["beam_pipelines.prepare", "--input", *names, *(PROCESSES if "two" in route else ())]
    done = subprocess.run(
        [python, "-m", *command, *common],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("route", WITH_SLOW)
def test_one_bad_part_of_fifty_fails_the_run_by_name(
    route: str, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    status, _, errors = run(route, parts, small_vocabulary_file, tmp_path / "out")
    assert status == 1
    (line,) = [line for line in errors.splitlines() if ": error: " in line]
    assert f"error: {parts[BAD]}: {REASON}; convert it from its encoding, or leave" in line
    assert "Traceback" not in errors
    assert "manifest.json" not in files_below(tmp_path / "out")
    assert not [name for name in files_below(tmp_path / "out") if name.endswith(".tmp")]


@pytest.mark.thorough
def test_one_bad_part_of_fifty_is_left_out_the_same_way_on_every_route(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    made = {}
    for route in ROUTES:
        output = tmp_path / route.replace(" ", "-")
        status, printed, errors = run(route, parts, small_vocabulary_file, output, "--skip-bad-inputs")
        assert status == 0, errors
        assert errors.count(f"warning: {parts[BAD]}: {REASON}; the part is left out\n") == 1
        assert ": 49 shards, " in printed
        assert ", 1 bad input left out" in printed
        if "Beam" in route:
            assert "  parts_skipped" in printed
            assert ["parts_skipped", "1"] in [line.split() for line in printed.splitlines()]
        made[route] = contents(output)
    expected = made.pop("create")
    assert len(expected) == 2 * 49 + 3
    for files in made.values():
        assert files == expected


def test_the_manifest_lists_what_was_left_out_and_verification_understands(
    bertdata: Program, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    parts[3].write_bytes(b" \n\n")
    command = ["create", *parts[:20], "--output", output, "--vocab", small_vocabulary_file, *SMALL]
    assert bertdata(*command, "--skip-bad-inputs").status == 0
    manifest = json.loads((output / "manifest.json").read_text())
    no_sentences = "holds no sentences, expected one sentence a line, a blank line between documents"
    assert manifest["skipped"] == [
        {
            "name": path.name,
            "bytes": path.stat().st_size,
            "md5": md5(path.read_bytes()).hexdigest(),
            "reason": r,
        }
        for path, r in ((parts[3], no_sentences), (parts[BAD], REASON))
    ]
    assert len(manifest["inputs"]) == len(manifest["shards"]) == 18
    outcome = bertdata("verify-md5", output)
    assert (outcome.status, outcome.out) == (0, f"{output}: 18 files right, sound, 2 bad inputs left out\n")
    report = json.loads(bertdata("verify-md5", "--json", output).out)
    (finding,) = [found for found in report["findings"] if found["file"] == parts[BAD].name]
    assert (finding["status"], finding["detail"], finding["is_fault"]) == ("left out", REASON, False)
    before = contents(output)
    again = bertdata(*command, "--skip-bad-inputs")
    assert (again.status, again.err.count("kept part-")) == (0, 18)
    assert contents(output) == before


def test_without_a_bad_part_the_flag_changes_no_byte(
    bertdata: Program, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    for name, flags in (("plain", ()), ("skipping", ("--skip-bad-inputs",))):
        common = ["--output", tmp_path / name, "--vocab", small_vocabulary_file, *SMALL]
        assert bertdata("create", *corpus, *common, *flags).status == 0
    assert contents(tmp_path / "skipping") == contents(tmp_path / "plain")
    assert "skipped" not in json.loads((tmp_path / "plain" / "manifest.json").read_text())


@pytest.mark.parametrize("route", ["create", "Beam"])
def test_run_again_without_the_flag_the_bad_part_is_an_error_and_the_dataset_stays(
    route: str,
    bertdata: Program,
    parts: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    names, few = [str(path) for path in parts[15:19]], ["--output", str(output), *SETTINGS]
    few += ["--vocab", str(small_vocabulary_file)]
    assert bertdata("create", *names, *few, "--skip-bad-inputs").status == 0
    made = contents(output)
    if route == "create":
        outcome = bertdata("create", *names, *few, "--workers=1")
        status, errors = outcome.status, outcome.err
    else:
        status, errors = prepare(["--input", *names, *few]), capsys.readouterr().err
    assert status == 1
    assert f"error: {parts[BAD]}: {REASON}; " in errors
    assert contents(output) == made
    parts[BAD].write_text("the house is old .\n\nit stands by a river .\n")
    assert bertdata("create", *names, *few).status == 0
    assert len(json.loads((output / "manifest.json").read_text())["shards"]) == 4
    assert "skipped" not in json.loads((output / "manifest.json").read_text())


def test_the_shard_of_a_part_that_went_bad_goes_with_it(
    bertdata: Program, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    parts = [Path(shutil.copy(part, tmp_path / part.name)) for part in corpus]
    command = ["create", *parts, "--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL]
    assert bertdata(*command).status == 0
    parts[1].write_bytes(BAD_BYTES)
    assert bertdata(*command, "--skip-bad-inputs").status == 0
    shards = [f"{part.name}.tfrecord" for part in (parts[0], parts[2])]
    assert files_below(tmp_path / "out") == dataset_files(*shards)


@pytest.mark.parametrize("route", ["create", "Beam"])
def test_where_every_part_is_bad_the_run_fails_and_leaves_the_directory_free(
    route: str,
    bertdata: Program,
    parts: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = ["--output", str(tmp_path / "out"), "--vocab", str(small_vocabulary_file), *SETTINGS]
    if route == "create":
        outcome = bertdata("create", parts[BAD], *few, "--skip-bad-inputs")
        status, errors = outcome.status, outcome.err
    else:
        status = prepare(["--input", str(parts[BAD]), *few, "--skip-bad-inputs"])
        errors = capsys.readouterr().err
    assert status == 1
    assert f"{parts[BAD].name}: {REASON}; every input was skipped, nothing is left" in errors
    assert files_below(tmp_path / "out") == []


def test_the_pipeline_skips_parts_only(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--input", "x", "--output", str(tmp_path / "out"), "--vocab", str(small_vocabulary_file)]
    assert prepare([*few, "--input-kind", "articles", "--skip-bad-inputs"]) == 2
    assert "--skip-bad-inputs goes with --input-kind parts, not with articles" in capsys.readouterr().err


def test_a_dialect_that_drops_bad_bytes_has_no_bad_part_of_that_kind(
    bertdata: Program, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    few = ["--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL]
    outcome = bertdata("create", *parts[16:18], *few, "--dialect=graphcore", "--skip-bad-inputs")
    assert outcome.status == 0
    assert "left out" not in outcome.out
