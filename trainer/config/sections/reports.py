"""Configuration sections of a run's output: log files, the terminal, and services such as TensorBoard."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.sections.section import Section, declare_common_key


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Keys about log files and the terminal."""

    log_every: int = declare_common_key(10, "updates between log lines", least=1)
    no_logs: bool = setting(False, "write no log files")
    json_summary: str | None = setting(
        None, "file for log lines in dllogger's format (default: output_dir/dllogger.json)"
    )
    no_progress_bar: bool = declare_common_key(False, "print plain log lines instead of a progress bar")
    json_summary_form: str = setting(
        "bertdata",
        "names and units in the dllogger lines: bertdata (per update, all workers), habana (times per "
        "micro-batch, rates per card) or tensorflow (as in NVIDIA's and Habana's TensorFlow programs)",
        ("bertdata", "habana", "tensorflow"),
    )
    description: str | None = setting(None, "text that describes the configuration, printed at the start")


@dataclass(frozen=True, kw_only=True)
class LoggersSection(Section):
    """Keys about additional logs, such as TensorBoard's, which a run writes only if a key asks for them."""

    curves: bool = declare_common_key(
        False, "draw loss and accuracy at the end of training, as curves.svg and curves.png in output_dir"
    )
    tensorboard: bool = declare_common_key(False, "write event files for TensorBoard")
    wandb: bool = declare_common_key(False, "report to Weights & Biases")
    wandb_offline: bool = setting(False, "write files for Weights & Biases without using the network")
    wandb_project: str = setting("bertdata", "project in Weights & Biases", keywords={"minLength": 1})
    mllog: bool = setting(False, "write MLPerf's log lines")
    mllog_file: str | None = setting(
        None, "file to append MLPerf's log lines to (default: output_dir/mllog.txt)"
    )
    mllog_org: str = setting("bertdata", "submission_org in MLPerf's log", keywords={"minLength": 1})
    mllog_platform: str = setting("unnamed", "submission_platform in MLPerf's log", keywords={"minLength": 1})
    mllog_division: str = setting("closed", "submission_division in MLPerf's log", ("closed", "open"))
    mllog_status: str = setting(
        "onprem", "submission_status in MLPerf's log", ("cloud", "onprem", "preview", "research")
    )
