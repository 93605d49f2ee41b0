"""Sections of a run: its device, workers, start, output, end and reports."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, shown


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Device and workers of a run, its start, its output, its evaluations and its end."""

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
    dist: bool = shown(False, "start world_size workers on this machine, unless a launcher has started them")
    world_size: int | None = shown(None, "expected number of workers (default: any)", least=1)
    collective: str | None = setting(
        None,
        "communication between workers (default: the launcher's)",
        ("single", "torch_distributed", "horovod", "poprun"),
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
    phase2: bool = shown(False, "continue from phase 1's weights and moments; steps and schedule restart")
    phase1_end_step: int | None = setting(
        None, "phase 1's checkpoint to continue from (default: its last)", least=0
    )
    start_from_ckpt: str | None = shown(None, "checkpoint of any program to take the initial weights from")
    start_moments: bool = setting(
        False, "take the moments of start_from_ckpt too; updates and schedule begin at 0"
    )
    resume_from: str | None = shown(
        None,
        "checkpoint to resume from, or run, in an output_dir of one's own: a branch, with other steps say",
    )
    resume: bool = shown(False, "continue from the last checkpoint in output_dir")
    resume_step: int | None = setting(None, "update to resume at (default: the last checkpoint's)", least=0)
    checkpoint_every: int = shown(
        1000, "updates between two checkpoints; 0: only at the end", least=0, by_phase=True
    )
    keep_checkpoints: int = shown(5, "number of checkpoints to keep", least=1)
    eval_every: int | None = shown(
        None, "updates between two evaluations; 0: only at the end (default: MLPerf's rule)", least=0
    )
    eval_examples: int | None = setting(
        None, "largest number of examples to evaluate on (default: all)", least=1
    )
    eval_batch_size: int | None = setting(
        None, "examples of one evaluation batch (default: batch_size)", least=1, by_phase=True
    )
    target_accuracy: float | None = shown(
        None,
        "masked_lm_accuracy at which the run ends; in fine-tuning the last of the metrics, F1 as a "
        "share of 1",
        above=0,
        most=1,
    )


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
