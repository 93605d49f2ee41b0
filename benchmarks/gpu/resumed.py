"""Test that a run which is killed and resumed ends with the same tensors as an uninterrupted run.

The run has one of the configurations that come with the trainer, and reads real shards.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.corpus import ROOT
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes

STEPS, EVERY = 40, 10
"""Number of updates of a run, and number of updates after which each checkpoint is written."""

SMALL_MODEL = (
    "--hidden-size=128",
    "--num-hidden-layers=2",
    "--num-attention-heads=2",
    "--intermediate-size=256",
    "--vocab-size=4000",
    "--max-seq-length=64",
    "--max-predictions-per-seq=10",
    "--batch-size=8",
    "--global-batch-size=16",
)
WAIT_SECONDS = 200.0
"""Longest time in seconds to wait for the checkpoint after which the run is killed."""


def compare_resumed_run(figures: Figures, sizes: Sizes) -> None:
    """Compare the last tensors of an uninterrupted run and of a resumed run.

    There are three runs: one is uninterrupted, one is killed after its second checkpoint, and one is resumed
    from that checkpoint. The seconds of each are written.
    """
    place = figures.folder / "killed"
    shutil.rmtree(place, ignore_errors=True)
    make_shards(place / "shards")
    commands = {name: make_command(place, name, sizes.device) for name in ("whole", "killed")}
    start = time.perf_counter()
    subprocess.run(commands["whole"], check=True)
    figures.add("never stopped", time.perf_counter() - start, "s")
    reached = kill_after_checkpoint(commands["killed"], place / "killed", 2 * EVERY)
    figures.add("killed after update", reached, "updates")
    subprocess.run([*commands["killed"], "--resume"], check=True)
    whole, resumed = (read_tensors(place / name, STEPS) for name in ("whole", "killed"))
    different = sorted(name for name in whole if whole[name] != resumed.get(name))
    if different or whole.keys() != resumed.keys():
        raise SystemExit(f"the resumed run's tensors differ: {', '.join(different) or 'other files'}")
    figures.add("equal files of tensors", len(whole), "files", bytes=sum(map(len, whole.values())))


def make_shards(output: Path) -> None:
    """Make shards of the sample corpus in the directory ``output``."""
    parts = sorted(map(str, (ROOT / "golden" / "corpus").glob("part-*")))
    words = ["create", *parts, f"--output={output}", f"--vocab={ROOT / 'golden' / 'vocab.txt'}"]
    sizes = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=5", "--workers=1"]
    subprocess.run([sys.executable, "-m", "bertdata", *words, *sizes], check=True)


def make_command(place: Path, name: str, device: str) -> list[str]:
    """Return the command that trains a small model with the configuration on these shards.

    place: directory of shards and runs.
    name: name of the run.
    """
    words = [
        "pretrain",
        "--config=bert_large_phase1_h100",
        *SMALL_MODEL,
        f"--device={device}",
        "--no-compile",
    ]
    words += [f"--train-data={place / 'shards'}", f"--output-dir={place / name}", "--deterministic"]
    words += [f"--steps={STEPS}", f"--checkpoint-every={EVERY}", "--no-progress-bar"]
    return [sys.executable, "-m", "trainer", *words]


def kill_after_checkpoint(words: list[str], run: Path, number: int) -> int:
    """Start the run, and kill its process group with SIGKILL when a certain checkpoint exists.

    Returns the number of the newest checkpoint.

    words: the command.
    run: directory of the run.
    number: number of updates after which the checkpoint is written.
    """
    process = subprocess.Popen(words, start_new_session=True)
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while number not in list_checkpoints(run):
            if process.poll() is not None:
                raise SystemExit(f"the run ended before it was killed, with exit status {process.returncode}")
            if time.monotonic() > deadline:
                raise SystemExit(f"no checkpoint of update {number} within {WAIT_SECONDS:.0f} s")
            time.sleep(0.005)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return max(list_checkpoints(run))


def list_checkpoints(run: Path) -> list[int]:
    """Return the numbers of the run's checkpoints. A checkpoint's number is that of its update."""
    return [int(path.name.rpartition("-")[2]) for path in run.glob("checkpoints/step-????????")]


def read_tensors(run: Path, number: int) -> dict[str, bytes]:
    """Return the bytes of each tensor file of a checkpoint, by file name."""
    folder = run / "checkpoints" / f"step-{number:08d}"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}
