"""Sections of the configuration: their base, and those that every run has a use for."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from bertdata.config.declared import schema_of, setting
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.plugins import TABLE as CORE
from trainer.plugins import find

_DEFAULT_BATCH_SIZE = 32

shown = partial(setting, common=True)
"""A setting that the short help shows."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """Keys of one subject, checked against their schema. A key's description says what None means.

    Each key is declared once, by ``setting``, or by ``shown``. Its marks: ``by_phase``
    keys may have two values, ``phases`` keys name data of each phase (``--train-data-phase1``),
    ``older_names`` are names that this trainer used before, ``everywhere``: of the keys of some devices, one
    that has an effect on all.
    """

    def __post_init__(self) -> None:
        """SettingsError for the first value of a wrong type or out of its range."""
        check_values(self.values(), schema_of(type(self)))

    def values(self) -> dict[str, Any]:
        """The values by key."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def idle(self) -> list[str]:
        """The keys that have no effect because of the value of another."""
        return []


def check(holds: bool, message: str) -> None:
    """SettingsError with the message unless the condition holds."""
    if not holds:
        raise SettingsError(message)


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Device and workers of a run, its output and its end."""

    do_train: bool = setting(True, "false: do not train")
    output_dir: str | None = shown(None, "directory for checkpoints and logs")
    device: str = shown(
        "auto",
        "device to train on: cpu, cuda, hpu, ipu, xla, or auto: the accelerator that is there, else cpu",
        ("auto", "cpu", "cuda", "hpu", "ipu", "xla"),
    )
    strategy: str = shown(
        "auto",
        "division of an update over the devices: replicated (the whole model on each), sharded (weights "
        "and moments divided among them), pipelined (the layers divided into stages), or auto: "
        "replicated where that fits, else the fastest plan",
        ("auto", "replicated", "sharded", "pipelined"),
    )
    compile: bool | None = shown(
        None,
        "compile the model where the device can (default: in pre-training on cuda, with Triton and a C "
        "compiler)",
    )
    compile_only: bool = setting(False, "compile for the device and stop")
    deterministic: bool = setting(False, "use deterministic kernels only: slower, the same bits in every run")
    profile: bool = setting(False, "record a profile of four updates in output_dir")
    steps_this_run: int | None = shown(None, "stop after this many updates (default: at steps)", least=1)
    checkpoint_every: int = shown(
        1000, "updates between two checkpoints; 0: only at the end", least=0, by_phase=True
    )
    keep_checkpoints: int = shown(5, "number of checkpoints to keep", least=1)


@dataclass(frozen=True, kw_only=True)
class DataSection(Section):
    """Datasets to train and to evaluate on, and the order and form of their examples."""

    train_data: str | None = shown(
        None,
        "dataset directories, or files, to train on; several: A+B, or the flag repeated; mixed: A*0.7+B*0.3",
        phases=True,
    )
    eval_data: str | None = shown(
        None,
        "dataset directories, or files, to evaluate on; several are united: A+B, or the flag repeated",
        phases=True,
    )
    unverified: bool = setting(False, "accept data without a manifest, as other tools write it")
    generated_data: bool = shown(False, "train on random examples that the host generates")
    objective: str | None = setting(
        None, "objective of the examples; loads one of your own (default: the data's, without data bert)"
    )
    max_seq_length: int | None = setting(
        None, "length of an example in ids (default: the dataset's)", least=5, most=65535, by_phase=True
    )
    max_predictions_per_seq: int | None = setting(
        None,
        "largest number of masked positions in an example (default: the dataset's)",
        least=1,
        by_phase=True,
    )
    open_files: int = setting(
        8,
        "files read at the same time; the order of the examples depends on it",
        least=1,
        older_names=["lanes"],
    )
    token_budget: int | None = shown(
        None,
        "tokens that a flat micro-batch is padded to a multiple of (default: from batch_size and lengths)",
        least=1,
        by_phase=True,
    )
    seed: int = shown(
        42, "seed of initial weights, dropout and the order of the examples", least=0, most=4294967295
    )


@dataclass(frozen=True, kw_only=True)
class UpdateSection(Section):
    """Keys of an update of the model's weights. None: the optimiser's own value, unless said otherwise."""

    batch_size: int | None = shown(
        None, "examples of one micro-batch on one worker (default: 32)", least=1, by_phase=True
    )
    accumulation: int | None = shown(
        None,
        "micro-batches of one worker in an update (default: 1, or from the global batch)",
        least=1,
        by_phase=True,
    )
    replicas: int | None = setting(
        None,
        "number of workers that batch_size and accumulation assume (default: the actual number)",
        least=1,
    )
    global_batch_size: int | None = shown(
        None, "examples of one update over all workers", least=1, by_phase=True
    )
    precision: str = shown(
        "fp32",
        "precision of matrix products: fp32, bf16 or fp16; weights stay in fp32",
        ("fp32", "bf16", "fp16"),
    )
    optimiser: str = shown("lamb-nvidia", "name of the optimiser", tuple(CORE["preset"]))
    clipping: str = setting(
        "usual",
        "clipping of gradients: none, per_micro_batch (of the micro-batch's own loss), "
        "per_micro_batch_divided (of its loss divided by the number of micro-batches), per_update "
        "(after the all-reduce), or usual: the optimiser's",
        ("usual", "none", "per_micro_batch", "per_micro_batch_divided", "per_update"),
    )
    max_grad_norm: float = setting(1.0, "global norm that gradients are clipped to", above=0)

    @property
    def clipping_point(self) -> str:
        """The point at which gradients are clipped, by default the optimiser's usual one."""
        return str(find("preset", self.optimiser).clipping) if self.clipping == "usual" else self.clipping

    @property
    def clips_micro_batches(self) -> bool:
        """True if the gradient of each micro-batch is clipped on its own."""
        return self.clipping_point.startswith("per_micro_batch")

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """(examples of a micro-batch, micro-batches of a worker in an update).

        A number that is not given follows from the global batch. SettingsError where that does not divide.
        """
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        if total is None and self.replicas is not None:
            total = (size or _DEFAULT_BATCH_SIZE) * (count or 1) * self.replicas
            count = None
        if total is not None:
            size = size or max(1, total // (workers * (count or 1)))
            count = count or max(1, total // (workers * size))
            whole = workers * size * count
            factors = f"{workers} (workers) * {size} (batch_size) * {count} (accumulation) = {whole}"
            wanted = f"expected {factors}: a batch size that does not divide"
            check(total == whole, f"the global batch is {total}, {wanted}")
        return size or _DEFAULT_BATCH_SIZE, count or 1

    def examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """The learning rate as a function of the update."""

    steps: int = shown(1000, "number of updates of the schedule", least=1, by_phase=True)
    num_train_epochs: float | None = shown(
        None,
        "passes over the training data; gives the number of updates, unless steps are given (default: steps)",
        above=0,
    )
    lr_schedule: str | None = shown(
        None,
        "name of the learning-rate schedule (default: the optimiser's usual one)",
        tuple(CORE["schedule"]),
    )
    base_learning_rate: float = shown(0.001, "learning rate after warm-up", above=0, by_phase=True)
    warmup: int | float = shown(
        0, "warm-up: an integer number of updates, or a share of steps (0 <= x < 1)", least=0, by_phase=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Log files and terminal."""

    log_every: int = shown(10, "updates between two log lines", least=1)
    no_logs: bool = setting(False, "write no log files")
    json_summary: str | None = setting(
        None, "file for the dllogger lines (default: output_dir/dllogger.json)"
    )
    no_progress_bar: bool = shown(False, "print plain lines even on a terminal")
    description: str | None = setting(None, "text about the configuration, printed at the start")
