"""Dividing the configuration's keys between phase 1 and phase 2, and choosing between steps, epochs and
tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError
from trainer.config.settings import get_known_names, get_phase_names

Given = Mapping[str, Any]

_PHASE2_AFTER_PHASE1 = {
    "phase2": True,
    "phase1_end_step": None,
    "start_from_ckpt": None,
    "start_moments": False,
}
"""Configuration keys of phase 2 if phase 1 runs before it in the same command."""


def split_by_phase(in_file: Given, flags: Given, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Divide the keys of a file and the flags between the phases. Return (keys, flags) for each phase.

    There are two phases if any key has two values or if data for phase 2 are named. Phase 2 then continues
    from phase 1. If the key phase2 is set, every entry of the result describes phase 2, with the second value
    of each key that has two. For example, two numbers of steps give two phases:

        flags {steps: [5, 7]} -> ({}, {steps: 5}), ({}, {steps: 7, phase2: True, ...})

    where: the file and a colon, with which an error message begins.
    """
    count = max(_count_phases(in_file, where), _count_phases(flags))
    only_second = bool(flags.get("phase2", in_file.get("phase2")))
    numbers = [1] * count if only_second else list(range(count))
    continued = [{}, {} if only_second else _PHASE2_AFTER_PHASE1]
    return [
        (
            select_phase_values(in_file, phase, named),
            select_phase_values(flags, phase, named) | continued[phase],
        )
        for phase, named in enumerate(numbers)
    ]


def select_phase_values(given: Given, phase: int, named: int) -> dict[str, Any]:
    """Return the keys and values of a phase, out of keys that may have a value for each phase.

    phase: 0 or 1, the index into values that are lists.
    named: 0 if keys such as train_data_phase1 apply, 1 if keys such as train_data_phase2 apply.
    """
    names, phases = get_known_names(), get_phase_names()
    layer = {}
    for name, value in given.items():
        if name in phases:
            continue
        differs = "by_phase" in names[name] and isinstance(value, list)
        layer[name] = value[phase % len(value)] if differs else value
    for name, (key, number) in phases.items():
        if name in given and number == named:
            layer[key] = given[name]
    return layer


def merge_length_keys(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge the keys of a file and the flags. Of steps, epochs and tokens, which all set the length of
    training, keep a single one.

    A flag overrides the keys of the file. If steps and another key are set in the same place, steps are kept.

    below: keys of the file.
    above: flags, which override the file.
    """
    keys = below | above
    for name in ("num_train_epochs", "train_tokens"):
        if keys.get(name) is not None:
            if "steps" in above or ("steps" in below and above.get(name) is None):
                keys[name] = None
            else:
                keys.pop("steps", None)
    return keys


def make_ambiguous_data_error(
    name: str, paths: Sequence[str], spell: Callable[[str], str] = str
) -> SettingsError:
    """Return the error for a flag or key with several datasets, which is ambiguous.

    It could mean that the datasets are read together, or that each belongs to a phase.

    name: the key that has several datasets.
    paths: the datasets.
    spell: function that turns the name of a key into what a user types, such as a flag.
    """
    key = next((key for one, (key, _) in get_phase_names().items() if one == name), name)
    phases = " ".join(f"{spell(f'{key}_phase{number}')} {path}" for number, path in enumerate(paths[:2], 1))
    return SettingsError(
        f"{spell(name)} has {len(paths)} values: for one in each phase give {phases}; for all together "
        f"{spell(key)} {'+'.join(paths)}"
    )


def _count_phases(given: Given, where: str = "") -> int:
    """Return 2 if any key has two values or data for phase 2 are named, else 1.

    SettingsError for other counts.
    """
    names = get_known_names()
    count = max([1 + phase for name, (_, phase) in get_phase_names().items() if name in given], default=1)
    for name, value in given.items():
        if not isinstance(value, list):
            continue
        if "phases" in names[name]:
            raise SettingsError(f"{where}{make_ambiguous_data_error(name, [str(path) for path in value])}")
        if "by_phase" in names[name]:
            if len(value) not in (1, 2):
                raise SettingsError(
                    f"{where}{name} has {len(value)} values, expected one, or two: phase 1's and phase 2's"
                )
            count = max(count, len(value))
    return count
