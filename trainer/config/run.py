"""Sections of a run: its device, workers, output, end and reports."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, shown


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
class ReportsSection(Section):
    """Log files and terminal."""

    log_every: int = shown(10, "updates between two log lines", least=1)
    no_logs: bool = setting(False, "write no log files")
    json_summary: str | None = setting(
        None, "file for the dllogger lines (default: output_dir/dllogger.json)"
    )
    no_progress_bar: bool = shown(False, "print plain lines even on a terminal")
    description: str | None = setting(None, "text about the configuration, printed at the start")
