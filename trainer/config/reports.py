"""Section of the reports: log files, terminal, TensorBoard, Weights & Biases, MLPerf's log."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Reports of a run to write, and their frequency."""

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
