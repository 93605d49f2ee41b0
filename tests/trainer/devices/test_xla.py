"""--device xla: against a stand-in for torch_xla, and for real where BERTDATA_XLA_PYTHON names a Python that
has it (docs/devices.md says how to come by one)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bertdata.errors import MissingExtraError
from tests.support.commands import Outcome
from tests.support.device_records import compare
from tests.support.fork_server import forking_python
from tests.support.launching import ROOT
from tests.support.training_runs import losses, tensors
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.settings import Config
from trainer.devices import xla
from trainer.devices.availability import Availability
from trainer.devices.opening import find_device

TINY = (
    *("--num-hidden-layers=1", "--hidden-size=32", "--num-attention-heads=2", "--intermediate-size=64"),
    *("--batch-size=4", "--accumulation=2", "--warmup=1", "--log-every=1", "--no-progress-bar"),
)
WORKER = ROOT / "tests" / "support" / "xla_worker.py"
STAND_INS = ROOT / "tests" / "support" / "stand_ins"
RATES = ("--lr-schedule=custom", '--lr-schedule-by-step={"0": 0.001, "3": 0.0}')
NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


def run(python: str, place: Path, *words: object, **variables: str) -> Outcome:
    """The outcome of a Python process with the trainer; torch_xla uses the processor by default."""
    path = os.pathsep.join(map(str, [ROOT, *([STAND_INS] if python == forking_python() else [])]))
    mine = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PJRT_DEVICE": "CPU"} | variables
    environment = {name: value for name, value in {**os.environ, **mine}.items() if value}
    command = [python, *map(str, words)]
    done = subprocess.run(
        command, cwd=place, env=environment, text=True, capture_output=True, check=False, timeout=300
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def recorded(training_set: Path, place: Path, **variables: str) -> Path:
    """The stand-in's record of the whole short run."""
    record = place / "record"
    outcome = run(
        forking_python(),
        place,
        WORKER,
        training_set,
        place / "run",
        "--precision=bf16",
        *RATES,
        BERTDATA_STAND_IN_RECORD=str(record),
        **variables,
    )
    assert outcome.status == 0, outcome.err
    return Path(f"{record}.0")


# The stand-in


def test_the_calls_of_a_whole_short_run_are_those_of_the_golden_file(training_set, tmp_path):
    compare("xla_1", recorded(training_set, tmp_path))


@pytest.mark.parametrize("missing", ["after_backward", "after_step", "seed"])
def test_a_device_that_forgets_a_call_is_noticed(training_set, tmp_path, missing):
    record = recorded(training_set, tmp_path, XLA_BREAK=missing)
    with pytest.raises(AssertionError, match=r"\n-torch_xla\.(sync|manual_seed)\("):
        compare("xla_1", record)


@pytest.mark.parametrize(
    "code",
    [
        "torch_xla.mark_step()",
        "torch_xla.runtime.xla_device()",
        "torch_xla.sync(block=True)",
        "torch.autocast('xla', torch.float16)",
    ],
)
def test_the_stand_in_refuses_what_torch_xla_does_not_have(tmp_path, code):
    outcome = run(forking_python(), tmp_path, "-c", f"import torch, torch_xla; {code}")
    assert outcome.status == 1
    assert any(word in outcome.err for word in ("is not in the interface", "unexpected", "not supported"))


def test_a_tpu_that_is_not_there_is_refused_in_one_line(tmp_path):
    words = ("-m", "trainer", "pretrain", "--device=xla", "--generated-data", "--output-dir=run")
    for device, said in {
        "": "torch_xla finds no TPU; PJRT_DEVICE=CPU runs it on the processor",
        "TPU": "device 'xla' is not there: TPU: libtpu not found; PJRT_DEVICE=CPU",
        "CUDA": "No PjRtPlugin registered for: CUDA",
    }.items():
        outcome = run(forking_python(), tmp_path, *words, PJRT_DEVICE=device)
        assert outcome.status == 2
        (line,) = [line for line in outcome.err.splitlines() if "error" in line]
        assert said in line


def test_both_phases_share_the_cache_of_programs_which_is_opened_once(tmp_path):
    words = ["pretrain", "--device=xla", *TINY, "--generated-data", "--vocab-size=100", "--compile-only"]
    words += ["--executable-cache-dir=cache", "--steps", "2", "2", "--max-predictions-per-seq=2"]
    words += ["--max-seq-length", "16", "32"]
    record = tmp_path / "record"
    outcome = run(forking_python(), tmp_path, "-m", "trainer", *words, BERTDATA_STAND_IN_RECORD=str(record))
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("nothing was trained") == 2
    assert Path(f"{record}.0").read_text().count("initialize_cache") == 1


def test_without_torch_xla_the_remedy_is_said():
    with pytest.raises(MissingExtraError, match="torch_xla is not installed .* see docs/devices.md") as error:
        find_device(Config.of(device="xla"))
    assert error.value.exit_status == 2


def test_doctor_is_told_what_there_is_without_the_hardware_being_opened(tmp_path):
    code = "from trainer.devices import xla; print(xla.examine())"
    record = {"BERTDATA_STAND_IN_RECORD": str(tmp_path / "record")}
    outcome = run(forking_python(), tmp_path, "-c", code, **record)
    assert "there=True, found='CPU by torch_xla 2.9.0, torch" in outcome.out, outcome.err
    assert (tmp_path / "record.0").read_text() == "runtime.device_type()\n"
    outcome = run(forking_python(), tmp_path, "-c", code, PJRT_DEVICE="")
    assert "there=False, found='torch_xla finds no TPU', missing='PJRT_DEVICE=CPU" in outcome.out
    assert not xla.examine().there


def test_each_phase_has_a_profile_server_and_16_bit_floats_of_narrow_range_are_refused(tmp_path):
    code = """
import torch
from trainer.config.settings import Config
from trainer.devices.xla import Xla
phases = [Xla(Config.of(device="xla", profile=True)) for _ in range(2)]
phases[0].place(torch.nn.Linear(1, 1))
phases[0].release()
phases[1].place(torch.nn.Linear(1, 1))
Xla(Config.of(device="xla", precision="fp16"))
"""
    outcome = run(forking_python(), tmp_path, "-c", code, BERTDATA_STAND_IN_RECORD=str(tmp_path / "record"))
    assert "SettingsError: precision fp16: device 'xla' has bf16 and fp32" in outcome.err
    assert (tmp_path / "record.0").read_text().count("profiler.start_server(9012)\n") == 2
    outcome = run(forking_python(), tmp_path, "-c", code.replace("phases[0].release()", ""))
    assert "RuntimeError: a profiler's server is there already" in outcome.err


def test_workers_join_through_torch_xla_and_each_needs_a_device_of_its_own(tmp_path):
    code = """
import torch
from trainer.config.settings import Config
from trainer.devices.xla import Xla
torch.distributed.init_process_group = lambda *values, **options: print(values, options)
torch.distributed.get_world_size = lambda: SIZE
Xla(Config.of(device="xla")).join(lambda: (None, 0, 1))
"""
    joined = {"WORLD_SIZE": "2", "BERTDATA_STAND_IN_RECORD": str(tmp_path / "record")}
    outcome = run(forking_python(), tmp_path, "-c", code.replace("SIZE", "2"), **joined)
    assert outcome.status == 0, outcome.err
    assert outcome.out == "('xla',) {'init_method': 'xla://'}\n"
    # The device must not be opened before, or torch_xla would not know the processes.
    known = ["runtime.device_type()", "import torch_xla.distributed.xla_backend"]
    assert (tmp_path / "record.0").read_text().splitlines() == known
    outcome = run(forking_python(), tmp_path, "-c", code.replace("SIZE", "1"), WORLD_SIZE="2")
    assert "SettingsError: device 'xla': 2 workers share 1 devices of CPU" in outcome.err


# torch_xla itself


@pytest.fixture(scope="module")
def real() -> str:
    """A Python that has torch_xla."""
    python = os.environ.get("BERTDATA_XLA_PYTHON")
    if python is None:
        pytest.skip("BERTDATA_XLA_PYTHON names no Python that has torch_xla; the stand-in was tested")
    return python


@pytest.fixture(scope="module")
def resumed(real, training_set, tmp_path_factory) -> tuple[Path, list[int]]:
    """Four updates in two starts, with dropout; and how many graphs were compiled after each."""
    place = tmp_path_factory.mktemp("resumed")
    outcome = run(real, place, WORKER, training_set, place / "run", *RATES)
    assert outcome.status == 0, outcome.err
    return place / "run", json.loads(outcome.out.splitlines()[-1])


@pytest.mark.thorough
def test_really_nothing_is_compiled_after_the_second_update(resumed):
    first, second, third, fourth = resumed[1]
    assert 0 < first < second
    assert fourth == third  # the rate is 0 here, and elsewhere it is not


@pytest.mark.thorough
def test_really_resumed_is_the_same_as_never_stopped(real, resumed, training_set, tmp_path):
    words = ["pretrain", "--device=xla", *TINY, f"--train-data={training_set}", "--steps=4", *RATES]
    straight = run(real, tmp_path, "-m", "trainer", *words, "--output-dir=run")
    assert straight.status == 0, straight.err
    assert losses(tmp_path / "run") == losses(resumed[0])
    assert tensors(tmp_path / "run", 4) == tensors(resumed[0], 4)


@pytest.mark.thorough
def test_real_losses_of_two_phases_are_those_of_the_processor(real, training_set, tmp_path):
    words = ["pretrain", *TINY, f"--train-data={training_set}", f"--eval-data={training_set}", *NO_DROPOUT]
    for device in ("cpu", "xla"):
        first = [*words, f"--device={device}", f"--output-dir={device}", "--steps=6"]
        for phase in (first, [*first, "--phase2", "--steps=3"]):
            outcome = run(real, tmp_path, "-m", "trainer", *phase)
            assert outcome.status == 0, outcome.err
    ours, theirs = (losses(tmp_path / device) for device in ("cpu", "xla"))
    assert len(ours) == 3
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert read_state(find_checkpoints(str(tmp_path / "xla"))[9]).phase == 2
    results = [(tmp_path / device / "eval_results.txt").read_text().splitlines() for device in ("cpu", "xla")]
    for one, other in zip(*results, strict=True):
        assert one.partition("=")[0] == other.partition("=")[0]
        assert float(one.partition("=")[2]) == pytest.approx(float(other.partition("=")[2]), abs=1e-4)


@pytest.mark.thorough
def test_really_what_was_compiled_ahead_is_what_training_needs(real, training_set, tmp_path):
    words = ["pretrain", "--device=xla", *TINY, f"--train-data={training_set}", "--steps=3"]
    words += ["--executable-cache-dir=cache"]
    ahead = run(real, tmp_path, "-m", "trainer", *words, "--compile-only")
    assert ahead.status == 0, ahead.err
    assert "compiled for xla: CPU, torch_xla 2.9" in ahead.err
    before = {path.name for path in (tmp_path / "cache").iterdir()}
    trained = run(real, tmp_path, "-m", "trainer", *words, "--output-dir=run")
    assert trained.status == 0, trained.err
    new = {path.name for path in (tmp_path / "cache").iterdir()} - before
    assert len(before) >= 4
    assert len(new) <= 2  # to read the losses, and to check what is saved


def test_the_processor_in_place_of_a_tpu_is_not_chosen(monkeypatch):
    there = Availability("xla", True, "TPU")
    monkeypatch.setattr(xla, "examine", lambda: there)
    monkeypatch.setenv("PJRT_DEVICE", "TPU")
    assert xla.examine_for_run(Config.of()) is there
    monkeypatch.setenv("PJRT_DEVICE", "CPU")
    assert not xla.examine_for_run(Config.of()).there
    assert xla.examine_for_run(Config.of(device="xla")).there
