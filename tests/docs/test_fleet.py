"""docs/fleet.md: its commands run on a small dump, with an emulated bucket and two hosts that come and go.

The commands are the page's own. Only names and sizes are replaced: the bucket, the host, the configuration,
and what belongs to Dataflow. Dataflow's own part is in tests/beam_pipelines/test_dataflow.py.
"""

import bz2
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.support.console_pages import blocks
from tests.support.network_hosts import Host, join_hosts
from tests.support.object_stores import BUCKET, clean_environment
from tests.support.paths import DUMP, ROOT

pytestmark = pytest.mark.thorough

PAGE = ROOT / "docs" / "fleet.md"
DUMP_NAME = "enwiki-20200101-pages-articles-multistream.xml.bz2"
SECONDS = 600
OF_DATAFLOW = (
    "--runner",
    "--project",
    "--region",
    "--temp_location",
    "--max_num_workers",
    "--sdk_container_image",
    "--sdk_location",
)
"""Flags of the page's Beam command that are left out here, with their values."""

SMALL_DATA = "--eval-articles 12 --shuffle global --num-shards 12"
SMALL_RUN = (
    "--hidden-size 32 --num-attention-heads 2 --intermediate-size 64 --num-hidden-layers 2 --batch-size 4 "
    "--log-every 20 --checkpoint-every 20 --keep-checkpoints 50 --no-progress-bar --warmup 10 "
    "--base-learning-rate 0.001 --open-files auto"  # the configuration tiny has another value
)
PHASE_1, PHASE_2 = "--steps 240", "--steps 20"


@dataclass
class Fleet:
    """Two hosts, and an emulated object store that both reach.

    scheme: ``gs`` or ``s3``.
    variables: environment variables that lead to the store.
    folder: directory of this test. Each host has its own working directory in it.
    """

    hosts: dict[str, Host]
    scheme: str
    variables: dict[str, str]
    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, host: str, words: list[str], log: Path) -> subprocess.Popen[str]:
        """Start a command on a host. Its output goes to a file."""
        folder = self.folder / host
        folder.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in clean_environment()}
        own = {"BERTDATA_CACHE": str(folder / "own"), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
        path = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [*self.hosts[host].prefix, *words],
                cwd=folder,
                env={**kept, **self.variables, **own, **path},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.processes.append(process)
        return process

    def run(self, words: list[str]) -> str:
        """Run a command on the first host to its end, and return its output."""
        log = self.folder / "command.log"
        process = self.start("first", words, log)
        assert process.wait(SECONDS) == 0, f"{words}\n{log.read_text()}"
        return log.read_text()

    def python(self, code: str, *words: str) -> None:
        """Run Python code on the first host, with these words as its arguments."""
        self.run([sys.executable, "-c", code, *words])

    def upload(self, files: dict[str, bytes]) -> None:
        """Put files into the bucket, by their names in it."""
        here = self.folder / "upload"
        for name, data in files.items():
            place = here / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        self.python(
            "import fsspec, sys; store = fsspec.filesystem(sys.argv[1])\n"
            "store.exists(sys.argv[3]) or store.mkdir(sys.argv[3])\n"
            "store.put(sys.argv[2] + '/', sys.argv[3] + '/', recursive=True)",
            self.scheme,
            str(here),
            BUCKET,
        )

    def download(self, name: str) -> Path:
        """Copy a directory of the bucket to this machine."""
        place = self.folder / "download" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        self.python(
            "import fsspec, sys; store = fsspec.filesystem(sys.argv[1])\n"
            "store.get(sys.argv[2] + '/', sys.argv[3] + '/', recursive=True)",
            self.scheme,
            f"{BUCKET}/{name}",
            str(place),
        )
        return place

    def translate(self, command: list[str]) -> list[str]:
        """Return a command of the page with the names and the sizes of this test."""
        words = [
            word.replace("gs://BUCKET", f"{self.scheme}://{BUCKET}").replace(
                "HOST", self.hosts["first"].address
            )
            for word in command
        ]
        if "beam_pipelines.prepare" in words:
            for flag in OF_DATAFLOW:
                del words[(place := words.index(flag)) : place + 2]
            return [sys.executable, *words[1:], *SMALL_DATA.split()]
        if words[0] == "torchrun":
            return [sys.executable, "-m", "torch.distributed.run", *shrink(words[1:])]
        if words[0] == "bertdata":
            return [sys.executable, "-m", *words]
        return [sys.executable, *words[1:]]

    def train(self, command: list[str], host: str, *more: str) -> tuple[subprocess.Popen[str], Path]:
        """Start the page's training command on a host. Return the process and the file of its output.

        The namespaces have no names for their addresses, so that torchrun needs to be told of them.
        """
        words = self.translate(command)
        place = words.index("-m", 2)
        is_first = int(host == "first")
        words[place:place] = [
            f"--local-addr={self.hosts[host].address}",
            f"--rdzv-conf=is_host={is_first},last_call_timeout=2",
        ]
        log = self.folder / f"{host}-{len(self.processes)}.log"
        return self.start(host, [*words, *SMALL_RUN.split(), *more], log), log


def shrink(words: list[str]) -> list[str]:
    """Return the words of a training command with the sizes of this test."""
    values = {
        "--nnodes": "1:2",
        "--nproc-per-node": "1",
        "--config": "tiny",
        "--global-batch-size": "8",
        "--cache-size": "1",
    }
    found = list(words)
    for flag, value in values.items():
        found[found.index(flag) + 1] = value
    return found


@pytest.fixture(params=["gs", "s3"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    scheme = request.param
    with ExitStack() as stack:
        hosts = stack.enter_context(join_hosts())
        first = hosts["first"]
        emulator = subprocess.Popen(
            [*first.prefix, sys.executable, "-m", "tests.support.object_stores", scheme, first.address],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(emulator.wait, 30)
        stack.callback(emulator.kill)
        assert emulator.stdout is not None
        variables = json.loads(emulator.stdout.readline())
        made = Fleet(hosts, scheme, variables, tmp_path)
        yield made
        for process in made.processes:
            process.kill()
            process.wait()


@pytest.fixture
def commands() -> list[list[str]]:
    """The commands of the page that are run here, in their order."""
    found = list[list[str]]()
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if not block.given("not run"):
            lines = block.text.replace("\\\n", " ").splitlines()
            found += [shlex.split(line, comments=True) for line in lines]
    return found


def find_variables(words: list[str]) -> dict[str, str]:
    """Return the environment variable that an ``export`` sets."""
    name, _, value = words[1].partition("=")
    return {name: value}


def wait_for(text: str, log: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a text is in the log of a command that still runs."""
    deadline = time.monotonic() + SECONDS
    while text not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_the_page_from_the_dump_to_the_model(
    fleet: Fleet, commands: list[list[str]], punkt_folder: Path, tmp_path: Path
) -> None:
    exports = [words for words in commands if words[0] == "export"]
    fleet.variables |= find_variables(exports[0])
    prepare, verify, create, phase_1, evaluate, phase_2, report, predict, convert = (
        words for words in commands if words not in exports
    )
    punkt = {f"punkt/{path.name}": path.read_bytes() for path in punkt_folder.iterdir()}
    dump = {DUMP_NAME: bz2.compress(DUMP.read_bytes())}
    fleet.upload({**dump, **punkt, "vocab.txt": (ROOT / "golden" / "vocab.txt").read_bytes()})
    for command in (prepare, verify, create):
        fleet.run(fleet.translate(command))
    shards = fleet.download("shards")
    files = len(list((shards / "phase1").glob("*.tfrecord")))
    assert files > 8  # else no streams

    # Phase 1: the second host leaves, and another one comes later in its place.
    evaluation = fleet.start("first", fleet.translate(evaluate), tmp_path / "evaluation")
    first, first_log = fleet.train(phase_1, "first", *PHASE_1.split())
    second, second_log = fleet.train(phase_1, "second", *PHASE_1.split())
    wait_for(f"checkpoint 20 is in {fleet.scheme}://{BUCKET}/run", first_log, first)
    if fleet.scheme == "gs":
        fleet.hosts["second"].kill_all()  # it is lost without a word
    else:
        second.terminate()  # it is asked to stop, as before a machine is taken away
    second.wait(SECONDS)
    wait_for("resumed", first_log, first)
    second, second_log = fleet.train(phase_1, "second", *PHASE_1.split())
    assert first.wait(SECONDS) == 0, first_log.read_text()
    assert second.wait(SECONDS) == 0, second_log.read_text()
    assert evaluation.wait(SECONDS) == 0, (tmp_path / "evaluation").read_text()
    compare(fleet, shards, tmp_path)

    two, logs = zip(*(fleet.train(phase_2, host, *PHASE_2.split()) for host in fleet.hosts), strict=True)
    for process, log in zip(two, logs, strict=True):
        assert process.wait(SECONDS) == 0, log.read_text()
    fleet.run(fleet.translate(report))
    assert fleet.run(fleet.translate(predict)).count("%") == 5  # the five most probable words
    fleet.run(fleet.translate(convert))
    assert (tmp_path / "first" / "report.html").is_file()
    assert (tmp_path / "first" / "bert-large" / "model.safetensors").is_file()


def compare(fleet: Fleet, shards: Path, tmp_path: Path) -> None:
    """Assert the weights of one undisturbed worker that reads the same data from the local disk."""
    place = tmp_path / "undisturbed"
    words = ["-m", "trainer", "pretrain", "--config", "tiny", "--global-batch-size", "8"]
    words += ["--train-data", str(shards / "phase1"), "--output-dir", str(place), *PHASE_1.split()]
    fleet.run([sys.executable, *words, *SMALL_RUN.split()])
    number = int(PHASE_1.split()[1])
    theirs = fleet.download("run") / "checkpoints" / f"step-{number:08d}"
    ours = place / "checkpoints" / f"step-{number:08d}"
    expected = load_file(ours / "model.safetensors")
    for name, tensor in load_file(theirs / "model.safetensors").items():
        assert torch.allclose(tensor, expected[name], atol=1e-3), name
