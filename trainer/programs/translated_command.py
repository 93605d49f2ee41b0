"""The configuration of this trainer that does the same as another program's command line."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.program import Program
from trainer.config.settings import DEVICE_OPTIONS, get_device_key_schemas, get_key_schemas


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslatedCommand:
    """Work that another program's command line asks for, expressed as configuration of this trainer.

    what: the work in words, for example "both phases".
    phases: configuration keys of each phase. Fine-tuning and evaluation have a single phase.
    evaluate: settings of the command ``evaluate`` if the command line only evaluates, otherwise None.
    convert: settings of the command ``convert`` if the command line converts a checkpoint, otherwise None.
    """

    what: str
    phases: Sequence[Mapping[str, Any]] = ()
    evaluate: dict[str, Any] | None = None
    convert: dict[str, Any] | None = None

    @property
    def summary(self) -> str:
        """The work in one line: length, batch size, precision, optimiser and device.

        Where the command line sets no key, the default is shown.
        """
        if not self.phases or self.evaluate is not None:
            return self.what
        first = self.phases[0]
        precision, optimiser, device = (
            _get_value(first, name) for name in ("precision", "optimiser", "device")
        )
        if not first.get("do_train", True):
            return f"{self.what}, no training, {precision}, {device}"
        unit = "features" if first.get("task") else "examples"
        unit = "packed rows" if first.get("packed_accumulation") else unit
        words = [self.what, ", then ".join(map(_format_length, self.phases))]
        if all(keys.get("batch_size") for keys in self.phases):
            words.append(f"{', then '.join(map(_format_size, self.phases))} {unit} an update")
        return ", ".join([*words, precision, optimiser, device])


def _format_length(keys: Mapping[str, Any]) -> str:
    """Return the length of a phase as text: its number of updates, or of epochs."""
    epochs = keys.get("num_train_epochs")
    if keys.get("steps") or epochs is None:
        return f"{_get_value(keys, 'steps'):,} updates"
    return "1 epoch" if epochs == 1 else f"{epochs:g} epochs"


def _format_size(keys: Mapping[str, Any]) -> str:
    """Return the examples of an update as text: workers x examples per micro-batch x micro-batches.

    For example "8 x 64 x 128 = 65,536".
    """
    workers = keys.get("world_size") or keys.get("replicas") or 1
    factors = (workers, keys["batch_size"], keys.get("accumulation") or 1)
    return f"{' x '.join(f'{factor:,}' for factor in factors)} = {math.prod(factors):,}"


def _get_value(keys: Mapping[str, Any], name: str) -> Any:
    """Return the value of a configuration key, or the key's default if the command line does not set it."""
    return keys[name] if name in keys else get_key_schemas()[name]["default"]


def make_phase_keys(flags: ParsedCommandLine, phase: int = 0) -> dict[str, Any]:
    """Return the configuration keys that the program's TOML file and the flags set.

    Keys that only one device has are collected under ``device_options``.
    phase: 0 for phase 1 and 1 for phase 2. Some flags have a value for each phase.
    """
    keys, options = dict[str, Any](), get_device_key_schemas()
    for name, value in flags.keys(phase).items():
        place = keys.setdefault(DEVICE_OPTIONS, {}) if name in options else keys
        place[name] = value
    return keys


def translate_by_toml(program: Program, flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate the command line of a program that needs no function, because its TOML file says everything.

    If a flag that sets a configuration key takes two values, there are two phases, and phase 2 continues from
    phase 1.
    """
    phases = [make_phase_keys(flags)]
    if any(flag.key and flag.count == 2 for flag in flags.table):
        phases.append(make_phase_keys(flags, 1) | _CONTINUED)
    return TranslatedCommand(what=program.work or phases[0].get("task", "pre-training"), phases=phases)


_CONTINUED = {"phase2": True, "start_from_ckpt": None, "start_moments": False}
"""Configuration keys of phase 2 if the same command trains phase 1 first."""
