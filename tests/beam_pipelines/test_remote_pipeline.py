"""The Beam pipeline on object stores: the bytes of the local commands, whatever is repeated."""

import os
import pickle
import re
import subprocess
from pathlib import Path

import pytest

from beam_pipelines.prepare import main
from beam_pipelines.stages.shards import MakeShard, WriteManifest
from beam_pipelines.transport.bundled_file import BundledFile
from bertdata.build.plan import choose_settings, plan_targets
from bertdata.build.shard_task import TaskPlan
from bertdata.cli.main import main as command_line
from bertdata.io.file_check import FileEntry, compute_md5
from bertdata.tokens.training.manifest import VocabularyManifest
from tests.support.commands import contents
from tests.support.dumps import multistream
from tests.support.fork_server import forking_python
from tests.support.object_stores import Store, divided, one_store
from tests.support.paths import DUMP, EXTRACTED, ROOT
from tests.support.pipelines import NVIDIA, PROCESSES, SMALL, commands, prepare_in_new_process
from tests.support.tokenizer_files import vocabulary_file

TWICE = "--direct_runner_bundle_repeat=1"


@pytest.fixture
def parts(store: Store, corpus: list[Path]) -> str:
    """The pattern of remote parts."""
    return store.put_files("text", corpus) + "/part-*"


@pytest.fixture
def vocabulary(store: Store, small_vocabulary_file: Path) -> str:
    """The URL of the vocabulary."""
    return store.put("vocab.txt", small_vocabulary_file.read_bytes())


def made_here(
    corpus: list[Path], vocabulary: Path, place: Path, flags: tuple[str, ...] = SMALL
) -> dict[str, bytes]:
    """The files of ``create`` on this machine."""
    words = ["create", *map(str, corpus), "--vocab", str(vocabulary), "--output", str(place), *flags]
    assert command_line([*words, "--workers", "1"]) == 0
    return contents(place)


@one_store
def test_a_run_with_every_bundle_twice_leaves_the_dataset_and_nothing_else(
    store, parts, vocabulary, corpus, small_vocabulary_file, tmp_path
):
    flags = ("--recipe", "habana", "--dupe-factor", "1")
    expected = made_here(corpus, small_vocabulary_file, tmp_path / "here", flags)
    words = ["--input", parts, "--vocab", vocabulary, "--output", f"{store.url}/out", *flags]
    for _ in range(2):
        assert main([*words, TWICE]) == 0
        assert store.contents("out") == expected


@pytest.mark.thorough
def test_worker_processes_make_the_same_bytes(
    store, parts, vocabulary, corpus, small_vocabulary_file, tmp_path
):
    expected = made_here(corpus, small_vocabulary_file, tmp_path / "here")
    words = ["--input", parts, "--vocab", vocabulary, "--output", f"{store.url}/out", *SMALL]
    run = prepare_in_new_process([*words, *PROCESSES])
    assert (run.returncode, run.stderr) == (0, "")
    assert store.contents("out") == expected


@pytest.mark.parametrize(
    ("store", "segment"),
    divided({"nvidia": NVIDIA, "mlperf": ("--eval-articles", "3", "--block-size", "0.1")}),
    indirect=["store"],
)
def test_articles_become_parts_and_shards_on_the_store(
    store, vocabulary, small_vocabulary_file, punkt_folder, punkt_tables, monkeypatch, tmp_path, segment
):
    articles = store.put_files("articles/AA", sorted((EXTRACTED / "AA").glob("wiki_*")))
    here = tmp_path / "here"
    text, shards = commands(EXTRACTED, small_vocabulary_file, here, segment, SMALL)
    places = ["--output", f"{store.url}/out", "--text", f"{store.url}/parts"]
    punkt = ["--punkt-tables", store.put_files("punkt", sorted(punkt_folder.iterdir()))]
    monkeypatch.setenv("NLTK_DATA", "")
    words = ["--input-kind", "articles", "--input", articles.removesuffix("/AA"), "--vocab", vocabulary]
    for _ in range(2):
        assert main([*words, *places, *punkt, *segment, *SMALL, TWICE]) == 0
        held_out = {f"test/{name}": data for name, data in store.contents("out.test").items()}
        assert store.contents("out") | held_out == shards
        assert store.contents("parts") == text


@pytest.mark.parametrize(
    ("store", "flags"),
    [
        *divided({"3.1.0": ("--extractor", "3.1.0"), "mlperf-with-templates": ("--templates",)}),
        pytest.param("gs", (), id="gs-mlperf", marks=pytest.mark.thorough),
        pytest.param("s3", (), id="s3-mlperf", marks=pytest.mark.thorough),
    ],
    indirect=["store"],
)
def test_a_dump_becomes_articles_parts_and_shards_from_bucket_to_bucket(
    store, vocabulary, small_vocabulary_file, punkt_tables, tmp_path, monkeypatch, flags
):
    monkeypatch.setattr("bertdata.wiki.ranges.ranges.MIN_RANGE_BYTES", 30_000)
    segment = ("--eval-articles", "3", "--block-size", "0.1")
    xml = DUMP.read_bytes()
    here = tmp_path / f"{DUMP.name}.bz2"
    here.write_bytes(multistream(xml, list(range(7000, len(xml), 33_000))))
    extract = flags if "--extractor" in flags else ("--extractor", "mlperf", *flags)
    text, shards = commands(here, small_vocabulary_file, tmp_path / "here", segment, SMALL, extract)
    words = ["--input-kind", "dump", "--input", store.put(here.name, here.read_bytes()), *flags]
    words += ["--vocab", vocabulary, "--output", f"{store.url}/out", "--text", f"{store.url}/parts"]
    for _ in range(2):
        assert main([*words, *segment, *SMALL, TWICE]) == 0
        assert store.contents("out") == shards
        assert store.contents("parts") == text


@one_store
def test_attempts_after_the_last_step_leave_no_stray_file(
    store, parts, vocabulary, corpus, small_vocabulary_file, tmp_path
):
    expected = made_here(corpus, small_vocabulary_file, tmp_path / "here")
    out = f"{store.url}/out"
    words = ["--input", parts, "--vocab", vocabulary, "--output", out, *SMALL]
    assert main(words) == 0
    changes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    recipe, settings = choose_settings(None, None, changes)
    paths = [f"{store.url}/text/{part.name}" for part in corpus]
    targets = plan_targets(out, recipe, None, settings, paths, vocabulary_file(vocabulary, settings))
    make = MakeShard(TaskPlan(tokenizer=vocabulary_file(vocabulary, settings), targets=targets))
    write = WriteManifest(targets, vocabulary)
    make.setup()
    entries = [entry for path in paths for _, entry in make.process(path)]
    assert store.contents("out") == expected
    assert list(write.process((0, entries))) == [out]
    assert store.contents("out") == expected


@one_store
def test_a_failed_run_is_gone_on_with(
    store, parts, vocabulary, corpus, small_vocabulary_file, tmp_path, capsys
):
    expected = made_here(corpus, small_vocabulary_file, tmp_path / "here")
    store.put("text/part-00001-of-00003", b"A line with \xff in it.\n")
    words = ["--input", parts, "--vocab", vocabulary, "--output", f"{store.url}/out", *SMALL]
    assert main(words) == 1
    assert re.search(r"error: \S+/part-00001-of-00003: line 1: ", capsys.readouterr().err)
    assert "manifest.json" not in store.names("out")
    store.put("text/part-00001-of-00003", corpus[1].read_bytes())
    assert main(words) == 0
    assert store.contents("out") == expected


def test_a_vocabulary_of_this_machine_travels_with_the_job(corpus, small_vocabulary_file, tmp_path):
    expected = made_here(corpus, small_vocabulary_file, tmp_path / "here")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(small_vocabulary_file.read_bytes())
    file = FileEntry("vocab.txt", vocabulary.stat().st_size, compute_md5(vocabulary.read_bytes()))
    counts = {"words": 1, "distinct_words": 1, "one_word_in": 1}
    training = {"kind": "wordpiece", "size": 2000, "lower_case": True, "special": []}
    beside = tmp_path / "vocab.txt.manifest.json"
    beside.write_bytes(VocabularyManifest(training, {"tokenizers": "1"}, counts, file).dump())
    expected["sources/vocabulary.json"] = beside.read_bytes()
    changes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    recipe, settings = choose_settings(None, None, changes)
    paths = [str(part) for part in corpus]
    targets = plan_targets(
        str(tmp_path / "there"), recipe, None, settings, paths, vocabulary_file(str(vocabulary), settings)
    )
    targets[0].dataset.begin()
    job = tmp_path / "job"
    job.write_bytes(
        pickle.dumps(
            (
                MakeShard(
                    TaskPlan(tokenizer=vocabulary_file(BundledFile(vocabulary), settings), targets=targets)
                ),
                WriteManifest(targets, BundledFile(vocabulary)),
                paths,
            )
        )
    )
    vocabulary.unlink()
    beside.unlink()
    code = f"""
import pickle
from pathlib import Path
make, write, paths = pickle.loads(Path({str(job)!r}).read_bytes())
make.setup()
print(list(write.process((0, [entry for path in paths for _, entry in make.process(path)]))))
"""
    worker = subprocess.run(
        [forking_python("beam"), "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert worker.returncode == 0, worker.stderr
    assert contents(tmp_path / "there") == expected


def test_a_runner_elsewhere_gets_the_vocabulary_and_a_local_one_its_path(
    corpus, small_vocabulary_file, tmp_path, monkeypatch
):
    carried: list[object] = []

    class Watched(BundledFile):
        def __new__(cls, path: str) -> "Watched":
            carried.append(path)
            return super().__new__(cls, path)

    monkeypatch.setattr("beam_pipelines.prepare.BundledFile", Watched)
    words = ["--input", *map(str, corpus), "--vocab", str(small_vocabulary_file), *SMALL]
    assert main([*words, "--output", str(tmp_path / "local")]) == 0
    assert carried == []
    monkeypatch.setattr("beam_pipelines.prepare.has_local_workers", lambda pipeline: False)
    assert main([*words, "--output", str(tmp_path / "elsewhere")]) == 0
    assert carried == [str(small_vocabulary_file)]
    assert contents(tmp_path / "elsewhere") == contents(tmp_path / "local")
