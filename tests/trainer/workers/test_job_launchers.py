"""Workers of mpirun and srun join, wherever their variables say enough; else they are refused in one line."""

import os
import socket
import subprocess
from contextlib import suppress

import pytest

from bertdata.errors import SettingsError
from tests.support.fork_server import forking_python
from tests.support.launching import ROOT
from tests.support.training_runs import WORKER, losses, words
from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.workers.choice import find_collective
from trainer.workers.job_launchers import find_first_host, find_place, join_environment
from trainer.workers.launchers import find_launcher, find_local_rank, find_rank

JOINED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def open_mpi(rank: int, size: int, local: int, local_size: int) -> dict[str, object]:
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": local,
        "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
        "PMIX_RANK": rank,
        "PMIX_NAMESPACE": "prterun-node-1234@1",
    }


def hydra(rank: int, size: int, local: int, local_size: int) -> dict[str, object]:
    return {
        "PMI_RANK": rank,
        "PMI_SIZE": size,
        "MPI_LOCALRANKID": local,
        "MPI_LOCALNRANKS": local_size,
        "PMI_PORT": "node:40001",
    }


def mvapich(rank: int, size: int, local: int, local_size: int) -> dict[str, object]:
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    values = (rank, size, local, local_size)
    return {f"MV2_COMM_WORLD_{name}": value for name, value in zip(names, values, strict=True)}


def pals(rank: int, size: int, local: int, local_size: int) -> dict[str, object]:
    values = {"PALS_LOCAL_RANKID": local, "PALS_LOCAL_SIZE": local_size, "PALS_APID": "a-b"}
    return {"PMI_RANK": rank, "PMI_SIZE": size, **values}


def srun(rank: int, size: int, local: int, local_size: int) -> dict[str, object]:
    return {
        "SLURM_JOB_ID": 77,
        "SLURM_STEP_ID": 3,
        "SLURM_PROCID": rank,
        "SLURM_NTASKS": 64,  # the job's; the step's is another
        "SLURM_STEP_NUM_TASKS": size,
        "SLURM_LOCALID": local,
        "SLURM_NNODES": 8,
        "SLURM_STEP_NUM_NODES": size // local_size,
        "SLURM_STEP_NODELIST": "node[07-08]" if size > local_size else "node07",
        "PMI_RANK": rank,  # srun --mpi=pmi2
        "PMI_SIZE": size,
    }


LAUNCHERS = [open_mpi, hydra, mvapich, pals, srun]


@pytest.fixture(autouse=True)
def launched_by_nobody(monkeypatch):
    prefixes = ("OMPI_", "PMI", "MPI_", "MV2_", "PALS_", "SLURM_", "HOROVOD_", "POPDIST_", "MPIRUN_")
    for name in [*os.environ, *JOINED]:
        if name.startswith(prefixes) or name in JOINED:
            monkeypatch.setenv(name, "")  # so that the original value is restored
            monkeypatch.delenv(name)


def set_environment(monkeypatch, values: dict[str, object]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))


@pytest.mark.parametrize("variables", LAUNCHERS)
def test_a_worker_on_one_machine_knows_its_place_and_joins_there(monkeypatch, variables):
    set_environment(monkeypatch, variables(1, 2, 1, 2))
    assert find_launcher() == "torch_distributed"
    assert (find_rank(), find_local_rank()) == ((1, 2), 1)
    join_environment()
    found = {name: os.environ[name] for name in JOINED}
    port = int(found.pop("MASTER_PORT"))
    assert found == {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"}
    assert 20000 <= port < 30000
    assert (find_launcher(), find_rank(), find_local_rank()) == ("torch_distributed", (1, 2), 1)


@pytest.mark.parametrize("variables", LAUNCHERS)
def test_one_process_is_one_worker(monkeypatch, variables):
    set_environment(monkeypatch, variables(0, 1, 0, 1))
    assert find_collective(None, find_device(Config.of())).name == "single"
    assert find_rank() == (0, 1)


@pytest.mark.parametrize("variables", [open_mpi, hydra, mvapich, pals])
def test_on_several_machines_the_address_of_rank_0_must_be_given(monkeypatch, variables):
    set_environment(monkeypatch, variables(3, 4, 1, 2))
    with pytest.raises(SettingsError, match=r"^mpi\w+: the workers are on several machines and MASTER_ADDR"):
        find_collective(None, find_device(Config.of()))
    monkeypatch.setenv("MASTER_ADDR", "node07")
    monkeypatch.setenv("MASTER_PORT", "1234")
    join_environment()
    assert [os.environ[name] for name in JOINED] == ["3", "4", "1", "node07", "1234"]


def test_srun_tells_the_first_node(monkeypatch):
    set_environment(monkeypatch, srun(3, 4, 1, 2))
    join_environment()
    assert [os.environ[name] for name in JOINED[:4]] == ["3", "4", "1", "node07"]


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n7", "n7"),
        ("n7,n8", "n7"),
        ("node[003-005,9],other", "node003"),
        ("r[1-2]n[30,40]-ib,x", "r1n30-ib"),
        ("node[12]", "node12"),
    ],
)
def test_the_first_host_of_a_list(nodes, first):
    assert find_first_host(nodes) == first


@pytest.mark.parametrize("step", [None, 4294967291, 4294967290])
def test_a_batch_script_or_shell_of_slurm_is_one_process(monkeypatch, step):
    values = srun(0, 4, 0, 4)
    del values["PMI_RANK"], values["PMI_SIZE"], values["SLURM_STEP_NUM_TASKS"]
    values["SLURM_STEP_ID"] = step
    set_environment(monkeypatch, {name: value for name, value in values.items() if value is not None})
    assert find_place() is None
    assert find_collective(None, find_device(Config.of())).name == "single"


def test_a_launcher_within_srun_or_mpirun_takes_precedence(monkeypatch):
    set_environment(monkeypatch, srun(1, 2, 1, 2) | open_mpi(2, 3, 2, 3))
    assert (find_rank(), find_local_rank()) == ((2, 3), 2)  # mpirun starts its workers by srun
    set_environment(monkeypatch, {"RANK": 5, "WORLD_SIZE": 8, "LOCAL_RANK": 1})
    assert (find_launcher(), find_rank(), find_local_rank()) == ("torch_distributed", (5, 8), 1)
    set_environment(monkeypatch, {"HOROVOD_RANK": 6, "HOROVOD_SIZE": 7, "HOROVOD_LOCAL_RANK": 0})
    assert (find_launcher(), find_rank(), find_local_rank()) == ("horovod", (6, 7), 0)


@pytest.mark.parametrize("values", [{"PMIX_RANK": 1}, {"PMI_RANK": 1, "PMI_SIZE": 2}])
def test_a_launcher_that_tells_too_little_is_refused_unless_alone_is_asked_for(monkeypatch, values):
    set_environment(monkeypatch, values)
    with pytest.raises(SettingsError, match="a launcher set PMIX?_RANK, .*--collective single"):
        find_collective(None, find_device(Config.of()))
    assert find_collective("single", find_device(Config.of())).name == "single"


def test_jobs_at_the_same_time_on_one_machine_have_ports_of_their_own(monkeypatch):
    ports = set()
    for job in range(20):
        set_environment(monkeypatch, srun(0, 2, 0, 2) | {"SLURM_JOB_ID": job})
        join_environment()
        ports.add(os.environ.pop("MASTER_PORT"))
    assert len(ports) > 18


def free_job(monkeypatch, variables) -> dict[str, object]:
    """A variable that names the job, such that the port which follows from it is free."""
    name = {open_mpi: "PMIX_NAMESPACE", hydra: "PMI_PORT", srun: "SLURM_JOB_ID"}[variables]
    for number in range(100):
        job = {name: f"{number}-{os.getpid()}"}
        with monkeypatch.context() as patch, suppress(OSError):
            for variable in JOINED:
                patch.setenv(variable, "")
                patch.delenv(variable)
            set_environment(patch, variables(0, 2, 0, 2) | job)
            join_environment()
            socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))).close()
            return job
    raise AssertionError("no port is free")


@pytest.mark.thorough
@pytest.mark.parametrize("variables", [open_mpi, hydra, srun])
def test_two_processes_with_a_launchers_variables_train_together(
    monkeypatch, trainer, training_set, tmp_path, variables, one_thread
):
    run = ("--steps=4", "--base-learning-rate=0.01")
    assert trainer(*words(training_set, tmp_path / "one", *run, "--accumulation=2")).status == 0
    job = free_job(monkeypatch, variables)
    arguments = [forking_python(), str(WORKER), *words(training_set, tmp_path / "two", *run)]
    processes = []
    for rank in range(2):
        values = {name: str(value) for name, value in (variables(rank, 2, rank, 2) | job).items()}
        environment = os.environ | values | {"PYTHONPATH": str(ROOT)}
        processes.append(subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True))
    try:
        said = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], said
    assert "each of 2 workers x 1 micro-batch " in said[0]
    assert "step 4/4" in said[0]
    assert "step" not in said[1]
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 4
    for ours, others in zip(one, two, strict=True):
        assert ours == pytest.approx(others, abs=1e-5)
