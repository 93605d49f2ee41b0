"""A run of the text stage that died anywhere is taken up by the same call, and ends with the same files."""

import json
from pathlib import Path

import pytest

from bertdata.errors import DatasetError, InputError
from bertdata.io.directory_protocol import Commit
from bertdata.io.manifest_file import seal_json, unseal_json
from bertdata.text import nvidia_writing
from bertdata.text.directory import TextDirectory
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from bertdata.text.text_plan import find_articles
from tests.support.commands import contents, files_below
from tests.support.fake_splitters import FakeSplitter, load_period_splitter, split_at_periods

FILES = 12
BLOCK = 0.0012
MLPERF = SegmentSettings(eval_articles=5, block_size=BLOCK)
NVIDIA = SegmentSettings(recipe="nvidia", training_shards=3, test_shards=2, test_fraction=0.3)


class _PulledOut(Exception):
    """Stands for a crash."""


def write_articles(directory: Path, files: int = FILES) -> list[str]:
    folder = directory / "AA"
    folder.mkdir(parents=True)
    for number in range(files):
        articles = [
            f'<doc id="{n}" url="x" title="T">\nT\n\nOne {n}. Two {number}.\nThree.\n\n</doc>\n'
            for n in range(4 + number % 3)
        ]
        (folder / f"wiki_{number:02d}").write_text("".join(articles))
    return find_extracted_files([str(directory)]).files


@pytest.fixture
def articles(tmp_path: Path) -> list[str]:
    return write_articles(tmp_path / "extracted")


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_writing, "GROUP_FILES", 2)


split: list[str] = []
"""Files that were split since the list was cleared, with one worker."""


class NotingSplitter(FakeSplitter):
    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        split.append(Path(name).name)
        return super().segment_lines(data, name, keeps_indent=keeps_indent)


def load_noting_splitter() -> FakeSplitter:
    return NotingSplitter(split_at_periods)


def run(articles: list[str], out: Path, settings: SegmentSettings, die_after: int | None = None) -> list[str]:
    """The files that were split; die_after: so many files."""
    split.clear()
    left = [die_after]

    def progress(size: int) -> None:
        if left[0] is not None:
            left[0] -= 1
            if not left[0]:
                raise _PulledOut

    if die_after is None:
        segment_files(articles, str(out), settings, load_noting_splitter)
    else:
        with pytest.raises(_PulledOut):
            segment_files(articles, str(out), settings, load_noting_splitter, progress=progress)
    return list(split)


def test_the_files_make_several_parts(articles: list[str], tmp_path: Path) -> None:
    run(articles, tmp_path / "out", MLPERF)
    parts = [name for name in files_below(tmp_path / "out") if name.startswith("part-")]
    assert len(parts) == 4
    assert files_below(tmp_path / "out") == ["MD5SUMS", "eval.md5", "eval.txt", "manifest.json", *parts]


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
@pytest.mark.parametrize("die_after", [1, 5, FILES])
def test_a_run_after_a_crash_does_only_what_is_missing(
    articles: list[str], tmp_path: Path, settings: SegmentSettings, die_after: int
) -> None:
    run(articles, tmp_path / "whole", settings)
    first = run(articles, tmp_path / "out", settings, die_after)
    assert not (tmp_path / "out" / "manifest.json").exists()
    second = run(articles, tmp_path / "out", settings)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(first) == die_after
    assert len(second) <= FILES - (die_after - 1) // 2 * 2
    assert sorted({*first, *second}) == [Path(path).name for path in articles]


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_a_crash_leaves_nothing_beside_the_parts(
    articles: list[str], tmp_path: Path, settings: SegmentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Commit, "give_up", lambda self: None)  # as if it was killed
    run(articles, tmp_path / "out", settings, 5)
    left = [name for name in files_below(tmp_path / "out") if not name.startswith("unfinished/")]
    assert [name for name in left if not name.startswith("part-")] == []


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_what_was_damaged_after_a_crash_is_made_again(
    articles: list[str], tmp_path: Path, settings: SegmentSettings
) -> None:
    run(articles, tmp_path / "whole", settings)
    run(articles, tmp_path / "out", settings, 10)
    out = tmp_path / "out"
    made = [*out.glob("part-*"), *out.glob("unfinished/*.scratch"), *out.glob("unfinished/*-*.json")]
    for path in sorted(made)[::2]:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"!" + data[len(data) // 2 + 1 :])
    Path(articles[0]).write_bytes(Path(articles[0]).read_bytes().replace(b"One 1", b"Six 1"))
    run(articles, tmp_path / "out", settings)
    run(articles, tmp_path / "whole", settings)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_a_finished_directory_is_known_by_its_manifest(
    articles: list[str], tmp_path: Path, settings: SegmentSettings
) -> None:
    out = tmp_path / "out"
    counts = segment_files(articles, str(out), settings, load_period_splitter)
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    (out / "unfinished").mkdir()  # as if killed while it removed this
    assert run(articles, out, settings) == []
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    told: list[int] = []
    again = segment_files(articles, str(out), settings, load_period_splitter, progress=told.append)
    assert again == counts
    assert sum(told) == counts.bytes_in


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_finished_directory_with_a_damaged_file_is_made_whole(
    articles: list[str], tmp_path: Path, settings: SegmentSettings, damage: str
) -> None:
    out = tmp_path / "out"
    run(articles, out, settings)
    expected = contents(out)
    for name in (name for name in expected if name not in ("MD5SUMS", "manifest.json")):
        (out / name).unlink()
        if damage == "cut":
            (out / name).write_bytes(expected[name][:-1])
        assert run(articles, out, settings) != []
        assert contents(out) == expected


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_small_files_of_a_finished_directory_are_written_again(
    articles: list[str], tmp_path: Path, settings: SegmentSettings, damage: str
) -> None:
    write_manifest(tmp_path / "extracted", articles)
    out = tmp_path / "out"
    run(articles, out, settings)
    expected = contents(out)
    for name in ("MD5SUMS", "sources/articles.json"):
        (out / name).unlink()
        if damage == "cut":
            (out / name).write_bytes(expected[name][:-1])
        elif name != "MD5SUMS":
            (out / name).parent.rmdir()
        assert run(articles, out, settings) == []  # nothing is split again
        assert contents(out) == expected


def test_changed_inputs_of_a_finished_directory_are_done_again(articles: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(articles, out, MLPERF)
    changed = Path(articles[3])
    changed.write_bytes(changed.read_bytes().replace(b"One 1", b"Six 1"))
    assert run(articles, out, MLPERF) != []
    run(articles, tmp_path / "whole", MLPERF)
    assert contents(out) == contents(tmp_path / "whole")


def test_parts_that_are_not_made_any_more_go(articles: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(articles, out, MLPERF)
    for path in articles[1:]:
        Path(path).write_text('<doc id="1" url="x" title="T">\nT\n\nOne.\n\n</doc>\n')
    run(articles, out, MLPERF)
    run(articles, tmp_path / "whole", MLPERF)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("die_after", [None, 5])
def test_other_settings_are_refused(articles: list[str], tmp_path: Path, die_after: int | None) -> None:
    run(articles, tmp_path / "out", MLPERF, die_after)
    before = contents(tmp_path / "out")
    for settings, words in (
        (SegmentSettings(eval_articles=6, block_size=BLOCK), "eval_articles 5, now 6"),
        (SegmentSettings(eval_articles=5, block_size=BLOCK, punkt="current"), "punkt '3.4.5', now '3.10.0'"),
        (NVIDIA, "recipe 'mlperf', now 'nvidia'"),
    ):
        with pytest.raises(DatasetError, match=f"was made with other settings: .*{words}"):
            segment_files(articles, str(tmp_path / "out"), settings, load_period_splitter)
    with pytest.raises(DatasetError, match=r"other inputs \(AA?/?wiki_11|other inputs \(wiki_11\)"):
        segment_files(articles[:-1], str(tmp_path / "out"), MLPERF, load_period_splitter)
    assert contents(tmp_path / "out") == before


def current(**changes: object) -> SegmentSettings:
    return SegmentSettings(**{"eval_articles": 5, "block_size": BLOCK, "punkt": "current", **changes})


def test_the_manifest_resolves_an_alias_of_a_variant(articles: list[str], tmp_path: Path) -> None:
    run(articles, tmp_path / "out", current())
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["punkt"]["variant"] == "3.10.0"
    assert run(articles, tmp_path / "out", current(punkt="3.10.0")) == []
    with pytest.raises(DatasetError, match=r"punkt '3.10.0', now '3.10.4'"):
        run(articles, tmp_path / "out", current(punkt="3.10.4"))


@pytest.mark.parametrize("punkt", ["current", "3.10.0"])
def test_a_finished_directory_that_says_current_is_one_of_3_10_0(
    articles: list[str], tmp_path: Path, punkt: str
) -> None:
    out = tmp_path / "out"
    run(articles, out, current())
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"3.10.0"', '"current"'))  # an earlier version's
    before = contents(out)
    assert run(articles, out, current(punkt=punkt)) == []
    with pytest.raises(DatasetError, match=r"punkt '3.10.0', now '3.10.4'"):
        run(articles, out, current(punkt="3.10.4"))
    assert contents(out) == before  # what is made of the parts cites this manifest's md5


@pytest.mark.parametrize("punkt", ["current", "3.10.0"])
def test_a_begun_directory_that_says_current_is_taken_up(
    articles: list[str], tmp_path: Path, punkt: str
) -> None:
    run(articles, tmp_path / "whole", current())
    run(articles, tmp_path / "out", current(), 5)
    plan = tmp_path / "out" / "unfinished" / "plan.json"
    terms = unseal_json(plan.read_bytes(), str(plan))
    assert terms["punkt"] == "3.10.0"
    plan.write_bytes(seal_json({**terms, "punkt": "current"}))  # an earlier version's
    with pytest.raises(DatasetError, match=r"punkt '3.10.0', now '3.10.4'"):
        run(articles, tmp_path / "out", current(punkt="3.10.4"))
    assert len(run(articles, tmp_path / "out", current(punkt=punkt))) < FILES
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_setting_of_the_other_recipe_is_none_of_this_one(articles: list[str], tmp_path: Path) -> None:
    run(articles, tmp_path / "out", MLPERF)
    same = SegmentSettings(eval_articles=5, block_size=BLOCK, training_shards=7, prefix="other")
    assert run(articles, tmp_path / "out", same) == []


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_any_number_of_workers_writes_the_same_manifest(
    articles: list[str], tmp_path: Path, settings: SegmentSettings
) -> None:
    for workers in (1, 2):
        segment_files(articles, str(tmp_path / str(workers)), settings, load_period_splitter, workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    manifest = json.loads((tmp_path / "1" / "manifest.json").read_text())
    assert [entry["name"] for entry in manifest["inputs"]] == [f"wiki_{n:02d}" for n in range(FILES)]
    assert manifest["articles_manifest"] is None
    assert manifest["totals"]["files"] == FILES


def test_names_of_inputs_do_not_depend_on_where_they_lie(tmp_path: Path, monkeypatch) -> None:
    files = write_articles(tmp_path / "some" / "where", 2)
    monkeypatch.chdir(tmp_path / "some" / "where" / "AA")
    expected = (["wiki_00", "wiki_01"], None)
    assert find_articles(files) == find_articles(["wiki_00", "wiki_01"]) == expected
    other = write_articles(tmp_path / "else" / "where", 1)
    assert find_articles([*files[:1], *other])[0] == ["some/where/AA/wiki_00", "else/where/AA/wiki_00"]


def test_articles_that_are_not_what_their_manifest_lists_are_an_error(
    articles: list[str], tmp_path: Path
) -> None:
    write_manifest(tmp_path / "extracted", articles)
    names, manifest = find_articles(articles)
    assert (names[0], manifest is not None) == ("AA/wiki_00", True)
    run(articles, tmp_path / "out", MLPERF)
    assert "sources/articles.json" in files_below(tmp_path / "out")
    changed = Path(articles[3])
    whole = changed.read_bytes()
    changed.write_bytes(whole.replace(b"One 1", b"Six 1"))
    with pytest.raises(InputError, match="^AA/wiki_03: found .*, expected .* by the articles' manifest.json"):
        segment_files(articles, str(tmp_path / "other"), MLPERF, load_period_splitter)
    changed.write_bytes(whole + b"\n")
    with pytest.raises(InputError, match=r"AA/wiki_03: found \d+ bytes, expected \d+ as .* lists it"):
        segment_files(articles, str(tmp_path / "other"), MLPERF, load_period_splitter)


def write_manifest(directory: Path, files: list[str]) -> None:
    """A manifest as extraction writes it."""
    from bertdata.io.file_check import FileEntry, compute_md5
    from bertdata.wiki.articles.manifest import ArticlesManifest
    from bertdata.wiki.articles.report import ExtractReport

    entries = []
    for file in files:
        data = Path(file).read_bytes()
        name = Path(file).relative_to(directory).as_posix()
        entries.append(FileEntry(name=name, bytes=len(data), md5=compute_md5(data)))
    manifest = ArticlesManifest(
        source=FileEntry(name="dump.xml", bytes=1, md5="0" * 32),
        settings={"date": None, "templates": True, "max_page_bytes": 1},
        extractor={"name": "wikiextractor", "version": "3.1.0"},
        report=ExtractReport(date="2020-01-01"),
        files=tuple(entries),
    )
    (directory / "manifest.json").write_bytes(manifest.dump())


def test_a_text_directory_travels_to_workers(articles: list[str], tmp_path: Path) -> None:
    import pickle

    from bertdata.text.text_plan import plan_text

    text = TextDirectory(str(tmp_path / "out"), plan_text(articles, MLPERF))
    assert pickle.loads(pickle.dumps(text)).commit.terms == text.commit.terms
