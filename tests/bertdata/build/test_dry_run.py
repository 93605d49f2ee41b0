"""``--dry-run`` says what would be made and kept, writes nothing, and refuses what the run would refuse."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beam_pipelines.prepare import main as prepare
from bertdata.build import estimate as estimates
from bertdata.build.estimate import Estimate, estimate_run
from bertdata.steps.create import ShardRun, plan_run
from bertdata.steps.create_request import CreateRequest
from tests.support.commands import SMALL, Outcome, Program
from tests.support.paths import DUMP, EXTRACTED

SETTINGS = SMALL[:-1]  # --workers is no flag of the pipeline
NOTHING = "dry run: nothing was written"


@pytest.fixture(params=["create", "Beam"])
def make(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]):
    """``bertdata create``, or the pipeline, given parts, vocabulary, output and flags; how it ended."""

    def call(parts: list[Path], vocabulary: Path, output: Path, *flags: str) -> Outcome:
        common = [*map(str, parts), "--output", str(output), "--vocab", str(vocabulary), *SETTINGS, *flags]
        if request.param == "create":
            return Program(capsys)("create", *common, "--workers=1")
        capsys.readouterr()
        status = prepare(["--input", *common])
        printed = capsys.readouterr()
        return Outcome(status, printed.out, printed.err)

    return call


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every path below the directory: bytes and time of change."""

    def walk() -> Iterator[tuple[str, tuple[bytes, int]]]:
        for path in sorted(directory.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            yield str(path.relative_to(directory)), (data, path.stat().st_mtime_ns)

    return dict(walk())


@pytest.fixture
def parts(corpus: list[Path], tmp_path: Path) -> list[Path]:
    (tmp_path / "parts").mkdir()
    return [Path(shutil.copy(part, tmp_path / "parts" / part.name)) for part in corpus]


def verdicts(printed: str) -> dict[str, tuple[str, str]]:
    """Of each shard's line: make or keep, and the reason."""
    lines = re.findall(r"^  (make|keep)  (\S+)  from \S+ \(\d+ bytes\)(?:  (.*))?$", printed, re.MULTILINE)
    return {shard.removesuffix(".tfrecord")[5:10]: (what, why) for what, shard, why in lines}


def test_before_the_first_run_everything_is_to_be_made_and_nothing_is_written(
    make, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    before = tree(tmp_path)
    outcome = make(parts, small_vocabulary_file, tmp_path / "out", "--dry-run")
    assert (outcome.status, outcome.err) == (0, "")
    assert tree(tmp_path) == before
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"{tmp_path}/out: mlperf: objective bert, dialect mlperf, max_seq_length 64, ")
    assert "vocabulary of 2000 tokens, md5 " in lines[0]
    assert lines[1] == f"{tmp_path}/out: 3 of 3 tfrecord shards to make, 0 to keep"
    shard, size = f"{parts[0].name}.tfrecord", parts[0].stat().st_size
    assert lines[2] == f"  make  {shard}  from {parts[0]} ({size} bytes)  missing"
    assert lines[-1] == NOTHING


def test_of_a_finished_dataset_it_tells_what_does_not_fit_and_the_run_makes_just_that(
    make, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    assert make(parts, small_vocabulary_file, output).status == 0
    shards = [output / f"{part.name}.tfrecord" for part in parts]
    whole = shards[0].read_bytes()
    shards[0].write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    before = tree(tmp_path)
    outcome = make(parts, small_vocabulary_file, output, "--dry-run")
    assert outcome.status == 0
    assert tree(tmp_path) == before
    expected = {"00000": ("make", "wrong md5"), "00001": ("make", "wrong size"), "00002": ("keep", "")}
    assert verdicts(outcome.out) == expected
    assert f"{output}: 2 of 3 tfrecord shards to make, 1 to keep" in outcome.out.splitlines()
    assert make(parts, small_vocabulary_file, output).status == 0
    assert shards[0].read_bytes() == whole
    assert set(verdicts(make(parts, small_vocabulary_file, output, "--dry-run").out).values()) == {
        ("keep", "")
    }


def test_of_an_unfinished_dataset_it_tells_what_is_missing_changed_or_not_known(
    make, parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    output, whole = tmp_path / "out", parts[2].read_bytes()
    parts[2].write_bytes(b"")
    for _ in range(2):  # the first error ends a run of several workers; a second one finishes the others
        assert make(parts, small_vocabulary_file, output).status == 1
    parts[2].write_bytes(whole)
    parts[0].write_bytes(parts[0].read_bytes() + b"\none more sentence .\n")
    (output / "unfinished" / f"{parts[1].name}.tfrecord.json").unlink()
    before = tree(tmp_path)
    outcome = make(parts, small_vocabulary_file, output, "--dry-run")
    assert tree(tmp_path) == before
    assert verdicts(outcome.out) == {
        "00000": ("make", "its part has changed"),
        "00001": ("make", "not known to be whole"),
        "00002": ("make", "missing"),
    }


def test_both_phases_of_a_recipe_are_told(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--output", tmp_path / "out", "--vocab", small_vocabulary_file, "--recipe", "nvidia")
    outcome = Program(capsys)("create", *parts, *words, "--dry-run")
    for phase, length in ((1, 128), (2, 512)):
        directory = f"{tmp_path}/out/phase{phase}"
        assert (
            f"{directory}: nvidia phase {phase}: objective bert, dialect nvidia, max_seq_length {length}, "
            in outcome.out
        )
        assert f"{directory}: 3 of 3 hdf5 shards to make, 0 to keep\n" in outcome.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dupe-factor", "7"), "was made with other settings: dupe_factor 1, now 7"),
        (("--max-seq-length", "3"), "--max-seq-length is 3"),
        (("--output", "STRANGE"), "is not empty and no dataset of ours"),
        (("--output", "FILE"), "is a file, expected a directory or nothing"),
    ],
)
def test_what_the_run_would_refuse_is_refused(
    make,
    parts: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    flags: tuple[str, ...],
    message: str,
) -> None:
    assert make(parts, small_vocabulary_file, tmp_path / "out").status == 0
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "letter.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    places = {"STRANGE": str(tmp_path / "strange"), "FILE": str(tmp_path / "file")}
    given = [places.get(flag, flag) for flag in flags]
    before = tree(tmp_path)
    for dry in ((), ("--dry-run",)):
        outcome = make(parts, small_vocabulary_file, tmp_path / "out", *given, *dry)
        outcome_of = (outcome.status, message in outcome.err, outcome.out)
        assert outcome_of == (2, True, ""), outcome.err
    assert tree(tmp_path) == before


def test_the_pipeline_refuses_a_word_that_beam_does_not_know(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", *map(str, parts), "--output", str(tmp_path / "out"), "--dry-run", "--dupe-facto=3"]
    assert prepare([*words, "--vocab", str(small_vocabulary_file)]) == 2
    assert "--dupe-facto=3: neither a flag of ours nor of Beam" in capsys.readouterr().err


# --- text ---------------------------------------------------------------------------------------


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXTRACTED, tmp_path / "articles"))


@pytest.mark.usefixtures("punkt_tables")
def test_segment_tells_its_parts_and_refuses_those_of_another_run(
    articles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bertdata, before = Program(capsys), tree(tmp_path)
    words = (
        "segment",
        articles,
        "--output",
        tmp_path / "text",
        "--eval-articles",
        3,
        "--escaped-articles=no",
    )
    outcome = bertdata(*words, "--dry-run")
    assert (outcome.status, outcome.err) == (0, "")
    assert tree(tmp_path) == before
    made = re.findall("^  make  (.*)$", outcome.out, re.MULTILINE)
    assert f"  read  {articles}/AA/wiki_00 (" in outcome.out
    assert "text: recipe mlperf, eval_articles 3, block_size 26.92, " in outcome.out
    assert bertdata(*words, "--workers=1").status == 0
    assert sorted(os.listdir(tmp_path / "text")) == sorted([*made, "MD5SUMS", "manifest.json"])
    assert ", 3 of them in place of one that is there" in bertdata(*words, "--dry-run").out
    before = tree(tmp_path)
    other = ("--eval-articles", 4)
    for dry in ((), ("--dry-run",)):
        bertdata(*words, *other, *dry).assert_one_error(2, "made with other settings: eval_articles 3, now 4")
    assert tree(tmp_path) == before


def test_extract_tells_what_is_there_and_refuses_the_directory_of_another_dump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bertdata = Program(capsys)
    words = ("extract", DUMP, "--output", tmp_path / "out")
    outcome = bertdata(*words, "--dry-run")
    assert (outcome.status, outcome.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    assert f"articles to extract: dump {DUMP.name}, dump bytes {DUMP.stat().st_size}, " in outcome.out
    assert outcome.out.splitlines()[-1] == NOTHING
    assert bertdata(*words, "--workers=1").status == 0
    before = tree(tmp_path)
    assert f"articles of {DUMP.name} are there, 1 files" in bertdata(*words, "--dry-run").out
    other = Path(shutil.copy(DUMP, tmp_path / "otherwiki-20200101-pages-articles.xml"))
    before = tree(tmp_path)
    for dry in ((), ("--dry-run",)):
        words = ("extract", other, "--output", tmp_path / "out", *dry)
        message = f"was made with other settings: dump '{DUMP.name}', now '{other.name}'"
        bertdata(*words).assert_one_error(2, message)
    assert tree(tmp_path) == before


@pytest.mark.usefixtures("punkt_tables")
@pytest.mark.parametrize("kind", ["articles", "dump"])
def test_the_pipeline_tells_of_text_and_shards_before_and_after(
    kind: str,
    articles: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = DUMP if kind == "dump" else articles
    words = ["--input", str(source), "--input-kind", kind, "--output", str(tmp_path / "out"), *SETTINGS]
    words += ["--vocab", str(small_vocabulary_file), "--eval-articles", "3"]
    if kind == "articles":
        words += ["--escaped-articles", "no"]
    told = []
    for _ in range(2):
        capsys.readouterr()
        before = tree(tmp_path)
        assert prepare([*words, "--dry-run"]) == 0
        printed = capsys.readouterr()
        assert tree(tmp_path) == before
        assert printed.err == ""
        assert printed.out.splitlines()[-1] == NOTHING
        assert f"{tmp_path}/out: mlperf: objective bert, dialect mlperf, max_seq_length 64, " in printed.out
        told.append(printed.out)
        assert prepare(words) == 0
    if kind == "articles":
        assert "  make  part-00000-of-00500\n" in told[0]
        assert "  make  part-00000-of-00500.tfrecord  from " in told[0]
        assert "its part is yet to be made" in told[0]
        assert "  keep  part-00000-of-00500.tfrecord  from " in told[1]
    else:
        assert f"out.text/extracted: articles to extract: dump {DUMP.name}" in told[0]
        assert f"out.text/extracted: articles of {DUMP.name} are there, 1 files" in told[1]


@pytest.fixture
def planned(parts: list[Path], small_vocabulary_file: Path, tmp_path: Path):
    """A run of ``create`` that is planned, with these settings."""

    def call(given: list[Path] = parts, **settings: Any) -> ShardRun:
        request = CreateRequest(
            given, tmp_path / "out", vocab=small_vocabulary_file, recipe="habana", **settings
        )
        return plan_run(request)

    return call


@pytest.mark.parametrize("container", ["tfrecord", "hdf5"])
def test_the_estimated_bytes_are_about_those_of_the_shards(container: str, planned) -> None:
    run = planned(format=container)
    found = estimate_run(run.plan, run.parts, run.previews())
    assert isinstance(found, Estimate)
    run.make(1, lambda now: None)
    for directory, size in found.output_bytes.items():
        made = sum(path.stat().st_size for path in Path(directory).glob(f"*.{container}"))
        assert 0.8 * made < size < 1.25 * made
    assert len(found.output_bytes) == 2


def test_the_estimated_time_is_the_sample_s_in_proportion(
    planned, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(estimates, "perf_counter", lambda: next(ticks))  # each of three stages takes a second
    run = planned()
    found = estimate_run(run.plan, run.parts, run.previews())
    assert isinstance(found, Estimate)
    total = sum(part.stat().st_size for part in parts)
    assert found.seconds == pytest.approx(3 * total / found.sample_bytes)
    assert 0 < found.sample_bytes <= parts[0].stat().st_size
    assert found.lines(2)[-1] == (
        f"about {found.seconds / 2:.0f} s with 2 workers; estimated from the first {found.sample_bytes} "
        f"bytes of {parts[0]}, which took 3.00 s here"
    )
    assert found.lines(100)[-1].startswith(
        f"about {found.seconds / 3:.0f} s with 3 workers; "
    )  # three shards
    assert found.lines(None)[-1].startswith(f"about {found.seconds:.0f} s with one core; ")


def test_only_what_is_missing_is_estimated(planned, parts: list[Path]) -> None:
    planned([parts[0]]).make(1, lambda now: None)
    run = planned([parts[0]])
    assert run.estimate(run.previews(), 1) == []
    (parts[0].parent.parent / "out" / "phase1" / f"{parts[0].name}.hdf5").unlink()
    found = estimate_run(run.plan, run.parts, run.previews())
    assert isinstance(found, Estimate)
    assert [Path(directory).name for directory in found.output_bytes] == ["phase1"]


def test_a_large_part_is_sampled_until_the_work_takes_long_enough(
    planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large"
    large.write_text("Water runs down the steps.\nIt leaves below.\n\n" * 10_000)
    sizes = []
    measure = estimates._measure_sample

    def measured(plan, targets, part, text):
        sizes.append(len(text))
        return replace(
            measure(plan, targets, part, text), loading=len(text) / 200_000, making=dict.fromkeys(places, 0.0)
        )

    monkeypatch.setattr(estimates, "_measure_sample", measured)
    run = planned([large], dupe_factor=1)
    places = [target.dataset.directory for target in run.plan.targets]
    estimate_run(run.plan, run.parts, run.previews())
    assert sizes[:1] == sizes[1:2]  # the first time is not counted
    assert [round(size / sizes[0]) for size in sizes[1:]] == [1, 2]


def test_a_part_that_cannot_be_read_has_no_estimate_but_its_reason(
    make, small_vocabulary_file, tmp_path
) -> None:
    """The bad byte lies behind the beginning that every dry run reads."""
    (bad := tmp_path / "bad").write_bytes(b"A good line.\n\n" * 6000 + b"One with \xff in it.\n")
    outcome = make([bad], small_vocabulary_file, tmp_path / "out", "--dry-run")
    assert outcome.status == 0
    assert outcome.out.splitlines()[-2].startswith(f"no estimate: {bad}: line 12001: byte 0xff")
