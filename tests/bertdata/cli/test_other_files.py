"""Every command that reads text refuses a file that is none, in one line, before anything is made of it."""

import json
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from tests.support.commands import SMALL, Outcome, Program, contents, files_below
from tests.support.paths import ROOT

PROSE = "The tree stood by the river.\nIt was old.\n\nShe saw it in spring.\nThe leaves were green.\n"
JSON_LINES = "".join(json.dumps({"text": line}) + "\n\n" for line in PROSE.splitlines() if line)
FILES = {
    "JSON": (JSON_LINES.encode(), "looks like JSON, one object a line", "--text-field text"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xcc\0", "looks like gzip data", "gzip -d "),
    "Parquet": (b"PAR1\x15\x04\x15\x80\x01 \n\n text PAR1", "looks like Parquet", "bertdata segment "),
    "UTF-16": (PROSE.encode("utf-16"), "looks like UTF-16", " && iconv -f UTF-16 -t UTF-8 "),
}
ALL = pytest.mark.parametrize(("data", "found", "remedy"), FILES.values(), ids=FILES)
_NO_RECORDS = {name: file for name, file in FILES.items() if name not in ("JSON", "Parquet")}
NO_RECORDS = pytest.mark.parametrize(("data", "found", "remedy"), _NO_RECORDS.values(), ids=_NO_RECORDS)
OTHER_THAN_SOURCES = pytest.mark.parametrize(
    ("data", "found", "remedy"), [FILES[name] for name in ("gzip", "UTF-16")], ids=["gzip", "UTF-16"]
)
"""Files that create cannot read as records."""
DIALECTS = pytest.mark.parametrize("dialect", ["mlperf", "graphcore"])


@pytest.fixture
def part(tmp_path: Path):
    """A file of the given bytes."""

    def make(data: bytes, name: str = "part.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return make


@pytest.fixture
def run(bertdata: Program, capsys: pytest.CaptureFixture[str], small_vocabulary_file: Path, tmp_path: Path):
    """``create``, the drop-in or the Beam pipeline on parts."""

    def call(command: str, *parts: Path, flags: tuple[str, ...] = ()) -> Outcome:
        output, names = tmp_path / "out", [str(part) for part in parts]
        if command == "drop-in":
            paths = (f"--input_file={','.join(names)}", f"--vocab_file={small_vocabulary_file}")
            return bertdata("create-pretraining-data", *paths, f"--output_file={output}.tfrecord", *flags)
        common = ["--output", str(output), "--vocab", str(small_vocabulary_file), *flags]
        if command == "create":
            return bertdata("create", *names, *common, *SMALL)
        capsys.readouterr()
        status = prepare(["--input", *names, *common, *SMALL[:-1]])
        printed = capsys.readouterr()
        return Outcome(status, printed.out, printed.err)

    return call


def assert_refused(outcome: Outcome, path: Path, found: str, remedy: str) -> None:
    assert outcome.status == 1, outcome.err
    (line,) = outcome.err.splitlines()
    assert f"{path}: {found}" in line
    assert remedy in line
    assert "dialect" not in line


@OTHER_THAN_SOURCES
@DIALECTS
def test_create_refuses_it_with_the_remedy(
    dialect: str, data: bytes, found: str, remedy: str, run, part, tmp_path: Path
) -> None:
    path = part(data)
    assert_refused(run("create", path, flags=("--dialect", dialect)), path, found, remedy)
    assert_refused(run("create", path, flags=("--dialect", dialect, "--dry-run")), path, found, remedy)
    assert files_below(tmp_path) == ["part.txt"]


def test_create_makes_parts_of_json_and_names_damaged_parquet(run, part) -> None:
    assert run("create", part(FILES["JSON"][0], "a"), flags=("--sentences", "lines")).status == 0
    path = part(FILES["Parquet"][0])
    assert_refused(
        run("create", path, flags=("--dry-run",)), path, "is damaged Parquet", "fetch or make it again"
    )


@ALL
@DIALECTS
@pytest.mark.parametrize("command", ["drop-in", "Beam"])
def test_it_is_refused_with_the_remedy(
    command: str, dialect: str, data: bytes, found: str, remedy: str, run, part, tmp_path: Path
) -> None:
    path = part(data)
    assert_refused(run(command, path, flags=("--dialect", dialect)), path, found, remedy)
    assert files_below(tmp_path) == ["part.txt"]


@ALL
def test_a_dry_run_refuses_it_too(data: bytes, found: str, remedy: str, run, part, tmp_path: Path) -> None:
    path = part(data)
    assert_refused(run("Beam", path, flags=("--dry-run",)), path, found, remedy)
    assert files_below(tmp_path) == ["part.txt"]


@pytest.mark.parametrize("command", ["create", "Beam"])
def test_a_dry_run_tells_what_would_be_left_out_as_the_run_does(
    command: str, run, part, corpus: list[Path], tmp_path: Path
) -> None:
    path, flags = part(JSON_LINES.encode()), ("--skip-bad-inputs",)
    dry = run(command, corpus[0], path, flags=(*flags, "--dry-run"))
    reason = "looks like JSON, one object a line, expected plain text in UTF-8"
    assert (dry.status, dry.err) == (0, "")
    assert "1 of 2 tfrecord shards to make, 0 to keep, 1 to leave out" in dry.out
    assert f"  skip  part.txt.tfrecord  from {path} ({path.stat().st_size} bytes)  {reason}" in dry.out
    made = run(command, corpus[0], path, flags=flags)
    assert made.status == 0
    assert f"{path}: {reason}; the part is left out" in made.err
    (skipped,) = json.loads((tmp_path / "out" / "manifest.json").read_text())["skipped"]
    assert skipped["reason"] == reason


@NO_RECORDS
def test_train_vocab_refuses_it(
    data: bytes, found: str, remedy: str, part, bertdata: Program, tmp_path: Path
) -> None:
    pytest.importorskip("tokenizers")
    path = part(data)
    outcome = bertdata("train-vocab", path, "--output", tmp_path / "vocab.txt", "--size", 90)
    assert_refused(outcome, path, found, remedy)
    assert files_below(tmp_path) == ["part.txt"]


@ALL
@pytest.mark.parametrize("recipe", ["mlperf", "nvidia"])
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_segment_refuses_it(
    dry: tuple[str, ...], recipe: str, data: bytes, found: str, remedy: str, part, bertdata, tmp_path: Path
) -> None:
    path = part(data, "wiki_00")
    flags = ("--recipe", recipe, "--workers", "1", *(("--eval-articles", 0) if recipe == "mlperf" else ()))
    outcome = bertdata("segment", path, "--output", tmp_path / "out", *flags, *dry)
    if found.startswith("looks like JSON"):
        remedy = "extract the articles again without --json"
    assert_refused(outcome, path, found, remedy)
    assert files_below(tmp_path) == ["wiki_00"]


@pytest.mark.parametrize("command", ["create", "drop-in", "Beam"])
def test_latin1_is_refused_with_its_line_and_the_remedy(command: str, run, part) -> None:
    path = part((PROSE + "Die Bäume sind größer.\n").encode("latin-1"))
    outcome = run(command, path)
    assert_refused(outcome, path, "line 6: byte 0xe4 at offset", " && iconv -f WINDOWS-1252 -t UTF-8 ")


@pytest.mark.parametrize("command", ["create", "Beam"])
def test_a_dry_run_sees_latin1(command: str, run, part) -> None:
    path = part((PROSE + "Die Bäume sind größer.\n").encode("latin-1"))
    outcome = run(command, path, flags=("--dry-run",))
    assert_refused(outcome, path, "line 6: byte 0xe4 at offset", "it looks like Latin-1")
    assert run(command, path, flags=("--dry-run", "--dialect", "graphcore")).status == 0


@pytest.mark.parametrize("command", ["create", "drop-in"])
def test_the_dialect_that_drops_bytes_still_reads_latin1_as_its_original_does_and_warns(
    command: str, run, part, tmp_path: Path
) -> None:
    text = PROSE + "Die Bäume sind größer.\n\nThe end came.\n"
    flags = ("--dialect", "graphcore")
    outcome = run(command, part(text.encode("latin-1")), flags=flags)
    assert outcome.status == 0
    assert "the first of 3 bytes that are not UTF-8, all dropped; it looks like Latin-1: mv " in outcome.err

    def shard() -> bytes:
        return next(data for name, data in contents(tmp_path).items() if name.endswith(".tfrecord"))

    dropped = shard()
    for path in tmp_path.glob("out*"):
        for inner in filter(Path.is_file, path.rglob("*")):
            inner.unlink()
    assert run(command, part(text.encode("ascii", "ignore")), flags=flags).status == 0
    assert shard() == dropped


@pytest.mark.parametrize("command", ["create", "drop-in", "Beam"])
@DIALECTS
def test_prose_with_a_line_of_json_is_read_as_the_originals_read_it(
    command: str, dialect: str, run, part
) -> None:
    text = '{"text": "The tree."}\n' + PROSE + '\n{"text": "It was old."}\n\n[1]\n{ the end }\n'
    assert run(command, part(text.encode()), flags=("--dialect", dialect)).status == 0


def test_every_part_of_the_sample_corpus_is_read(run, corpus: list[Path]) -> None:
    assert run("create", *corpus, ROOT / "golden" / "odd.txt", flags=("--dry-run",)).status == 0


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_beam_refuses_articles_that_are_json(
    dry: tuple[str, ...],
    part,
    capsys: pytest.CaptureFixture[str],
    small_vocabulary_file: Path,
    tmp_path: Path,
) -> None:
    path = part(JSON_LINES.encode(), "wiki_00")
    paths = ["--input", str(path), "--output", str(tmp_path / "out"), "--text", str(tmp_path / "text")]
    flags = ["--input-kind", "articles", "--eval-articles", "0", "--vocab", str(small_vocabulary_file), *dry]
    capsys.readouterr()
    status = prepare([*paths, *flags])
    refused = Outcome(status, "", capsys.readouterr().err)
    assert_refused(refused, path, FILES["JSON"][1], "extract the articles again without --json")
