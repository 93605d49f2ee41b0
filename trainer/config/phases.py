"""Settings of phases: keys with two values, names of one phase's data, steps or epochs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError
from trainer.config.settings import known_names, phase_names

Given = Mapping[str, Any]

_CONTINUED = {"phase2": True, "phase1_end_step": None, "start_from_ckpt": None, "start_moments": False}
"""Keys of a second phase that is run behind the first."""


def values_by_phase(in_file: Given, flags: Given, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The file's values and the flags of each phase: of two where any value differs between them.

    The second continues from the first. With phase2 given, names of data of phase 1 are of no phase. where:
    the file, for errors.
    """
    count = max(_count_phases(in_file, where), _count_phases(flags))
    only_second = bool(flags.get("phase2", in_file.get("phase2")))
    numbers = [1] * count if only_second else list(range(count))
    continued = [{}, {} if only_second else _CONTINUED]
    return [
        (of_phase(in_file, phase, named), of_phase(flags, phase, named) | continued[phase])
        for phase, named in enumerate(numbers)
    ]


def of_phase(given: Given, phase: int, named: int) -> dict[str, Any]:
    """The given values of a phase. named: the phase's number from 0 in the names of data keys."""
    names, phases = known_names(), phase_names()
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


def steps_or_epochs(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """All keys with steps, or epochs or tokens, not both: a flag wins over the file, else steps win."""
    keys = below | above
    for name in ("num_train_epochs", "train_tokens"):
        if keys.get(name) is not None:
            if "steps" in above or ("steps" in below and above.get(name) is None):
                keys[name] = None
            else:
                keys.pop("steps", None)
    return keys


def ambiguous(name: str, paths: Sequence[str], spell: Callable[[str], str] = str) -> SettingsError:
    """The error for datasets that might be united or each of a phase."""
    key = next((key for one, (key, _) in phase_names().items() if one == name), name)
    phases = " ".join(f"{spell(f'{key}_phase{number}')} {path}" for number, path in enumerate(paths[:2], 1))
    found = f"{spell(name)} has {len(paths)} values"
    whole = f"{spell(key)} {'+'.join(paths)}"
    return SettingsError(f"{found}: for one in each phase give {phases}; for all together {whole}")


def _count_phases(given: Given, where: str = "") -> int:
    """2 where a key that may differ has two values, or data of phase 2 are named, else 1."""
    names = known_names()
    count = max([1 + phase for name, (_, phase) in phase_names().items() if name in given], default=1)
    for name, value in given.items():
        if not isinstance(value, list):
            continue
        if "phases" in names[name]:
            raise SettingsError(f"{where}{ambiguous(name, [str(path) for path in value])}")
        if "by_phase" in names[name]:
            if len(value) not in (1, 2):
                wanted = "expected one, or two: phase 1's and phase 2's"
                raise SettingsError(f"{where}{name} has {len(value)} values, {wanted}")
            count = max(count, len(value))
    return count
