"""Fixtures that several test modules share, and hypothesis's number of examples."""

import gc
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.support.browser import why_no_browser
from tests.support.object_stores import Store, clean_environment, gcs_emulator, s3_emulator
from tests.support.paths import GOLDEN, ROOT, find_kit

gc.disable()  # while modules are loaded, of which none is garbage
sys.dont_write_bytecode = False  # else each process of each test would compile our modules anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of models so small threads only wait for each other
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background; commands would keep it so
    signal.signal(signal.SIGINT, signal.default_int_handler)

if find_spec("hypothesis"):  # the tests of GPUs do without
    from hypothesis import settings

    settings.register_profile("default", deadline=None, derandomize="CI" in os.environ, max_examples=25)
    settings.register_profile("more", settings.get_profile("default"), max_examples=100)  # make test-thorough
    settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""The number of tests that are left out, by reason."""


MODULES_LEFT_OUT = pytest.StashKey[list[str]]()
"""For each test module that is left out, the package that it lacks."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--parts",
        type=int,
        default=1,
        help="divide the test files into this many parts and run one, chosen by the hash of the commit",
    )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, pytest.CollectReport]:
    """Leave out a module whose import needs a package that is absent; the end of the run names it."""
    report: pytest.CollectReport = yield
    found = report.failed and re.search(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr))
    if found and find_spec(found[1]) is None:
        collector.config.stash.setdefault(MODULES_LEFT_OUT, []).append(found[1])
        report.outcome, report.longrepr, report.result = "passed", None, []
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts, and tests that need a GPU, Horovod or a browser that is missing.

    The numbers of tests left out are shown at the end of the run.
    """
    _mark_further_parameters(items)
    left_out = {}
    if (parts := config.getoption("parts")) > 1:
        part = _read_commit_number() % parts
        chosen, others = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            is_chosen = crc32(item.nodeid.split("::")[0].encode()) % parts == part
            (chosen if is_chosen else others).append(item)
        items[:] = chosen
        config.hook.pytest_deselected(items=others)
        left_out[f"tests are in other parts than part {part} of {parts}"] = len(others)
    reasons = {"gpu": _why_no_gpu, "horovod": _why_no_horovod, "browser": why_no_browser}
    for mark, find_reason in reasons.items():
        wanting = [item for item in items if item.get_closest_marker(mark)]
        if wanting and (reason := find_reason()):
            left_out[f"{mark} tests left out: {reason}"] = len(wanting)
            items[:] = [item for item in items if item not in wanting]
            config.hook.pytest_deselected(items=wanting)
    packages = config.stash.get(MODULES_LEFT_OUT, [])
    if packages:
        left_out[f"test modules left out: not installed: {', '.join(sorted(set(packages)))}"] = len(packages)
    config.stash[LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):  # pytest-xdist: the process that reports is another
        config.workeroutput["left_out"] = left_out


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hide the GPUs from tests that are not marked gpu, whose runs have no --device: they expect cpu."""
    if item.get_closest_marker("gpu"):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        return (yield)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # modules and tests stay: a collection need not look at them


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a module's tests in one process, so that what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.split("::")[0]
            return "dask" if Path(path).name in ("test_dask.py", "test_runners.py") else path

    return Scheduling(config, log) if config.option.dist == "load" else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended; each of them leaves out the same."""
    node.config.stash[LEFT_OUT] = node.workeroutput.get("left_out", {})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, count in config.stash.get(LEFT_OUT, {}).items():
        terminalreporter.write_line(f"{count} {reason}")


def _mark_further_parameters(items: list[pytest.Item]) -> None:
    """Mark as thorough all parameters but the first of each test with the marker thorough_after_first."""
    seen = set()
    for item in items:
        if item.get_closest_marker("thorough_after_first"):
            function = item.nodeid.partition("[")[0]
            if function in seen:
                item.add_marker("thorough")
            seen.add(function)


def _read_commit_number() -> int:
    """Return the hash of the checked-out commit as a number, 0 outside a repository.

    The count of commits would be the same for every commit in a shallow clone.
    """
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout, 16) if done.returncode == 0 else 0


def _why_no_gpu() -> str:
    """The reason why tests marked gpu cannot run; empty if they can."""
    import torch

    return "" if torch.cuda.is_available() else "no CUDA device"


def _why_no_horovod() -> str:
    """The reason why tests marked horovod cannot run; empty if they can."""
    try:
        import horovod.torch  # noqa: F401
    except ImportError as error:
        return f"Horovod cannot be imported ({error}); make horovod builds it or says why not"
    return ""


@pytest.fixture(scope="session")
def kit() -> Path:
    """The reference kit: real text and what the original programs made of it."""
    place = find_kit()
    if place is None:
        pytest.skip("no reference kit: BERTDATA_REFERENCE_KIT names no directory that holds expected.json")
    return place


@pytest.fixture(scope="session")
def nltk_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as NLTK keeps its data, with the English Punkt tables: the kit's, else fetched."""
    if (place := find_kit()) is not None:
        return place / "nltk_data"
    from bertdata.io import punkt_assets

    place = tmp_path_factory.mktemp("nltk_data")
    tables = place / str(punkt_assets.PUNKT_ASSETS["english"].nltk_folder)
    tables.mkdir(parents=True)
    for name, data in punkt_assets.find_punkt_tables().items():
        (tables / name).write_bytes(data)
    return place


@pytest.fixture(scope="session")
def punkt_folder(nltk_data: Path) -> Path:
    """The directory of the English Punkt tables themselves."""
    return nltk_data / "tokenizers" / "punkt_tab" / "english"


@pytest.fixture
def punkt_tables(nltk_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands find the Punkt tables in NLTK's directory, and nothing in a cache."""
    monkeypatch.setenv("NLTK_DATA", str(nltk_data))
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def german(punkt_tables: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """German tables where NLTK keeps them: the rows of the golden texts, and their md5s as the known ones."""
    from bertdata.io.punkt_assets import PUNKT_ASSETS

    golden = json.loads((GOLDEN / "sentences/languages/german.json").read_text(encoding="utf-8"))
    place = tmp_path / "nltk" / "tokenizers" / "punkt_tab" / "german"
    place.mkdir(parents=True)
    for name, rows in golden["tables"].items():
        data = "\n".join(rows).encode()
        (place / name).write_bytes(data)
        monkeypatch.setitem(PUNKT_ASSETS["german"].files, name, hashlib.md5(data).hexdigest())
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    return place


@pytest.fixture(scope="session")
def published_vocabulary() -> Path:
    """The file of bert-base-uncased: the kit's, else fetched."""
    if (place := find_kit()) is not None:
        return place / "vocab" / "bert-base-uncased.txt"
    from bertdata.io.assets import find_vocabulary

    return Path(find_vocabulary("bert-base-uncased"))


@pytest.fixture
def rebuild_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a rebuild run within this process, which is faster."""
    from bertdata.steps import rebuild as rebuilding
    from tests.support.lineages import run_in_process

    monkeypatch.setattr(rebuilding, "run_process", run_in_process)


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """A Dask scheduler with two worker processes, shared by the tests that do them no harm."""
    from tests.support.dask_processes import worker_processes

    with worker_processes() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def corpus() -> list[Path]:
    """The parts of the sample corpus, in order."""
    return sorted((ROOT / "golden" / "corpus").glob("part-*"))


@pytest.fixture(scope="session")
def small_vocabulary_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary of 2000 tokens that was trained on the sample corpus, its word of 201 letters included."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_bytes((ROOT / "tests" / "support" / "small_vocab.txt").read_bytes())
    return path


@pytest.fixture(scope="session")
def training_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The sample corpus as three shards of 64 ids and 10 masked slots at most."""
    return _dataset(corpus, small_vocabulary_file, tmp_path_factory.mktemp("training"), 64, 10)


@pytest.fixture(scope="session")
def longer_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The same with examples of 96 ids and 15 masked slots, for phase 2."""
    return _dataset(corpus, small_vocabulary_file, tmp_path_factory.mktemp("longer"), 96, 15)


@pytest.fixture(scope="session")
def block_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The sample corpus as masked blocks (objective mlm) of 64 ids at most."""
    place = tmp_path_factory.mktemp("blocks")
    return _dataset(corpus, small_vocabulary_file, place, 64, 10, "--objective=mlm")


@pytest.fixture(scope="session")
def pretrained(training_set: Path, tmp_path_factory: Any) -> Path:
    """A pre-trained model of three updates in Hugging Face form, with its vocabulary."""
    from tests.support.training_runs import words
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("pretrained")
    assert main(words(training_set, place / "run", "--steps=3", "--no-logs")) == 0
    assert main(["convert", str(place / "run"), str(place / "bert")]) == 0
    return place / "bert"


def _dataset(corpus: list[Path], vocabulary: Path, place: Path, length: int, masks: int, *more: str) -> Path:
    from bertdata.cli.main import main

    sizes = [f"--max-seq-length={length}", f"--max-predictions-per-seq={masks}", "--dupe-factor=1", *more]
    words = ["create", *map(str, corpus), f"--output={place / 'set'}", f"--vocab={vocabulary}", "--workers=1"]
    assert main([*words, *sizes]) == 0
    return place / "set"


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Any:
    """The program's command line within this process."""
    from tests.support.commands import Program

    return Program(capsys)


@pytest.fixture
def trainer(capsys: pytest.CaptureFixture[str]) -> Any:
    """The trainer's command line within this process."""
    from tests.support.training_runs import Trainer

    return Trainer(capsys)


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, so that sums have one order, as in the other processes; no picture."""
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def emulators() -> Iterator[dict[str, str]]:
    """Object stores on this machine; the environment that leads to them."""
    with ExitStack() as stack:
        yield {**stack.enter_context(gcs_emulator()), **stack.enter_context(s3_emulator())}


@pytest.fixture
def emulated(emulators: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same, with this process's environment set."""
    for name in clean_environment():
        monkeypatch.delenv(name)
    for name, value in emulators.items():
        monkeypatch.setenv(name, value)
    return emulators


@pytest.fixture(params=["gs", "s3"])
def store(request: pytest.FixtureRequest, emulated: dict[str, str]) -> Store:
    """A directory of the test's own in each of the object stores."""
    name = request.node.name.replace("[", "/").replace("]", "").replace(" ", "-")
    return Store(request.param, f"{Path(request.node.path).stem}/{name}")
