"""Checkpoints: a directory each, written whole or not at all, no byte of which changes unnoticed.

    output_dir/checkpoints/step-00000100/
        model.safetensors       weights by name
        optimizer.safetensors   moments as KIND/NAME; absent where only weights were converted
        state.json              everything else, and bytes and md5 of the two

The number counts updates over both phases. Nothing is unpickled. No random state is kept: the loop
seeds each micro-batch, so that dropout too is the same after a resume and for any number of workers.
"""

import json
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import md5
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertdata import __version__
from bertdata.errors import MissingInputError, StorageError
from trainer.errors import CheckpointError

FORMAT = "bertdata checkpoint 1"
STATE, WEIGHTS, MOMENTS = "state.json", "model.safetensors", "optimizer.safetensors"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What a run needs beside tensors to go on where it was."""

    phase: int = 1
    phase_start: int = 0  # number of the checkpoint that the phase began with
    step: int  # updates of this phase
    applied: int = 0  # those of them that were made, without the ones left out for an overflow
    trained: int = 0  # examples of this phase
    position: tuple[int, int] = (0, 0)  # epoch and examples of it that are consumed
    data: str | None = None  # what the position is one of
    seed: int
    lanes: int
    optimiser: str
    loss_scale: dict[str, float] = field(default_factory=dict)
    model: dict[str, Any]
    config: dict[str, Any]
    versions: dict[str, str] = field(
        default_factory=lambda: {"bertdata": __version__, "torch": str(torch.__version__)}
    )

    @property
    def number(self) -> int:
        """Updates of both phases; the checkpoint is named after it."""
        return self.phase_start + self.step


def save_checkpoint(
    output_dir: str, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], keep: int
) -> Path:
    """The checkpoint's directory; of this phase only the last ``keep`` stay. Tensors are on the host."""
    path = _folder(output_dir) / _name(state.number)
    write_checkpoint(path, state, weights, moments)
    ours = [number for number in find_checkpoints(output_dir) if number > state.phase_start]
    for number in ours[:-keep]:
        shutil.rmtree(_folder(output_dir) / _name(number), ignore_errors=True)
    return path


def write_checkpoint(
    path: Path, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
) -> None:
    """Write it under a name of its own, then rename; what was at the path is replaced."""
    # Machines that share output_dir write at the same time.
    partial = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}.partial")
    files = {}
    try:
        partial.mkdir(parents=True)
        for name, tensors in {WEIGHTS: weights, MOMENTS: moments}.items():
            if tensors:
                save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, partial / name)
                files[name] = _identity(partial / name)
        values = {"format": FORMAT, **asdict(state), "files": files}
        text = json.dumps({"md5": _md5_of(values), **values}, indent=1)
        (partial / STATE).write_text(text + "\n", encoding="utf-8")
        for file in (*partial.iterdir(), partial):
            _flush(file)
        if path.exists():
            shutil.rmtree(path, ignore_errors=True)
        if not (path.exists() and (path / STATE).exists()):  # another machine may just have put it there
            partial.rename(path)
        _flush(path.parent)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def find_checkpoints(output_dir: str) -> dict[int, Path]:
    """The checkpoints of a run by number, in order; whether they are sound is not looked at."""
    found = {}
    for path in _folder(output_dir).glob("step-*"):
        if path.name[5:].isdecimal():
            found[int(path.name[5:])] = path
    return dict(sorted(found.items()))


def choose_checkpoint(output_dir: str, number: int | None = None) -> Path:
    """The checkpoint of that number, else the newest; MissingInputError says which there are."""
    found = find_checkpoints(output_dir)
    if not found or (number is not None and number not in found):
        wanted = "no checkpoint" if number is None else f"no checkpoint {number}"
        there = f"; there are {', '.join(map(str, found))}" if found else ""
        raise MissingInputError(f"{_folder(output_dir)}: holds {wanted}{there}")
    return found[max(found) if number is None else number]


def clean_up(output_dir: str, after: int | None = None) -> None:
    """Remove what an interrupted save left, and checkpoints beyond the one that is gone back to."""
    for path in _folder(output_dir).glob(".step-*.partial"):
        shutil.rmtree(path, ignore_errors=True)
    for number, path in find_checkpoints(output_dir).items():
        if after is not None and number > after:
            shutil.rmtree(path, ignore_errors=True)


def read_state(path: Path) -> State:
    """The checkpoint's state; CheckpointError where it is damaged or none of ours."""
    where = path / STATE
    if not where.is_file():
        raise CheckpointError(f"{path}: no checkpoint of this trainer: found no {STATE}")
    try:
        values = json.loads(where.read_bytes())
        made = values.pop("format")
        files, digest = values["files"], values.pop("md5")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{where}: is damaged or not this trainer's: expected {FORMAT!r}") from None
    if made != FORMAT:
        raise CheckpointError(f"{where}: has the format {made!r}, expected {FORMAT!r}")
    if (found := _md5_of({"format": made, **values})) != digest:
        raise CheckpointError(f"{where}: is damaged: found md5 {found}, expected {digest}")
    for name, expected in files.items():
        _check_size(path / name, expected["bytes"])
    try:
        known = {item.name for item in fields(State)}
        state = State(**{name: value for name, value in values.items() if name in known})
    except TypeError as error:
        raise CheckpointError(f"{where}: lacks something: {error}") from None
    return state


def read_tensors(path: Path, *, moments: bool = True) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Weights and moments of a checkpoint whose state was read, each file held against its md5."""
    files = json.loads((path / STATE).read_bytes())["files"]
    if moments and MOMENTS not in files:
        raise CheckpointError(
            f"{path}: holds weights only, expected {MOMENTS} beside; start_from_ckpt takes it"
        )
    weights = _read_file(path / WEIGHTS, files)
    return weights, _read_file(path / MOMENTS, files) if moments else {}


def check_fits(path: Path, what: str, found: Any, expected: Any) -> None:
    """CheckpointError that names the first difference between what was trained and what is to be."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted({*found, *expected}):
            check_fits(path, f"{what} {name}", found.get(name), expected.get(name))
    elif found != expected:
        raise CheckpointError(f"{path}: belongs to another run: its {what} is {found}, this one's {expected}")


def _read_file(path: Path, files: dict[str, dict[str, Any]]) -> dict[str, Tensor]:
    expected = files.get(path.name)
    if expected is None:
        raise CheckpointError(f"{path}: is not listed in {STATE}")
    _check_size(path, expected["bytes"])
    if (found := _identity(path)["md5"]) != expected["md5"]:
        raise CheckpointError(f"{path}: is damaged: found md5 {found}, expected {expected['md5']}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: no safetensors: {error}") from None


def _check_size(path: Path, expected: int) -> None:
    if not path.is_file():
        raise CheckpointError(f"{path}: is missing, expected {expected} bytes")
    if (found := path.stat().st_size) != expected:
        raise CheckpointError(f"{path}: is damaged: found {found} bytes, expected {expected}")


def _identity(path: Path) -> dict[str, Any]:
    digest = md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return {"bytes": path.stat().st_size, "md5": digest.hexdigest()}


def _md5_of(values: Mapping[str, Any]) -> str:
    return md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _flush(path: Path) -> None:
    """Have the file, or the directory's names, on the disk, lest a power cut leave a renamed shell."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folder(output_dir: str) -> Path:
    return Path(output_dir.removeprefix("file://")) / "checkpoints"


def _name(number: int) -> str:
    return f"step-{number:08d}"
