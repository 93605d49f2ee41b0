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
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bertdata import __version__
from bertdata.config.value_check import check_values, types_of
from bertdata.errors import MissingInputError, SettingsError, StorageError
from bertdata.io.file_check import file_md5
from bertdata.io.json_text import parse_json_text
from bertdata.io.whole_directory import open_directory, remove_directory, sweep_directories
from schemas import load_schema
from trainer.checkpoint.safetensors_files import save_file
from trainer.checkpoint.stored import StoredTensor
from trainer.config.keys import properties
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.errors import CheckpointError
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
    path = checkpoint_path(output_dir, state)
    write_checkpoint(path, state, weights, moments)
    prune(output_dir, state, keep)
    return path


def checkpoint_path(output_dir: str, state: State) -> Path:
    """The directory of the state's checkpoint in a run."""
    return _folder(output_dir) / f"step-{state.number:08d}"


def prune(output_dir: str, state: State, keep: int) -> None:
    """Remove all checkpoints of the state's phase but the last ``keep``."""
    found = find_checkpoints(output_dir)
    _remove([found[number] for number in found if number > state.phase_start][:-keep])


def write_checkpoint(
    path: Path,
    state: State,
    weights: Mapping[str, Tensor | StoredTensor],
    moments: Mapping[str, Tensor | StoredTensor],
) -> None:
    """Write a checkpoint that appears whole; another one at the path is replaced, the same one stays."""
    files = {}
    try:
        with open_checkpoint_directory(path) as growing:
            for name, tensors in {WEIGHTS: weights, MOMENTS: moments}.items():
                if tensors:
                    save_file(tensors, growing / name)
                    files[name] = file_md5(str(growing / name))
            write_state(growing, replace(state, files=files))
    except SafetensorError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None


def open_checkpoint_directory(path: Path) -> AbstractContextManager[Path]:
    """A directory that grows aside and appears whole; the same checkpoint that is there already stays."""
    return open_directory(path, _is_same)


def write_state(folder: Path, state: State) -> None:
    """Write the state, with the md5s of the other files, into the directory of a checkpoint."""
    values = {"format": FORMAT, **asdict(state)}
    text = json.dumps({**values, "md5": _md5(values)}, indent=1)
    (folder / STATE).write_text(f"{text}\n", encoding="utf-8")


def tensor_files(state: State, name: str) -> list[str]:
    """The names of the files that hold the weights or the moments of a checkpoint; none: there are none."""
    if name in state.files:
        return [name]
    stem, _, ending = name.partition(".")
    return sorted(file for file in state.files if file.startswith(f"{stem}-") and file.endswith(ending))


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
    """The checkpoint's state; CheckpointError where it is damaged, not this trainer's, or renamed."""
    where = path / STATE
    if not where.is_file():
        raise CheckpointError(f"{path}: no checkpoint of this trainer: found no {STATE}")
    try:
        values = parse_json_text(where.read_bytes())
        digest, found, made = values.pop("md5"), _md5(values), values.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{where}: is damaged or not this trainer's: expected {FORMAT!r}") from None
    if (found, made) != (digest, FORMAT):
        raise CheckpointError(
            f"{where}: is damaged: found {made!r}, md5 {found}, expected {FORMAT!r}, {digest}"
        )
    if "lanes" in values:  # the older name
        values["open_files"] = values.pop("lanes")
    state = _typed(values, str(where))
    is_numbered = path.parent.name == "checkpoints" and path.name[5:].isdecimal()
    if is_numbered and int(path.name[5:]) != state.number:
        raise CheckpointError(f"{path}: is the checkpoint of update {state.number}, renamed; rename it back")
    return state


def _typed(values: dict[str, Any], where: str) -> State:
    """The state of a file's values; CheckpointError names the first of another type or range.

    Ranges of the run's settings are not looked at, which another version may have changed.
    """
    try:
        check_values({"state": values}, {"state": load_schema("checkpoint")}, f"{where}: ")
        types = {name: {"type": types_of(item)} for name, item in properties().items()}
        check_values(values["config"], types, f"{where}: config: ")
        ModelConfig.from_dict(values["model"], f"{where}: model")
    except SettingsError as error:
        raise CheckpointError(str(error)) from None
    whole: dict[str, Any] = {
        name: int(value) if isinstance(value, float) else value for name, value in values.items()
    }
    whole["position"] = tuple(map(int, values["position"]))  # JSON Schema takes 3.0 for an integer
    return State(**{**whole, "versions": tuple(values.get("versions", ()))})


def read_tensors(path: Path, state: State, name: str = WEIGHTS) -> dict[str, Tensor]:
    """The weights or moments of a checkpoint, their md5 checked; CheckpointError where it is wrong."""
    tensors: dict[str, Tensor] = {}
    for file in [check_file(path, state, one) for one in tensor_files(state, name) or [name]]:
        try:
            tensors |= load_file(file)
        except SafetensorError as error:
            raise CheckpointError(f"{file}: not a safetensors file: {error}") from None
    return tensors


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
