"""Workers of torch.distributed meet in a store that nobody has used, or are told in one line why not."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
import torch.distributed as dist

from bertdata.errors import SettingsError
from tests.soak.interruptions import RUN, made, wait_until, workers_of
from tests.support.commands import ROOT
from trainer.errors import WorkerLost
from trainer.workers import meeting
from trainer.workers.launchers import find_launcher, find_rank, read_number

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "HOROVOD_RANK", "HOROVOD_SIZE")


@pytest.fixture(autouse=True)
def started_by_nobody(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that the original value is restored
        monkeypatch.delenv(name)


def take_part(store: dist.Store, rank: int, size: int, found: dict[int, dist.Store]) -> None:
    found[rank] = meeting._find_unused_part(store, rank, size)


def test_a_restart_finds_nothing_of_the_start_before(monkeypatch):
    monkeypatch.setattr(meeting, "_AGAIN_SECONDS", 0.05)
    shared = dist.HashStore()
    for start in range(3):
        found: dict[int, dist.Store] = {}
        # Rank 0 comes last: the others read the name that rank 0 of the start before has left.
        threads = [
            threading.Thread(target=take_part, args=[shared, rank, 3, found], daemon=True)
            for rank in (2, 1, 0)
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        for thread in threads:
            thread.join(60)
        assert sorted(found) == [0, 1, 2]
        assert not found[0].check(["address"])
        found[0].set("address", str(start))
        assert [found[rank].get("address").decode() for rank in (1, 2)] == [str(start)] * 2


def test_workers_of_different_devices_are_all_told_before_they_connect():
    """Of two machines with --device auto, one had no card: nccl and gloo waited for each other."""
    store, said = dist.HashStore(), dict[int, str]()

    def meet_as(rank: int, device: str) -> None:
        try:
            meeting.compare_devices(store, rank, 3, device)
        except SettingsError as error:
            said[rank] = str(error)

    threads = [
        threading.Thread(target=meet_as, args=[rank, device], daemon=True)
        for rank, device in enumerate(["cuda", "cuda", "cpu"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    line = (
        "the workers have different devices: worker 0 has cuda, worker 2 has cpu; give all of them the same"
    )
    assert said == dict.fromkeys(range(3), f"{line} --device")


def test_empty_variables_are_none(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    assert (find_launcher(), find_rank()) == ("single", (0, 1))


@pytest.mark.parametrize("value", ["a", "-1", "1.0", "²"])
def test_a_rank_that_is_no_number_is_named(monkeypatch, trainer, tmp_path, value):
    monkeypatch.setenv("RANK", value)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SettingsError, match="^RANK is '.*', expected a number"):
        read_number("RANK")
    outcome = trainer("pretrain", "--generated-data", f"--output-dir={tmp_path}")
    assert (outcome.status, len(outcome.err.splitlines())) == (2, 1)
    assert "error: RANK is" in outcome.err


def test_horovods_variables_without_horovodrun_are_one_line(monkeypatch, trainer, tmp_path):
    monkeypatch.setenv("HOROVOD_RANK", "0")
    monkeypatch.setenv("HOROVOD_SIZE", "1")
    outcome = trainer("pretrain", "--generated-data", f"--output-dir={tmp_path}")
    assert outcome.status == 2
    assert "horovod: HOROVOD_RANK is set, but not the address of horovodrun's server" in outcome.err
    assert "Traceback" not in outcome.err


def join(monkeypatch, rank: int, address: str, port: int) -> None:
    values = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": address, "MASTER_PORT": port}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
    meeting.meet_workers()


def test_an_address_that_no_machine_has_is_named_in_time(monkeypatch):
    monkeypatch.setattr(meeting, "_RESOLVE_SECONDS", 0.5)
    began = time.monotonic()
    with pytest.raises(
        SettingsError, match="^MASTER_ADDR is 'nowhere.invalid', which this machine does not know"
    ):
        join(monkeypatch, 1, "nowhere.invalid", 4000)
    assert time.monotonic() - began < 10


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(meeting, "_RESOLVE_SECONDS", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: time.sleep(5))
    with pytest.raises(SettingsError, match=r"\(no answer\)"):
        join(monkeypatch, 0, "machine", 4000)


def test_rank_0_names_the_port_that_another_program_uses(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(WorkerLost) as error:
            join(monkeypatch, 0, "127.0.0.1", port)
    assert f"127.0.0.1:{port} (MASTER_ADDR, MASTER_PORT)" in str(error.value)
    assert "another program uses the port" in str(error.value)


def test_a_rank_that_waits_names_the_port(monkeypatch, capsys):
    """torch waits for a program that does not answer as long as that one is there."""
    monkeypatch.setattr(meeting, "_SILENT_SECONDS", 0.2)
    monkeypatch.setattr(meeting, "_JOIN_SECONDS", 2.0)

    def wait(port: int) -> None:
        with suppress(WorkerLost):
            join(monkeypatch, 1, "127.0.0.1", port)

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        waiting = threading.Thread(target=wait, args=[port], daemon=True)
        waiting.start()
        said = ""
        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            time.sleep(0.1)
            said = capsys.readouterr().err
    place = f"127.0.0.1:{port} (MASTER_ADDR, MASTER_PORT)"
    assert f"rank 1 of 2 waits for the others at {place}" in said


@pytest.mark.thorough
@pytest.mark.parametrize("rank", [0, 1])
def test_torchruns_restart_goes_on_after_a_worker_was_killed(tmp_path, rank):
    place = tmp_path / "run"
    words = [
        "pretrain",
        *RUN,
        "--steps=1000000",
        "--checkpoint-every=20",
        f"--output-dir={place}",
        "--resume",
    ]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    process = subprocess.Popen(
        [sys.executable, *launcher, "-m", "trainer", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: made(place) >= 30, 120)
        before = made(place)
        os.kill(workers_of(place)[rank], signal.SIGKILL)
        wait_until(lambda: made(place) >= before + 20 or process.poll() is not None, 120)
        assert process.poll() is None
        assert made(place) >= before + 20
    finally:
        for number in [*workers_of(place), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait()
