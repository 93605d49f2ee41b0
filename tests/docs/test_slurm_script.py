"""The batch script of docs/training.md for jobs that Slurm requeues, with stand-ins for srun and scontrol."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.console_pages import blocks
from tests.support.object_stores import Store
from tests.support.paths import ROOT
from tests.support.training_runs import MODEL

pytestmark = pytest.mark.thorough

SECONDS = 240
SRUN = """\
#!/bin/bash
# As Slurm does: sbatch --open-mode=append sets SLURM_OPEN_MODE, and then srun appends to its files.
[ "$1" = --kill-on-bad-exit=1 ] && [ "$2" = --output=last.log ] || exit 2
shift 2
[ "$SLURM_OPEN_MODE" = a ] || : >last.log
echo $$ >srun.pid
exec {python} {stand_in} 2 "$@" >>last.log 2>&1
"""
SCONTROL = '#!/bin/bash\necho "$@" >>requeued\n'


@pytest.fixture
def script(store: Store, training_set: Path, tmp_path: Path) -> Path:
    """The script with the names and the sizes of this test. The data are in the store."""
    for path in training_set.rglob("*"):
        if path.is_file():
            store.put(f"shards/{path.relative_to(training_set)}", path.read_bytes())
    (text,) = (
        block.text
        for block in blocks((ROOT / "docs" / "training.md").read_text(encoding="utf-8"))
        if block.text.startswith("#!/bin/bash\n#SBATCH")
    )
    small = " ".join(
        [*MODEL, "--batch-size=4", "--steps=60", "--warmup=2", "--no-progress-bar", "--log-every=1"]
    )
    text = text.replace("s3://bucket", store.url).replace("nvidia_large_phase1", f"tiny {small}")
    place = tmp_path / "job.sh"
    place.write_text(text.replace("--global-batch-size 65536", "--global-batch-size 8"), encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    stand_in = ROOT / "tests" / "support" / "srun_stand_in.py"
    for name, code in {
        "srun": SRUN.format(python=sys.executable, stand_in=stand_in),
        "scontrol": SCONTROL,
    }.items():
        (programs / name).write_text(code, encoding="utf-8")
        (programs / name).chmod(0o755)
    return place


def start(script: Path) -> subprocess.Popen[bytes]:
    """Start the script as sbatch would, in its own directory."""
    folder = script.parent
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    variables = {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "SLURM_JOB_ID": "17",
        "SLURM_OPEN_MODE": "a",
        "BERTDATA_CACHE": str(folder / "cache"),
    }
    return subprocess.Popen(["bash", str(script)], cwd=folder, env={**os.environ, **variables})


def wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a text is in the log of the job."""
    deadline = time.monotonic() + SECONDS
    while not (log.exists() and text in log.read_text(encoding="utf-8")):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_stopped_job_is_requeued_and_a_finished_one_is_not(script: Path, tmp_path: Path) -> None:
    log, requeued = tmp_path / "last.log", tmp_path / "requeued"
    job = start(script)
    wait_for("step 2/60", log, job)
    os.kill(int((tmp_path / "srun.pid").read_text()), signal.SIGTERM)
    assert job.wait(SECONDS) == 0, log.read_text(encoding="utf-8")
    assert "stopped after update" in log.read_text(encoding="utf-8")
    assert requeued.read_text() == "requeue 17\n"
    job = start(script)
    assert job.wait(SECONDS) == 0, log.read_text(encoding="utf-8")
    said = log.read_text(encoding="utf-8")
    assert "resumed" in said
    assert "step 60/60" in said
    assert requeued.read_text() == "requeue 17\n"
