"""Checkpoints: one directory each, written atomically, every byte under an md5.

    output_dir/checkpoints/step-00000100/
        model.safetensors       weights by name
        optimizer.safetensors   moments as KIND/NAME; absent where only weights were converted
        state.json              everything else, and the md5 of all three

The number counts updates over both phases. Nothing is pickled. No random state is kept: the strategy
seeds each micro-batch, so that dropout too is the same after a resume and for any number of workers.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertdata import __version__
from bertdata.errors import MissingInputError, StorageError
from bertdata.io.file_check import file_md5
from bertdata.io.json_text import parse_json_text
from bertdata.io.whole_directory import open_directory, remove_directory, sweep_directories
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.errors import CheckpointError
from trainer.strategies.strategy import UpdateNumber

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
    loss_scale: dict[str, float] = field(default_factory=dict)
    model: dict[str, Any]
    config: dict[str, Any]
    versions: tuple[str, ...] = (f"bertdata {__version__}", f"torch {torch.__version__}")
    files: dict[str, str] = field(default_factory=dict)  # md5s by name

    @property
    def number(self) -> int:
        """Updates of both phases; the checkpoint is named after it."""
        return self.phase_start + self.step

    @property
    def update_number(self) -> UpdateNumber:
        """The place of the next update."""
        return UpdateNumber(self.phase, self.step, self.number)


def new_state(config: Config, model: ModelConfig, data: str | None = None, order: str = "as stored") -> State:
    """The state before the first update; order: as ``DataSection.order`` says it."""
    return State(
        phase=2 if config.run.phase2 else 1,
        data=data,
        order=order,
        seed=config.data.seed,
        open_files=config.data.open_files,
        optimiser=config.update.optimiser,
        model=model.as_json(),
        config=config.as_json(),
    )


def save_checkpoint(
    output_dir: str, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], keep: int
) -> Path:
    """Write a checkpoint and return its path; of this phase only the last ``keep`` stay.

    The tensors must be on the host.
    """
    path = _folder(output_dir) / f"step-{state.number:08d}"
    write_checkpoint(path, state, weights, moments)
    found = find_checkpoints(output_dir)
    _remove([found[number] for number in found if number > state.phase_start][:-keep])
    return path


def write_checkpoint(
    path: Path, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
) -> None:
    """Write a checkpoint that appears whole; another one at the path is replaced, the same one stays."""
    files = {}
    try:
        with open_directory(path, _is_same) as growing:
            for name, tensors in {WEIGHTS: weights, MOMENTS: moments}.items():
                if tensors:
                    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, growing / name)
                    (growing / name).chmod(0o666 & ~_umask())  # safetensors lets nobody else read it
                    files[name] = file_md5(str(growing / name))
            values = {"format": FORMAT, **asdict(replace(state, files=files))}
            text = json.dumps({**values, "md5": _md5(values)}, indent=1)
            (growing / STATE).write_text(f"{text}\n", encoding="utf-8")
    except SafetensorError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None


def find_checkpoints(output_dir: str) -> dict[int, Path]:
    """The checkpoints of a run by number, in order, unchecked."""
    paths = sorted(_folder(output_dir).glob("step-*"))
    return {int(path.name[5:]): path for path in paths if path.name[5:].isdecimal()}


def choose_checkpoint(output_dir: str, number: int | None = None) -> Path:
    """The checkpoint of that number, else the newest; MissingInputError lists those that exist."""
    found = find_checkpoints(output_dir)
    if not found or (number is not None and number not in found):
        wanted = "no checkpoint" if number is None else f"no checkpoint {number}"
        there = f"; there are {', '.join(map(str, found))}" if found else ""
        raise MissingInputError(f"{_folder(output_dir)}: holds {wanted}{there}")
    return found[max(found) if number is None else number]


def clean_up(output_dir: str, after: int | None = None) -> None:
    """Remove the files of an interrupted save, and checkpoints later than number ``after``."""
    last = math.inf if after is None else after
    later = [path for number, path in find_checkpoints(output_dir).items() if number > last]
    sweep_directories(_folder(output_dir))
    _remove(later)


def read_state(path: Path) -> State:
    """The checkpoint's state; CheckpointError where it is damaged or not this trainer's."""
    where = path / STATE
    if not where.is_file():
        raise CheckpointError(f"{path}: no checkpoint of this trainer: found no {STATE}")
    try:
        values = parse_json_text(where.read_bytes())
        digest = values.pop("md5")
        found = _md5(values)
        made = values.pop("format")
        if "lanes" in values:  # the older name
            values["open_files"] = values.pop("lanes")
        state = State(**{**values, "position": tuple(values["position"])})
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{where}: is damaged or not this trainer's: expected {FORMAT!r}") from None
    if (found, made) != (digest, FORMAT):
        raise CheckpointError(
            f"{where}: is damaged: found {made!r}, md5 {found}, expected {FORMAT!r}, {digest}"
        )
    return state


def read_tensors(path: Path, state: State, name: str = WEIGHTS) -> dict[str, Tensor]:
    """The weights or moments of a checkpoint, their md5 checked; CheckpointError where it is wrong."""
    file = check_file(path, state, name)
    try:
        return load_file(file)
    except SafetensorError as error:
        raise CheckpointError(f"{file}: not a safetensors file: {error}") from None


def check_file(path: Path, state: State, name: str) -> str:
    """The path of a checkpoint's file whose md5 is the state's; CheckpointError where it is not."""
    file = path / name
    expected = state.files.get(name)
    if expected is None:
        raise CheckpointError(f"{path}: holds weights only, expected {name}; --start-from-ckpt takes it")
    if not file.is_file():
        raise CheckpointError(f"{file}: is missing, expected md5 {expected}")
    if (found := file_md5(str(file))) != expected:
        size = file.stat().st_size
        raise CheckpointError(
            f"{file}: is damaged: found {size} bytes of md5 {found}, expected md5 {expected}"
        )
    return str(file)


def _is_same(one: Path, other: Path) -> bool:
    """True if both checkpoints are complete and the same, by the md5s in their states."""
    names = sorted(path.name for path in other.iterdir())
    return (
        names == sorted(path.name for path in one.iterdir())
        and all((one / name).stat().st_size == (other / name).stat().st_size for name in names)
        and (one / STATE).read_bytes() == (other / STATE).read_bytes()
    )


def _remove(checkpoints: Iterable[Path]) -> None:
    for path in checkpoints:
        with suppress(OSError):  # another machine may have removed it
            remove_directory(path)


def _md5(values: Mapping[str, Any]) -> str:
    return md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _folder(output_dir: str) -> Path:
    return Path(output_dir.removeprefix("file://")) / "checkpoints"


def _umask() -> int:
    """The rights that this process gives to nobody; Python can only ask by setting them."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
