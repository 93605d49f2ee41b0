"""Logs for TensorBoard and Weights & Biases, which show each number as a curve."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.errors import name_missing_extra
from trainer.logs.reporter import Logger, Values

_NO_TENSORFLOW = "tensorboard.compat.notf"


class ScalarLogger(Logger):
    """Base class of the loggers for TensorBoard and Weights & Biases.

    Each number is written as a scalar (a named curve), "train/NAME" or "eval/NAME".
    """

    def row(self, row: Values, time: float) -> None:
        self.add("train", row, time)

    def evaluation(self, values: Values, text: str, time: float) -> None:
        self.add("eval", values, time)

    def add(self, kind: str, values: Values, time: float) -> None:
        """Write a value for each scalar.

        kind: "train" or "eval", the first part of the scalars' names.
        """


class TensorBoard(ScalarLogger):
    """Scalars in TensorBoard's event files."""

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        # If a module of this name exists, TensorBoard uses its own small replacement for TensorFlow.
        # Otherwise it imports an installed TensorFlow, which takes up to 15 s and prints lines about the
        # processor.
        sys.modules.setdefault(_NO_TENSORFLOW, ModuleType(_NO_TENSORFLOW))
        with name_missing_extra("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        try:
            str(folder).encode()
        except UnicodeEncodeError:
            raise SettingsError(
                f"tensorboard: this locale has no letters for the name {str(folder)!a}; set "
                "LC_ALL=C.UTF-8, or PYTHONUTF8=1"
            ) from None
        purge_step = None if resume_step is None else resume_step + 1
        self._writer: Any = SummaryWriter(str(folder), purge_step=purge_step)

    def add(self, kind: str, values: Values, time: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, values["step"], walltime=time)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._writer.close()


class WeightsAndBiases(ScalarLogger):
    """A run of Weights & Biases, in a group named after the output directory.

    The run's id is stored in wandb_id.txt, so that a resumed run continues it, also offline.
    """

    def __init__(self, folder: Path, config: Config, *, offline: bool, resumes: bool) -> None:
        with name_missing_extra("wandb", "wandb"):
            import wandb
        id_file = folder / "wandb_id.txt"
        known = None
        if resumes and id_file.is_file():
            known = id_file.read_text(encoding="ascii", errors="replace").strip()
        try:
            self._run: Any = wandb.init(
                dir=str(folder),
                project=config.loggers.wandb_project,
                config=config.as_json(),
                mode="offline" if offline else "online",
                group=str(folder),
                settings=wandb.Settings(console="off", silent=True),
                id=known,
                # Parts of a run that were recorded offline become one run when they are uploaded.
                resume="allow" if known and not offline else None,
            )
        except wandb.errors.Error as error:
            raise SettingsError(f"wandb: {error}; --wandb-offline needs neither key nor network") from None
        id_file.write_text(f"{self._run.id}\n", encoding="ascii")

    def add(self, kind: str, values: Values, time: float) -> None:
        self._run.log({f"{kind}/{name}": value for name, value in values.items()}, step=values["step"])

    def close(self, summary: Values, status: str, time: float) -> None:
        self._run.finish(exit_code=1 if status == "aborted" else 0)
