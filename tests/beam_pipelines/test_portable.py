"""Beam's portable runner: the bytes of the commands, through a job service, and its failures in one line."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import psutil
import pytest
from apache_beam.metrics.cells import DistributionData, DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult
from apache_beam.metrics.metric import MetricName

from beam_pipelines.prepare import main
from beam_pipelines.report.counters import NAMESPACE, Distribution, read_metrics
from beam_pipelines.report.errors import find_original_error
from beam_pipelines.runners.long_jobs import resume_stream
from beam_pipelines.runners.pipeline import run_pipeline
from bertdata.cli.main import main as command_line
from tests.support.commands import contents
from tests.support.job_service import running_job_service, running_worker_pool
from tests.support.paths import DUMP, ROOT
from tests.support.pipelines import SMALL, commands, made_datasets, words

SHUFFLES = {"none": (), "global": ("--shuffle", "global", "--num-shards", "3")}
SEGMENT = ("--eval-articles", "3")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Beam's own job service."""
    with running_job_service(tmp_path_factory.mktemp("service")) as address:
        yield address


def flags(service: str, environment: str = "LOOPBACK") -> tuple[str, ...]:
    return ("--runner", "PortableRunner", "--job_endpoint", service, "--environment_type", environment)


def created(parts: list[Path], vocabulary: Path, output: Path, *more: str) -> dict[str, bytes]:
    """The files of ``bertdata create``."""
    places = ["--output", str(output), "--vocab", str(vocabulary), "--workers", "1"]
    assert command_line(["create", *map(str, parts), *places, *more]) == 0
    return contents(output)


@pytest.mark.parametrize(
    "shuffle", [SHUFFLES["none"], pytest.param(SHUFFLES["global"], marks=pytest.mark.thorough)]
)
def test_parts_become_the_bytes_of_the_command(
    corpus: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    service: str,
    shuffle: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = created(corpus, small_vocabulary_file, tmp_path / "command", *SMALL, *shuffle)
    capsys.readouterr()
    given = words(corpus, small_vocabulary_file, tmp_path / "out", *SMALL, *shuffle, *flags(service))
    assert main(given) == 0
    assert contents(tmp_path / "out") == expected
    printed = capsys.readouterr()
    assert printed.err == ""
    rows = dict(line.split()[:2] for line in printed.out.splitlines() if line.startswith("  "))
    assert (rows["parts"], rows["parts_skipped"]) == ("3", "0")
    assert int(rows["bytes"]) == sum(
        len(data) for name, data in expected.items() if name.endswith(".tfrecord")
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("punkt_tables")
@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_a_dump_becomes_the_bytes_of_the_commands(
    small_vocabulary_file: Path, tmp_path: Path, service: str, shuffle: tuple[str, ...]
) -> None:
    expected = commands(DUMP, small_vocabulary_file, tmp_path / "row", SEGMENT, (*SMALL, *shuffle))
    given = words([DUMP], small_vocabulary_file, tmp_path / "out", *SEGMENT, *SMALL, *shuffle)
    extractor = ("--input-kind", "dump", "--extractor", "mlperf")
    assert main([*given, *extractor, *flags(service)]) == 0
    found = contents(tmp_path / "out.text"), made_datasets(tmp_path / "out")
    for ours, wanted in zip(found, expected, strict=True):
        assert sorted(ours) == sorted(wanted)
        assert [name for name in wanted if ours[name] != wanted[name]] == []


@pytest.mark.thorough
@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_after_a_worker_was_killed_the_same_command_makes_the_same_bytes(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, service: str, shuffle: tuple[str, ...]
) -> None:
    """Beam's own service waits for ever for a worker that is gone: the run is interrupted, and goes on."""
    large = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "200", *shuffle)
    expected = created(corpus, small_vocabulary_file, tmp_path / "command", *large)
    output = tmp_path / "out"
    with running_worker_pool() as (address, pool):
        where = (*flags(service, "EXTERNAL"), "--environment_config", address)
        given = words(corpus, small_vocabulary_file, output, *large, *where)
        run = subprocess.Popen(
            [sys.executable, "-m", "beam_pipelines.prepare", *given],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        end = time.monotonic() + 120
        workers: list[psutil.Process] = []
        # A pipeline may have several workers, one after the other.
        while not workers or not (list(output.glob("unfinished/*.tmp*")) or list(output.glob("*.tfrecord"))):
            assert time.monotonic() < end
            assert run.poll() is None
            time.sleep(0.01)
            workers = psutil.Process(pool).children()
        (worker,) = workers
        worker.kill()
        assert not (output / "manifest.json").exists(), "the worker must die before the run is done"
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=60)
        assert run.returncode == 130, told
        assert "the job goes on where it runs" in told
        assert main(given) == 0
    assert contents(output) == expected


@pytest.mark.thorough
def test_a_job_longer_than_beams_time_limit_is_waited_for(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, service: str
) -> None:
    large = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "2000")
    given = words(corpus, small_vocabulary_file, tmp_path / "out", *large, *flags(service))
    assert main([*given, "--job_server_timeout", "3"]) == 0
    assert (tmp_path / "out" / "manifest.json").exists()


class Ended(grpc.RpcError):  # type: ignore[misc]
    """A stream's error, as gRPC raises it."""

    def __init__(self, status: grpc.StatusCode) -> None:
        super().__init__()
        self.status = status

    def code(self) -> grpc.StatusCode:
        return self.status

    def details(self) -> str:
        return "Socket closed"


def cut_stream(status: grpc.StatusCode) -> Iterator[int]:
    yield 1
    raise Ended(status)


def test_a_stream_goes_on_after_its_time_limit_and_after_nothing_else() -> None:
    assert list(resume_stream(cut_stream(grpc.StatusCode.DEADLINE_EXCEEDED), lambda: iter([2, 3]))) == [
        1,
        2,
        3,
    ]
    assert list(resume_stream(iter([1, 2]), lambda: iter([3]))) == [1, 2]
    with pytest.raises(Ended):
        list(resume_stream(cut_stream(grpc.StatusCode.UNAVAILABLE), lambda: iter([2])))


def test_a_job_server_that_is_lost_is_one_line() -> None:
    class Lost(Ended, grpc.Call):  # type: ignore[misc]
        is_active = time_remaining = cancel = add_callback = initial_metadata = trailing_metadata = None

    found = find_original_error(Lost(grpc.StatusCode.UNAVAILABLE))
    assert str(found) == "the job server is lost: UNAVAILABLE: Socket closed"


def result_of(counters: list[MetricResult], distributions: list[MetricResult]) -> Any:
    found = {"counters": counters, "distributions": distributions}
    return SimpleNamespace(metrics=lambda: SimpleNamespace(query=lambda _: found))


def told(name: str, committed: Any, attempted: Any) -> MetricResult:
    return MetricResult(MetricKey("step", MetricName(NAMESPACE, name)), committed, attempted)


def test_counters_that_were_not_committed_count_as_attempted_or_as_0() -> None:
    """A portable runner commits nothing, or nothing that is 0."""
    values = DistributionResult(DistributionData(12, 3, 1, 7))
    found = read_metrics(
        result_of(
            [
                told("parts", 3, None),
                told("parts", 2, 2),
                told("parts_skipped", 0, None),
                told("documents", None, 5),
                told("sentences", None, None),
            ],
            [told("part_bytes", values, None), told("part_tokens", None, None)],
        )
    )
    assert found.totals == {"parts": 5, "parts_skipped": 0, "documents": 5, "sentences": 0}
    assert found.distributions == {"part_bytes": Distribution(count=3, sum=12, min=1, max=7)}


def test_a_runner_that_tells_no_counters_has_made_the_files_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def metrics() -> Any:
        raise NotImplementedError("no metrics here")

    class Silent:
        """A runner of another program."""

    result = SimpleNamespace(wait_until_finish=lambda: "DONE", metrics=metrics)
    assert run_pipeline(SimpleNamespace(run=lambda: result, runner=Silent())).totals == {}
    assert "warning: Silent tells no counters (no metrics here)" in capsys.readouterr().err
