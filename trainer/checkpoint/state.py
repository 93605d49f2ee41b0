"""Checkpoints: one directory each, written atomically, every byte under an md5.

    output_dir/checkpoints/step-00000100/
        model.safetensors       weights by name
        optimizer.safetensors   moments as KIND/NAME; absent where only weights were converted
        state.json              everything else, and the md5s of the others

A split run writes several files of each, named model-00001-of-00004.safetensors and so on, which share the
tensors among them, and model.safetensors.index.json, which tells where each is, as Hugging Face has it.

The number counts updates over both phases. Nothing is pickled. No random state is kept: the strategy
seeds each micro-batch, so that dropout too is the same after a resume and for any number of workers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import Any

import torch

from bertdata import __version__
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.update.strategy import UpdateNumber

FORMAT = "bertdata checkpoint 1"
STATE, WEIGHTS, MOMENTS = "state.json", "model.safetensors", "optimizer.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Everything but tensors that a run needs to resume."""

    phase: int = 1
    phase_start: int = 0  # number of the checkpoint that the phase began with
    step: int = 0  # updates of this phase
    applied: int = 0  # updates of this phase without those skipped because of an overflow
    trained: int = 0  # examples of this phase
    position: tuple[int, ...] = (0, 0, 0)  # trainer.data.order.Position
    order: str = "as stored"  # the rows that it counts
    data: str | None = None  # digest of the dataset that the position refers to
    seed: int
    open_files: int
    optimiser: str
    task: str = ""  # "": not known, in a converted checkpoint or an older one
    loss_scale: dict[str, float] = field(default_factory=dict)
    model: dict[str, Any]
    config: dict[str, Any]
    versions: tuple[str, ...] = (f"bertdata {__version__}", f"torch {torch.__version__}")
    files: dict[str, str] = field(default_factory=dict)  # md5s by name

    @property
    def number(self) -> int:
        """Updates of both phases. The checkpoint is named after it."""
        return self.phase_start + self.step

    @property
    def update_number(self) -> UpdateNumber:
        """The place of the next update."""
        return UpdateNumber(self.phase, self.step, self.number)


def new_state(
    config: Config, model: ModelConfig, data: str | None = None, order: str = "as stored", task: str = ""
) -> State:
    """The state before the first update. order: as ``Rows.describe`` says it."""
    return State(
        phase=config.phase,
        data=data,
        order=order,
        task=task,
        seed=config.data.seed,
        open_files=config.data.open_files,
        optimiser=config.update.optimiser,
        model=model.as_json(),
        config=config.as_json(),
    )


def checkpoint_path(output_dir: str, state: State) -> Path:
    """The directory of the state's checkpoint in a run."""
    return checkpoints_folder(output_dir) / f"step-{state.number:08d}"


def find_checkpoints(output_dir: str) -> dict[int, Path]:
    """The checkpoints of a run by number, in order, unchecked."""
    paths = sorted(checkpoints_folder(output_dir).glob("step-*"))
    return {int(path.name[5:]): path for path in paths if path.name[5:].isdecimal()}


def checkpoints_folder(output_dir: str) -> Path:
    """The directory of a run's checkpoints."""
    return Path(output_dir.removeprefix("file://")) / "checkpoints"


def md5_of_state(values: Mapping[str, Any]) -> str:
    """The md5 of a state's values, which its file holds beside them."""
    return md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
