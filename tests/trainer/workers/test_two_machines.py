"""Two machines with directories of their own: two of torchrun's agents, with other words each."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.fork_server import forking_python
from tests.support.launching import ROOT
from tests.support.network_hosts import Host, join_hosts
from tests.support.training_runs import WORKER, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints

pytestmark = pytest.mark.thorough

SECONDS = 240


THIS_MACHINE = "127.0.0.1"


def train(
    data: list[Path],
    places: list[Path],
    *more: list[str],
    address: str = THIS_MACHINE,
    prefixes: Sequence[Sequence[str]] = ((), ()),
) -> tuple[list[int], str]:
    """Run a worker on each machine. Return the statuses of their agents, and the trainer's lines of both.

    address: of the first machine. prefixes: the words before the command of each machine.
    """
    with socket.create_server((THIS_MACHINE, 0)) as free:
        port = free.getsockname()[1]
    agents = []
    for rank, place in enumerate(places):
        python = forking_python() if address == THIS_MACHINE else sys.executable
        agent = [*prefixes[rank], python, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        agent += [f"--master-addr={address}", f"--master-port={port}", f"--node-rank={rank}", str(WORKER)]
        run = words(data[rank], place, "--checkpoint-every=5", "--warmup=0", *more[rank])
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        agents.append(subprocess.Popen([*agent, *run], env=environment, stderr=subprocess.PIPE, text=True))
    said = [agent.communicate(timeout=SECONDS)[1] for agent in agents]
    lines = [line for text in said for line in text.splitlines() if line.startswith("trainer: ")]
    return [agent.returncode for agent in agents], "\n".join(lines)


def test_other_settings_or_other_data_on_one_machine_end_both_before_anything_is_made(training_set, tmp_path):
    places = [tmp_path / "w0", tmp_path / "w1"]
    statuses, said = train([training_set] * 2, places, ["--seed=3"], ["--base-learning-rate=0.0001"])
    assert 0 not in statuses
    (line,) = [line for line in said.splitlines() if "error: " in line]
    assert "--seed is 3 on worker 0, 42 on worker 1; --base-learning-rate differs too" in line
    assert not any(place.exists() for place in places)
    less = tmp_path / "less"
    shutil.copytree(training_set, less)
    (part,) = less.glob("part-00001*.tfrecord")
    statuses, said = train([training_set, part], places, [], [])
    assert 0 not in statuses
    (line,) = [line for line in said.splitlines() if "error: " in line]
    assert "--train-data is 488 examples in 3 files (digest " in line
    assert not any(place.exists() for place in places)


def test_a_run_goes_on_whichever_machine_is_first_and_never_over_another_run(training_set, tmp_path):
    places = [tmp_path / "w0", tmp_path / "w1"]  # they are made
    assert train([training_set] * 2, places, [], [])[0] == [0, 0]
    assert [list(find_checkpoints(str(place))) for place in places] == [[5, 10]] * 2
    # The first machine was replaced: it is given what the second one holds.
    shutil.rmtree(places[0])
    statuses, said = train([training_set] * 2, places, *[["--resume", "--steps=15"]] * 2)
    assert statuses == [0, 0], said
    assert "checkpoint 10 is worker 1's: giving it to worker 0" in said
    assert "resumed" in said
    assert [list(find_checkpoints(str(place))) for place in places] == [[10, 15], [5, 10, 15]]
    assert tensors(places[0], 15) == tensors(places[1], 15)
    # A new run that finds the first directory free must not remove what the second one holds.
    shutil.rmtree(places[0])
    before = tensors(places[1], 15)
    statuses, said = train([training_set] * 2, places, *[["--seed=9", "--keep-checkpoints=1"]] * 2)
    assert 0 not in statuses
    assert f"worker 1's {places[1]}: is in use: holds checkpoints" in said
    assert tensors(places[1], 15) == before
    assert not places[0].exists()


@pytest.fixture
def hosts() -> Iterator[dict[str, Host]]:
    with join_hosts() as joined:
        yield joined


def test_two_hosts_train_over_their_network_and_are_told_where_they_differ(training_set, tmp_path, hosts):
    network = {"address": hosts["first"].address, "prefixes": [host.prefix for host in hosts.values()]}
    places = [tmp_path / "first", tmp_path / "second"]
    statuses, said = train([training_set] * 2, places, [], [], **network)
    assert statuses == [0, 0], said
    assert tensors(places[0], 10) == tensors(places[1], 10)
    # The hosts start again in the other order, after one has lost its disk.
    shutil.rmtree(places[0])
    statuses, said = train([training_set] * 2, places[::-1], *[["--resume", "--steps=15"]] * 2, **network)
    assert statuses == [0, 0], said
    assert "checkpoint 10 is worker 0's: giving it to worker 1" in said
    assert tensors(places[0], 15) == tensors(places[1], 15)
    statuses, said = train(
        [training_set] * 2, places, ["--resume", "--steps=20"], ["--resume", "--steps=25"], **network
    )
    assert 0 not in statuses
    assert "--steps is 20 on worker 0, 25 on worker 1" in said
