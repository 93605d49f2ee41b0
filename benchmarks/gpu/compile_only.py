"""The trainer's ``--compile-only`` with a preset: its time and memory."""

import time

from benchmarks.gpu.clock import add_peak_memory
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes
from trainer.__main__ import main


def compile_only(figures: Figures, sizes: Sizes, phase: str) -> None:
    """Seconds and peak memory of the preset's --compile-only."""
    found = sizes.phases[phase]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in found.keys.items()]
    words = [f"--config={found.config}", f"--device={sizes.device}", "--generated-data", "--compile-only"]
    start = time.perf_counter()
    if status := main(["pretrain", *words, *flags]):
        raise SystemExit(status)
    figures.add("compile-only", time.perf_counter() - start, "s")
    add_peak_memory(figures, sizes.device)
