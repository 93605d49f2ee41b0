"""Opening a checkpoint of any origin: a run's newest checkpoint, a specific checkpoint of a run, or a
checkpoint of another program.
"""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bertdata.errors import SettingsError
from trainer.checkpoints.any_checkpoint import ADAMS_BETAS, MEAN, OURS, SQUARE, Checkpoint, StoredTensor
from trainer.checkpoints.checkpoint import MOMENTS, STATE, WEIGHTS, State, find_checkpoints
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.config_file import read_exported_length
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.formats.kinds import is_recognised, read_checkpoint
from trainer.checkpoints.learned_task import read_run_labels
from trainer.checkpoints.reading import (
    check_file,
    choose_best_checkpoint,
    choose_checkpoint,
    list_tensor_files,
    read_state,
)
from trainer.checkpoints.safetensors_files import read_safetensors
from trainer.checkpoints.unchecked_files import list_unchecked_warnings
from trainer.config.model_kinds import read_model_config
from trainer.model.headed import HeadedBert
from trainer.plugins import find

_NAME_ELSEWHERE = re.compile(r"(?:model\.ckpt-|ckpt_)(\d+)(?:\.pt)?")
"""Pattern of checkpoint names in other programs: TensorFlow's model.ckpt-100, NVIDIA's and Habana's
ckpt_100.pt. Group 1 is the number of updates.
"""


def open_checkpoint(
    path: str, kind: str | None = None, model_config: str | None = None, *, with_moments: bool = True
) -> Checkpoint:
    """Open the checkpoint at a path. Its tensors are not read yet.

    path: a run (see ``find_trainer_checkpoint``), a checkpoint, or anything that
    ``trainer.checkpoints.formats.kinds`` reads.
    kind: format, or None to recognise it from the files.
    model_config: model file in place of the one next to another program's weights.
    with_moments: False skips a run's moments, whose md5 takes time to check.
    """
    if (own := find_trainer_checkpoint(path)) is None:
        if kind == OURS:
            raise SettingsError(f"{path}: is no checkpoint of this trainer: found no {STATE}")
        return read_checkpoint(path, kind, model_config)
    if kind not in (None, OURS):
        raise SettingsError(f"{path}: is a checkpoint of kind {OURS}, not {kind}")
    return replace(_open_own(own, with_moments), choice=describe_choice(path))


def find_trainer_checkpoint(path: str, *, newest: bool = False) -> Path | None:
    """Return the path of this trainer's checkpoint that a path means, or None if it means another program's.

    The path of a run means the checkpoint of its best evaluation if the run looks for it (keep_best),
    otherwise its newest checkpoint.

    Other programs' command lines name a checkpoint by DIR/model.ckpt-N or DIR/ckpt_N.pt. If no such file
    exists, the path means the checkpoint after update N of the run in DIR.
    newest: whether the path of a run always means its newest checkpoint.
    """
    folder = Path(path.removeprefix("file://"))
    if (folder / "checkpoints").is_dir():
        return choose_checkpoint(path) if newest else choose_best_checkpoint(path)[0]
    if (folder / STATE).is_file():
        return folder
    named = _NAME_ELSEWHERE.fullmatch(folder.name)
    if named is None or folder.exists() or folder.with_name(f"{folder.name}.index").exists():
        return None
    return find_checkpoints(str(folder.parent)).get(int(named[1]))


def describe_choice(path: str) -> str:
    """Return a line about the checkpoint that is taken from a run because of its best evaluation.

    The line is empty if the path names no run, or if the newest checkpoint is taken.
    """
    is_run = (Path(path.removeprefix("file://")) / "checkpoints").is_dir()
    return choose_best_checkpoint(path)[1] if is_run else ""


def find_trained_length(path: str) -> int | None:
    """Return the number of ids in the longest sequence of the checkpoint's training, or None if unknown."""
    if (own := find_trainer_checkpoint(path)) is not None:
        return read_state(own).longest
    return read_exported_length(find_pretrained(path))


def is_checkpoint(path: str) -> bool:
    """Return whether there is a checkpoint of any format at the path. No file is read."""
    return find_trainer_checkpoint(path) is not None or bool(is_recognised(path))


def _open_own(path: Path, with_moments: bool) -> Checkpoint:
    """Open a checkpoint of this trainer, after checking the md5s of its files."""
    state = read_state(path)
    labels = read_run_labels(state.config)
    has_moments = with_moments and bool(list_tensor_files(state, MOMENTS))
    moments = _read_files(path, state, MOMENTS) if has_moments else {}
    return Checkpoint(
        kind=OURS,
        path=str(path),
        config=read_model_config(state.model, str(path)),
        weights=_read_files(path, state, WEIGHTS),
        moments={
            key: moment for key, moment in moments.items() if key.startswith((f"{MEAN}/", f"{SQUARE}/"))
        },
        task=state.task,
        longest=state.longest,
        updates=state.phase_start // state.steps_of_update + state.step,
        steps_of_update=state.steps_of_update,
        optimiser=state.optimiser,
        betas=_find_betas(state) if has_moments else ADAMS_BETAS,
        label_names=labels.names,
        problem=labels.problem,
        warnings=list_unchecked_warnings(path, state),
    )


def _find_betas(state: State) -> tuple[float, float]:
    """Return the decay rates of the moments in a checkpoint: the configured ones, else the optimiser's.

    A checkpoint may come from others, so an optimiser that is named as a Python object is not imported. Its
    rates are taken to be Adam's, as those of an optimiser that is not known here.
    """
    usual = ADAMS_BETAS
    if ":" not in state.optimiser:
        with suppress(SettingsError):
            usual = find("optimiser", state.optimiser).betas
    given = (state.config.get(name) for name in ("beta1", "beta2"))
    beta1, beta2 = (rate if own is None else own for own, rate in zip(given, usual, strict=True))
    return beta1, beta2


def _read_files(path: Path, state: State, name: str) -> dict[str, StoredTensor]:
    """Return a checkpoint's weights or moments, after checking the md5s of the files that contain them."""
    files = [check_file(path, state, file) for file in list_tensor_files(state, name) or [name]]
    return {tensor: stored for file in files for tensor, stored in read_safetensors(file).items()}


def read_weights_into(model: HeadedBert, path: str, model_config: str | None = None) -> list[str]:
    """Fill the model from a checkpoint of any origin. Return the names of head tensors that it lacks.

    model_config: model file in place of the one next to another program's weights.
    """
    return fill_model(model, open_checkpoint(path, model_config=model_config, with_moments=False))
