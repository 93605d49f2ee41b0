"""Records of any container to parts and shards on Beam: the bytes of ``segment`` and ``create``."""

import json
import pickle
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import fsspec
import pytest

from beam_pipelines.prepare import main
from beam_pipelines.record_pipeline import bundle_evaluation_files
from beam_pipelines.stages import records
from bertdata.cli.main import main as command_line
from bertdata.sources import line_pieces, piece, plain_text
from bertdata.text import load_splitter
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.evaluation_texts import read_evaluation_texts
from bertdata.text.selection.settings import SelectionSettings, find_evaluation_files
from tests.support.commands import contents
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.pipelines import PROCESSES, SMALL, prepare_in_new_process, words
from tests.support.record_files import FILES, as_json_lines, kind_of, make_documents, write

DOCUMENTS = make_documents(300)
PART = ("--part-size", "0.01")
SHUFFLED = ("--shuffle", "global", "--num-shards", "3")

pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (line_pieces, piece, plain_text):
        monkeypatch.setattr(module, "PIECE_BYTES", 3000)
    monkeypatch.setattr(records, "_SPILLED_BYTES", 500)


def kind_flag(name: str) -> str:
    """The kind of a file of that name, as the pipeline must be told."""
    return kind_of(name) or name.removeprefix("a.").removeprefix("file.").split(".")[0]


@pytest.fixture
def beam(small_vocabulary_file: Path, tmp_path: Path) -> Callable[..., tuple[dict[str, bytes], ...]]:
    """The files of parts and shards that a pipeline makes of a source."""

    def make(source: Path, kind: str, *flags: str, output: str = "beam") -> tuple[dict[str, bytes], ...]:
        place = tmp_path / output
        arguments = words([source], small_vocabulary_file, place, "--input-kind", kind, *SMALL, *flags)
        assert main(arguments) == 0
        return contents(tmp_path / f"{output}.text"), contents(place)

    return make


@pytest.fixture
def by_command(small_vocabulary_file: Path, tmp_path: Path) -> Callable[..., tuple[dict[str, bytes], ...]]:
    """The files that ``segment`` and ``create`` make of a source."""

    def make(
        source: Path, kind: str, segment: tuple[str, ...] = PART, create: tuple[str, ...] = ()
    ) -> tuple[dict[str, bytes], ...]:
        text, shards = str(tmp_path / "row.text"), str(tmp_path / "row")
        flags = ("--workers", "1", "--input-kind", kind, *segment)
        assert command_line(["segment", str(source), "--output", text, *flags]) == 0
        common = ["--output", shards, "--vocab", str(small_vocabulary_file), "--workers", "1"]
        assert command_line(["create", text, *common, *SMALL, *create]) == 0
        return contents(Path(text)), contents(Path(shards))

    return make


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("a.jsonl", "a.csv.gz", "a.parquet") else pytest.mark.thorough)
        for name in FILES
    ],
)
def test_every_kind_gives_the_files_of_the_commands(
    name: str, beam: Any, by_command: Any, tmp_path: Path
) -> None:
    source = write(tmp_path / "source", name, DOCUMENTS)
    expected = by_command(source, kind_flag(name))
    assert len([part for part in expected[0] if part.startswith("part-")]) > 4
    assert beam(source, kind_flag(name), *PART) == expected


def test_a_field_chooses_the_language_of_each_record_as_in_the_commands(
    beam: Any, by_command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(load_splitter, "obtain_every_language", lambda: None)
    records = [
        {"text": text, "lang": lang}
        for number in range(20)
        for lang, text in (
            ("en", f"Dr. No came {number}. He left."),
            ("zh", f"好{number}。坏！"),
            ("th", "a. b."),
        )
    ]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in [*records, {"text": "It is. So."}]))
    flags = ("--text-field=text", "--language-field=lang", "--language=en", "--keep-languages=en,zh")
    expected = by_command(source, "jsonl", (*PART, *flags))
    made = [f"Dr. No came {number}.\nHe left.\n\n好{number}。\n坏！\n\n" for number in range(20)]
    assert expected[0]["part-00000.txt"].decode() == "".join([*made, "It is.\nSo.\n\n"])
    assert beam(source, "jsonl", *PART, *flags) == expected


def test_records_of_languages_without_a_splitter_are_told_at_the_end(
    beam: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load_splitter, "obtain_every_language", lambda: None)
    for name, languages in (("a", ("th", "zh", "ar")), ("b", ("ar",))):
        lines = [json.dumps({"text": "好。坏！", "lang": language}) + "\n" for language in languages]
        (tmp_path / "source").mkdir(exist_ok=True)
        (tmp_path / "source" / f"{name}.jsonl").write_text("".join(lines))
    beam(tmp_path / "source", "jsonl", *PART, "--text-field=text", "--language-field=lang")
    note = "3 records of languages without a sentence splitter (ar: 2, th: 1): each line is taken as one "
    assert capsys.readouterr().err.count(note) == 1


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(
            ("--direct_running_mode=multi_threading", "--direct_num_workers=2"),
            id="two threads",
            marks=pytest.mark.thorough,
        ),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="every bundle twice"),
    ],
)
def test_shuffled_shards_equal_those_of_the_commands(
    flags: tuple[str, ...], beam: Any, by_command: Any, tmp_path: Path
) -> None:
    for number in range(3):
        name = ("a.jsonl.zst", "a.jsonl", "a.jsonl.gz")[number]
        write(tmp_path / "source" / str(number), name, DOCUMENTS[number * 100 : number * 100 + 100])
    settings = (*PART, "--sentences", "lines")
    expected = by_command(tmp_path / "source", "jsonl", settings, SHUFFLED)
    assert beam(tmp_path / "source", "jsonl", *settings, *SHUFFLED, *flags) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("shuffle", [(), SHUFFLED], ids=["none", "global"])
def test_two_processes_make_the_same_files(
    shuffle: tuple[str, ...], small_vocabulary_file: Path, by_command: Any, tmp_path: Path
) -> None:
    source = write(tmp_path / "source", "a.jsonl.zst", make_documents(20_000))
    part = ("--part-size", "0.5")
    arguments = words([source], small_vocabulary_file, tmp_path / "beam", "--input-kind", "jsonl", *part)
    run = prepare_in_new_process([*arguments, *SMALL, *shuffle, *PROCESSES])
    assert run.returncode == 0, run.stderr
    made = contents(tmp_path / "beam.text"), contents(tmp_path / "beam")
    assert made == by_command(source, "jsonl", part, shuffle)


@pytest.mark.thorough
@pytest.mark.parametrize("sign", ["source.text/part-00002.txt", "source/*.tfrecord"])
def test_a_process_that_was_killed_is_taken_up_by_the_same_command(
    sign: str, small_vocabulary_file: Path, by_command: Any, tmp_path: Path
) -> None:
    source = write(tmp_path / "in", "a.jsonl.zst", make_documents(10_000))
    part, output = ("--part-size", "0.1"), tmp_path / "source"
    arguments = words([source], small_vocabulary_file, output, "--input-kind", "jsonl", *part, *SMALL)
    command = [forking_python("beam"), "-m", "beam_pipelines.prepare", *arguments, *PROCESSES]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not list(tmp_path.glob(sign)):
            time.sleep(0.001)
        process.kill()
    assert not (output / "manifest.json").exists()
    assert prepare_in_new_process([*arguments, *PROCESSES]).returncode == 0
    assert (contents(tmp_path / "source.text"), contents(output)) == by_command(source, "jsonl", part)


@pytest.mark.thorough
def test_dask_makes_the_same_files(beam: Any, by_command: Any, dask_cluster: Any, tmp_path: Path) -> None:
    source = write(tmp_path / "source", "a.jsonl.gz", DOCUMENTS)
    flags = ("--runner", "DaskRunner", "--dask_client_address", dask_cluster.scheduler_address)
    assert beam(source, "jsonl", *PART, *flags) == by_command(source, "jsonl")


def test_files_in_a_bucket_give_the_parts_of_local_ones(
    beam: Any, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "source", "a.jsonl", DOCUMENTS)
    expected = beam(source, "jsonl", *PART)
    bucket = fsspec.filesystem("memory")
    bucket.pipe("/records/in/a.jsonl", as_json_lines(DOCUMENTS))
    places = ["--input", "memory://records/in", "--output", "memory://records/out"]
    flags = ("--input-kind", "jsonl", "--vocab", str(small_vocabulary_file), *PART, *SMALL)
    assert main([*places, *flags]) == 0
    for made, files in zip(("out.text", "out"), expected, strict=True):
        assert {name: bucket.cat(f"/records/{made}/{name}") for name in files} == files


BAD = [b'{"text": "cut', b'{"text": null}', b'{"text": "' + b"a" * 2000 + b'"}', b'{"text": ""}']
BAD_FLAGS = ("--text-field", "text", "--max-record-bytes", "1000", *PART)


def test_bad_records_end_the_run_or_are_counted_as_by_the_command(
    beam: Any,
    by_command: Any,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = as_json_lines(DOCUMENTS).split(b"\n")
    for number, line in enumerate(BAD):
        lines.insert(200 - 20 * number, line)
    source = tmp_path / "a.jsonl"
    source.write_bytes(b"\n".join(lines))
    arguments = words([source], small_vocabulary_file, tmp_path / "beam", "--input-kind", "jsonl", *SMALL)
    assert main([*arguments, *BAD_FLAGS]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {source}: record 141: has no text; ")
    assert "while running" not in line
    assert not list(tmp_path.glob("beam*"))
    flags = (*BAD_FLAGS, "--skip-bad-records")
    expected = by_command(source, "jsonl", flags)
    capsys.readouterr()
    assert beam(source, "jsonl", *flags) == expected
    totals = json.loads(expected[0]["manifest.json"])["totals"]
    assert (totals["malformed"], totals["empty"], totals["too_long"]) == (1, 2, 1)
    told = dict(re.findall(r"^  (\w+) +(\d+)$", capsys.readouterr().out, re.MULTILINE))
    assert {name: int(told[f"text_{name}"]) for name in totals} == totals


def test_a_damaged_file_ends_the_run_in_one_line(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "source", "a.jsonl.gz", DOCUMENTS)
    source.write_bytes(source.read_bytes()[:-20])
    flags = ("--input-kind", "jsonl", *PART, *SMALL)
    assert main(words([source], small_vocabulary_file, tmp_path / "beam", *flags)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {source}: is damaged gzip data: ")
    assert not list(tmp_path.glob("beam*"))


def test_finished_parts_are_kept_and_changed_files_are_read_again(
    beam: Any, by_command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "source", "a.jsonl", DOCUMENTS)
    made = beam(source, "jsonl", *PART)
    time = (tmp_path / "beam.text" / "part-00000.txt").stat().st_mtime_ns
    capsys.readouterr()
    assert beam(source, "jsonl", *PART) == made
    assert (tmp_path / "beam.text" / "part-00000.txt").stat().st_mtime_ns == time
    assert re.search(r"text_articles +300\n", capsys.readouterr().out)
    write(tmp_path / "source", "a.jsonl", DOCUMENTS[:40])
    rmtree(tmp_path / "beam")
    assert beam(source, "jsonl", *PART)[0] == by_command(source, "jsonl")[0]


def test_a_dry_run_says_what_would_be_read_and_writes_nothing(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "source", "a.jsonl", DOCUMENTS)
    flags = ("--input-kind", "jsonl", *PART, *SMALL, "--dry-run")
    assert main(words([source], small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    printed = capsys.readouterr().out
    assert f"  read  {source} ({source.stat().st_size} bytes)" in printed
    assert "parts of at most 0.01 MiB of text" in printed
    assert not list(tmp_path.glob("beam*"))


@pytest.mark.parametrize(
    ("kind", "flags", "message"),
    [
        ("jsonl", ("--eval-articles", "3"), "--eval-articles goes with --input-kind articles or text or"),
        ("parts", ("--part-size", "3"), "--part-size goes with --input-kind blocks or jsonl"),
        ("dump", ("--text-field", "x"), "--text-field goes with --input-kind blocks or jsonl"),
        ("text", ("--part-size", "3", "--text-recipe", "nvidia"), "--text-recipe goes with articles"),
        ("jsonl", ("--text-field", "x"), "has no field 'x' of texts, expected one of 'text'"),
        ("jsonl", ("--part-size", "0"), "part_size is 0.0 MiB, expected more than 0"),
        ("parquet", (), "looks like jsonl, expected parquet"),
    ],
)
def test_wrong_usage_is_one_line_and_makes_nothing(
    kind: str,
    flags: tuple[str, ...],
    message: str,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write(tmp_path / "source", "a.jsonl", DOCUMENTS[:5])
    arguments = words([source], small_vocabulary_file, tmp_path / "beam", "--input-kind", kind)
    assert main([*arguments, *flags]) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("beam_pipelines.prepare: error: ")
    assert message in line.replace("--part-size is", "part_size is")
    assert not list(tmp_path.glob("beam*"))


def select_flags(place: Path) -> tuple[str, ...]:
    """Flags that leave some of the documents out, and the evaluation set that they name."""
    evaluation = place / "evaluation.txt"
    evaluation.write_text("\n\n".join(DOCUMENTS[10:200:30]))
    flags = ("--exclude", str(evaluation), "--exclude-ngram", "9", "--dedup", "exact", "--eval-share", "20%")
    return (*PART, *flags, "--skip-bad-records")


def write_with_duplicates(place: Path) -> Path:
    """Files of documents, some of them twice, in one file and in two, and of some bad records."""
    documents = [*DOCUMENTS[:150], *DOCUMENTS[40:60], *DOCUMENTS[100:250], *DOCUMENTS[:30], *DOCUMENTS[250:]]
    for number in range(3):
        name = ("a.jsonl.zst", "a.jsonl", "a.jsonl.gz")[number]
        texts = [*documents[number::3], "", *documents[5:20]]
        write(place / "source" / str(number), name, texts)
    return place / "source"


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--direct_running_mode=multi_threading", "--direct_num_workers=2"),
        pytest.param(PROCESSES, id="two processes", marks=pytest.mark.thorough),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="twice", marks=pytest.mark.thorough),
    ],
)
def test_documents_left_out_and_held_out_are_those_of_the_command(
    flags: tuple[str, ...], beam: Any, by_command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, chosen = write_with_duplicates(tmp_path), select_flags(tmp_path)
    expected = by_command(source, "jsonl", chosen)
    capsys.readouterr()
    assert beam(source, "jsonl", *chosen, *flags) == expected
    totals = json.loads(expected[0]["manifest.json"])["totals"]
    assert min(totals[name] for name in ("excluded", "duplicate", "withheld", "empty")) > 2
    assert {"eval-00000.txt", "removed.jsonl"} < expected[0].keys()
    assert not [name for name in expected[1] if name.startswith(("eval", "removed"))]
    told = dict(re.findall(r"^  (\w+) +(\d+)$", capsys.readouterr().out, re.MULTILINE))
    assert {name: int(told[f"text_{name}"]) for name in totals} == totals


def test_a_bad_record_ends_the_search_for_duplicates_in_the_line_of_the_command(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_with_duplicates(tmp_path)
    arguments = words([source], small_vocabulary_file, tmp_path / "beam", "--input-kind", "jsonl", *SMALL)
    assert main([*arguments, *PART, "--dedup", "exact"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {source}/0/a.jsonl.zst: record ")
    assert "has no text" in line
    assert not list(tmp_path.glob("beam*"))


def test_evaluation_sets_travel_to_workers_on_other_machines(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.txt"
    path.write_text("one two three")
    settings = PartSettings(selection=SelectionSettings(exclude=find_evaluation_files([str(path)])))
    packed = pickle.dumps(bundle_evaluation_files(settings))
    path.unlink()
    found: PartSettings = pickle.loads(packed)
    assert found.as_json() == settings.as_json()
    assert list(read_evaluation_texts(found.selection.exclude[0].path)) == ["one two three"]


@pytest.mark.parametrize("flags", [(), ("--dedup", "exact")])
def test_a_file_that_is_replaced_under_the_pipeline_ends_it(
    flags: tuple[str, ...],
    small_vocabulary_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After the run was planned, and after the first piece was read."""
    source, new = tmp_path / "a.jsonl", tmp_path / "new file"
    source.write_bytes(as_json_lines(DOCUMENTS))
    new.write_bytes(as_json_lines(["One more.", *DOCUMENTS]))
    step = records.PieceToDocuments.__call__

    def read(self: records.PieceToDocuments, work: Any) -> Any:
        if new.exists():
            new.replace(source)
        return step(self, work)

    monkeypatch.setattr(records.PieceToDocuments, "__call__", read)
    arguments = words([source], small_vocabulary_file, tmp_path / "out", "--input-kind", "jsonl", *SMALL)
    capsys.readouterr()
    assert main([*arguments, *PART, *flags]) == 1
    assert "a.jsonl: was changed while it was being read" in capsys.readouterr().err
    assert not (tmp_path / "out.text/manifest.json").exists()
    assert not (tmp_path / "out").exists()
