"""Rules of Habana's run_pretraining.py, which demo_bert.py has too, as it runs that program."""

from typing import Any

from bertdata.build.packs.metadata import metadata_path
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.constants import APEX_DECAY_SKIPS, NVLAMB

ALWAYS: dict[str, Any] = NVLAMB | {
    "decay_skips": APEX_DECAY_SKIPS,
    "gelu": "exact",
    "keep_checkpoints": 3,
    "unverified": True,
}
"""Keys that no flag changes.

FusedLamb is a binary that is given the rate and two groups, of decay 0.01 and 0.0. Its betas, epsilon,
clipping and trust ratio are taken from NVLAMB, the program's optimiser without --use_fused_lamb.
"""

_KEY = "avg_seq_per_sample"
_USUAL_MEANS = {128: 1.2, 512: 2.0}
"""Sequences of a pack by length, where the packer's metadata file is missing."""


def micro_batch(update: int, count: int) -> int:
    """Examples of a micro-batch of a card whose update has so many examples in count micro-batches."""
    found = f"Invalid gradient_accumulation_steps parameter: {count}"
    if count < 1:
        raise UsageError(f"{found}, should be >= 1")
    if update % count:
        raise UsageError(f"{found}, batch size {update} should be divisible")
    return update // count


def count_packs(count: int, mean: float, warnings: list[str]) -> int:
    """Micro-batches of packed rows for those of single sequences; mean: sequences of a row."""
    packed = round(count / mean)
    if packed < 1:
        warnings.append(
            f"{count} micro-batches / {mean:g} sequences a pack rounds to 0, which ends the program; here 1"
        )
    return max(1, packed)


def read_mean(directory: str, length: int, warnings: list[str]) -> float:
    """Sequences of a pack on average: the packer's number, else the program's for data of that length."""
    path = metadata_path(directory)
    if storage.exists(path):
        found = read_object(path).get(_KEY)
        if not isinstance(found, int | float) or found <= 0:
            raise UsageError(f"Key {_KEY} not present in packed dataset metadata file: {path}")
        return float(found)
    if length not in _USUAL_MEANS:
        known = " or ".join(map(str, _USUAL_MEANS))
        raise UsageError(
            f"{path}: is missing, and max_seq_length is {length}, expected {known} to do without"
        )
    mean = _USUAL_MEANS[length]
    warnings.append(f"{path}: is missing; {mean:g} sequences a pack are assumed, as by the program")
    return mean
