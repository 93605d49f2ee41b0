"""Short runs of the trainer's command with a tiny model, to check that it trains with every precision and
kernel.
"""

import csv
import shutil
from pathlib import Path

from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes
from trainer.__main__ import main

COMPARED = 5
"""Number of updates for which the losses on the two devices are compared."""


def make_three_updates(figures: Figures, sizes: Sizes, flags: list[str]) -> None:
    """Train for three updates with these flags of the trainer, and write the last loss."""
    rows = train_tiny(figures.folder / "runs" / figures.step, 3, [f"--device={sizes.device}", *flags])
    figures.add("loss of update 3", rows[-1], "nats")


def compare_with_processor(figures: Figures, sizes: Sizes) -> None:
    """Write the losses of the same run on the processor and on the device, and their largest difference.

    Both runs are in fp32 without dropout. In a rehearsal, the second run uses padded rows instead of the
    device.
    """
    place = figures.folder / "runs"
    flags = [f"--device={sizes.device}", *["--rows"] * (sizes.device == "cpu")]
    there = train_tiny(
        place / "losses on the processor", COMPARED, ["--device=cpu"]
    )  # The processor runs first, because starting CUDA changes how the processor multiplies.
    here = train_tiny(place / "losses there", COMPARED, flags)
    pairs = list(zip(there, here, strict=True))
    for number, (processor, device) in enumerate(pairs, start=1):
        figures.add(f"loss of update {number}", device, "nats", on_the_processor=processor)
    figures.add("largest difference", max(abs(one - other) for one, other in pairs), "nats")


def train_tiny(place: Path, steps: int, flags: list[str]) -> list[float]:
    """Train the configuration ``tiny`` on generated data, and return the loss of each update.

    The run is in this process, without compiling.

    place: directory of the run.
    flags: further flags of the trainer.
    """
    words = [
        "--config=tiny",
        "--generated-data",
        f"--steps={steps}",
        "--warmup=0",
        "--log-every=1",
        "--vocab-size=1000",
    ]
    words += ["--seed=1", "--no-compile", "--no-progress-bar", f"--output-dir={place}", *flags]
    shutil.rmtree(place, ignore_errors=True)  # Earlier stages with the same folder may have left files here.
    if status := main(["pretrain", *words]):
        raise SystemExit(status)
    with (place / "training.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [float(row["mlm_loss"]) + float(row["nsp_loss"]) for row in rows]
