"""The stages: their steps, the most important first, each with a time limit. Every stage takes less than 10
minutes.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.gpu.figures import NOT_HERE
from benchmarks.gpu.runner import BenchmarkStage, BenchmarkStep

CUDNN = {"device_options": {"attention": "cudnn"}, "attention_probs_dropout_prob": 0.125}
"""Keys for cuDNN's attention. It needs dropout to be a multiple of 1/16, so BERT's 0.1 is replaced."""

OPTIONS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "eager": {"compile": False},
    "CUDA graphs": {"device_options": {"cuda_graphs": True}},
    "attention efficient": {"device_options": {"attention": "efficient"}},
    "attention cudnn": CUDNN,
    "attention math": {"device_options": {"attention": "math"}},
    "eager rows": {"compile": False, "rows": True},
    "eager deterministic": {"compile": False, "deterministic": True},
    "eager fp16": {"compile": False, "precision": "fp16"},
    "eager fp32": {"compile": False, "precision": "fp32"},
}
"""For the stage ``options``: keys that replace the preset's. Options with device_options are only for GPUs.
"""

TINY: dict[str, list[str]] = {
    "fp32": [],
    "bf16": ["--precision=bf16"],
    "fp16": ["--precision=fp16"],
    "compiled": ["--precision=bf16", "--compile"],
}
TINY_ON_A_GPU: dict[str, list[str]] = {
    "CUDA graphs": ["--precision=bf16", "--cuda-graphs"],
    "attention flash": ["--precision=bf16", "--attention=flash", "--attention-probs-dropout-prob=0.1"],
    "attention efficient": ["--attention=efficient", "--attention-probs-dropout-prob=0.1"],
    "attention cudnn": ["--precision=bf16", "--attention=cudnn", "--attention-probs-dropout-prob=0.125"],
    "attention math": ["--precision=bf16", "--attention=math", "--attention-probs-dropout-prob=0.1"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSettings:
    """Settings of all steps. folder: for the output. processes: number of processes that run the tests."""

    folder: Path
    device: str
    small: bool
    processes: int = 4
    context: dict[str, str] = field(default_factory=dict)

    def call(
        self, stage: str, step: str, function: str, seconds: float, needs: float = 10.0, *,
        together: bool = False, environment: dict[str, str] | None = None, **options: Any,
    ) -> BenchmarkStep:  # fmt: skip
        """Return a step that calls a function of this package with these options.

        function: MODULE.FUNCTION.
        """
        about = {"stage": stage, "step": step, "context": self.context}
        given = {"folder": str(self.folder), "device": self.device, "small": self.small}
        text = json.dumps({**given, "about": about, "options": options})
        return BenchmarkStep(
            name=step,
            command=[sys.executable, "-m", "benchmarks.gpu.step", function, text],
            seconds=seconds,
            needs=needs,
            together=together,
            environment=environment or {},
        )

    @property
    def on_processor(self) -> bool:
        return self.device == "cpu"


def smoke(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that checks the device: its limits, and whether it trains with each precision and
    kernel.
    """
    name = "smoke"
    doctor = BenchmarkStep(name="doctor", command=[sys.executable, "-m", "trainer", "doctor"], seconds=60)
    steps = [
        doctor,
        plan.call(name, "bandwidth", "ceiling.bandwidth", 45),
        plan.call(name, "ceiling", "ceiling.products", 60),
        plan.call(name, "losses", "tiny.processor_beside", 90, environment={"NVIDIA_TF32_OVERRIDE": "0"}),
    ]
    tried = TINY | ({} if plan.on_processor else TINY_ON_A_GPU)
    for step, flags in tried.items():
        steps.append(plan.call(name, step, "tiny.three_updates", 120, together=True, flags=flags))
    absent = [(step, NOT_HERE) for step in TINY_ON_A_GPU if plan.on_processor]
    return BenchmarkStage(name=name, seconds=240, steps=steps, absent=absent)


def phase1(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of phase 1: BERT-Large by its preset, transformers' model, and LAMB alone.

    LAMB's time is the same in both phases, so only this stage measures it.
    """

    def optimiser(step: str, seconds: float, fused: bool) -> BenchmarkStep:
        return plan.call("phase1", step, "optimiser.optimiser", seconds, 20, phase="phase1", fused=fused)

    *most, last = _make_phase_steps(plan, "phase1", smaller=1)
    steps = [*most, optimiser("LAMB fused", 45, True), last, optimiser("LAMB compiled", 200, False)]
    return BenchmarkStage(name="phase1", seconds=420, steps=steps)


def phase2(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of phase 2: BERT-Large by its preset, and transformers' model.

    Padded rows and transformers' model need smaller micro-batches.
    """
    return BenchmarkStage(
        name="phase2", seconds=420, steps=_make_phase_steps(plan, "phase2", smaller=1 if plan.small else 2)
    )


def _make_phase_steps(plan: StageSettings, name: str, smaller: int) -> list[BenchmarkStep]:
    """Return the steps of a phase.

    smaller: number by which micro-batches are divided where memory is short.
    """

    def updates(step: str, seconds: float, needs: float = 30.0, **options: Any) -> BenchmarkStep:
        return plan.call(name, step, "updates.updates", seconds, needs, phase=name, **options)

    def peer(step: str, **options: Any) -> BenchmarkStep:
        return plan.call(name, step, "peer.peer", 170, 30, phase=name, divide=smaller, **options)

    return [
        plan.call(name, "ceiling", "ceiling.products", 60),
        updates("as shipped", 200, profile=True),
        peer("peer"),
        updates("eager", 60, keys={"compile": False}),
        updates("rows", 90, keys={"rows": True}, divide=smaller),
        peer("peer, head on masked words", masked_only=True),
    ]


def modernbert(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of ModernBERT base: both lengths of its recipe, and transformers' model at the first
    length.
    """

    def call(step: str, function: str, length: int, **options: Any) -> BenchmarkStep:
        return plan.call("modernbert", step, function, 120, 30, phase=f"modernbert {length}", **options)

    steps = [
        plan.call("modernbert", "ceiling", "ceiling.products", 60),
        call("1,024 ids", "updates.updates", 1024, profile=True),
        call("8,192 ids", "updates.updates", 8192, profile=True),
        call("peer, 1,024 ids, head on masked words", "peer.peer", 1024, masked_only=True),
        call("peer, 1,024 ids", "peer.peer", 1024),
    ]
    return BenchmarkStage(name="modernbert", seconds=420, steps=steps)


def tests(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that runs the tests marked ``gpu``, or in a rehearsal the tests of the devices."""
    step = plan.call("tests", "pytest", "pytests.tests", 480, 30, processes=plan.processes)
    return BenchmarkStage(name="tests", seconds=480, steps=[step])


def extra(plan: StageSettings) -> BenchmarkStage:
    """Return the stage with a run that is killed and resumed, the memory of --compile-only, and products in
    fp8.
    """
    steps = [
        plan.call("extra", "fp8", "ceiling.eight_bits", 60),
        plan.call("extra", "killed and resumed", "resumed.killed_and_resumed", 240, 60),
        *(
            plan.call("extra", f"compile-only {phase}", "compile_only.compile_only", 200, 40, phase=phase)
            for phase in ("phase1", "phase2")
        ),
    ]
    return BenchmarkStage(name="extra", seconds=540, steps=steps)


def options(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that trains both phases with other keys than the preset's. --only chooses some of
    them.
    """
    steps, absent = [], []
    for phase in ("phase1", "phase2"):
        for option, keys in OPTIONS.items():
            step = f"{phase} {option}"
            if plan.on_processor and "device_options" in keys:
                absent.append((step, NOT_HERE))
                continue
            smaller = 2 if phase == "phase2" and keys.get("rows") and not plan.small else 1
            given = {"phase": phase, "keys": keys, "divide": smaller}
            steps.append(plan.call("options", step, "updates.updates", 120, 30, **given))
    return BenchmarkStage(name="options", seconds=570, steps=steps, absent=absent)


STAGES: dict[str, Callable[[StageSettings], BenchmarkStage]] = {
    made.__name__: made for made in (smoke, phase1, phase2, modernbert, tests, extra, options)
}
_REHEARSAL_SECONDS = 590.0
"""Time limit of each step on a processor, which other work may slow down. It is half the limit of a stage."""

USUAL: Sequence[str] = ("smoke", "phase1", "phase2", "modernbert", "tests", "extra")
"""The stages that run if the command line names none."""


def find_stage(name: str, plan: StageSettings, only: Sequence[str] = ()) -> BenchmarkStage:
    """Return the stage with this name. On a processor, its steps get more time.

    only: names of the steps to keep.
    """
    stage = STAGES[name](plan)
    if plan.on_processor:
        steps = [replace(step, seconds=_REHEARSAL_SECONDS) for step in stage.steps]
        stage = replace(stage, seconds=2 * _REHEARSAL_SECONDS, steps=steps)
    if not only:
        return stage
    return replace(
        stage,
        steps=[step for step in stage.steps if step.name in only],
        absent=[(step, reason) for step, reason in stage.absent if step in only],
    )


def list_step_names(name: str, plan: StageSettings) -> list[str]:
    """Return the names of all steps of a stage, including steps that the device cannot run."""
    stage = STAGES[name](plan)
    return [*(step.name for step in stage.steps), *(step for step, _ in stage.absent)]
