"""The stages of tests and measurements: their steps, the most important first, and their time limits.

Every stage takes less than 10 minutes.
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
"""Configuration keys for cuDNN's attention.

It needs a dropout rate that is a multiple of 1/16, so BERT's rate of 0.1 is replaced.
"""

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
"""Configuration keys to try in the stage ``options``, by the name of the step.

Keys in device_options work only on GPUs.
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
    """Settings that all steps share.

    folder: folder for the output.
    device: name of the device.
    small: True for the tiny sizes of a rehearsal.
    processes: number of processes that run the tests.
    context: name of the device and version of torch, for the figures file.
    """

    folder: Path
    device: str
    small: bool
    processes: int = 4
    context: dict[str, str] = field(default_factory=dict)

    def call(
        self, stage: str, step: str, function: str, seconds: float, needs: float = 10.0, *,
        together: bool = False, environment: dict[str, str] | None = None, **options: Any,
    ) -> BenchmarkStep:  # fmt: skip
        """Return a step that calls a function of this package in a process of its own.

        step: name of the step.
        function: the function, as MODULE.FUNCTION.
        seconds: time limit of the process.
        needs: number of seconds that the stage must have left. If it has less, the step is left out.
        together: True if the step measures no time, so that it may run at the same time as its neighbours.
        options: arguments of the function.
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
        """True for a rehearsal on a processor."""
        return self.device == "cpu"


def smoke(plan: StageSettings) -> BenchmarkStage:
    """Return the first stage: what the device can do, and whether a tiny model trains with all its features.

    The features are each precision and each kernel.
    """
    name = "smoke"
    doctor = BenchmarkStep(name="doctor", command=[sys.executable, "-m", "trainer", "doctor"], seconds=60)
    steps = [
        doctor,
        plan.call(name, "bandwidth", "ceiling.measure_bandwidth", 45),
        plan.call(name, "ceiling", "ceiling.measure_products", 60),
        plan.call(
            name, "losses", "tiny.compare_with_processor", 90, environment={"NVIDIA_TF32_OVERRIDE": "0"}
        ),
    ]
    tried = TINY | ({} if plan.on_processor else TINY_ON_A_GPU)
    for step, flags in tried.items():
        steps.append(plan.call(name, step, "tiny.make_three_updates", 120, together=True, flags=flags))
    absent = [(step, NOT_HERE) for step in TINY_ON_A_GPU if plan.on_processor]
    return BenchmarkStage(name=name, seconds=240, steps=steps, absent=absent)


def phase1(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of BERT-Large in phase 1: this trainer, transformers' model, and LAMB alone.

    LAMB takes the same time in both phases, so only this stage measures it.
    """

    def optimiser(step: str, seconds: float, fused: bool) -> BenchmarkStep:
        """Return a step that measures clipping and LAMB."""
        return plan.call(
            "phase1", step, "optimiser.measure_optimiser", seconds, 20, phase="phase1", fused=fused
        )

    *most, last = _make_phase_steps(plan, "phase1", smaller=1)
    steps = [*most, optimiser("LAMB fused", 45, True), last, optimiser("LAMB compiled", 200, False)]
    return BenchmarkStage(name="phase1", seconds=420, steps=steps)


def phase2(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of BERT-Large in phase 2: this trainer and transformers' model.

    Padded rows and transformers' model need smaller micro-batches than this trainer's flat batches.
    """
    return BenchmarkStage(
        name="phase2", seconds=420, steps=_make_phase_steps(plan, "phase2", smaller=1 if plan.small else 2)
    )


def _make_phase_steps(plan: StageSettings, name: str, smaller: int) -> list[BenchmarkStep]:
    """Return the steps that both phases of BERT-Large have.

    smaller: number by which the size of micro-batches is divided for steps that need much memory.
    """

    def updates(step: str, seconds: float, needs: float = 30.0, **options: Any) -> BenchmarkStep:
        """Return a step that measures updates of this trainer."""
        return plan.call(name, step, "updates.measure_updates", seconds, needs, phase=name, **options)

    def peer(step: str, **options: Any) -> BenchmarkStep:
        """Return a step that measures updates of transformers' model."""
        return plan.call(
            name, step, "peer.measure_transformers", 170, 30, phase=name, divide=smaller, **options
        )

    return [
        plan.call(name, "ceiling", "ceiling.measure_products", 60),
        updates("as shipped", 200, profile=True),
        peer("peer"),
        updates("eager", 60, keys={"compile": False}),
        updates("rows", 90, keys={"rows": True}, divide=smaller),
        peer("peer, head on masked words", masked_only=True),
    ]


def modernbert(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of ModernBERT base: this trainer with both lengths of its recipe, and transformers'
    model.

    transformers' model is measured with the first length only.
    """

    def call(step: str, function: str, length: int, **options: Any) -> BenchmarkStep:
        """Return a step of this stage.

        length: number of tokens of a sequence.
        """
        return plan.call("modernbert", step, function, 120, 30, phase=f"modernbert {length}", **options)

    steps = [
        plan.call("modernbert", "ceiling", "ceiling.measure_products", 60),
        call("1,024 ids", "updates.measure_updates", 1024, profile=True),
        call("8,192 ids", "updates.measure_updates", 8192, profile=True),
        call("peer, 1,024 ids, head on masked words", "peer.measure_transformers", 1024, masked_only=True),
        call("peer, 1,024 ids", "peer.measure_transformers", 1024),
    ]
    return BenchmarkStage(name="modernbert", seconds=420, steps=steps)


def tests(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that runs the tests marked ``gpu``. In a rehearsal it runs the devices' tests."""
    step = plan.call("tests", "pytest", "pytests.run_tests", 480, 30, processes=plan.processes)
    return BenchmarkStage(name="tests", seconds=480, steps=[step])


def extra(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of further checks: a killed and resumed run, --compile-only, and products in fp8."""
    steps = [
        plan.call("extra", "fp8", "ceiling.measure_fp8_products", 60),
        plan.call("extra", "killed and resumed", "resumed.compare_resumed_run", 240, 60),
        *(
            plan.call(
                "extra", f"compile-only {phase}", "compile_only.measure_compile_only", 200, 40, phase=phase
            )
            for phase in ("phase1", "phase2")
        ),
    ]
    return BenchmarkStage(name="extra", seconds=540, steps=steps)


def options(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that measures both phases again and again, each time with other values for a few keys.

    The sets of values are those of OPTIONS. With --only, only some of them are tried.
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
            steps.append(plan.call("options", step, "updates.measure_updates", 120, 30, **given))
    return BenchmarkStage(name="options", seconds=570, steps=steps, absent=absent)


STAGES: dict[str, Callable[[StageSettings], BenchmarkStage]] = {
    made.__name__: made for made in (smoke, phase1, phase2, modernbert, tests, extra, options)
}
_REHEARSAL_SECONDS = 590.0
"""Time limit in seconds of each step on a processor, where other work may slow it down."""

USUAL: Sequence[str] = ("smoke", "phase1", "phase2", "modernbert", "tests", "extra")
"""The stages that run if the command line does not name any."""


def find_stage(name: str, plan: StageSettings, only: Sequence[str] = ()) -> BenchmarkStage:
    """Return the stage with this name. On a processor, its steps get more time.

    only: names of the steps to keep. Empty: all steps are kept.
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
