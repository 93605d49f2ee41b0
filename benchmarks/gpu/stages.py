"""The stages of tests and measurements in the order of their worth: their steps and their time limits.

Every stage takes less than 10 minutes. The first five stages share 10 minutes, because a GPU is often lent
for a quarter of an hour. Their steps are ordered by worth too.
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


_REHEARSAL_SECONDS = 590.0
"""Time limit in seconds of each step on a processor, where other work may slow it down."""


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


def tests(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that runs the tests marked ``gpu``. In a rehearsal it runs the devices' tests."""
    seconds = _REHEARSAL_SECONDS if plan.on_processor else 140.0
    step = plan.call(
        "tests", "pytest", "pytests.run_tests", seconds, 30, processes=plan.processes, limit=seconds - 10
    )
    return BenchmarkStage(name="tests", seconds=seconds, steps=[step])


def phase2(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of BERT-Large in phase 2: this trainer as shipped, and transformers' model."""
    steps = [
        _measure_updates(plan, "phase2", "as shipped", 80, "phase2"),
        _measure_peer(plan, "phase2", "peer", 100, "phase2", divide=_halve(plan)),
    ]
    return BenchmarkStage(name="phase2", seconds=130, steps=steps)


def modernbert(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of ModernBERT base: this trainer with both lengths of its recipe, and transformers'
    model.

    transformers' model is measured with the first length only, with its head on masked words, as fast as it
    can be.
    """
    name, short, long = "modernbert", "modernbert 1024", "modernbert 8192"
    steps = [
        _measure_updates(plan, name, "1,024 ids", 60, short),
        _measure_peer(plan, name, "peer, 1,024 ids, head on masked words", 80, short, masked_only=True),
        _measure_updates(plan, name, "8,192 ids", 60, long),
    ]
    return BenchmarkStage(name=name, seconds=115, steps=steps)


def fp8(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of BERT-Large in FP8, next to bf16. The stage phase2 has measured phase 2 in bf16."""
    name, keys = "fp8", dict[str, Any](precision="fp8")
    if plan.on_processor:
        keys |= {"fp8_emulation": True}
    if plan.small:
        keys |= {"num_hidden_layers": 3}  # the first and the last layer stay in bf16
    steps = [
        _measure_updates(plan, name, "phase 1 in FP8", 70, "phase1", keys=keys),
        _measure_updates(plan, name, "phase 2 in FP8", 80, "phase2", keys=keys),
        _measure_updates(plan, name, "phase 1 in bf16", 60, "phase1"),
    ]
    return BenchmarkStage(name=name, seconds=120, steps=steps)


def profile(plan: StageSettings) -> BenchmarkStage:
    """Return the stage that finds how long the kernels of each type take.

    torch's compiler takes most graphs from its cache on the disk, if the stages above have run before.
    """

    def kernels(step: str, phase: str) -> BenchmarkStep:
        """Return a step that measures the kernels of an update.

        phase: name of the configuration.
        """
        return plan.call("profile", step, "updates.measure_kernels", 60, 20, phase=phase)

    steps = [
        kernels("phase 2", "phase2"),
        kernels("ModernBERT, 1,024 ids", "modernbert 1024"),
        plan.call("profile", "ceiling", "ceiling.measure_products", 40, 15),
        kernels("phase 1", "phase1"),
    ]
    return BenchmarkStage(name="profile", seconds=95, steps=steps)


def _measure_updates(
    plan: StageSettings, stage: str, step: str, seconds: float, phase: str, **options: Any
) -> BenchmarkStep:
    """Return a step that measures updates of this trainer.

    seconds: time limit of the step.
    phase: name of the configuration.
    options: further arguments of the function ``measure_updates``.
    """
    return plan.call(stage, step, "updates.measure_updates", seconds, 30, phase=phase, **options)


def _measure_peer(
    plan: StageSettings, stage: str, step: str, seconds: float, phase: str, **options: Any
) -> BenchmarkStep:
    """Return a step that measures updates of transformers' model.

    seconds: time limit of the step.
    phase: name of the configuration.
    options: further arguments of the function ``measure_transformers``.
    """
    return plan.call(stage, step, "peer.measure_transformers", seconds, 30, phase=phase, **options)


def _halve(plan: StageSettings) -> int:
    """Return the number by which micro-batches of phase 2 are divided if they need much memory.

    Padded rows and transformers' model need smaller micro-batches than this trainer's flat batches.
    """
    return 1 if plan.small else 2


def smoke(plan: StageSettings) -> BenchmarkStage:
    """Return the stage of what the device can do, and of a tiny model that trains with all features.

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

    name = "phase1"
    steps = [
        plan.call(name, "ceiling", "ceiling.measure_products", 60),
        _measure_updates(plan, name, "as shipped", 120, name),
        _measure_peer(plan, name, "peer", 150, name),
        _measure_updates(plan, name, "eager", 60, name, keys={"compile": False}),
        _measure_updates(plan, name, "rows", 90, name, keys={"rows": True}),
        optimiser("LAMB fused", 45, True),
        _measure_peer(plan, name, "peer, head on masked words", 150, name, masked_only=True),
        optimiser("LAMB compiled", 200, False),
    ]
    return BenchmarkStage(name=name, seconds=420, steps=steps)


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
            smaller = _halve(plan) if phase == "phase2" and keys.get("rows") else 1
            steps.append(_measure_updates(plan, "options", step, 120, phase, keys=keys, divide=smaller))
    peer = "phase2 peer, head on masked words"
    steps.append(_measure_peer(plan, "options", peer, 150, "phase2", divide=_halve(plan), masked_only=True))
    return BenchmarkStage(name="options", seconds=570, steps=steps, absent=absent)


STAGES: dict[str, Callable[[StageSettings], BenchmarkStage]] = {
    made.__name__: made for made in (tests, phase2, modernbert, fp8, profile, phase1, smoke, extra, options)
}

FIRST: Sequence[str] = ("tests", "phase2", "modernbert", "fp8", "profile")
"""The stages that share ten minutes."""

USUAL: Sequence[str] = (*FIRST, "phase1", "smoke", "extra")
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
