"""Sections of what a run tells: its log files, the terminal, further logs."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.sections.section import Section, shown


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Log files and terminal."""

    log_every: int = shown(10, "updates between two log lines", least=1)
    no_logs: bool = setting(False, "write no log files")
    json_summary: str | None = setting(
        None, "file for the dllogger lines (default: output_dir/dllogger.json)"
    )
    no_progress_bar: bool = shown(False, "print plain lines even on a terminal")
    json_summary_form: str = setting(
        "bertdata",
        "names in the dllogger lines: bertdata (an update of all workers), habana (times of a micro-batch, "
        "rates of a card) or tensorflow (as NVIDIA's and Habana's programs for TensorFlow)",
        ("bertdata", "habana", "tensorflow"),
    )
    description: str | None = setting(None, "text about the configuration, printed at the start")


@dataclass(frozen=True, kw_only=True)
class LoggersSection(Section):
    """Logs beside those that every run writes."""

    curves: bool = shown(
        False, "draw loss and accuracy when all updates are made: curves.svg and curves.png in output_dir"
    )
    tensorboard: bool = shown(False, "write TensorBoard's event files")
    wandb: bool = shown(False, "report to Weights & Biases")
    wandb_offline: bool = setting(False, "write Weights & Biases' files without using the network")
    wandb_project: str = setting("bertdata", "project in Weights & Biases", keywords={"minLength": 1})
    mllog: bool = setting(False, "write MLPerf's log lines")
    mllog_file: str | None = setting(
        None, "file for MLPerf's log lines, which are appended (default: output_dir/mllog.txt)"
    )
    mllog_org: str = setting("bertdata", "submission_org in MLPerf's log", keywords={"minLength": 1})
    mllog_platform: str = setting("unnamed", "submission_platform in MLPerf's log", keywords={"minLength": 1})
    mllog_division: str = setting("closed", "submission_division in MLPerf's log", ("closed", "open"))
    mllog_status: str = setting(
        "onprem", "submission_status in MLPerf's log", ("cloud", "onprem", "preview", "research")
    )
