"""The script of ``make demo``, with stand-ins for the programs that it calls."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.commands import Outcome, finish
from tests.support.paths import ROOT

SOON = 60
"""Seconds that a busy machine may take for what is done at once."""

STAND_IN = f"""#!{sys.executable}
import os, subprocess, sys
from pathlib import Path

words = [Path(sys.argv[0]).name, *sys.argv[1:]]
with open("calls", "a") as calls:
    calls.write(" ".join(words) + chr(10))
if "tools/install_extras.py" in words and "train" in words:
    sys.exit(subprocess.run(os.environ["TORCH"], shell=True).returncode)
if "tools/install_horovod.py" in words:
    sys.exit(subprocess.run(os.environ["HOROVOD"], shell=True).returncode)
if "bertdata" in words and os.environ.get("BERTDATA"):
    sys.exit(subprocess.run(os.environ["BERTDATA"], shell=True).returncode)
if "--output" in words:
    for phase in ("phase1", "phase2"):
        os.makedirs(Path(words[words.index("--output") + 1], phase), exist_ok=True)
if words[0] == "horovodrun":
    print("[0]<stdout>:a line")
    print("[1]<stderr>:a bar of [3]<signs>: 80 %", file=sys.stderr)
if "--output-dir" in words:
    run = Path(words[words.index("--output-dir") + 1])
    run.mkdir(exist_ok=True)
    (run / "curves.svg").touch()
    (run / "eval_results.txt").write_text("masked_lm_accuracy = 0.5" + chr(10))
"""


@pytest.fixture
def start(tmp_path: Path):
    """Start the demo with shell commands in place of the builds, of bertdata, and of what installs torch."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bertdata", "python", "horovodrun", "torchrun"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    started = []

    def call(horovod: str, bertdata: str = "", torch: str = "true") -> "subprocess.Popen[str]":
        own = {"BIN": "bin", "CONSTRAINTS": "", "HOROVOD": horovod, "BERTDATA": bertdata, "TORCH": torch}
        environment = {**os.environ, **own, "STARTED": str(int(time.time()) - 75)}
        process = subprocess.Popen(
            ["bash", str(ROOT / "tools" / "demo.sh")],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def run(process: "subprocess.Popen[str]") -> Outcome:
    return finish(process, SOON)


def test_horovod_is_built_beside_the_shards_and_awaited_before_the_training(start, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    # The build ends only when the last data for the training are made.
    wait = f"touch {begun}; until grep -q output.demo-output/eval calls; do sleep 0.05; done; sleep 0.5"
    outcome = run(start(wait))
    assert outcome.status == 0, outcome.err
    assert begun.exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls[-2:]] == ["horovodrun", "horovodrun"]
    verified = outcome.out.index("Shards of both phases, made and verified: 1 min ")
    waiting = outcome.out.index("Waiting for Horovod to be built")
    done = outcome.out.index("Done: 1 min ")
    assert verified < waiting < done
    assert "(log: demo-output/horovod.log)" in outcome.out[:verified]


def test_lines_of_workers_appear_without_horovodruns_prefixes(start) -> None:
    outcome = run(start("true"))
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines.count("a line") == 2  # of two phases
    assert lines.count("a bar of [3]<signs>: 80 %") == 2


def test_a_training_that_fails_ends_the_demo(start, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "horovodrun"
    program.write_text("#!/bin/sh\necho '[0]<stderr>:trainer: error: as by accident'\nexit 3\n")
    outcome = run(start("true"))
    assert outcome.status == 3
    assert outcome.out.splitlines()[-1] == "trainer: error: as by accident"


def test_where_horovod_cannot_be_built_torchrun_starts_the_workers(start, tmp_path: Path) -> None:
    outcome = run(start("echo no compiler >&2; exit 1"))
    assert outcome.status == 0, outcome.err
    (told,) = [line for line in outcome.out.splitlines() if "could not be built" in line]
    assert told == (
        "Horovod could not be built (demo-output/horovod.log says why): torchrun starts the workers instead"
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[:4] for call in calls[-2:]] == [
        ["torchrun", "--standalone", "--nproc-per-node", "2"]
    ] * 2
    assert "Done: 1 min " in outcome.out


def test_a_failed_installation_of_torch_is_told_with_the_end_of_its_log_after_the_shards(start) -> None:
    outcome = run(start("true", torch="seq 1 100; echo no space >&2; exit 1"))
    assert outcome.status == 1
    *_, before, last, blank, told = outcome.out.splitlines()
    assert (before, last, blank) == ("100", "no space", "")
    assert told.startswith(
        "The shards in demo-output are complete; only the training is left out (after 1 min "
    )
    assert "PyTorch could not be installed. The end of demo-output/horovod.log:" in outcome.out
    assert "\n50\n" not in outcome.out


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_background_build_too(how: signal.Signals, start, tmp_path: Path) -> None:
    begun, builder = tmp_path / "begun", tmp_path / "builder"
    process = start(
        f"echo $$ > {builder}.part; mv {builder}.part {builder}; exec sleep 600",
        f"touch {begun}; sleep 600",
    )
    deadline = time.monotonic() + SOON
    while not (begun.exists() and builder.exists()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, how)  # the build is in a group of its own, as it is on a terminal
    assert run(process).status == 128 + how
    while Path("/proc", builder.read_text().strip()).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
