"""The runner of the GPU stages: limits, errors, whole output; and its command line."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu.figures import read_figures
from benchmarks.gpu.runner import BenchmarkStage, BenchmarkStep, run_stage
from benchmarks.gpu.stages import FIRST, STAGES, USUAL, StageSettings, find_stage
from tests.support.paths import ROOT

FORKS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(60)
"""
FAILS = "import sys; print('out'); [print(f'line {n}', file=sys.stderr) for n in range(100)]; 1 / 0"


def step(name: str, code: str, *words: object, seconds: float = 20, **more: object) -> BenchmarkStep:
    command = [sys.executable, "-c", code, *map(str, words)]
    return BenchmarkStep(name=name, command=command, seconds=seconds, **{"needs": 1, **more})


def run(folder, *steps: BenchmarkStep, seconds: float = 60, **more: object) -> bool:
    return run_stage(BenchmarkStage(name="stage", seconds=seconds, steps=steps, **more), folder, {})


def is_running(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_step_over_its_limit_is_killed_with_its_children_and_the_next_one_runs(tmp_path):
    start = time.monotonic()
    pids = tmp_path / "pids"
    assert not run(tmp_path, step("hangs", FORKS, pids, seconds=1.5), step("after", "pass"))
    assert time.monotonic() - start < 20
    hung, after = read_figures(tmp_path)
    assert (hung["step"], hung["status"], after["status"]) == ("hangs", "timed out", "done")
    assert hung["error"].endswith("(limit 2 s)")
    assert_end(pids)


def assert_end(pids: Path) -> None:
    """The processes whose numbers are in the file end within ten seconds."""
    deadline = time.monotonic() + 10
    for pid in map(int, pids.read_text().split()):
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_running(pid)


TERMINATED = """
import sys
from pathlib import Path
from benchmarks.gpu.runner import end_with_children
from tests.benchmarks.test_gpu_runner import FORKS, run, step
end_with_children()
run(Path(sys.argv[1]), step("hangs", FORKS, Path(sys.argv[1]) / "pids"))
"""


def test_a_run_that_is_terminated_leaves_no_step_behind_to_spoil_the_next_ones_figures(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", TERMINATED, str(tmp_path)], cwd=ROOT)
    pids = tmp_path / "pids"
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert_end(pids)


def test_a_failed_steps_whole_output_is_kept_and_its_error_is_a_line_of_json(tmp_path):
    assert not run(tmp_path, step("fails", FAILS), step("after", "pass"))
    failed, after = read_figures(tmp_path)
    assert (failed["status"], failed["exit_status"], after["status"]) == ("failed", 1, "done")
    assert failed["error"].endswith("ZeroDivisionError: division by zero")
    kept = (tmp_path / "logs" / f"{failed['log']}.err").read_text()
    assert [f"line {number}" for number in range(100)] == kept.splitlines()[:100]
    assert (tmp_path / "logs" / f"{failed['log']}.out").read_text() == "out\n"


def test_an_error_far_from_the_end_is_told_too(tmp_path):
    code = "print('ValueError: the reason'); [print('advice', n) for n in range(20)]; raise SystemExit(3)"
    assert not run(tmp_path, step("fails", code))
    (failed,) = read_figures(tmp_path)
    assert failed["error"].splitlines()[0] == "ValueError: the reason"


def test_a_step_that_does_not_fit_any_more_is_left_out(tmp_path):
    assert not run(tmp_path, step("first", "pass"), step("long", "pass", needs=100))
    first, left_out = read_figures(tmp_path)
    assert (first["status"], left_out["status"]) == ("done", "left out")
    assert "needs 100 s, the stage has " in left_out["error"]


def test_a_step_never_exceeds_what_the_stage_has_left(tmp_path):
    start = time.monotonic()
    assert not run(tmp_path, step("hangs", "import time; time.sleep(60)", seconds=60), seconds=1.5)
    assert time.monotonic() - start < 20
    assert read_figures(tmp_path)[0]["status"] == "timed out"


def test_steps_that_are_not_timed_run_at_the_same_time(tmp_path):
    meets = """
import pathlib, sys, time
here, there = map(pathlib.Path, sys.argv[1:])
here.touch()
while not there.exists():
    time.sleep(0.01)
"""
    one, other = tmp_path / "one", tmp_path / "other"
    steps = [step("a", meets, one, other, together=True), step("b", meets, other, one, together=True)]
    assert run(tmp_path, *steps)


def test_what_a_device_cannot_run_is_named(tmp_path):
    assert run(tmp_path, absent=[("CUDA graphs", "not on a processor")])
    (line,) = read_figures(tmp_path)
    assert (line["step"], line["absent"]) == ("CUDA graphs", "not on a processor")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["smok"], f"there is no stage 'smok'; the stages are {', '.join(STAGES)}"),
        (["tests", "--only=eager"], "--only: tests has no step 'eager'; the steps are pytest"),
    ],
)
def test_a_wrong_name_is_one_clear_line(words, fault, capsys):
    assert command.main(words) == 2
    assert capsys.readouterr().err == f"benchmarks.gpu: {fault}\n"


def test_a_device_that_is_not_there_is_one_line(tmp_path, capsys):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHON": sys.executable, "OUT": str(tmp_path)}
    words = ["tools/gpu_check.sh", "smoke"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("benchmarks.gpu: device 'cuda' is not there: worker 0 has no GPU")


def test_every_stage_is_under_ten_minutes_and_its_first_steps_fit(tmp_path):
    plan = StageSettings(folder=tmp_path, device="cuda", small=False)
    for name in STAGES:
        stage = find_stage(name, plan)
        assert stage.name == name
        assert stage.seconds < 600
        names = [one.name for one in stage.steps]
        assert len(set(names)) == len(names)
        assert all(one.needs <= one.seconds <= 480 for one in stage.steps)
        if name in USUAL:
            assert sum(one.needs for one in stage.steps if not one.together) < stage.seconds


def test_the_first_five_stages_share_ten_minutes_and_four_of_them_nine():
    """The rest of the nine minutes is for finding the device and building the kernels."""
    plan = StageSettings(folder=Path(), device="cuda", small=False)
    shares = [find_stage(name, plan).seconds for name in FIRST]
    assert FIRST[:4] == ("tests", "phase2", "modernbert", "fp8")
    assert sum(shares) <= 600
    assert sum(shares[:4]) <= 540 - 30


def test_figures_are_printed_as_soon_as_their_step_has_ended(tmp_path, capsys):
    code = """
import json, pathlib, sys
line = {"stage": "stage", "step": "measures", "name": "sequences", "value": 957.0, "unit": "a second"}
with (pathlib.Path(sys.argv[1]) / "figures.jsonl").open("a") as file:
    file.write(json.dumps(line) + "\\n")
"""
    assert run(tmp_path, step("measures", code, tmp_path))
    assert "benchmarks.gpu:     sequences: 957 a second" in capsys.readouterr().err.splitlines()
