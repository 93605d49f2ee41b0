"""Comparing a checkpoint with the settings of the run that resumes from it."""

from pathlib import Path
from typing import Any

from bertdata.errors import SettingsError
from trainer.checkpoints.checkpoint import State
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config, get_key_schemas, list_section_keys
from trainer.errors import CheckpointError

CHANGEABLE = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"),
    *("classifier_dropout", "embedding_dropout", "mlp_dropout", "global_rope_theta", "local_rope_theta"),
)
"""Fields of the model configuration that may differ between a checkpoint and the run that resumes from it."""

_COMPARED = (
    *("update", "optimiser", "scaling", "workers", "schedule", "formula", "recipe"),
    *("data", "loading", "masking"),
)
_ANOTHER_ORDER = "its position belongs to another order of the examples"
_REASONS = {
    "data": _ANOTHER_ORDER,
    "order": _ANOTHER_ORDER,
    "seed": _ANOTHER_ORDER,
    "open_files": _ANOTHER_ORDER,
    "chunk_rows": _ANOTHER_ORDER,
    "optimiser": "its moments do not fit",
}
_SAME_BATCHES = (
    "train_data",
    "eval_data",
    "vocab",
    "plan",
    "save_plan",
    "cache_dir",
    "cache_size",
    "open_files",
)
"""Keys that name places, and the key whose meaning for a dataset is in the state, where it must be equal."""
_DEVICE_KEYS = ("device", "strategy", "compile", "deterministic", "device_options")
"""Keys outside of the sections in ``_COMPARED`` on which the last bits of the weights may depend."""
_SAID_ELSEWHERE = (
    *("train_data", "eval_data", "objective", "unverified", "seed", "open_files", "optimiser"),
    *("bins", "pack_on_load", "pack_window", "sequences_per_row", "dist", "world_size", "collective"),
    *("cache_dir", "cache_size"),
)


def check_fits(path: Path, state: State, fresh: State, *names: str) -> None:
    """Raise CheckpointError if the checkpoint has another model than this run, or other values of some
    fields. It names the first difference.

    state: the checkpoint's state.
    fresh: the state that this run would have without the checkpoint.
    names: fields of the state that must be equal, in addition to the model.
    """

    def list_compared_values(state: State) -> dict[str, Any]:
        # A state from an earlier version lacks newer keys. Reading it as a model configuration adds their
        # defaults, with which it was trained.
        whole = read_model_config(state.model).as_json()
        model = {f"model's {name}": value for name, value in whole.items() if name not in CHANGEABLE}
        return model | {name: getattr(state, name) for name in names}

    found = list_compared_values(state)
    for name, wanted in list_compared_values(fresh).items():
        if found.get(name) != wanted:
            difference = f"its {name} is {found.get(name)}, this one's {wanted}"
            if name == "data":
                difference = f"its data is {_describe_data(state)}, this one's {_describe_data(fresh)}"
            elif name in ("open_files", "chunk_rows"):
                here, there = _describe_open_files(fresh), _describe_open_files(state)
                difference = f"its open_files is {there}, this one's {here}"
            reason = _REASONS.get(name, "its weights do not fit")
            raise CheckpointError(f"{path}: belongs to another run: {difference}; {reason}")


def check_position(path: Path, state: State, config: Config) -> None:
    """Raise SettingsError if the checkpoint has already done more updates than this run is to do."""
    steps = config.schedule.steps
    if state.step > steps:
        raise SettingsError(
            f"{path}: holds update {state.step} of its phase, but this run ends after {steps} (steps); give "
            "more steps, or an earlier checkpoint with --resume-step"
        )


def check_steps(path: Path, state: State, config: Config) -> None:
    """Raise SettingsError unless run and checkpoint count the same number of steps for an update."""
    if state.steps_of_update != config.steps_of_update:
        raise SettingsError(
            f"{path}: its name counts {state.steps_of_update} steps for an update (steps_per_update), this "
            f"run {config.steps_of_update}; give the same, or --resume-from it elsewhere"
        )


def find_changed_settings(state: State, config: Config) -> dict[str, Any]:
    """Return the checkpoint's value of each setting that changes the training and differs in this run.

    Settings about the places of data and files are left out, because the data themselves are compared. So is
    the number of open files, because the state has the number that was used.
    """
    now = config.as_json()
    sections = [
        key for section in _COMPARED for key in list_section_keys(section) if key not in _SAME_BATCHES
    ]
    return {
        key: state.config[key]
        for key in (*sections, *CHANGEABLE, *_DEVICE_KEYS)
        if key in state.config and state.config[key] != now.get(key)
    }


def describe_changed_settings(state: State, config: Config, update_examples: int) -> list[str]:
    """Return a line for each hyperparameter whose value differs from the checkpoint's. The line has both
    values.

    update_examples: number of examples in an update of this run, over all workers.
    """
    now = config.as_json()
    keys = [key for section in _COMPARED for key in list_section_keys(section) if key not in _SAID_ELSEWHERE]
    lines = [
        f"{key}: {_format_value(before)} in the checkpoint, {_format_value(now[key])} in this run"
        for key in (*keys, *CHANGEABLE)
        if (before := state.config.get(key, get_key_schemas()[key].get("default"))) != now[key]
    ]
    grows = now["batch_warmup_from"] is not None or state.config.get("batch_warmup_from") is not None
    if state.step and state.trained != state.step * update_examples and not grows:
        # mean over the updates so far, because an earlier resume may have changed the batch size
        before = f"{state.trained / state.step:g}"
        lines.append(f"examples of an update: {before} on average so far, {update_examples} in this run")
    return lines


def _format_value(value: object) -> object:
    """Return a setting's value in the way that messages show it."""
    return "not given" if value is None else value


def _describe_open_files(state: State) -> str:
    """Return the setting with which files are read as the state says."""
    return f"auto ({state.open_files} streams)" if state.chunk_rows else str(state.open_files)


def _describe_data(state: State) -> str:
    """Return the paths of the training data and the digest of its shards, as text."""
    paths = "generated" if state.config.get("generated_data") else state.config.get("train_data")
    return f"{paths} (digest {state.data})"
