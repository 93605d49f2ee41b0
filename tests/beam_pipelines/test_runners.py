"""One corpus, six ways to run the pipeline, one MD5SUMS: for each way to shuffle."""

import importlib
import pkgutil
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import beam_pipelines
from beam_pipelines.prepare import main
from tests.support.commands import contents
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT, find_kit
from tests.support.pipelines import SMALL

SHUFFLES = {"none": (), "global": ("--shuffle", "global", "--num-shards", "5")}
"""The flags of each way to shuffle."""
PIECES = 5
THREADS = "--direct_running_mode=multi_threading"
PROCESSES = "--direct_running_mode=multi_processing"


@pytest.fixture(scope="module")
def parts(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Parts of whole documents: the kit's text, or the sample corpus where there is no kit."""
    kit = find_kit()
    sources = sorted(path for path in (kit / "results").iterdir() if path.suffix != ".md5") if kit else corpus
    documents = [text for path in sources for text in path.read_text(encoding="utf-8").split("\n\n")]
    directory = tmp_path_factory.mktemp("parts")
    paths = [directory / f"part-{number:02d}" for number in range(PIECES)]
    for number, path in enumerate(paths):
        path.write_text("\n\n".join(documents[number::PIECES]).strip("\n") + "\n", encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def vocabulary(small_vocabulary_file: Path) -> Path:
    kit = find_kit()
    return kit / "vocab" / "bert-base-uncased.txt" if kit else small_vocabulary_file


Run = Callable[..., dict[str, bytes]]


@pytest.fixture(scope="module")
def run(parts: list[Path], vocabulary: Path) -> Run:
    """The files that the pipeline makes in a directory, with these flags, of the parts in this order."""

    def make(output: Path, *flags: str, order: Callable[[list[Path]], list[Path]] = list) -> dict[str, bytes]:
        words = [word for part in order(parts) for word in ("--input", str(part))]
        assert main([*words, "--output", str(output), "--vocab", str(vocabulary), *SMALL, *flags]) == 0
        return contents(output)

    return make


@pytest.fixture(scope="module", params=SHUFFLES.values(), ids=SHUFFLES)
def shuffle(request: pytest.FixtureRequest) -> tuple[str, ...]:
    flags: tuple[str, ...] = request.param
    return flags


@pytest.fixture(scope="module")
def expected(
    run: Run, shuffle: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of a run in memory, in one bundle after the other."""
    made = run(tmp_path_factory.mktemp("in-memory") / "out", *shuffle)
    assert len(made["MD5SUMS"].splitlines()) == len(made) - 2 > 2
    return made


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((THREADS, "--direct_num_workers=2"), id="two threads"),
        pytest.param((PROCESSES, "--direct_num_workers=2"), id="two processes", marks=pytest.mark.thorough),
    ],
)
def test_the_direct_runner_s_ways_make_the_same_files(
    run: Run,
    shuffle: tuple[str, ...],
    expected: dict[str, bytes],
    tmp_path: Path,
    flags: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", forking_python("beam"))
    assert run(tmp_path / "out", *shuffle, *flags) == expected


@pytest.mark.thorough
def test_dask_with_two_workers_makes_the_same_files(
    run: Run, shuffle: tuple[str, ...], expected: dict[str, bytes], tmp_path: Path, dask_cluster: Any
) -> None:
    address = dask_cluster.scheduler_address
    assert (
        run(tmp_path / "out", *shuffle, "--runner", "DaskRunner", "--dask_client_address", address)
        == expected
    )


def test_inputs_in_another_order_make_the_same_files(
    run: Run, shuffle: tuple[str, ...], expected: dict[str, bytes], tmp_path: Path
) -> None:
    def shuffled(parts: list[Path]) -> list[Path]:
        return random.Random(1).sample(parts, len(parts))

    assert run(tmp_path / "reverse", *shuffle, order=lambda parts: parts[::-1]) == expected
    assert run(tmp_path / "shuffled", *shuffle, order=shuffled) == expected


def test_bundles_of_size_one_make_the_same_files(
    run: Run,
    shuffle: tuple[str, ...],
    expected: dict[str, bytes],
    tmp_path: Path,
    bundles: dict[str, list[int]],
) -> None:
    """At most one worker per element: Beam deals a stage's elements out to all workers."""
    workers = 2 * PIECES
    assert run(tmp_path / "out", *shuffle, THREADS, f"--direct_num_workers={workers}") == expected
    assert max(map(sum, bundles.values())) >= PIECES
    for name, sizes in bundles.items():
        assert max(sizes) == 1, f"{name}: bundles of {Counter(sizes)} elements"


def test_a_run_in_memory_has_larger_bundles(
    run: Run, shuffle: tuple[str, ...], tmp_path: Path, bundles: dict[str, list[int]]
) -> None:
    """Or the test above would say nothing."""
    run(tmp_path / "out", *shuffle)
    assert max(map(max, bundles.values())) >= PIECES


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """The number of elements of each bundle, by DoFn, of a run in this process."""
    sizes: dict[str, list[int]] = {}
    for kind in our_do_fns():
        count_bundles(kind, sizes, monkeypatch)
    return sizes


def our_do_fns() -> list[type]:
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(beam_pipelines.__path__, "beam_pipelines.")
    ]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    kinds = [
        kind for kind in found if issubclass(kind, beam.DoFn) and kind.__module__.startswith("beam_pipelines")
    ]
    assert {"MakeShard", "WriteManifest"} <= {kind.__name__ for kind in kinds}
    return kinds


def count_bundles(kind: type, sizes: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    process = kind.process  # type: ignore[attr-defined]
    open_bundles: dict[int, int] = {}

    def start_bundle(self: Any) -> None:
        open_bundles[id(self)] = 0

    def counted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        open_bundles[id(self)] += 1
        return process(self, *arguments, **keywords)

    def finish_bundle(self: Any) -> None:
        if size := open_bundles.pop(id(self)):
            sizes.setdefault(kind.__name__, []).append(size)

    monkeypatch.setattr(kind, "start_bundle", start_bundle)
    monkeypatch.setattr(kind, "process", counted)
    monkeypatch.setattr(kind, "finish_bundle", finish_bundle)


def test_every_flag_that_the_docs_give_to_beam_is_one() -> None:
    from apache_beam.options.pipeline_options import PipelineOptions

    import beam_pipelines.runners.dask_runner  # noqa: F401 - Beam knows the flags of Dask once it is loaded

    known = set(PipelineOptions([]).get_all_options()) | {"dask_client_address", "dask_npartitions"}
    named = set(re.findall(r"--([a-z]+(?:_[a-z]+)+)", (ROOT / "docs" / "running.md").read_text()))
    assert {"direct_num_workers", "dask_workers", "setup_file", "job_endpoint"} <= named
    others = {"worker_pool", "port_file"}  # of a container, and of Beam's own job service
    assert named - known == others
