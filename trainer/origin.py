"""Where a run starts: what the settings ask for, and what the output directory holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertdata.errors import DatasetError, MissingInputError, SettingsError
from trainer.checkpoint import State, check_fits, choose_checkpoint, clean_up, find_checkpoints, read_state
from trainer.config import Config

_CHANGEABLE = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a run starts: new, from weights, from the end of phase 1, or where it was (resume)."""

    kind: str = "new"
    path: str | None = None

    def as_json(self) -> dict[str, str | None]:
        return {"kind": self.kind, "path": self.path}

    def describe(self) -> str:
        begins = {
            "new": "new run",
            "weights": "weights from",
            "phase2": "phase 2 after",
            "resume": "resuming at",
        }
        return f"{begins[self.kind]} {self.path}" if self.path else begins[self.kind]


def find_origin(config: Config, fresh: State) -> Origin:
    """Where the output directory and the settings say to start; an error where they disagree."""
    place = str(config.output_dir)
    there = find_checkpoints(place)
    resuming = config.resume or config.resume_step is not None
    if there and resuming:
        path = choose_checkpoint(place, config.resume_step)
        state = read_state(path)
        if state.phase == fresh.phase:
            _check_fits(path, state, fresh, ("data", "seed", "lanes", "optimiser"))
            clean_up(place, after=state.number)
            return Origin(kind="resume", path=str(path))
        if state.phase > fresh.phase:
            raise SettingsError(f"{path}: is a checkpoint of phase 2; give --phase2 to resume it")
    if config.start_from_ckpt is not None or not config.phase2:
        if config.resume_step is not None:
            choose_checkpoint(place, config.resume_step)
        used = [name for name in ("checkpoints", "training.csv") if (Path(place) / name).exists()]
        if (there or used) and not resuming:
            raise DatasetError(
                f"{place}: is in use: holds {used[0]}; give --resume to go on there, or another --output-dir"
            )
        weights = config.start_from_ckpt
        return Origin(kind="weights", path=weights) if weights else Origin()
    try:
        path = choose_checkpoint(place, config.phase1_end_step)
    except MissingInputError as error:
        raise MissingInputError(f"--phase2 goes on from phase 1: {error}") from None
    state = read_state(path)
    if state.phase != 1:
        raise DatasetError(f"{path}: is in use: phase 2 has begun; give --resume to go on with it")
    _check_fits(path, state, fresh, ("optimiser",))
    return Origin(kind="phase2", path=str(path))


def _check_fits(path: Path, state: State, fresh: State, names: Sequence[str]) -> None:
    found, wanted = (
        {name: value for name, value in item.model.items() if name not in _CHANGEABLE}
        for item in (state, fresh)
    )
    check_fits(path, "model's", found, wanted)
    for name in names:
        check_fits(path, name, getattr(state, name), getattr(fresh, name))
