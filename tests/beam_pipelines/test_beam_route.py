"""From a dump, or from articles, to shards by one Beam command: the bytes of the commands in a row."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from beam_pipelines.prepare import main
from beam_pipelines.stages.articles import AssignArticles, WritePart
from beam_pipelines.stages.text_stage import plan_text_stage
from bertdata.cli.main import main as command_line
from bertdata.text.settings import SegmentSettings
from tests.support.commands import contents, files_below
from tests.support.dumps import TAIL, page, write_dump
from tests.support.paths import DUMP, EXTRACTED, ROOT
from tests.support.pipelines import (
    NVIDIA,
    PROCESSES,
    SHARDS,
    SMALL,
    commands,
    made_datasets,
    prepare_in_new_process,
    write_articles,
)

AS_THEY_ARE = ("--escaped-articles", "no")
"""The articles have no manifest: without this flag a warning asks whether they are escaped."""

MLPERF = ("--eval-articles", "3", "--block-size", "0.003")
KIT_PARTS = ("--eval-articles", "6", "--block-size", "1.2")
PARTS = ("part-00000-of-00500", "part-00001-of-00500")


pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture
def vocabulary(published_vocabulary: Path) -> Path:
    return published_vocabulary


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """The golden dump's articles, three a file."""
    return write_articles(tmp_path / "articles", 3)


def prepare(kind: str, source: Path, vocabulary: Path, output: Path, *flags: str) -> int:
    """Exit status of the pipeline, run in this process."""
    return main(words(kind, source, vocabulary, output, *flags))


def words(kind: str, source: Path, vocabulary: Path, output: Path, *flags: str) -> list[str]:
    places = ["--input", str(source), "--output", str(output), "--vocab", str(vocabulary)]
    return ["--input-kind", kind, *places, *flags]


def made(output: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The text files and the datasets' that a pipeline left, manifests and all."""
    return contents(output.with_name(f"{output.name}.text")), made_datasets(output)


@pytest.mark.thorough
def test_a_dump_becomes_both_phases_in_two_processes(kit: Path, vocabulary: Path, tmp_path: Path) -> None:
    dump = kit / "dump" / "enwiki-p10-p30302-shortened.xml.bz2"
    create = ("--recipe", "habana", "--dupe-factor", "1")
    arguments = words("dump", dump, vocabulary, tmp_path / "beam", *create, *SHARDS, *PROCESSES)
    run = prepare_in_new_process(arguments)
    assert (run.returncode, run.stderr) == (0, "")
    expected = commands(dump, vocabulary, tmp_path / "row", NVIDIA, create)
    assert made(tmp_path / "beam") == expected
    assert {"phase1/manifest.json", "phase2/MD5SUMS", "test/phase1/manifest.json"} < set(expected[1])
    assert "wikicorpus_en_test_1.txt" in expected[0]


def test_the_kit_s_articles_become_its_parts_and_their_shards(
    kit: Path, vocabulary: Path, tmp_path: Path
) -> None:
    assert prepare("articles", kit / "extracted", vocabulary, tmp_path / "beam", *KIT_PARTS, *SMALL) == 0
    text, shards = made(tmp_path / "beam")
    for name in ("eval.txt", "eval.md5", *PARTS):
        assert text[name] == (kit / "results" / name).read_bytes()
    assert set(text) == {"MD5SUMS", "manifest.json", "eval.txt", "eval.md5", *PARTS}
    assert (text, shards) == commands(kit / "extracted", vocabulary, tmp_path / "row", KIT_PARTS, SMALL)


RUNNERS = {
    "in memory": (),
    "two threads": ("--direct_running_mode=multi_threading", "--direct_num_workers=2"),
    "every bundle twice": ("--direct_runner_bundle_repeat=1",),
}


@pytest.mark.parametrize(
    ("segment", "flags"),
    [
        pytest.param(
            segment, flags, id=f"{name}-{runner}", marks=pytest.mark.thorough if (number + place) % 2 else ()
        )
        for number, (name, segment) in enumerate({"mlperf": MLPERF, "nvidia": NVIDIA}.items())
        for place, (runner, flags) in enumerate(RUNNERS.items())
    ],
)
def test_articles_equal_the_commands_in_a_row(
    articles: Path, vocabulary: Path, tmp_path: Path, segment: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    expected = commands(articles, vocabulary, tmp_path / "row", segment, SMALL)
    assert len(expected[1]) > 4
    given = [str(path) for path in sorted((articles / "AA").iterdir(), reverse=True)]
    arguments = words("articles", articles, vocabulary, tmp_path / "beam", *segment, *SMALL, *flags)
    assert main([*arguments[:2], "--input", ",".join(given), *arguments[4:]]) == 0
    assert made(tmp_path / "beam") == expected


def test_test_shards_make_a_dataset_of_their_own(
    articles: Path, vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "beam"
    flags = (*NVIDIA, *SMALL, "--shuffle", "global", "--num-shards", "2")
    assert prepare("articles", articles, vocabulary, output, *flags) == 0
    trained = json.loads((output / "manifest.json").read_text())["inputs"]
    tested = json.loads(((tmp_path / "beam.test") / "manifest.json").read_text())["inputs"]
    assert [one["name"] for one in trained] == [f"wikicorpus_en_training_{n}.txt" for n in range(3)]
    assert [one["name"] for one in tested] == [f"wikicorpus_en_test_{n}.txt" for n in range(2)]
    assert f"\n{output}.test: " in capsys.readouterr().out
    assert prepare("articles", articles, vocabulary, output, *flags, "--dry-run") == 0
    assert f"{output}.test: 0 of 2 tfrecord shards to make, 2 to keep" in capsys.readouterr().out


def test_a_directory_of_text_gives_the_parts_to_train_on(
    articles: Path, vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    words = ["segment", str(articles), "--output", str(text), "--recipe", "nvidia", *SHARDS]
    assert command_line([*words, "--workers", "1"]) == 0
    assert prepare("parts", text, vocabulary, tmp_path / "beam", *SMALL) == 0
    assert f"{text}: its 2 test shards are left out" in capsys.readouterr().out
    assert len(list((tmp_path / "beam").glob("*.tfrecord"))) == 3
    assert prepare("parts", text / "*.txt", vocabulary, tmp_path / "mixed", *SMALL) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "wikicorpus_en_test_0.txt (and 1 more): is held out of training" in line


def test_a_dump_equals_the_commands_in_a_row_and_a_second_run_keeps_everything(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = ("--eval-articles", "3")
    expected = commands(DUMP, vocabulary, tmp_path / "row", segment, SMALL)
    capsys.readouterr()
    flags = (*segment, *SMALL)
    assert prepare("dump", DUMP, vocabulary, tmp_path / "beam", *flags) == 0
    assert made(tmp_path / "beam") == expected
    first = counters(capsys.readouterr().out)
    assert first["dump_pages"] == first["dump_written"] + sum(
        number for name, number in first.items() if name.startswith("dump_skipped_")
    )
    assert (first["dump_written"], first["text_withheld"]) == (first["text_articles"], 3)
    assert first["text_sentences"] > first["sentences"]
    extracted = tmp_path / "beam.text" / "extracted" / "AA" / "wiki_00"
    time = extracted.stat().st_mtime_ns
    assert prepare("dump", DUMP, vocabulary, tmp_path / "beam", *flags) == 0
    assert made(tmp_path / "beam") == expected
    assert extracted.stat().st_mtime_ns == time
    assert counters(capsys.readouterr().out) == {**first, "shards_kept": 1}
    assert_chain_is_whole(tmp_path / "beam", DUMP, capsys)


def assert_chain_is_whole(output: Path, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifests lead from the dataset back to the dump, and all that is upstream fits."""
    text = output.with_name(f"{output.name}.text")
    assert command_line(["verify-md5", str(text / "extracted")]) == 0
    capsys.readouterr()
    sources = [word for place in (text, text / "extracted", dump) for word in ("--source", str(place))]
    assert command_line(["verify-md5", str(output), "--chain", *sources]) == 0
    printed = capsys.readouterr().out
    digest = hashlib.md5(dump.read_bytes()).hexdigest()
    assert f"  <- dump: {dump.name}, {dump.stat().st_size} bytes, md5 {digest}, date 2020-01-01\n" in printed


def counters(printed: str) -> dict[str, int]:
    rows = [line.split() for line in printed.splitlines() if line.startswith("  ")]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}  # distributions have three numbers


def test_too_few_articles_for_the_evaluation_set_are_told_with_a_number_that_works(
    articles: Path, vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("articles", articles, vocabulary, tmp_path / "beam", *AS_THEY_ARE, *SMALL) == 1
    (line,) = capsys.readouterr().err.splitlines()
    found = re.search(r"to withhold for evaluation; withhold fewer: --eval-articles (\d+) works here", line)
    assert found, line
    flags = ("--eval-articles", found[1], *SMALL)
    assert prepare("articles", articles, vocabulary, tmp_path / "beam", *flags) == 0


def test_pages_that_extraction_passes_over_for_a_fault_are_printed(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = page("Damaged", "Text.", number=3).replace("<ns>", "<nz>")
    whole = [page(f"Whole {n}", "One sentence. Another one.", number=n) for n in (1, 2)]
    dump = write_dump(tmp_path / "dump.xml", *whole, damaged)
    flags = ("--extractor", "3.1.0", "--eval-articles", "0", *SMALL)
    assert prepare("dump", dump, vocabulary, tmp_path / "beam", *flags) == 0
    printed = capsys.readouterr()
    line = f"beam_pipelines.prepare: warning: {dump}: page 'Damaged' (id 3): skipped: malformed"
    assert line in printed.err.splitlines()
    assert counters(printed.out)["dump_skipped_malformed"] == 1


def test_pages_can_be_left_out_of_a_dump(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [page(f"Page {n}", "One sentence. Another one.", number=n) for n in (1, 2, 3)]
    dump = write_dump(tmp_path / "dump.xml", *pages)
    flags = ("--eval-articles", "0", "--skip-page", "2", *SMALL)
    assert prepare("dump", dump, vocabulary, tmp_path / "beam", *flags) == 0
    assert counters(capsys.readouterr().out)["dump_written"] == 2
    assert b"Page 2" not in (tmp_path / "beam.text" / "extracted" / "AA" / "wiki_00").read_bytes()
    assert prepare("parts", dump, vocabulary, tmp_path / "other", "--skip-page", "2") == 2
    assert "--skip-page goes with --input-kind dump, not with parts" in capsys.readouterr().err


@pytest.mark.parametrize("segment", [pytest.param(MLPERF, id="mlperf"), pytest.param(NVIDIA, id="nvidia")])
def test_a_bad_file_fails_the_run_by_name_and_leaves_the_directories_free(
    articles: Path,
    vocabulary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    segment: tuple[str, ...],
) -> None:
    bad = articles / "AA" / "wiki_01"
    whole = bad.read_bytes()
    bad.write_bytes(whole.replace(b"\n\n", b"\n\n\xff", 1))
    segment = (*segment, *AS_THEY_ARE)
    assert prepare("articles", articles, vocabulary, tmp_path / "beam", *segment, *SMALL) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {bad}: line 4: byte 0xff at offset ")
    assert "while running" not in line
    left = [name for place in ("beam", "beam.text") for name in files_below(tmp_path / place)]
    assert not [name for name in left if "unfinished" in name or name.endswith(".tmp")]
    bad.write_bytes(whole)
    assert prepare("articles", articles, vocabulary, tmp_path / "beam", *segment, *SMALL) == 0
    assert made(tmp_path / "beam") == commands(articles, vocabulary, tmp_path / "row", segment, SMALL)


def test_a_dump_at_fault_fails_the_run_by_name(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.xml"
    dump.write_text(write_dump(dump, page("One", "Text.", number=1)).read_text().removesuffix(TAIL))
    assert prepare("dump", dump, vocabulary, tmp_path / "beam", *SMALL) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"beam_pipelines.prepare: error: {dump}: cut off: the dump ends without </mediawiki>"
    )


@pytest.mark.parametrize(
    ("kind", "flags", "message"),
    [
        ("dump", ("--input", "gs://bucket/dump.xml"), "--input-kind dump takes one dump, not 2"),
        ("articles", ("--date", "2020-01-01"), "--date goes with --input-kind dump, not with articles"),
        (
            "parts",
            ("--eval-articles", "0"),
            "--eval-articles goes with --input-kind articles or text or dump",
        ),
        ("parts", ("--text", "x"), "--text goes with --input-kind articles or text or dump or blocks"),
        ("articles", ("--block-size", "0"), "--block-size is 0.0 MiB, expected more than 0"),
        ("articles", ("--text", "OUTPUT/text"), "OUTPUT/text: lies within the dataset"),
    ],
)
def test_wrong_usage_exits_2_with_one_line_and_makes_nothing(
    vocabulary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    flags: tuple[str, ...],
    message: str,
) -> None:
    output = tmp_path / "beam"
    source = DUMP if kind == "dump" else EXTRACTED
    given = [flag.replace("OUTPUT", str(output)) for flag in flags]
    assert prepare(kind, source, vocabulary, output, *given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("beam_pipelines.prepare: error: ")
    assert message.replace("OUTPUT", str(output)) in line
    assert not list(tmp_path.glob("beam*"))


def test_a_dataset_of_other_settings_is_refused_before_the_dump_is_extracted(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = str(ROOT / "golden" / "corpus" / "part-00000-of-00003")
    output = tmp_path / "beam"
    common = ["--output", str(output), "--vocab", str(vocabulary), "--workers", "1"]
    assert command_line(["create", corpus, *common, *SMALL]) == 0
    capsys.readouterr()
    assert prepare("dump", DUMP, vocabulary, output, *SMALL, "--dupe-factor", "3") == 2
    assert "was made with other settings: dupe_factor 1, now 3" in capsys.readouterr().err
    assert not (tmp_path / "beam.text").exists()


def test_parts_of_another_run_are_not_mixed_in(
    articles: Path, vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "beam.text"
    text.mkdir()
    (text / "part-00077-of-00500").write_bytes(b"A sentence.\n")
    assert prepare("articles", articles, vocabulary, tmp_path / "beam", *MLPERF, *SMALL) == 2
    expected = "beam.text: is not empty and no text of ours (it holds part-00077-of-00500)"
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "beam").exists()


def test_the_order_of_arrival_does_not_matter(articles: Path, tmp_path: Path) -> None:
    files = [str(path) for path in sorted((articles / "AA").iterdir())]
    stage = plan_text_stage(files, str(tmp_path / "mlperf"), SegmentSettings(), None)
    path, _ = WritePart(stage).process((0, [(2, b"c\n"), (0, b"a\n"), (1, b"b\n")]))
    assert Path(path).read_bytes() == b"a\nb\nc\n"
    settings = SegmentSettings(recipe="nvidia", training_shards=2, test_shards=1, test_fraction=0.3)
    stage = plan_text_stage(files, str(tmp_path / "nvidia"), settings, None)
    counts = [(0, [5, 1]), (1, [3]), (2, [4, 2, 2])]
    dealt = list(AssignArticles(stage).process((0, counts)))
    assert list(AssignArticles(stage).process((0, counts[::-1]))) == dealt
    assert [number for number, _ in dealt] == [0, 1, 2]
