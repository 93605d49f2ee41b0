"""Sections of a run: its device, workers, start, output, end and reports."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Device and workers of a run, its start, its output, its evaluations and its end."""

    do_train: bool = setting(True, "false: do not train")
    output_dir: str | None = setting(None, "directory for checkpoints and logs", common=True)
    device: str = setting(
        "auto",
        "device to train on: cpu, cuda, hpu, ipu, xla, or auto: the accelerator that is there, else cpu",
        ("auto", "cpu", "cuda", "hpu", "ipu", "xla"),
        common=True,
    )
    strategy: str = setting(
        "auto",
        "division of an update over the devices: replicated (the whole model on each), sharded (weights "
        "and moments divided among them), pipelined (the layers divided into stages), or auto: "
        "replicated where that fits, else the fastest plan",
        ("auto", "replicated", "sharded", "pipelined"),
        common=True,
    )
    dist: bool = setting(
        False, "start world_size workers on this machine, unless a launcher has started them", common=True
    )
    world_size: int | None = setting(None, "expected number of workers (default: any)", least=1, common=True)
    collective: str | None = setting(
        None,
        "communication between workers (default: the launcher's)",
        ("single", "torch_distributed", "horovod", "poprun"),
    )
    compile: bool | None = setting(
        None,
        "compile the model where the device can (default: in pre-training on cuda, with Triton and a C "
        "compiler)",
        common=True,
    )
    compile_only: bool = setting(False, "compile for the device and stop")
    deterministic: bool = setting(False, "use deterministic kernels only: slower, the same bits in every run")
    profile: bool = setting(False, "record a profile of four updates in output_dir")
    steps_this_run: int | None = setting(
        None, "stop after this many updates (default: at steps)", least=1, common=True
    )
    phase2: bool = setting(
        False, "continue from phase 1's weights and moments; steps and schedule restart", common=True
    )
    phase1_end_step: int | None = setting(
        None, "phase 1's checkpoint to continue from (default: its last)", least=0
    )
    start_from_ckpt: str | None = setting(
        None, "checkpoint of any program to take the initial weights from", common=True
    )
    start_moments: bool = setting(
        False, "take the moments of start_from_ckpt too; updates and schedule begin at 0"
    )
    resume_from: str | None = setting(
        None,
        "checkpoint to resume from, or run, in an output_dir of one's own: a branch, with other steps say",
        common=True,
    )
    resume: bool = setting(False, "continue from the last checkpoint in output_dir", common=True)
    resume_step: int | None = setting(None, "update to resume at (default: the last checkpoint's)", least=0)
    checkpoint_every: int = setting(
        1000, "updates between two checkpoints; 0: only at the end", least=0, common=True, by_phase=True
    )
    keep_checkpoints: int = setting(5, "number of checkpoints to keep", least=1, common=True)
    eval_every: int | None = setting(
        None,
        "updates between two evaluations; 0: only at the end (default: MLPerf's rule)",
        least=0,
        common=True,
    )
    eval_examples: int | None = setting(
        None, "largest number of examples to evaluate on (default: all)", least=1
    )
    eval_batch_size: int | None = setting(
        None, "examples of one evaluation batch (default: batch_size)", least=1, by_phase=True
    )
    target_accuracy: float | None = setting(
        None,
        "masked_lm_accuracy at which the run ends; in fine-tuning the last of the metrics, F1 as a "
        "share of 1",
        above=0,
        most=1,
        common=True,
    )


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Log files, terminal, TensorBoard, Weights & Biases, MLPerf's log."""

    log_every: int = setting(10, "updates between two log lines", least=1, common=True)
    no_logs: bool = setting(False, "write no log files")
    json_summary: str | None = setting(
        None, "file for the dllogger lines (default: output_dir/dllogger.json)"
    )
    no_progress_bar: bool = setting(False, "print plain lines even on a terminal", common=True)
    tensorboard: bool = setting(False, "write TensorBoard's event files", common=True)
    wandb: bool = setting(False, "report to Weights & Biases", common=True)
    wandb_offline: bool = setting(False, "write Weights & Biases' files without using the network")
    wandb_project: str = setting("bertdata", "project in Weights & Biases", keywords={"minLength": 1})
    description: str | None = setting(None, "text about the configuration, printed at the start")
    mllog: bool = setting(False, "write MLPerf's log lines to output_dir/mllog.txt")
