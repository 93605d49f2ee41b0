"""Habana's run_pretraining.py: one phase of pre-training on Gaudi, in the workers of a launcher.

demo_bert.py runs this program, and has its rules.
"""

import os
from typing import Any

from bertdata.build.packs.metadata import metadata_path
from bertdata.cli.common.program_flags import Given
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.checkpoints import start_of_phase
from trainer.extensions.like.constants import APEX_DECAY_SKIPS, NVLAMB, micro_batch, sizes_of
from trainer.extensions.like.habana.run_pretraining_flags import FIRST, LATER
from trainer.extensions.like.machine import count_gpus
from trainer.extensions.like.nvidia.run_pretraining import LARGEST_SCALE
from trainer.extensions.like.program import Meaning, Program, phase_keys

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


def resolve(given: Given) -> Meaning:
    """The phase that the command line asks for."""
    warnings = list[str]()
    keys = ALWAYS | phase_keys(given, PROGRAM.flags(version=given.version).table)
    keys |= _device(given, warnings) | _batches(given, warnings)
    if not given["do_train"]:
        raise UsageError(f"{PROGRAM.name}: `do_train` must be True")
    keys |= start_of_phase(given, warnings)
    keys |= {
        "steps": _whole(given, "max_steps"),
        "log_every": _whole(given, "log_freq"),
        "precision": _precision(given),
        "max_loss_scale": max(LARGEST_SCALE, float(given["init_loss_scale"])),
    }
    if keys["precision"] != "fp16":
        of_fp16 = ("loss_scaling", "init_loss_scale", "max_loss_scale")
        keys = {name: value for name, value in keys.items() if name not in of_fp16}
    if given["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        warnings.append("skip_checkpoint: the last update has a checkpoint here")
    rows = "packed rows" if "packed_accumulation" in keys else "examples"
    return Meaning(
        summary=f"{sizes_of([keys])} {rows} an update, {keys['precision']}, lamb, {keys['device']}",
        phases=[keys],
        warnings=warnings,
    )


def _device(given: Given, warnings: list[str]) -> dict[str, Any]:
    """The device and the workers; without a flag the program takes CUDA where that is, else a processor."""
    keys: dict[str, Any] = {"device": "cpu", "world_size": find_rank()[1], "dist": False}
    if given["use_habana"]:
        options = {"mode": _mode(given)} | ({} if given["use_fused_lamb"] else {"use_fused_lamb": False})
        return keys | {"device": "hpu", "device_options": options}
    gpus = 0 if given["no_cuda"] else count_gpus()
    if not gpus:
        return keys
    if gpus > 1 and keys["world_size"] == 1:
        warnings.append(f"the program alone trains on all {gpus} GPUs, each with this batch; here on one")
    return keys | {"device": "cuda"}


def _mode(given: Given) -> str:
    if given.version:
        lazy = os.environ.get("PT_HPU_LAZY_MODE", "1") == "1"
        return "graph" if given["use_torch_compile"] else "lazy" if lazy else "eager"
    if given["use_lazy_mode"]:
        return "lazy"
    return "graph" if given["use_jit_trace"] else "eager"


def _precision(given: Given) -> str:
    if given["fp16"] or given["amp"]:
        return "fp16"
    return "bf16" if given.values.get("hmp") or given.values.get("autocast") else "fp32"


def _batches(given: Given, warnings: list[str]) -> dict[str, Any]:
    """Micro-batches of one card in an update; of packed rows there are fewer."""
    count = given["gradient_accumulation_steps"]
    keys: dict[str, Any] = {
        "batch_size": micro_batch(given["train_batch_size"], count),
        "accumulation": count,
    }
    if given.values.get("enable_packed_data_mode"):
        mean = read_mean(given["input_dir"], given["max_seq_length"], warnings)
        keys |= {"accumulation": count_packs(count, mean, warnings), "packed_accumulation": "rows"}
    return keys


def _whole(given: Given, name: str) -> int:
    """The value of a flag that takes a fraction, as the number of updates after which it is reached."""
    return max(1, -int(-given[name] // 1))


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


PROGRAM = Program(
    name="habana/run_pretraining.py",
    title="Habana run_pretraining.py",
    source="HabanaAI/Model-References 9d1b913c (0.15.4), PyTorch/nlp/bert/pretraining/run_pretraining.py; "
    "06bfc5ea (1.23)",
    commands=FIRST,
    versions=LATER,
    resolve=resolve,
    published=(
        "--do_train --use_habana --hmp --use_lazy_mode --use_fused_lamb --config_file bert_config.json "
        "--input_dir phase1 --output_dir results/checkpoints --train_batch_size 8192 "
        "--gradient_accumulation_steps 128 --max_seq_length 128 --max_predictions_per_seq 20 "
        "--max_steps 7038 --warmup_proportion 0.2843 --learning_rate 6e-3 --num_steps_per_checkpoint 200",
    ),
)
