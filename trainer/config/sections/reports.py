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
    mllog: bool = setting(False, "write MLPerf's log lines to output_dir/mllog.txt")
