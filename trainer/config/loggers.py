"""Section of further logs: curves, TensorBoard, Weights & Biases, MLPerf's log."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, shown


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
