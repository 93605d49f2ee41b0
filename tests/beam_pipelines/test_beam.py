"""The Beam pipeline makes the files of ``bertdata create``, and fails as clearly."""

import io
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from beam_pipelines.options import parse_flags
from beam_pipelines.prepare import main
from beam_pipelines.report.counters import Distribution
from beam_pipelines.report.errors import find_original_error
from beam_pipelines.report.progress import FinishedShards, show_progress
from beam_pipelines.stages.shards import LargestDocument, MakeShard, WriteManifest
from bertdata.build.plan import choose_settings, plan_targets
from bertdata.build.shard_task import TaskPlan
from bertdata.cli.main import main as command_line
from bertdata.dataset.manifest import ShardEntry
from bertdata.errors import InputError
from tests.support.commands import contents, on_a_terminal
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.pipelines import PROCESSES, prepare, prepare_in_new_process, words
from tests.support.tokenizer_files import vocabulary_file

SMALL = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "2")
SPREADS = [
    *(("part", name) for name in ("bytes", "tokens")),
    *(("shard", name) for name in ("examples", "tokens", "bytes")),
]


def create(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> dict[str, bytes]:
    """The files that ``bertdata create`` makes."""
    parts = map(str, corpus)
    status = command_line(
        ["create", *parts, "--output", str(output), "--vocab", str(vocabulary), "--workers", "1", *flags]
    )
    assert status == 0
    return contents(output)


@pytest.fixture
def bad_part(tmp_path: Path) -> Path:
    path = tmp_path / "part-bad"
    path.write_bytes(b"A good line.\n\nA line with \xff in it.\n")
    return path


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="in memory"),
        pytest.param(("--runner", "DirectRunner"), id="DirectRunner"),
        pytest.param(("--direct_running_mode=multi_threading", "--direct_num_workers=2"), id="two threads"),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="every bundle twice"),
    ],
)
def test_a_local_run_equals_create_byte_for_byte(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *SMALL)
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *SMALL, *flags) == 0
    assert contents(tmp_path / "beam") == expected


def test_masked_blocks_equal_those_of_create(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    flags = (
        "--objective=mlm",
        "--max-seq-length=64",
        "--blocks=complete",
        "--shuffle=global",
        "--num-shards=2",
    )
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *flags)
    assert json.loads(expected["manifest.json"])["settings"]["objective"]["blocks"] == "complete"
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 0
    assert contents(tmp_path / "beam") == expected


@pytest.mark.parametrize("own", ["--endpoints=internal", "--as-original"])
def test_masked_spans_equal_those_of_create(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, own: str
) -> None:
    flags = ("--objective=span", "--max-seq-length=64", "--shuffle=global", "--num-shards=2", own)
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *flags)
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 0
    assert contents(tmp_path / "beam") == expected


@pytest.mark.parametrize("shuffle", [(), ("--shuffle=global", "--num-shards=2")], ids=["parts", "shuffled"])
def test_bins_of_lengths_equal_those_of_create(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, shuffle: tuple[str, ...]
) -> None:
    flags = (*SMALL, "--bin-size=24", *shuffle)
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *flags)
    assert sum(".bin-02." in name for name in expected) == 2 * (len(shuffle) or len(corpus))  # and lengths
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 0
    assert contents(tmp_path / "beam") == expected


def test_shares_of_masked_ids_are_those_of_create(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    flags = (*SMALL, "--mask-share=0.5", "--random-share=0.3", "--kept-share=0.2")
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *flags)
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 0
    assert contents(tmp_path / "beam") == expected


def test_a_run_in_several_processes_equals_create_and_prints_only_its_result(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *SMALL)
    run = prepare_in_new_process(words(corpus, small_vocabulary_file, tmp_path / "beam", *SMALL, *PROCESSES))
    assert (run.returncode, run.stderr) == (0, "")
    assert contents(tmp_path / "beam") == expected


def test_both_phases_of_a_recipe_equal_create(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--recipe", "habana", "--dupe-factor", "1")
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *flags)
    printed = capsys.readouterr().out.replace("create/phase", "beam/phase")
    printed = re.sub(r", [\d.]+% of next sentences random", "", printed)  # create alone counts them
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 0
    assert contents(tmp_path / "beam") == expected
    assert {"phase1/manifest.json", "phase2/MD5SUMS"} < set(expected)
    assert capsys.readouterr().out.startswith(printed)


def test_counters_are_the_manifest_s_totals(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kept in (0, len(corpus)):
        assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *SMALL) == 0
        lines = capsys.readouterr().out.splitlines()
        manifest = json.loads((tmp_path / "beam" / "manifest.json").read_text())
        inputs, totals = manifest["inputs"], manifest["totals"]
        rows = [line.split() for line in lines if line.startswith("  ")]
        assert {row[0]: int(row[1]) for row in rows if len(row) == 2} == {
            "parts": len(corpus),
            "parts_skipped": 0,
            "documents": sum(part["documents"] for part in inputs),
            "sentences": sum(part["sentences"] for part in inputs),
            "tokens": sum(part["tokens"] for part in inputs),
            "unknown_tokens": sum(part["unknown_tokens"] for part in inputs),
            "examples": totals["examples"],
            "masked_tokens": totals["masked_tokens"],
            "lost_tokens": totals["lost_tokens"],
            "bytes": totals["bytes"],
            "shards_kept": kept,
        }
        spreads = {row[0]: tuple(map(int, row[1:])) for row in rows if len(row) == 4}
        assert spreads.pop("part_milliseconds")[0] >= 0
        assert spreads == {
            f"{kind}_{name}": (min(values), round(sum(values) / len(values)), max(values))
            for kind, name in SPREADS
            for values in [[entry[name] for entry in manifest["inputs" if kind == "part" else "shards"]]]
        }
        assert len({len(line) for line in lines if len(line.split()) == 4 and line.startswith("  ")}) == 1
        assert ["least", "mean", "greatest"] in rows


def test_spreads_of_several_stages_become_one() -> None:
    one, other = Distribution(count=1, sum=5, min=5, max=5), Distribution(count=2, sum=8, min=1, max=7)
    assert one + other == Distribution(count=3, sum=13, min=1, max=7)


def test_progress_finds_each_finished_shard_once_and_misses_none(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    recipe, settings = choose_settings("habana", None, {})
    parts, vocabulary = [str(part) for part in corpus], str(small_vocabulary_file)
    targets = plan_targets(
        str(tmp_path / "beam"), recipe, None, settings, parts, vocabulary_file(vocabulary, settings)
    )
    finished = FinishedShards([target.dataset for target in targets])
    assert finished.count_new_tokens() == []
    stage = MakeShard(TaskPlan(tokenizer=vocabulary_file(vocabulary, settings), targets=targets))
    for target in targets:
        target.dataset.begin()
    for part in parts[:2]:
        entries = [entry for _, entry in stage.process(part) if isinstance(entry, ShardEntry)]
        assert sorted(finished.count_new_tokens()) == sorted(shard.tokens for shard in entries)
        assert finished.count_new_tokens() == []
    last = WriteManifest(targets, vocabulary)
    gathered: list[list[Any]] = [[], []]
    for part in parts:
        for number, entry in stage.process(part):
            gathered[number].append(entry)
    for number in range(len(targets)):
        assert list(last.process((number, gathered[number])))
    assert finished.count_new_tokens() == []
    shards = [entry for made in gathered for entry in made if isinstance(entry, ShardEntry)]
    unseen = [shard for shard in shards if shard.name.startswith(f"{corpus[2].name}.")]
    assert sorted(finished.count_remaining_tokens()) == sorted(shard.tokens for shard in unseen)


@pytest.mark.parametrize("flags", [(), pytest.param(PROCESSES, marks=pytest.mark.thorough)])
def test_progress_is_a_bar_on_a_terminal_and_warnings_are_not_lost(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    part = tmp_path / "one-document"
    part.write_text("the house is old .\nit stands by a river .\n")
    words = ["--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL, *flags]
    program = {"module": "beam_pipelines.prepare", "python": forking_python("beam")}
    seen = on_a_terminal("--input", *corpus, part, *words, **program)
    assert "creating shards" in seen
    assert "━" in seen
    assert re.search(r"4/4 shards, [\d,]+ tokens/s", seen)
    assert seen.replace("\r\n", "").count("one-document: no blank line") == 1  # wrapped by the terminal


def test_without_a_terminal_nobody_looks(corpus: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    before = threading.active_count()
    with show_progress([], 3):
        assert threading.active_count() == before


def test_stages_run_twice_keep_what_is_there_and_write_the_same_bytes(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    expected = create(corpus, small_vocabulary_file, tmp_path / "create", *SMALL)
    changes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2}
    recipe, settings = choose_settings(None, None, changes)
    parts = [str(part) for part in corpus]
    vocabulary, output = str(small_vocabulary_file), str(tmp_path / "beam")
    targets = plan_targets(output, recipe, None, settings, parts, vocabulary_file(vocabulary, settings))
    targets[0].dataset.begin()
    stages = (
        MakeShard(TaskPlan(tokenizer=vocabulary_file(vocabulary, settings), targets=targets)),
        WriteManifest(targets, vocabulary),
    )
    stages[0].setup()
    entries = [list(stages[0].process(part)) for part in parts]
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "beam").glob("part-*")}
    # The size of the largest document is only known to the run that reads the text.
    listed = [[one for one in made if not isinstance(one[1], LargestDocument)] for made in entries]
    assert [list(stages[0].process(part)) for part in parts] == listed
    assert {path: path.stat().st_mtime_ns for path in times} == times
    for _ in range(2):
        gathered = [entry for made in entries for _, entry in made]
        assert list(stages[1].process((0, gathered))) == [output]
        assert contents(tmp_path / "beam") == expected


def test_a_bad_part_fails_the_run_by_name_and_the_others_are_kept(
    corpus: list[Path],
    small_vocabulary_file: Path,
    bad_part: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts = [*corpus, bad_part]
    assert prepare(parts, small_vocabulary_file, tmp_path / "beam", *SMALL) == 1
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 1
    assert printed[0].startswith(f"beam_pipelines.prepare: error: {bad_part}: line 3: ")
    assert "while running" not in printed[0]
    left = contents(tmp_path / "beam")
    assert "manifest.json" not in left
    assert not [name for name in left if name.endswith(".tmp")]
    bad_part.write_bytes(b"A good line.\n\nAnother.\n")
    assert prepare(parts, small_vocabulary_file, tmp_path / "beam", *SMALL) == 0
    assert contents(tmp_path / "beam") == create(parts, small_vocabulary_file, tmp_path / "create", *SMALL)


def test_a_bad_part_fails_a_run_in_several_processes_with_one_line(
    corpus: list[Path], small_vocabulary_file: Path, bad_part: Path, tmp_path: Path
) -> None:
    lone = tmp_path / "part-lone"
    lone.write_text("One sentence.\nAnother sentence.\n")
    parts = [bad_part, lone]
    run = prepare_in_new_process(words(parts, small_vocabulary_file, tmp_path / "beam", *SMALL, *PROCESSES))
    assert run.returncode == 1
    errors = [line for line in run.stderr.splitlines() if ": warning: " not in line]
    assert len(errors) == 1
    assert errors[0].startswith(f"beam_pipelines.prepare: error: {bad_part}: line 3: ")


def test_a_warning_of_a_worker_process_is_printed_once(small_vocabulary_file: Path, tmp_path: Path) -> None:
    lone = tmp_path / "part-lone"
    lone.write_text("One sentence.\nAnother sentence.\n")
    run = prepare_in_new_process(words([lone], small_vocabulary_file, tmp_path / "beam", *SMALL, *PROCESSES))
    assert run.returncode == 0
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: warning: {lone}: no blank line")


def test_an_error_is_found_in_the_text_of_a_worker_s_traceback() -> None:
    text = (
        "Traceback (most recent call last):\n  ...\nbertdata.errors.InputError: part-7: line 3: x\n\n"
        "bertdata.errors.InputError: part-7: line 3: x [while running 'make shards/make shards of a part']\n"
    )
    found = find_original_error(RuntimeError(text))
    assert isinstance(found, InputError)
    assert str(found) == "part-7: line 3: x"
    other = RuntimeError("something else")
    assert find_original_error(other) is other


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--shuffle", "global"), "--shuffle global needs --num-shards N"),
        (("--num-shards", "4"), "--num-shards goes with --shuffle global"),
        (("--dupe-facto", "3"), "--dupe-facto: neither a flag of ours nor of Beam"),
        (("--phase", "1", "stray"), "stray: neither a flag of ours nor of Beam"),
        (("--sdk_worker_paralelism=2",), "; the nearest known is --sdk_worker_parallelism"),
        (("--runner", "NoRunner"), "--runner NoRunner: no such runner"),
        (("--direct_running_mode=fast",), "Beam refuses: argument --direct_running_mode: invalid choice: "),
        (("--runner=DaskRunner", "--dask_workers=x"), "argument --dask_workers: invalid int value: 'x'"),
    ],
)
def test_wrong_usage_exits_2_with_one_line_and_makes_nothing(
    corpus: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    message: str,
) -> None:
    assert prepare(corpus, small_vocabulary_file, tmp_path / "beam", *flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("beam_pipelines.prepare: error: ")
    assert message in line
    assert not (tmp_path / "beam").exists()


def test_a_recipe_of_two_phases_is_refused_in_a_dataset_of_one(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "beam"
    google = ("--recipe", "google", "--dupe-factor", "1")
    assert prepare(corpus[:1], small_vocabulary_file, output, *google) == 0
    before = contents(output)
    for flags in ((), ("--shuffle", "global", "--num-shards", "2"), ("--dry-run",)):
        capsys.readouterr()
        assert prepare(corpus[:1], small_vocabulary_file, output, "--recipe", "nvidia", *flags) == 2
        assert f"{output}: holds the dataset google in the directory itself" in capsys.readouterr().err
        assert contents(output) == before


@pytest.mark.parametrize(
    ("runner", "hint"),
    [("DaksRunner", "did you mean DaskRunner? "), ("Dataflw", "did you mean DataflowRunner? "), ("x", "")],
)
def test_an_unknown_runner_is_refused_with_the_known_ones(
    corpus: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], runner: str, hint: str
) -> None:
    vocabulary = ROOT / "golden" / "vocab.txt"
    assert prepare(corpus, vocabulary, tmp_path / "out", "--runner", runner) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"beam_pipelines.prepare: error: --runner {runner}: no such runner; {hint}known are DirectRunner, "
        "DaskRunner, DataflowRunner, FlinkRunner, SparkRunner, PortableRunner, "
        "and any other by the full name of its class"
    )
    assert not (tmp_path / "out").exists()


def test_a_runner_s_short_name_is_checked_as_its_full_one(
    corpus: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = ROOT / "golden" / "vocab.txt"
    assert prepare(corpus, vocabulary, tmp_path / "out", "--runner", "dataflow") == 2
    assert "is on this machine, which Dataflow's workers cannot see" in capsys.readouterr().err


def test_inputs_are_given_by_spaces_commas_or_repetition() -> None:
    common = ["--output", "o", "--vocab", "v"]
    for given in (["--input", "a", "b"], ["--input", "a,b"], ["--input", "a", "--input=b"]):
        flags, rest = parse_flags([*common, *given, "--runner", "X"])
        assert (flags.input, rest) == (["a", "b"], ["--runner", "X"])


def test_help_begins_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Example:\n  python -m beam_pipelines.prepare --input")
    assert "--shuffle {none,global}" in printed
