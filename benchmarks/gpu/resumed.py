"""Test that a killed and resumed run ends with the same tensors as a run without interruption.

The run is a preset's, on real shards.
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
"""Number of updates of a run, and number of updates from one checkpoint to the next."""

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
"""Longest time to wait for the checkpoint after which a run is killed."""


def killed_and_resumed(figures: Figures, sizes: Sizes) -> None:
    """Compare the last tensors of an uninterrupted run and of a resumed run, and write the runs' seconds.

    There are three runs: uninterrupted, killed after the second checkpoint, and resumed from it.
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
    """Make shards of the sample corpus."""
    parts = sorted(map(str, (ROOT / "golden" / "corpus").glob("part-*")))
    words = ["create", *parts, f"--output={output}", f"--vocab={ROOT / 'golden' / 'vocab.txt'}"]
    sizes = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=5", "--workers=1"]
    subprocess.run([sys.executable, "-m", "bertdata", *words, *sizes], check=True)


def make_command(place: Path, name: str, device: str) -> list[str]:
    """Return the command that trains the preset with a small model on the shards."""
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
    """Start the run and send SIGKILL to its process group when the checkpoint exists.

    Return the number of its newest checkpoint. number: the update of the checkpoint to wait for.
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
    """Return the update numbers of the run's checkpoints."""
    return [int(path.name.rpartition("-")[2]) for path in run.glob("checkpoints/step-????????")]


def read_tensors(run: Path, number: int) -> dict[str, bytes]:
    """Return the bytes of each tensor file of a checkpoint, by file name."""
    folder = run / "checkpoints" / f"step-{number:08d}"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}
