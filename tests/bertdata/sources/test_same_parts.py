"""The same documents give the same parts, whatever files they come from and whoever makes them."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bertdata.sources import article_records, line_pieces, parquet_records, piece, plain_text
from bertdata.sources.settings import RecordSettings
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import plan_records
from bertdata.text.segment_records import segment_records
from bertdata.text.settings import SegmentCounts
from tests.support.commands import contents
from tests.support.fake_splitters import load_period_splitter, split_at_periods
from tests.support.paths import EXTRACTED, ROOT
from tests.support.record_files import FILES, kind_of, make_documents, write

DOCUMENTS = make_documents(300)
PART_SIZE = 0.02
NAMES = pytest.mark.parametrize("name", FILES)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (article_records, line_pieces, piece, plain_text):
        monkeypatch.setattr(module, "PIECE_BYTES", 5000)


def make(
    path: Path, output: Path, kind: str | None = None, workers: int = 1, **changes: Any
) -> SegmentCounts:
    settings = PartSettings(**{"part_size": PART_SIZE, **changes})
    plan = plan_records([str(path)], kind, settings)
    return segment_records(plan, str(output), load_period_splitter, workers=workers)


def parts(output: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(output).items() if name.startswith("part-")}


def expected_parts(documents: list[str], sentences: str = "punkt") -> dict[str, bytes]:
    """The specification, in a few lines: documents in order, cut by the bytes of their text."""
    made: list[list[str]] = [[]]
    held = 0
    for text in documents:
        lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]
        if not lines:
            continue
        size = sum(len(line.encode()) + 1 for line in lines)
        if held and held + size > PART_SIZE * (1 << 20):
            made.append([])
            held = 0
        held += size
        if sentences == "punkt":
            lines = [sentence.strip() for line in lines for sentence in split_at_periods(line)]
        elif sentences == "lines":
            lines = [line.strip() for line in lines]
        made[-1].append("".join(f"{line}\n" for line in lines) + "\n")
    return {f"part-{n:05d}.txt": "".join(one).encode() for n, one in enumerate(made)}


@NAMES
def test_every_kind_gives_the_parts_of_the_specification(name: str, tmp_path: Path) -> None:
    counts = make(write(tmp_path, name, DOCUMENTS), tmp_path / "out", kind_of(name))
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS)
    assert len(parts(tmp_path / "out")) > 3
    assert counts.articles == len(DOCUMENTS)


@pytest.mark.parametrize("sentences", ["punkt", "lines", "none"])
def test_lines_of_a_part_are_those_asked_for(sentences: str, tmp_path: Path) -> None:
    make(write(tmp_path, "a.jsonl", DOCUMENTS), tmp_path / "out", sentences=sentences)
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS, sentences)


def test_blank_lines_and_other_line_ends_within_a_record_do_not_end_its_document(tmp_path: Path) -> None:
    documents = ["One. Two.\n\n \u3000\nThree.", "\r\n Four.\rFive.\r\n\r\n", "\n\nSix.\n"]
    for name in ("a.jsonl", "a.parquet", "a.csv", "a.arrow"):
        make(write(tmp_path / name, name, documents), tmp_path / name / "out", sentences="none")
        assert parts(tmp_path / name / "out") == expected_parts(documents, "none")
    text = parts(tmp_path / "a.csv" / "out")["part-00000.txt"]
    assert text == b"One. Two.\nThree.\n\n Four.\nFive.\n\nSix.\n\n"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_line_end_separates_plain_documents(line_end: str, tmp_path: Path) -> None:
    data = f"{line_end} \t{line_end}{line_end}".join(text.replace("\n", line_end) for text in DOCUMENTS)
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + data.encode())
    make(tmp_path / "a.txt", tmp_path / "out", "blocks", sentences="lines")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS, "lines")


def test_articles_are_the_texts_of_wikiextractors_json(tmp_path: Path) -> None:
    """Its JSON has the title in a field of its own, and no blank lines at the ends of the text."""
    articles = re.compile(r'<doc id="(\d+)" [^\n]*\n[^\n]*\n\n(.*?)\n*</doc>\n', re.DOTALL)
    lines = [
        json.dumps({"id": int(identity), "text": text})
        for path in sorted(EXTRACTED.rglob("wiki_*"))
        for identity, text in articles.findall(path.read_text(encoding="utf-8"))
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for name, path in (("articles", EXTRACTED), ("json", tmp_path / "a.jsonl")):
        counts = make(path, tmp_path / name, sentences="none", records=RecordSettings(skip_bad_records=True))
        assert counts.articles == 80
    assert parts(tmp_path / "articles") == parts(tmp_path / "json")


def test_many_files_in_folders_give_the_parts_of_one(tmp_path: Path) -> None:
    for number in range(6):
        write(
            tmp_path / "all" / f"{number}" / "deep", "a.jsonl.gz", DOCUMENTS[number * 50 : number * 50 + 50]
        )
    (tmp_path / "all" / "README.md").write_text("no data")
    (tmp_path / "all" / ".hidden.jsonl").write_text("no data")
    make(tmp_path / "all", tmp_path / "out")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS)


def test_kinds_may_be_mixed(tmp_path: Path) -> None:
    write(tmp_path / "all", "a.csv", DOCUMENTS[:100])
    write(tmp_path / "all", "a.jsonl.zst", DOCUMENTS[100:200])
    write(tmp_path / "all", "a.parquet", DOCUMENTS[200:])
    make(tmp_path / "all", tmp_path / "out")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS)


def test_a_file_a_document(tmp_path: Path) -> None:
    for number, text in enumerate(DOCUMENTS[:20]):
        (tmp_path / f"{number:02d}.txt").write_text(text.replace("\n", "\n\n"))
    make(tmp_path, tmp_path / "out", "text")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS[:20])


def test_a_large_row_group_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_records, "_LARGE_GROUP_BYTES", 1)
    monkeypatch.setattr(parquet_records, "_BATCH_ROWS", 7)
    make(write(tmp_path, "a.parquet", DOCUMENTS), tmp_path / "out")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet", "a.csv"])
def test_any_number_of_workers_writes_the_same_directory(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, DOCUMENTS)
    for workers in (1, 3):
        make(path, tmp_path / str(workers), workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt", "a.csv", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("die_after", [1, 6, 9])
def test_a_run_that_was_killed_goes_on(
    name: str, die_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(tmp_path, name, DOCUMENTS), tmp_path / "out"
    make(path, tmp_path / "whole", kind_of(name))
    plan = plan_records([str(path)], kind_of(name), PartSettings(part_size=PART_SIZE))
    told = 0

    def die(file: int, size: int) -> None:
        nonlocal told
        told += 1
        if told == die_after:
            raise KeyboardInterrupt

    try:
        segment_records(plan, str(out), load_period_splitter, progress=die)
    except KeyboardInterrupt:
        assert not (out / "manifest.json").exists()
    kept = {part: (out / part).stat().st_ino for part in parts(out)} if out.exists() else {}
    make(path, out, kind_of(name))
    assert contents(out) == contents(tmp_path / "whole")
    assert {part: (out / part).stat().st_ino for part in kept} == kept


def test_a_part_that_was_changed_after_a_kill_is_made_again_with_all_behind_it(tmp_path: Path) -> None:
    path, out, told = write(tmp_path, "a.jsonl", DOCUMENTS), tmp_path / "out", []
    make(path, tmp_path / "whole")
    plan = plan_records([str(path)], None, PartSettings(part_size=PART_SIZE))

    def die(file: int, size: int) -> None:
        told.append(size)
        if len(told) == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        segment_records(plan, str(out), load_period_splitter, progress=die)
    assert len(parts(out)) > 2
    (out / "part-00001.txt").write_bytes(b"!")
    make(path, out)
    assert contents(out) == contents(tmp_path / "whole")


def test_changed_files_of_a_finished_directory_are_read_again(tmp_path: Path) -> None:
    make(write(tmp_path, "a.jsonl", DOCUMENTS), tmp_path / "out")
    write(tmp_path, "a.jsonl", DOCUMENTS[:50])
    make(tmp_path / "a.jsonl", tmp_path / "out")
    assert parts(tmp_path / "out") == expected_parts(DOCUMENTS[:50])


def test_the_longest_record_does_not_depend_on_the_kind(tmp_path: Path) -> None:
    documents = ["short one.", "x" * 101, "y" * 99, "é" * 50]
    records = RecordSettings(max_record_bytes=101, skip_bad_records=True)
    for name in FILES:
        counts = make(
            write(tmp_path / name, name, documents), tmp_path / name / "out", kind_of(name), records=records
        )
        assert (counts.articles, counts.too_long) == (3, 1), name


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet"])
def test_a_process_that_was_killed_is_taken_up_by_the_same_command(name: str, tmp_path: Path) -> None:
    path, out = write(tmp_path, name, make_documents(20_000)), tmp_path / "out"
    command = [sys.executable, "-m", "bertdata", "segment", str(path), "--part-size", "0.1"]
    with subprocess.Popen([*command, "--output", str(out), "--workers", "2"], cwd=ROOT) as process:
        while process.poll() is None and not (out / "part-00002.txt").exists():
            time.sleep(0.001)
        process.kill()
    assert not (out / "manifest.json").exists()
    kept = (out / "part-00001.txt").stat().st_ino
    subprocess.run([*command, "--output", str(out), "--workers", "1"], cwd=ROOT, check=True)
    subprocess.run([*command, "--output", str(tmp_path / "whole")], cwd=ROOT, check=True)
    assert contents(out) == contents(tmp_path / "whole")
    assert (out / "part-00001.txt").stat().st_ino == kept
