"""On Dask: what Beam's own runner loses, errors and lost workers, from parts and from articles."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import psutil
import pytest
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from distributed import Client
from distributed.scheduler import KilledWorker

from beam_pipelines.prepare import main
from beam_pipelines.report.errors import find_original_error
from beam_pipelines.runners.dask_runner import MOST_PARTITIONS, DaskRunner
from bertdata.errors import SettingsError
from bertdata.io.worker_process import WorkerDied
from tests.support.commands import contents
from tests.support.dask_processes import worker_processes
from tests.support.paths import DUMP, ROOT
from tests.support.pipelines import SMALL, made_datasets, prepare_in_new_process, words, write_articles

MLPERF = ("--eval-articles", "3", "--block-size", "0.02")
NVIDIA = ("--text-recipe", "nvidia", "--training-shards", "3", "--test-shards", "2")


@pytest.fixture
def on_dask(dask_cluster: Any) -> tuple[str, ...]:
    return ("--runner", "DaskRunner", "--dask_client_address", dask_cluster.scheduler_address)


class Sort(beam.DoFn):
    """Odd numbers to the tag, even ones on; counts them, and measures them."""

    def process(self, number: int, names: dict[int, str]) -> Iterator[Any]:
        Metrics.counter("test", "numbers").inc()
        Metrics.distribution("test", "sizes").update(number)
        yield beam.pvalue.TaggedOutput("odd", (1, names[number])) if number % 2 else (0, names[number])


class Write(beam.DoFn):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def setup(self) -> None:
        self._opened = True

    def process(self, gathered: tuple[int, Any]) -> None:
        assert self._opened
        key, names = gathered
        (self._directory / str(key)).write_text(" ".join(sorted(names)))


@pytest.mark.thorough
def test_tags_side_inputs_all_leaves_and_metrics_survive(dask_cluster: Any, tmp_path: Path) -> None:
    options = PipelineOptions(["--dask_client_address", dask_cluster.scheduler_address])
    pipeline = beam.Pipeline(runner=DaskRunner(options), options=options)
    names = pipeline | "names" >> beam.Create([(n, f"n{n}") for n in range(6)], reshuffle=False)
    numbers = pipeline | "numbers" >> beam.Create(range(6), reshuffle=False) | beam.Reshuffle()
    sorted_out = numbers | beam.ParDo(Sort(), beam.pvalue.AsDict(names)).with_outputs("odd", main="even")
    for tag in ("even", "odd"):
        _ = (
            sorted_out[tag]
            | f"group {tag}" >> beam.GroupByKey()
            | f"write {tag}" >> beam.ParDo(Write(tmp_path))
        )
    result = pipeline.run()
    assert result.wait_until_finish() == "DONE"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "n0 n2 n4", "1": "n1 n3 n5"}
    found = result.metrics().query(MetricsFilter().with_namespace("test"))
    assert [(metric.key.metric.name, metric.result) for metric in found["counters"]] == [("numbers", 6)]
    (sizes,) = (metric.result for metric in found["distributions"])
    assert (sizes.count, sizes.sum, sizes.min, sizes.max) == (6, 15, 0, 5)


def test_each_element_has_a_partition_until_there_are_very_many() -> None:
    partitions = DaskRunner(PipelineOptions([]))._count_partitions
    assert [partitions(n) for n in (0, 1, 12, 10**6)] == [1, 1, 12, MOST_PARTITIONS]
    assert DaskRunner(PipelineOptions(["--dask_npartitions=3"]))._count_partitions(12) == 3
    assert DaskRunner(PipelineOptions(["--dask_partition_size=5"]))._count_partitions(12) == 3


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """The golden dump's articles, ten a file."""
    return write_articles(tmp_path / "articles", 10)


@pytest.mark.thorough
@pytest.mark.usefixtures("punkt_tables")
@pytest.mark.parametrize("segment", [pytest.param(MLPERF, id="mlperf"), pytest.param(NVIDIA, id="nvidia")])
def test_articles_become_the_same_text_shards_and_counts(
    articles: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    on_dask: tuple[str, ...],
    segment: tuple[str, ...],
) -> None:
    made, printed = [], []
    for name, runner in (("direct", ()), ("dask", on_dask)):
        flags = ("--input-kind", "articles", *segment, *SMALL, *runner)
        assert main(words([articles], small_vocabulary_file, tmp_path / name, *flags)) == 0
        made.append((made_datasets(tmp_path / name), contents(tmp_path / f"{name}.text")))
        told = re.sub(rf"/{name}(|\.test):", r"/\1:", capsys.readouterr().out).splitlines()
        printed.append([line for line in told if "part_milliseconds" not in line])
    assert made[1] == made[0]
    assert printed[1] == printed[0]


@pytest.mark.thorough
@pytest.mark.usefixtures("punkt_tables")
def test_a_dump_becomes_the_same_articles_and_shards(small_vocabulary_file: Path, tmp_path: Path) -> None:
    flags = ("--input-kind", "dump", "--eval-articles", "3", *SMALL)
    assert main(words([DUMP], small_vocabulary_file, tmp_path / "direct", *flags)) == 0
    flags = (*flags, "--runner", "DaskRunner", "--dask_workers", "1")
    assert main(words([DUMP], small_vocabulary_file, tmp_path / "dask", *flags)) == 0
    assert contents(tmp_path / "dask") == contents(tmp_path / "direct")
    assert contents(tmp_path / "dask.text") == contents(tmp_path / "direct.text")


@pytest.mark.thorough
def test_a_warning_and_a_bad_part_are_one_line_each_from_processes_of_the_run_s_own(
    small_vocabulary_file: Path, tmp_path: Path
) -> None:
    lone, bad, output = tmp_path / "part-lone", tmp_path / "part-bad", tmp_path / "out"
    lone.write_text("One sentence.\nAnother sentence.\n")
    flags = (*SMALL, "--runner", "apache_beam.runners.dask.dask_runner.DaskRunner", "--dask_workers", "2")
    done = prepare_in_new_process(words([lone], small_vocabulary_file, output, *flags))
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: warning: {lone}: no blank line")

    bad.write_bytes(b"A good line.\n\nA line with \xff in it.\n")
    output = tmp_path / "bad"
    done = prepare_in_new_process(words([bad, lone], small_vocabulary_file, output, *flags))
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if ": warning: " not in line]
    assert line.startswith(f"beam_pipelines.prepare: error: {bad}: line 3: ")
    assert not [name for name in contents(output) if name.endswith((".tmp", "manifest.json"))]


@pytest.mark.thorough
def test_a_worker_killed_in_mid_run_changes_no_byte(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    documents = [text for part in corpus for text in part.read_text(encoding="utf-8").split("\n\n")]
    parts = [tmp_path / f"part-{number:02d}" for number in range(16)]
    for number, part in enumerate(parts):
        part.write_text("\n\n".join(documents[number % 4 :: 4]) + "\n", encoding="utf-8")
    flags = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "150")
    assert main(words(parts, small_vocabulary_file, tmp_path / "direct", *flags)) == 0
    output = tmp_path / "dask"
    killed: list[bool] = []
    with worker_processes() as cluster:
        with Client(cluster) as client:
            (victim, _) = client.run(os.getpid).values()

        def kill() -> None:
            while not list(output.glob("*.tfrecord")):
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)
            killed.append((output / "manifest.json").exists())

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        address = ("--runner", "DaskRunner", "--dask_client_address", cluster.scheduler_address)
        assert main(words(parts, small_vocabulary_file, output, *flags, *address)) == 0
        killer.join(10)
    assert killed == [False], "the worker must die before the run is done"
    assert contents(output) == contents(tmp_path / "direct")
    assert json.loads((output / "manifest.json").read_text())["totals"]["examples"] > 1000


def belongs(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.NoSuchProcess):
        return False


def still_running(group: int) -> list[str]:
    """The group's processes that have not ended some seconds later."""
    for _ in range(100):
        left = [str(process) for process in psutil.process_iter() if belongs(process, group)]
        if not left:
            break
        time.sleep(0.1)
    return left


@pytest.mark.thorough
def test_ctrl_c_ends_a_run_with_processes_of_its_own_in_one_line(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    flags = ("--dupe-factor", "2000", "--runner", "DaskRunner", "--dask_workers", "2")
    run = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "beam_pipelines.prepare",
            *words(corpus, small_vocabulary_file, output, *flags),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(output.glob("unfinished/*.tmp")):
        assert run.poll() is None
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, printed = run.communicate(timeout=60)
    assert printed.splitlines() == [
        "beam_pipelines.prepare: interrupted; finished shards are kept, run the same command to go on"
    ]
    assert run.returncode == 130
    assert not (output / "manifest.json").exists()
    assert not list(output.rglob("*.tmp"))
    assert not still_running(run.pid)


def test_a_task_whose_workers_all_died_ends_with_the_line_for_a_dead_worker() -> None:
    last = SimpleNamespace(address="tcp://worker:1")
    found = find_original_error(KilledWorker(task="t", last_worker=last, allowed_failures=3))  # type: ignore[arg-type]
    assert isinstance(found, WorkerDied)
    assert "run the same command again: what is finished is kept" in str(found)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dask_workers=0",), "--dask_workers 0: expected 1 to"),
        (("--dask_workers=2", "--dask_client_address=tcp://localhost:1"), "--dask_workers 2: expected"),
        (
            ("--dask_client_address=tcp://localhost:1", "--dask_connection_timeout=1"),
            "tcp://localhost:1: no Dask scheduler answers there",
        ),
    ],
)
def test_flags_that_cannot_be_are_refused(flags: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        DaskRunner(PipelineOptions(list(flags)))


@pytest.mark.thorough
def test_a_relative_path_is_refused_on_a_cluster_whose_workers_may_be_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_dask: tuple[str, ...]
) -> None:
    relative = os.path.relpath(ROOT / "golden" / "corpus" / "part-00000-of-00003")
    vocabulary = ROOT / "golden" / "vocab.txt"
    assert main(words([Path(relative)], vocabulary, tmp_path / "out", *on_dask)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"beam_pipelines.prepare: error: --input {relative}: is relative to this directory"
    )
    assert line.endswith(f"give the whole path: {os.path.abspath(relative)}")
    assert not (tmp_path / "out").exists()


def test_a_flag_of_dask_without_its_runner_is_refused(corpus: list[Path], tmp_path: Path) -> None:
    flags = words(corpus, ROOT / "golden" / "vocab.txt", tmp_path / "out", "--dask_workers=2")
    run = prepare_in_new_process(flags)
    assert run.returncode == 2
    assert "--dask_workers=2: neither a flag of ours nor of Beam" in run.stderr
