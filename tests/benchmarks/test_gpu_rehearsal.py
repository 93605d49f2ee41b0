"""``make gpu DEVICE=cpu``: every stage ends on a processor, and every figure is a line."""

import os
import subprocess
import sys

import pytest

from benchmarks.gpu.figures import read_figures
from benchmarks.gpu.kernels import KINDS
from benchmarks.gpu.stages import TINY, TINY_ON_A_GPU
from tests.support.paths import ROOT

CEILING = "share of the measured ceiling"
SPEED = {"sequences", "real tokens", "operations", "update", "first micro-batch of a shape"}
LIMITS = {"peak memory", "share of the peak"}
FIRST_UPDATE = "start of the process to the end of the first update"
UPDATES = SPEED | {"real share of the tokens fed", FIRST_UPDATE}
SHAPES = ("64 to 64", "64 to 192", "64 to 128", "128 to 64")
PRODUCTS = {f"{shape} {way}" for shape in (*SHAPES, "vocabulary") for way in ("forward", "backward")}
LAMB = {"first step", "step"}
MEASURED = {
    "phase1": {
        "as shipped": UPDATES,
        "eager": UPDATES,
        "rows": UPDATES,
        "peer": SPEED,
        "peer, head on masked words": SPEED,
    },
    "phase2": {"as shipped": UPDATES, "peer": SPEED},
    "modernbert": {
        "1,024 ids": UPDATES,
        "8,192 ids": UPDATES,
        "peer, 1,024 ids, head on masked words": SPEED,
    },
    "fp8": {"phase 1 in FP8": UPDATES, "phase 2 in FP8": UPDATES, "phase 1 in bf16": UPDATES},
}
"""Figures of the steps that measure updates. The stage phase1 has measured the ceiling too."""

PROFILED = ("phase 1", "phase 2", "ModernBERT, 1,024 ids")
FIGURES: dict[str, dict[str, set[str]]] = {
    "tests": {"pytest": {"passed", "failed", "skipped"}},
    **MEASURED,
    "phase1": {
        **{step: names | {CEILING} for step, names in MEASURED["phase1"].items()},
        "ceiling": PRODUCTS | {"ceiling"},
        "LAMB fused": LAMB,
        "LAMB compiled": LAMB,
    },
    "profile": {**{step: set() for step in PROFILED}, "ceiling": PRODUCTS | {"ceiling"}},
    "smoke": {
        "doctor": set(),
        "bandwidth": {"copy"},
        "ceiling": PRODUCTS | {"ceiling"},
        "losses": {*(f"loss of update {number}" for number in range(1, 6)), "largest difference"},
        **{flags: {"loss of update 3"} for flags in TINY},
    },
    "extra": {
        "fp8": set(),
        "killed and resumed": {"never stopped", "killed after update", "equal files of tensors"},
        "compile-only phase1": {"compile-only"},
        "compile-only phase2": {"compile-only"},
    },
}
"""The figures of each step of each stage."""

KERNELS = {f"kernels: {kind}" for kind in KINDS}
ABSENT: dict[str, set[tuple[str, str]]] = {
    "tests": set(),
    **{
        stage: {(step, name) for step in steps for name in LIMITS | ({CEILING} - FIGURES[stage][step])}
        for stage, steps in MEASURED.items()
    },
    "profile": {(step, name) for step in PROFILED for name in KERNELS},
    "smoke": {(step, step) for step in TINY_ON_A_GPU},
    "extra": {("fp8", f"{shape} fp8") for shape in SHAPES}
    | {(f"compile-only {phase}", "peak memory") for phase in ("phase1", "phase2")},
}
"""Steps, or figures of a step, that only a GPU has."""


@pytest.mark.thorough
@pytest.mark.parametrize("stage", ABSENT)
def test_every_figure_of_a_stage_is_a_line(stage, tmp_path):
    environment = {**os.environ, "PYTHON": sys.executable, "OUT": str(tmp_path)}
    words = ["make", "gpu", "DEVICE=cpu", f"STAGES={stage}"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = read_figures(tmp_path)
    assert {line["step"]: line["status"] for line in lines if "status" in line} == dict.fromkeys(
        FIGURES[stage], "done"
    )
    for step, names in FIGURES[stage].items():
        found = {line["name"]: line["value"] for line in lines if line["step"] == step and "value" in line}
        assert found.keys() == names, step
        may_be_zero = {"largest difference", "failed", "skipped"}
        assert all(value > 0 or name in may_be_zero for name, value in found.items()), found
    absent = {(line["step"], line["name"]) for line in lines if line.get("absent") == "not on a processor"}
    assert absent == ABSENT[stage]
    assert all(line["context"]["device"].startswith("cpu: ") for line in lines)
    assert "all steps done: yes" in done.stdout
    assert len(done.stdout) < 10_000
