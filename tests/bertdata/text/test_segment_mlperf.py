"""Stages 4 and 5 of MLPerf's text stage, and the stages in a row."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.config.held_out_names import make_mlperf_part_name
from bertdata.errors import DatasetError, InputError, MissingInputError, SettingsError, TooFewArticles
from bertdata.text.mlperf_evaluation import (
    count_articles_to_withhold,
    find_most_eval_articles,
    format_eval_md5,
    format_eval_text,
    withhold_articles,
)
from bertdata.text.mlperf_parts import plan_parts, trim_part_text
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from tests.support.dumps import files
from tests.support.fake_splitters import load_period_splitter, load_stage_splitter, read_kit

KIT_SETTINGS = SegmentSettings(eval_articles=6, block_size=1.2)
KIT_RESULTS = ("eval.txt", "eval.md5", "part-00000-of-00500", "part-00001-of-00500")


def article(title: str, text: str) -> str:
    return f'<doc id="1" url="x" title="{title}">\n{title}\n\n{text}\n\n</doc>\n'


def contents(directory: Path) -> dict[str, bytes]:
    """The text files below the directory."""
    return files(directory)


@pytest.fixture
def extracted(tmp_path: Path) -> Path:
    """Two small extracted files."""
    folder = tmp_path / "extracted" / "AA"
    folder.mkdir(parents=True)
    for number in range(2):
        articles = [article(f"T{n}", f"One {n}. Two {number}.\nThree.") for n in range(3)]
        (folder / f"wiki_0{number}").write_text("".join(articles))
    return folder.parent


def test_stage_4_and_the_evaluation_set_equal_the_kit(kit: Path) -> None:
    withheld: list[bytes] = []
    for index in range(2):
        sentences = read_kit(kit, f"stages/wiki_0{index}.3")
        separated = withhold_articles(sentences, index, 2, 6, "wiki")
        assert separated.training == read_kit(kit, f"stages/wiki_0{index}.4")
        withheld += separated.withheld
    assert format_eval_text(withheld) == (kit / "results" / "eval.txt").read_bytes()
    assert format_eval_md5(withheld) == (kit / "results" / "eval.md5").read_bytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_stages_in_a_row_equal_the_kit(kit: Path, tmp_path: Path, workers: int) -> None:
    extracted = find_extracted_files([str(kit / "extracted")]).files
    load = partial(load_stage_splitter, kit)
    counts = segment_files(extracted, str(tmp_path), KIT_SETTINGS, load, workers=workers)
    assert contents(tmp_path) == {name: (kit / "results" / name).read_bytes() for name in KIT_RESULTS}
    assert (counts.files, counts.articles, counts.withheld) == (2, 78, 6)
    assert counts.bytes_in == sum(Path(path).stat().st_size for path in extracted)
    assert counts.bytes_out == sum(len(data) for data in contents(tmp_path).values())
    lines = b"".join(read_kit(kit, f"stages/wiki_0{index}.3") for index in range(2)).split(b"\n")
    assert counts.sentences == len([line for line in lines if line])


def test_progress_is_told_of_every_files_bytes(extracted: Path, tmp_path: Path) -> None:
    told: list[int] = []
    files = find_extracted_files([str(extracted)]).files
    settings = SegmentSettings(eval_articles=2)
    segment_files(files, str(tmp_path / "out"), settings, load_period_splitter, progress=told.append)
    assert told == [Path(path).stat().st_size for path in files]


@given(st.integers(1, 400), st.integers(0, 20_000))
def test_quotas_add_up(files: int, eval_articles: int) -> None:
    quotas = [count_articles_to_withhold(index, files, eval_articles) for index in range(files)]
    assert sum(quotas) == eval_articles
    assert max(quotas) - min(quotas) <= 1


def test_what_follows_the_last_article_may_be_withheld_too() -> None:
    assert format_eval_md5(withhold_articles(b"a\n\n", 0, 1, 2, "wiki_00").withheld) == (
        b"0cc175b9c0f1b6a831c399e269772661\nd41d8cd98f00b204e9800998ecf8427e\n"
    )


def test_unicode_white_space_does_not_count_in_eval_md5() -> None:
    assert format_eval_md5(["a\u3000\x85".encode()]) == format_eval_md5([b"a"])


def test_more_articles_withheld_than_there_are_is_an_error() -> None:
    with pytest.raises(
        TooFewArticles, match="wiki_00: found 1 article, expected 3 or more.*--eval-articles N"
    ):
        withhold_articles(b"a\n\n", 0, 1, 3, "wiki_00")


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_the_largest_evaluation_set_is_one_that_every_file_can_give(articles: list[int]) -> None:
    def fits(number: int) -> bool:
        quotas = [count_articles_to_withhold(index, len(articles), number) for index in range(len(articles))]
        return all(wanted <= max(found, 1) for wanted, found in zip(quotas, articles, strict=True))

    half = sum(articles) // 2
    assert find_most_eval_articles(articles) == max(filter(fits, range(half + 1)))


def test_parts_count_the_extracted_bytes_up_to_a_block() -> None:
    mebibyte = 1024 * 1024
    sizes = [mebibyte, mebibyte, 1, 3 * mebibyte, 0]
    assert plan_parts(sizes, 2.0, list("abcde")) == [0, 0, 1, 2, 3]
    assert make_mlperf_part_name(12) == "part-00012-of-00500"


def test_a_first_file_larger_than_a_block_is_an_error() -> None:
    with pytest.raises(InputError, match=r"wiki_00: 1048577 bytes, expected at most a block of 1048576"):
        plan_parts([1024 * 1024 + 1], 1.0, ["wiki_00"])


def test_a_part_gets_no_byte_order_mark_and_one_newline_less() -> None:
    assert trim_part_text(b"\xef\xbb\xbfa\n\n") == b"a\n"
    assert trim_part_text(b"a\n\n\n") == b"a\n\n"
    assert trim_part_text(b"") == b""


def test_too_few_articles_leave_no_evaluation_set(extracted: Path, tmp_path: Path) -> None:
    files = find_extracted_files([str(extracted)]).files
    with pytest.raises(TooFewArticles, match=r"wiki_00: found 3 articles, expected 50 or more"):
        segment_files(files, str(tmp_path / "out"), SegmentSettings(eval_articles=100), load_period_splitter)
    assert contents(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("last", "number", "total"),
    [
        pytest.param("", 3, 6, id="half"),
        pytest.param(article("Short", "One.\n<div>\n\u3000\n"), 3, 7, id="a short file at the end"),
        pytest.param(article("Empty", "[[Category:x]]") + article("T", "One."), 3, 7, id="an empty article"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_for_too_few_articles_names_a_number_that_works(
    extracted: Path, tmp_path: Path, last: str, number: int, total: int, workers: int
) -> None:
    if last:
        (extracted / "AA" / "wiki_02").write_text(last)
    files, out = find_extracted_files([str(extracted)]).files, str(tmp_path / "out")
    remedy = rf"--eval-articles {number} works here \({total} articles in all\)$"
    with pytest.raises(TooFewArticles, match=remedy):
        segment_files(files, out, SegmentSettings(), load_period_splitter, workers=workers)
    counts = segment_files(files, out, SegmentSettings(eval_articles=number), load_period_splitter)
    assert (counts.withheld, len(contents(tmp_path / "out")["eval.md5"].splitlines())) == (number, number)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_file_names_it(extracted: Path, tmp_path: Path, workers: int) -> None:
    bad = extracted / "AA" / "wiki_01"
    bad.write_bytes(bad.read_bytes().replace(b"Three.", b"Thr\xe9e.", 1))
    files = find_extracted_files([str(extracted)]).files
    settings = SegmentSettings(eval_articles=0)
    with pytest.raises(InputError, match=r"wiki_01: line 5: byte 0xe9 at offset \d+ is not UTF-8"):
        segment_files(files, str(tmp_path / "out"), settings, load_period_splitter, workers=workers)


def test_parts_of_another_run_are_not_mixed_in(extracted: Path, tmp_path: Path) -> None:
    files = find_extracted_files([str(extracted)]).files
    out = tmp_path / "out"
    settings = SegmentSettings(eval_articles=2)
    segment_files(files, str(out), settings, load_period_splitter)
    first = contents(out)
    segment_files(files, str(out), settings, load_period_splitter)
    assert contents(out) == first
    (out / "manifest.json").unlink()
    with pytest.raises(DatasetError, match="is not empty and no text of ours .it holds MD5SUMS."):
        segment_files(files, str(out), settings, load_period_splitter)


def test_files_are_found_in_the_order_of_their_paths(extracted: Path) -> None:
    (extracted / "AB").mkdir()
    other = extracted / "AB" / "wiki_00"
    other.write_text(article("T", "One."))
    (extracted / "AA" / "wiki_00.1").write_text("left by another program")
    expected = [str(extracted / name) for name in ("AA/wiki_00", "AA/wiki_01", "AB/wiki_00")]
    assert find_extracted_files([str(extracted)]).files == expected
    assert find_extracted_files([str(other), str(extracted / "AA")]).files == expected


def test_a_file_named_twice_is_an_error(extracted: Path) -> None:
    with pytest.raises(SettingsError, match="wiki_00: named twice"):
        find_extracted_files([str(extracted), str(extracted / "AA" / "wiki_00")])


def test_inputs_that_are_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no extracted files found"):
        find_extracted_files([str(tmp_path)])
    with pytest.raises(MissingInputError, match="no such file"):
        find_extracted_files([str(tmp_path / "nowhere")])
    with pytest.raises(MissingInputError, match="no extracted files given"):
        segment_files([], str(tmp_path), SegmentSettings(), load_period_splitter)
    with pytest.raises(MissingInputError, match="nowhere"):
        segment_files([str(tmp_path / "nowhere")], str(tmp_path), SegmentSettings(), load_period_splitter)


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": "google"},
        {"eval_articles": -1},
        {"block_size": 0.0},
        {"block_size": float("nan")},
        {"training_shards": 0},
        {"test_shards": 0},
        {"test_fraction": 1.5},
        {"punkt": "3.5"},
        {"prefix": ""},
        {"prefix": "a/b"},
    ],
)
def test_settings_out_of_range_are_refused(changes: dict) -> None:
    with pytest.raises(SettingsError, match=next(iter(changes))):
        SegmentSettings(**changes)


def test_no_workers_is_wrong_usage(extracted: Path, tmp_path: Path) -> None:
    files = find_extracted_files([str(extracted)]).files
    with pytest.raises(SettingsError, match="workers is 0"):
        segment_files(files, str(tmp_path / "out"), SegmentSettings(), load_period_splitter, workers=0)
