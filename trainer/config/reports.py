"""Section of the reports: log files, terminal, TensorBoard, Weights & Biases, MLPerf's log."""

from dataclasses import dataclass

from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class ReportsSection(Section):
    """Reports of a run to write, and their frequency."""

    log_every: int = 10  # updates
    no_logs: bool = False
    json_summary: str | None = None  # path; None: output_dir/dllogger.json
    no_progress_bar: bool = False
    tensorboard: bool = False
    wandb: bool = False
    wandb_offline: bool = False
    wandb_project: str = "bertdata"
    description: str | None = None  # of the configuration
    mllog: bool = False
