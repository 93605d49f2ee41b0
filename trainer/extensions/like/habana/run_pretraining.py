"""Habana's run_pretraining.py: one phase of pre-training on Gaudi, in the workers of a launcher."""

import os
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.checkpoints import start_of_phase
from trainer.extensions.like.constants import product
from trainer.extensions.like.graphics_cards import count_gpus
from trainer.extensions.like.habana.pretraining import (
    ALWAYS,
    count_packs,
    micro_batch,
    read_mean,
)
from trainer.extensions.like.habana.run_pretraining_flags import FIRST, LATER
from trainer.extensions.like.program import Meaning, Program, phase_keys

_OF_FP16 = ("loss_scaling", "init_loss_scale")
_LARGEST_SCALE = 2.0**24


def resolve(given: Given) -> Meaning:
    """The phase that the command line asks for."""
    warnings = list[str]()
    keys = ALWAYS | phase_keys(given, PROGRAM.flags(version=given.version).table)
    keys |= _device(given, warnings) | _batches(given, warnings) | _start(given, warnings)
    keys |= {
        "steps": _whole(given, "max_steps"),
        "log_every": _whole(given, "log_freq"),
        "precision": _precision(given),
        "max_loss_scale": max(_LARGEST_SCALE, float(given["init_loss_scale"])),
    }
    if keys["precision"] != "fp16":
        keys = {name: value for name, value in keys.items() if name not in (*_OF_FP16, "max_loss_scale")}
    if given["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        warnings.append("skip_checkpoint: the last update has a checkpoint here")
    size = product(keys["world_size"], keys["batch_size"], keys["accumulation"])
    rows = "packed rows" if "packed_accumulation" in keys else "examples"
    return Meaning(
        summary=f"{size} {rows} an update, {keys['precision']}, lamb, {keys['device']}",
        phases=[keys],
        warnings=warnings,
    )


def _device(given: Given, warnings: list[str]) -> dict[str, Any]:
    """The device and the workers; without a flag the program takes CUDA where that is, else a processor."""
    keys: dict[str, Any] = {"device": "cpu", "world_size": find_rank()[1], "dist": False}
    if given["use_habana"]:
        options: dict[str, Any] = {"mode": _mode(given)}
        if not given["use_fused_lamb"]:
            options["use_fused_lamb"] = False
        return keys | {"device": "hpu", "device_options": options}
    if given["no_cuda"]:
        return keys
    gpus = count_gpus()
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


def _start(given: Given, warnings: list[str]) -> dict[str, Any]:
    """The checkpoint to start from or to continue; without --resume_from_checkpoint there is none."""
    if not given["do_train"]:
        raise UsageError(f"{PROGRAM.name}: `do_train` must be True")
    return start_of_phase(given, warnings)


def _whole(given: Given, name: str) -> int:
    """The value of a flag that takes a fraction, as the number of updates after which it is reached."""
    return max(1, -int(-given[name] // 1))


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
