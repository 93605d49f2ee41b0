"""A dump extracted on every worker: the directory of ``bertdata extract``, wherever and however often."""

import bz2
import gzip
import json
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client

from beam_pipelines.prepare import main
from beam_pipelines.stages.extraction import (
    CollectRange,
    ExtractRange,
    HashDump,
    JoinDefinitions,
    _lock_python_engine,
)
from beam_pipelines.stages.extraction_stage import plan_extraction
from beam_pipelines.stages.shards import ONE_AT_A_TIME
from bertdata.cli.main import main as command_line
from bertdata.wiki.settings import EXTRACTORS, ExtractSettings
from tests.support.commands import contents, files_below
from tests.support.dask_processes import worker_processes
from tests.support.dumps import TAIL, multistream, page, write_dump
from tests.support.object_stores import Store
from tests.support.paths import DUMP
from tests.support.pipelines import PROCESSES, SHARDS, SMALL, commands, made_datasets, prepare_in_new_process

SEGMENT = ("--eval-articles", "3")
FORMS = {
    "xml": lambda xml: xml,
    "multistream": lambda xml: multistream(xml, list(range(5000, len(xml), 9000))),
    "one stream": lambda xml: bz2.compress(xml, 1),
    "gzip": lambda xml: gzip.compress(xml, mtime=0),
    "CRLF": lambda xml: multistream(xml.replace(b"\n", b"\r\n"), list(range(5000, len(xml), 9000))),
}

ENDINGS = {"xml": "", "gzip": ".gz"}

pytestmark = pytest.mark.usefixtures("punkt_tables", "small_ranges")


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small dump has many ranges."""
    monkeypatch.setattr("bertdata.wiki.ranges.ranges.MIN_RANGE_BYTES", 5000)


def words(dump: Path | str, vocabulary: Path, output: Path, *flags: str) -> list[str]:
    places = ["--input", str(dump), "--output", str(output), "--vocab", str(vocabulary)]
    return ["--input-kind", "dump", *places, *SEGMENT, *SMALL, *flags]


def extracted(dump: Path, place: Path, *flags: str) -> dict[str, bytes]:
    """The directory of the local step."""
    assert command_line(["extract", str(dump), "--output", str(place), "--workers", "1", *flags]) == 0
    return contents(place)


@pytest.mark.parametrize(
    ("form", "extractor"),
    [
        pytest.param(form, extractor, marks=pytest.mark.thorough if (number + place) % 2 else ())
        for number, form in enumerate(FORMS)
        for place, extractor in enumerate(EXTRACTORS)
    ],
)
def test_every_form_of_a_dump_becomes_the_directory_of_the_local_step(
    small_vocabulary_file: Path, tmp_path: Path, form: str, extractor: str
) -> None:
    dump = tmp_path / f"{DUMP.name}{ENDINGS.get(form, '.bz2')}"
    dump.write_bytes(FORMS[form](DUMP.read_bytes()))
    flags = ("--extractor", extractor, "--templates")
    expected = extracted(dump, tmp_path / "local", *flags)
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    assert contents(tmp_path / "beam.text" / "extracted") == expected


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--direct_running_mode=multi_threading", "--direct_num_workers=2"), id="two threads"),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="every bundle twice"),
        pytest.param(PROCESSES, id="two processes", marks=pytest.mark.thorough),
    ],
)
def test_the_runner_does_not_matter(
    small_vocabulary_file: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    expected = commands(DUMP, small_vocabulary_file, tmp_path / "row", SEGMENT, SMALL)
    assert main(words(DUMP, small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    assert (contents(tmp_path / "beam.text"), contents(tmp_path / "beam")) == expected


@pytest.mark.parametrize(("engine", "is_alone"), [("python", True), ("native", False)])
def test_threads_of_a_worker_take_turns_with_the_python_engine(engine: str, is_alone: bool) -> None:
    """wikiextractor keeps its settings in module variables. The kernels have none."""
    lock = _lock_python_engine(SimpleNamespace(engine=engine))
    assert (lock is ONE_AT_A_TIME) == is_alone


def test_the_engine_does_not_matter(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertdata.wiki.ranges.ranges.MIN_RANGE_BYTES", 20_000)
    whole = DUMP.read_text(encoding="utf-8")
    dump = tmp_path / DUMP.name
    first_pages = whole[
        : whole.index("  <page>\n    <title>Sourdough</title>")
    ]  # most of them about templates
    dump.write_text(f"{first_pages}{TAIL}", encoding="utf-8")
    flags = ("--extractor", "mlperf", "--templates")
    expected = extracted(dump, tmp_path / "local", *flags)
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam", *flags, "--engine", "python")) == 0
    assert contents(tmp_path / "beam.text" / "extracted") == expected


def test_a_dump_without_a_date_in_its_name_has_its_newest_revision_s(
    small_vocabulary_file: Path, tmp_path: Path
) -> None:
    pages = [
        page(f"P{n}", "{{CURRENTDAY}} days. " * 40, number=n, day=f"2019-01-{n:02}") for n in range(1, 29)
    ]
    dump = write_dump(tmp_path / "dump.xml", *pages)
    expected = extracted(dump, tmp_path / "local", "--extractor", "mlperf")
    assert json.loads(expected["manifest.json"])["date"] == "2019-01-28"
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam")) == 0
    assert contents(tmp_path / "beam.text" / "extracted") == expected


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_pages_that_depend_on_those_before_are_those_of_the_local_step(
    small_vocabulary_file: Path, tmp_path: Path, extractor: str
) -> None:
    """The same id in the range before; for MLPerf's extractor a page without a namespace too."""
    pages = [
        page(f"P{n}", "Text. " * 200, number=n // 3, namespace=None if n % 5 == 0 else 0) for n in range(90)
    ]
    dump = write_dump(tmp_path / "dump.xml", *pages)
    flags = ("--extractor", extractor, "--date", "2020-01-01")
    expected = extracted(dump, tmp_path / "local", *flags)
    assert "same id as the article before" in expected["manifest.json"].decode()
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    assert contents(tmp_path / "beam.text" / "extracted") == expected


def test_what_a_killed_run_left_does_not_matter(small_vocabulary_file: Path, tmp_path: Path) -> None:
    expected = extracted(DUMP, tmp_path / "local", "--extractor", "mlperf")
    articles = tmp_path / "beam.text" / "extracted"
    settings = ExtractSettings(extractor="mlperf")
    left = plan_extraction(str(DUMP), str(articles), settings, None)
    left.articles.commit.claim()
    Path(left.make_temporary_path()).write_bytes(b"Half a range.")
    left.articles.commit.write("AA/wiki_00", b"Written by an attempt.")
    left.articles.commit.note("AA/wiki_00", {"of": "another version"})
    assert main(words(DUMP, small_vocabulary_file, tmp_path / "beam")) == 0
    assert contents(articles) == expected


def test_a_dump_that_grows_meanwhile_is_an_error(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    dump = write_dump(tmp_path / DUMP.name, *(page(f"P{n}", "Text.", number=n) for n in range(9)))
    process = HashDump.process

    def grow_and_process(self: Any, path: str) -> Any:
        with dump.open("a") as file:
            file.write("\n")
        yield from process(self, path)

    monkeypatch.setattr(HashDump, "process", grow_and_process)
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam")) == 1
    assert f"{dump}: was changed while it was being read" in capsys.readouterr().err


def test_templates_that_change_between_the_passes_are_an_error(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    process = JoinDefinitions.process

    def join_and_change(self: Any, gathered: Any) -> Any:
        for found in process(self, gathered):
            with open(found.templates.path, "ab") as file:
                file.write(b" ")
            yield found

    monkeypatch.setattr(JoinDefinitions, "process", join_and_change)
    flags = ("--extractor", "mlperf", "--templates")
    assert main(words(DUMP, small_vocabulary_file, tmp_path / "beam", *flags)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert ": the templates were changed since the first pass: md5 " in line
    assert not files_below(tmp_path / "beam.text")


def test_the_recipe_decides_the_extractor(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertdata.wiki.ranges.ranges.MIN_RANGE_BYTES", 1 << 20)
    lengths = ("--max-predictions-per-seq", "10", "--dupe-factor", "1", "--max-seq-length", "64")
    pinned = "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"
    recipes = {"google": "3.1.0", "mlperf": pinned, "nvidia": pinned, "habana": pinned}
    for recipe, version in recipes.items():
        output = tmp_path / recipe
        one_phase = () if recipe in ("google", "mlperf") else ("--phase", "1", *SHARDS)
        flags = ("--recipe", recipe, *lengths, *one_phase)
        assert main(words(DUMP, small_vocabulary_file, output, *flags)) == 0
        manifest = json.loads((tmp_path / f"{recipe}.text" / "extracted" / "manifest.json").read_text())
        assert manifest["extractor"] == {"name": "wikiextractor", "version": version}


def test_a_directory_of_other_settings_is_refused(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extracted(DUMP, tmp_path / "beam.text" / "extracted", "--extractor", "3.1.0", "--date", "2019-01-01")
    before = contents(tmp_path / "beam.text")
    capsys.readouterr()
    arguments = words(DUMP, small_vocabulary_file, tmp_path / "beam", "--extractor", "3.1.0")
    assert main(arguments) == 2
    assert "was made with other settings: date '2019-01-01', now '2020-01-01'" in capsys.readouterr().err
    assert contents(tmp_path / "beam.text") == before


@pytest.mark.parametrize("damage", ["a bit", "the end"])
def test_a_damaged_dump_fails_the_run_by_its_place_and_leaves_nothing(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    data = bytearray(bz2.compress(DUMP.read_bytes(), 1))
    if damage == "a bit":
        data[len(data) // 2] ^= 1
    dump = tmp_path / f"{DUMP.name}.bz2"
    dump.write_bytes(data if damage == "a bit" else data[:-50])
    assert main(words(dump, small_vocabulary_file, tmp_path / "beam")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {dump}: ")
    assert ("damaged" if damage == "a bit" else "truncated") in line
    assert " byte " in line
    assert not files_below(tmp_path / "beam.text")


def test_a_dry_run_says_what_would_be_extracted(
    small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(DUMP, small_vocabulary_file, tmp_path / "beam", "--dry-run")) == 0
    printed = capsys.readouterr().out
    assert f"articles to extract: dump {DUMP.name}, " in printed
    assert not (tmp_path / "beam.text").exists()


def test_what_travels_is_small(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs for a range, or of all ranges, do not grow with the text."""
    sizes: dict[type, list[int]] = {CollectRange: [], ExtractRange: [], JoinDefinitions: []}

    def measured(process: Any, found: list[int]) -> Any:
        def measure(*arguments: Any) -> Any:
            for output in process(*arguments):
                found.append(len(pickle.dumps(output)))
                yield output

        return measure

    for stage, found in sizes.items():
        monkeypatch.setattr(stage, "process", measured(stage.process, found))  # type: ignore[attr-defined]
    flags = ("--extractor", "mlperf", "--templates")
    assert main(words(DUMP, small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    for stage, found in sizes.items():
        assert max(found, default=1500) < 1500, f"{stage}: the dump has 144 kB, and a range 5"


@pytest.mark.thorough
def test_a_dask_worker_killed_while_it_extracts_changes_no_byte(
    small_vocabulary_file: Path, tmp_path: Path
) -> None:
    flags = ("--extractor", "mlperf", "--templates")
    expected = commands(DUMP, small_vocabulary_file, tmp_path / "row", SEGMENT, (*SMALL,), extract=flags)
    check_with_a_killed_worker(DUMP, small_vocabulary_file, tmp_path, expected, *flags, *SEGMENT, *SMALL)


def check_with_a_killed_worker(dump: Path, vocabulary: Path, place: Path, expected: Any, *flags: str) -> None:
    """Kill one of two Dask workers while it extracts; the files are the expected ones."""
    unfinished = place / "dask.text" / "extracted" / "unfinished"
    killed: list[bool] = []
    with worker_processes() as cluster:
        with Client(cluster) as client:
            (victim, _) = client.run(os.getpid).values()

        def kill() -> None:
            while not list(unfinished.glob("*.spill.run.tmp")):
                time.sleep(0.001)
            os.kill(victim, signal.SIGKILL)
            killed.append((unfinished.parent / "manifest.json").exists())

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        arguments = ["--input-kind", "dump", "--input", str(dump), "--vocab", str(vocabulary)]
        runner = ("--runner", "DaskRunner", "--dask_client_address", cluster.scheduler_address)
        assert main([*arguments, "--output", str(place / "dask"), *flags, *runner]) == 0
        killer.join(10)
    assert killed == [False], "the worker must die before the articles are done"
    for found, files in zip(
        (contents(place / "dask.text"), made_datasets(place / "dask")), expected, strict=True
    ):
        assert sorted(found) == sorted(files)
        assert [path for path in files if found[path] != files[path]] == []


BOTH_PHASES = ("--recipe", "habana", "--dupe-factor", "1", "--training-shards", "3", "--test-shards", "2")


@pytest.fixture(scope="module")
def smallwiki(kit: Path, published_vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A whole small Wikipedia with its templates, and the files of both phases that the commands make."""
    dump = kit / "dump" / "ltgwiki-smallwiki.xml.bz2"
    segment, create = ("--text-recipe", "nvidia", *BOTH_PHASES[4:]), BOTH_PHASES[:4]
    return dump, commands(dump, published_vocabulary, tmp_path_factory.mktemp("row"), segment, create)


@pytest.mark.thorough
def test_a_small_wikipedia_becomes_both_phases_in_two_processes(
    smallwiki: Any, published_vocabulary: Path, tmp_path: Path
) -> None:
    dump, expected = smallwiki
    arguments = ["--input-kind", "dump", "--input", dump, "--vocab", published_vocabulary, *BOTH_PHASES]
    run = prepare_in_new_process([*arguments, "--output", tmp_path / "beam", *PROCESSES])
    assert (run.returncode, run.stderr) == (0, "")
    assert (contents(tmp_path / "beam.text"), made_datasets(tmp_path / "beam")) == expected


@pytest.mark.thorough
def test_a_small_wikipedia_becomes_both_phases_on_dask_with_a_worker_killed(
    smallwiki: Any, published_vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertdata.wiki.ranges.ranges.MIN_RANGE_BYTES", 60_000)
    dump, expected = smallwiki
    check_with_a_killed_worker(dump, published_vocabulary, tmp_path, expected, *BOTH_PHASES)


@pytest.mark.thorough
def test_a_small_wikipedia_becomes_both_phases_from_bucket_to_bucket(
    smallwiki: Any, store: Store, published_vocabulary: Path
) -> None:
    dump, (text, shards) = smallwiki
    source = store.put(dump.name, dump.read_bytes())
    arguments = ["--input-kind", "dump", "--input", source, "--vocab", published_vocabulary, *BOTH_PHASES]
    places = ["--output", f"{store.url}/out", "--text", f"{store.url}/text"]
    run = prepare_in_new_process([*arguments, *places, *PROCESSES])
    assert (run.returncode, run.stderr) == (0, "")
    for place, files in (("text", text), ("out", shards)):
        found = store.contents(place)
        if place == "out":
            found |= {f"test/{name}": data for name, data in store.contents("out.test").items()}
        assert sorted(found) == sorted(files)
        for name, data in files.items():
            assert (name, len(found[name]), found[name][-40:]) == (name, len(data), data[-40:])
            assert found[name] == data
