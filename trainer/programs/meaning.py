"""The meaning of another program's command line, in this trainer's own terms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.cli.common.programs.program import Program
from trainer.config.settings import DEVICE_OPTIONS, device_properties, properties


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """The meaning of a command line, in this trainer's own terms.

    what: the work, for a person. phases: the keys of the configuration, one mapping a phase; a command that
    fine-tunes or evaluates has one. evaluate, convert: the settings of a command that does that instead.
    """

    what: str
    phases: Sequence[Mapping[str, Any]] = ()
    evaluate: dict[str, Any] | None = None
    convert: dict[str, Any] | None = None

    @property
    def summary(self) -> str:
        """One line for a person: the work, its length, an update's size, precision, optimiser, device.

        What the program leaves open has this trainer's own default.
        """
        if not self.phases or self.evaluate is not None:
            return self.what
        first = self.phases[0]
        precision, optimiser, device = (
            _value_of(first, name) for name in ("precision", "optimiser", "device")
        )
        if not first.get("do_train", True):
            return f"{self.what}, no training, {precision}, {device}"
        unit = "features" if first.get("task") else "examples"
        unit = "packed rows" if first.get("packed_accumulation") else unit
        words = [self.what, ", then ".join(map(_length_of, self.phases))]
        if all(keys.get("batch_size") for keys in self.phases):
            words.append(f"{', then '.join(map(_size_of, self.phases))} {unit} an update")
        return ", ".join([*words, precision, optimiser, device])


def _length_of(keys: Mapping[str, Any]) -> str:
    """Return the length of a phase in words: its updates, or the passes over its data."""
    epochs = keys.get("num_train_epochs")
    if keys.get("steps") or epochs is None:
        return f"{_value_of(keys, 'steps'):,} updates"
    return "1 epoch" if epochs == 1 else f"{epochs:g} epochs"


def _size_of(keys: Mapping[str, Any]) -> str:
    """Return the product of workers, micro-batch and micro-batches: 8 x 64 x 128 = 65,536."""
    workers = keys.get("world_size") or keys.get("replicas") or 1
    factors = (workers, keys["batch_size"], keys.get("accumulation") or 1)
    return f"{' x '.join(f'{factor:,}' for factor in factors)} = {math.prod(factors):,}"


def _value_of(keys: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, this trainer's default where the program leaves it open."""
    return keys[name] if name in keys else properties()[name]["default"]


def phase_keys(given: Given, phase: int = 0) -> dict[str, Any]:
    """Return the keys that the program's file sets and those that flags set as they are.

    phase: counted from 0. Keys that have an effect on some devices only are among ``device_options``.
    """
    keys, options = dict[str, Any](), device_properties()
    for name, value in given.keys(phase).items():
        place = keys.setdefault(DEVICE_OPTIONS, {}) if name in options else keys
        place[name] = value
    return keys


def plain_meaning(program: Program, given: Given) -> Meaning:
    """Return the meaning of a command line whose program computes nothing: its file says all.

    A flag of two values that is a key of ours has one for each of two phases, of which the second continues
    from the first.
    """
    phases = [phase_keys(given)]
    if any(flag.key and flag.count == 2 for flag in given.table):
        phases.append(phase_keys(given, 1) | _CONTINUED)
    return Meaning(what=program.work or phases[0].get("task", "pre-training"), phases=phases)


_CONTINUED = {"phase2": True, "start_from_ckpt": None, "start_moments": False}
"""Keys of phase 2 after phase 1 in the same command."""
