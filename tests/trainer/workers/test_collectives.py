"""Collectives of workers in processes of their own: every operation, and the loss of a worker."""

import json
import math
import os
import signal
import socket
import sys
import time

import pytest
import torch

from bertdata.errors import MissingExtraError, SettingsError
from tests.support.launching import HOROVODRUN, ROOT, launch
from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.errors import WorkerLost
from trainer.update.averaging import average_weights
from trainer.workers import heartbeat
from trainer.workers.choice import find_collective
from trainer.workers.heartbeat import Heartbeat
from trainer.workers.launchers import find_local_rank
from trainer.workers.worker_group import split_into_buckets

WORKER = ROOT / "tests" / "support" / "collective_worker.py"
LAUNCHERS = ("torchrun", HOROVODRUN)
NAMES = {"torchrun": "torch_distributed", "horovodrun": "horovod"}


@pytest.fixture(autouse=True)
def launched_by_nobody(monkeypatch):
    for name in ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module", params=LAUNCHERS)
def results(request, tmp_path_factory):
    """The values of each of two workers after every operation."""
    place = tmp_path_factory.mktemp(request.param)
    outcome = launch(request.param, 2, WORKER, "operations", place)
    assert outcome.status == 0, outcome.err
    assert "trainer: " not in outcome.err  # a worker that ends as planned is not lost
    found = [json.loads((place / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]
    assert [result["name"] for result in found] == [NAMES[request.param]] * 2
    assert [(result["local_rank"], result["size"]) for result in found] == [(0, 2), (1, 2)]
    return found


def test_broadcast_brings_rank_0s_bits_to_all(results):
    wanted = [[[0.0, 0.0]] * 3, 7, [-0.0, 2.0**-149], [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]]
    assert str([result["broadcast"] for result in results]) == str([wanted, wanted])
    assert [result["object"] for result in results] == [{"rank": 0, "word": "wörd"}] * 2


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_average_is_the_mean_to_the_bit(results, name, dtype):
    # The sum of two terms is the same in either order, so the comparisons below are exact.
    for averaged, *gradients in zip(
        results[0]["averages"][name], *(result["gradients"] for result in results), strict=True
    ):
        halves = [(torch.tensor(gradient) / 2).to(dtype) for gradient in gradients]
        assert torch.equal(torch.tensor(averaged), _sum_in(dtype, halves))
    assert results[0]["averages"][name] == results[1]["averages"][name]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_averages_during_the_backward_pass_have_the_bits_of_one_after_it(launcher, tmp_path):
    """Three workers, whose sums depend on the order of the terms."""
    outcome = launch(launcher, 3, WORKER, "buckets", tmp_path)
    assert outcome.status == 0, outcome.err
    for rank in range(3):
        found = json.loads((tmp_path / f"{rank}.json").read_text(encoding="utf-8"))
        assert found == {"fp32": [True] * 4, "bf16": [True] * 4}


def _sum_in(dtype: torch.dtype, terms: list[torch.Tensor]) -> torch.Tensor:
    return (terms[0].float() + terms[1].float()).to(dtype).float()


def test_values_are_gathered_by_rank(results):
    for result in results:
        assert result["gathered"] == [["", 0, None, 0.1, 1e300], ["x" * 10, 1, None, 1.1, 1e300]]


def test_forced_weight_sync_averages_what_is_trained_and_nothing_else(results):
    assert [result["synchronised"] for result in results] == [[[[0.5, 0.5]], [0.0]], [[[0.5, 0.5]], [1.0]]]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("launcher", "workers", "task", "victim"),
    [
        ("torchrun", 2, "steps", 0),
        ("torchrun", 3, "stuck", 2),
        pytest.param("horovodrun", 3, "steps", 0, marks=pytest.mark.horovod),
        pytest.param("horovodrun", 2, "steps", 1, marks=pytest.mark.horovod),
    ],
)
def test_when_a_worker_is_killed_the_others_name_it_and_end(launcher, workers, task, victim, tmp_path):
    since = _strike_when_ready(launcher, workers, task, victim, tmp_path, "SIGKILL")
    assert time.monotonic() - since < 30


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("launcher", "victim"),
    [pytest.param("horovodrun", 1, marks=pytest.mark.horovod), ("torchrun", 1), ("torchrun", 0)],
)
def test_when_a_worker_hangs_the_other_names_it_and_ends_both(launcher, victim, tmp_path):
    """Left alone, torchrun would wait 30 s for the worker that hangs."""
    since = _strike_when_ready(launcher, 2, "steps", victim, tmp_path, "SIGSTOP", patience=3)
    assert time.monotonic() - since < 25


def _strike_when_ready(launcher, workers, task, victim, place, blow, patience=60):
    """The time at which the victim was hit; checks the others' error lines and the launcher's status.

    A survivor's own status is not checked: the launcher may kill it after it has printed its line.
    """
    since = 0.0

    def strike() -> None:
        nonlocal since
        deadline = time.monotonic() + 50
        while sum(path.stat().st_size > 0 for path in place.glob("*.ready")) < workers:
            assert time.monotonic() < deadline, "the workers do not start"
            time.sleep(0.05)
        since = time.monotonic()
        os.kill(int((place / f"{victim}.ready").read_text()), getattr(signal, blow))

    outcome = launch(launcher, workers, WORKER, task, place, patience, seconds=90, meanwhile=strike)
    assert outcome.status == 1
    why = "its process ended" if blow == "SIGKILL" else f"no heartbeat for {patience} s"
    survivors = set(range(workers)) - {victim}
    lines = [line for line in outcome.err.splitlines() if "trainer: error: " in line]
    assert len(lines) == len(survivors), outcome.err
    assert all(f"worker {victim} of {workers} was lost: {why};" in line for line in lines)
    return since


def test_alone_everything_is_ones_own():
    collective = find_collective(None, find_device(Config.of()))
    assert (collective.name, collective.rank, collective.size) == ("single", 0, 1)
    tensors = [torch.tensor([1.0, 2.0])]
    collective.broadcast(tensors)
    collective.average(tensors, torch.bfloat16)
    assert tensors[0].tolist() == [1.0, 2.0]
    assert collective.broadcast_object({"a": 1}) == {"a": 1}
    assert collective.gather("x") == ["x"]
    collective.barrier()
    collective.close()


def test_workers_that_cannot_connect_raise_an_error():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(WorkerLost, match="the workers could not connect: .*refused"):
        Heartbeat(1, 2).start("", lambda _: [["127.0.0.1", port], "word", ""])


def test_a_stranger_is_no_worker_and_another_error_no_loss(monkeypatch):
    monkeypatch.setattr(heartbeat, "_NEWS_SECONDS", 0)
    callers = []

    def broadcast(meeting):
        (_, port), word, _ = meeting
        for said in ("hello 1", f"{word} 1.."):
            callers.append(socket.create_connection(("127.0.0.1", port)))
            callers[-1].sendall(said.encode())
        return meeting

    Heartbeat(0, 2).start("127.0.0.1", broadcast)
    stranger, worker = callers
    with stranger, worker:
        assert worker.recv(1) == b"."
        assert stranger.recv(1) == b""
        worker.sendall(b".bye\n")
    with pytest.raises(RuntimeError, match="something else"), Heartbeat(0, 1).naming_lost_workers():
        raise RuntimeError("something else")


def test_the_launcher_is_known_by_its_environment(monkeypatch):
    assert find_local_rank() == 0
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert find_local_rank() == 3
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(SettingsError, match="MASTER_ADDR is not set"):
        find_collective(None, find_device(Config.of()))


def test_a_collective_that_nobody_launched_is_refused():
    with pytest.raises(SettingsError, match="HOROVOD_RANK is not set; start under horovodrun"):
        find_collective("horovod", find_device(Config.of()))
    with pytest.raises(SettingsError, match="no such collective; known are single, "):
        find_collective("mpi", find_device(Config.of()))


def test_horovodrun_without_horovod_names_the_remedy(monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "0")
    monkeypatch.setenv("HOROVOD_SIZE", "2")
    monkeypatch.setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1")
    monkeypatch.setitem(sys.modules, "horovod", None)
    monkeypatch.setitem(sys.modules, "horovod.torch", None)
    with pytest.raises(MissingExtraError, match="run make horovod"):
        find_collective(None, find_device(Config.of()))


def test_buckets_keep_order_type_and_size():
    floats = [torch.zeros(size) for size in (200_000, 50_000, 20_000, 0, 400_000, 1)]
    tensors = [*floats, torch.zeros(3, dtype=torch.float64), torch.zeros(4)]
    buckets = [[tensor.numel() for tensor in bucket] for bucket in split_into_buckets(tensors, 1)]
    assert buckets == [[200_000, 50_000], [20_000, 0], [400_000], [1], [3], [4]]


@pytest.mark.parametrize(("value", "calls"), [("1", 1), ("true", 1), ("TRUE", 1), ("0", 0), ("", 0)])
def test_weights_are_synchronised_only_on_demand(monkeypatch, value, calls):
    averaged = []
    monkeypatch.setenv("FORCE_WEIGHT_SYNC", value)
    collective = find_collective(None, find_device(Config.of()))
    monkeypatch.setattr(collective, "average", lambda tensors: averaged.append(list(tensors)), raising=False)
    average_weights(collective.average, torch.nn.Linear(2, 2).parameters())
    assert len(averaged) == calls
    assert all(math.prod(tensor.shape) for tensors in averaged for tensor in tensors)
