"""The meaning of another program's command line as keys of this trainer's configuration."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.program import Program
from trainer.config.settings import DEVICE_OPTIONS, get_device_key_schemas, get_key_schemas


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslatedCommand:
    """What a command line does, as this trainer's configuration.

    what: the work, as text.
    phases: configuration keys of each phase. Fine-tuning and evaluation have a single phase.
    evaluate, convert: settings of a command that evaluates or converts instead of training.
    """

    what: str
    phases: Sequence[Mapping[str, Any]] = ()
    evaluate: dict[str, Any] | None = None
    convert: dict[str, Any] | None = None

    @property
    def summary(self) -> str:
        """The work, its length, batch size, precision, optimiser and device in one line.

        For keys that the command line does not set, it shows the defaults.
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
    """Return the length of a phase as text: its updates, or the passes over its data."""
    epochs = keys.get("num_train_epochs")
    if keys.get("steps") or epochs is None:
        return f"{_get_value(keys, 'steps'):,} updates"
    return "1 epoch" if epochs == 1 else f"{epochs:g} epochs"


def _format_size(keys: Mapping[str, Any]) -> str:
    """Return workers times micro-batch times micro-batches as text: 8 x 64 x 128 = 65,536."""
    workers = keys.get("world_size") or keys.get("replicas") or 1
    factors = (workers, keys["batch_size"], keys.get("accumulation") or 1)
    return f"{' x '.join(f'{factor:,}' for factor in factors)} = {math.prod(factors):,}"


def _get_value(keys: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, or its default if the program does not set it."""
    return keys[name] if name in keys else get_key_schemas()[name]["default"]


def make_phase_keys(flags: ParsedCommandLine, phase: int = 0) -> dict[str, Any]:
    """Return the configuration keys that the program's TOML file sets, and the keys that its flags set.

    Keys for single devices are under ``device_options``.
    phase: counted from 0.
    """
    keys, options = dict[str, Any](), get_device_key_schemas()
    for name, value in flags.keys(phase).items():
        place = keys.setdefault(DEVICE_OPTIONS, {}) if name in options else keys
        place[name] = value
    return keys


def translate_by_toml(program: Program, flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line of a program that its TOML file describes completely, without a function.

    If a flag with two values is a configuration key, there are two phases. Phase 2 continues from phase 1.
    """
    phases = [make_phase_keys(flags)]
    if any(flag.key and flag.count == 2 for flag in flags.table):
        phases.append(make_phase_keys(flags, 1) | _CONTINUED)
    return TranslatedCommand(what=program.work or phases[0].get("task", "pre-training"), phases=phases)


_CONTINUED = {"phase2": True, "start_from_ckpt": None, "start_moments": False}
"""Configuration keys of phase 2 if phase 1 runs before it in the same command."""
