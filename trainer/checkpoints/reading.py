"""Reading this trainer's checkpoints: the state with checked types, and tensors with checked md5s."""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bertdata.config.value_check import check_values, list_types
from bertdata.errors import MissingInputError, SettingsError
from bertdata.io.file_check import compute_file_md5
from bertdata.io.json_text import parse_json_text
from bertdata.lineages.run_state import compute_state_md5
from schemas import load_schema
from trainer.checkpoints.checkpoint import (
    FORMAT,
    STATE,
    WEIGHTS,
    State,
    find_checkpoints,
    get_checkpoints_folder,
)
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import get_key_schemas, rename_to_keys
from trainer.errors import CheckpointError


def choose_checkpoint(output_dir: str, number: int | None = None) -> Path:
    """Return the path of a run's checkpoint.

    number: the number in the checkpoint's name. None: the newest checkpoint.
    MissingInputError, with a list of the existing checkpoints, if there is no such checkpoint.
    """
    found = find_checkpoints(output_dir)
    if not found or (number is not None and number not in found):
        wanted = "no checkpoint" if number is None else f"no checkpoint {number}"
        there = f"; there are {', '.join(map(str, found))}" if found else ""
        raise MissingInputError(f"{get_checkpoints_folder(output_dir)}: holds {wanted}{there}")
    return found[max(found) if number is None else number]


def choose_best_checkpoint(output_dir: str) -> tuple[Path, str]:
    """Return the path of the checkpoint with which a run's best evaluation was made, and a line about it.

    It is the newest checkpoint, and the line is empty, if the run has no best evaluation, or if the newest
    checkpoint is the best. If the best checkpoint is missing, it is the newest too, and the line says so.
    Raises MissingInputError if there is no checkpoint.
    """
    newest = choose_checkpoint(output_dir)
    best = read_state(newest).best
    found = find_checkpoints(output_dir).get(best.get("number", -1))
    if not best or found == newest:
        return newest, ""
    of_what = f"the best {best['metric']} ({best['value']:.5g})"
    if found is None:
        return (
            newest,
            f"{output_dir}: checkpoint {best['number']} with {of_what} is missing: taking {newest.name}",
        )
    return found, f"{output_dir}: taking {found.name} with {of_what}; the newest is {newest.name}"


def read_state(path: Path) -> State:
    """Read a checkpoint's state. CheckpointError if the checkpoint is damaged or renamed, or another
    program's.
    """
    where = path / STATE
    if not where.is_file():
        raise CheckpointError(f"{path}: no checkpoint of this trainer: found no {STATE}")
    try:
        values = parse_json_text(where.read_bytes())
        digest, found, made = values.pop("md5"), compute_state_md5(values), values.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{where}: is damaged or not this trainer's: expected {FORMAT!r}") from None
    if (found, made) != (digest, FORMAT):
        raise CheckpointError(
            f"{where}: is damaged: found {made!r}, md5 {found}, expected {FORMAT!r}, {digest}"
        )
    if "lanes" in values:  # the name that earlier versions had for the key open_files
        values["open_files"] = values.pop("lanes")
    # keys of the configuration that an earlier version called otherwise
    if isinstance(values.get("config"), dict):
        values["config"] = rename_to_keys(values["config"], f"{where}: config: ")
    state = _check_state_types(values, str(where))
    is_numbered = path.parent.name == "checkpoints" and path.name[5:].isdecimal()
    if is_numbered and int(path.name[5:]) != state.number:
        raise CheckpointError(f"{path}: is the checkpoint of update {state.number}, renamed; rename it back")
    return state


def _check_state_types(values: dict[str, Any], where: str) -> State:
    """Return the state with checked types. CheckpointError names the first wrong value.

    The ranges of configuration keys are not checked, since they may differ between versions.
    """
    try:
        check_values({"state": values}, {"state": load_schema("checkpoint")}, f"{where}: ")
        types = {name: {"type": list_types(item)} for name, item in get_key_schemas().items()}
        check_values(values["config"], types, f"{where}: config: ")
        read_model_config(values["model"], f"{where}: model")
    except SettingsError as error:
        raise CheckpointError(str(error)) from None
    whole: dict[str, Any] = {
        name: int(value) if isinstance(value, float) else value for name, value in values.items()
    }
    whole["position"] = tuple(map(int, values["position"]))  # JSON Schema accepts 3.0 as an integer
    return State(**{**whole, "versions": tuple(values.get("versions", ()))})


def list_tensor_files(state: State, name: str) -> list[str]:
    """Return the names of the files with a checkpoint's weights or moments, [] if there are none.

    A checkpoint of a model that was split over several workers has several such files.
    name: WEIGHTS or MOMENTS, the name that the file has if it is a single one.
    """
    if name in state.files:
        return [name]
    stem, _, ending = name.partition(".")
    return sorted(file for file in state.files if file.startswith(f"{stem}-") and file.endswith(ending))


def read_tensors(path: Path, state: State, name: str = WEIGHTS) -> dict[str, Tensor]:
    """Read the weights or moments of a checkpoint. CheckpointError if an md5 is wrong."""
    tensors: dict[str, Tensor] = {}
    for file in [check_file(path, state, one) for one in list_tensor_files(state, name) or [name]]:
        try:
            tensors |= load_file(file)
        except SafetensorError as error:
            raise CheckpointError(f"{file}: not a safetensors file: {error}") from None
    return tensors


def check_file(path: Path, state: State, name: str) -> str:
    """Return the path of a checkpoint's file.

    CheckpointError if the file is missing, is not in state.json, or has another md5 there.
    """
    file = path / name
    expected = state.files.get(name)
    if expected is None:
        raise CheckpointError(f"{path}: holds weights only, expected {name}; --start-from-ckpt takes it")
    if not file.is_file():
        raise CheckpointError(f"{file}: is missing, expected md5 {expected}")
    if (found := compute_file_md5(str(file))) != expected:
        size = file.stat().st_size
        raise CheckpointError(
            f"{file}: is damaged: found {size} bytes of md5 {found}, expected md5 {expected}"
        )
    return str(file)
