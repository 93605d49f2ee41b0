"""RaNNC's run_pretraining_rannc.sh: both phases of a model that is divided among the GPUs of a machine.

The script takes its settings from environment variables. It runs NVIDIA's run_pretraining.py, changed to
apex FusedAdam and a division of the model; the GELU of its modeling.py is the exact one.

Three keys of its models, after Megatron-LM:

- ``megatron_residual_connection``: attention and feed-forward part read layer-normed input, and the
  residual is taken before the norm. No parameter is added: each norm keeps its name and is applied
  where its output is read next, so that the norm of the embeddings feeds the first attention, and
  the norm of the last layer is the final one. RaNNC's model has no final norm.
- ``scale_query_key``: query and key are each multiplied by (size d of a head)^-1/4, instead of their
  product by d^-1/2; equal but for rounding, and without overflow in 16 bits. RaNNC divides each by
  sqrt(n sqrt(d)), n being the layer's number from 1, and multiplies the scores by n: q k / (n sqrt(d))
  times n is the same q k / sqrt(d).
- ``deep_weight_init``: the weights of the two projections that end in the residual start with the
  standard deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
"""

import os
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.constants import (
    APEX_DECAY_SKIPS,
    CLIPPED,
    HDF5_DATA,
    MOMENTS,
    bert_shape,
    micro_batch,
    sizes_of,
)
from trainer.extensions.like.program import Meaning, Program

_PUBLISHED_SHAPE: dict[str, Any] = bert_shape(96, 2048, 32) | {
    "megatron_residual_connection": True,
    "scale_query_key": True,
    "deep_weight_init": True,
}
"""The file my_bert_config.json that README prints, of 4.9 billion parameters."""

_SIZES = ((128, 20), (512, 80))
"""Ids and masked ids of an example, of each phase."""

_DEFAULTS = {
    "NP": "8",
    "TRAIN_STEPS_P1": "1000000",
    "TRAIN_STEPS_P2": "100000",
    "BATCH_SIZE_PROC_P1": "8",
    "BATCH_SIZE_PROC_P2": "4",
    "ACC_STEPS_P1": "1",
    "ACC_STEPS_P2": "1",
    "LR": "1e-4",
    "PREC": "fp16",
    "PHASE1_ONLY": "0",
    "PHASE2_ONLY": "0",
    "MIN_PIPELINE": "1",
    "MAX_PIPELINE": "32",
    "MEM_MARGIN": "0.1",
    "SAVE_DEPLOYMENT": "true",
    "LOAD_DEPLOYMENT": "false",
    "BERT_CONFIG": "bert_config.json",
}
_PLACES = {"CODEDIR": ".", "BERT_PREP_WORKING_DIR": "data/prep"}
"""Directories in which README runs the script; its own defaults are places on the authors' machine."""

_RESIDUALS = {
    True: "with megatron_residual_connection the original has no norm after the last layer; here it has one",
    False: "without megatron_residual_connection the original adds the residual of the feed-forward part "
    "after the norm; here it is before it, as in BERT",
}
"""Differences of the original's modeling.py, by megatron_residual_connection."""


def resolve(_: Given) -> Meaning:
    """The phases that the environment asks for."""
    settings, unset = _settings()
    if settings["PREC"] not in ("fp16", "fp32"):
        raise UsageError(f"Unknown <precision> argument: PREC is {settings['PREC']!r}, expected fp16 or fp32")
    only = [settings[f"PHASE{number}_ONLY"] != "0" for number in (1, 2)]
    if all(only):
        raise UsageError("PHASE1_ONLY and PHASE2_ONLY: the script skips both phases")
    numbers = [1] if only[0] else [2] if only[1] else [1, 2]
    shape, warnings = _shape(settings["BERT_CONFIG"])
    phases = [shape | _phase(settings, number, alone=only[1]) for number in numbers]
    return Meaning(
        summary=f"{len(phases)} of 2 phases, {sizes_of(phases)} examples an update, "
        f"{settings['PREC']}, adam, cuda",
        phases=phases,
        warnings=[*unset, *warnings],
    )


def _settings() -> tuple[dict[str, str], list[str]]:
    """The variables, and warnings. An empty variable counts as unset, as in the script."""
    every = _DEFAULTS | _PLACES
    warnings = [
        f"{name} is not set; taken as {place}, as in the directory that README runs the script in"
        for name, place in _PLACES.items()
        if not os.environ.get(name)
    ]
    return {name: os.environ.get(name) or default for name, default in every.items()}, warnings


def _shape(path: str) -> tuple[dict[str, Any], list[str]]:
    """The model's keys, and warnings. Without the file, the keys of the published one."""
    if storage.exists(path):
        return {"model_config": path}, [
            _RESIDUALS[read_object(path).get("megatron_residual_connection") is True]
        ]
    if storage.base_name(path) != "my_bert_config.json":
        return {"model_config": path}, []
    missing = f"{path}: no such file; taken as the one that README prints, of 4.9 billion parameters"
    return dict(_PUBLISHED_SHAPE), [missing, _RESIDUALS[True]]


def _phase(settings: dict[str, str], number: int, *, alone: bool) -> dict[str, Any]:
    """The keys of a phase. alone: phase 2 without phase 1, which starts with new weights."""
    size, count = (_number(settings, f"{name}_P{number}", int) for name in ("BATCH_SIZE_PROC", "ACC_STEPS"))
    length, masks = _SIZES[number - 1]
    workers, results = _number(settings, "NP", int), storage.join(settings["CODEDIR"], "results")
    both = "_".join(
        f"P{one}BS{settings[f'BATCH_SIZE_PROC_P{one}']}_P{one}ACC{settings[f'ACC_STEPS_P{one}']}_"
        f"P{one}STEPS{settings[f'TRAIN_STEPS_P{one}']}"
        for one in (1, 2)
    )
    name = f"rannc_NP{settings['NP']}_{both}_PREC{settings['PREC']}"
    keys: dict[str, Any] = {
        "train_data": storage.join(settings["BERT_PREP_WORKING_DIR"], f"{HDF5_DATA}/".format(length, masks)),
        "max_seq_length": length,
        "max_predictions_per_seq": masks,
        "steps": _number(settings, f"TRAIN_STEPS_P{number}", int),
        "batch_size": micro_batch(size, count),
        "accumulation": count,
        "world_size": workers,
        "dist": workers > 1,
        "output_dir": storage.join(results, f"{name}/checkpoints"),
        "json_summary": storage.join(results, "dllogger.json"),
        "precision": settings["PREC"],
        "base_learning_rate": _number(settings, "LR", float),
        "memory_margin": _number(settings, "MEM_MARGIN", float),
        "min_micro_batches": _number(settings, "MIN_PIPELINE", int),
        "max_micro_batches": _number(settings, "MAX_PIPELINE", int),
    }
    if number == 2 and not alone:
        keys |= {"phase2": True, "phase1_end_step": _number(settings, "TRAIN_STEPS_P1", int)}
    for variable, key in (("SAVE_DEPLOYMENT", "save_plan"), ("LOAD_DEPLOYMENT", "plan")):
        # DEPLOYMENT_FILE where the variable is "true", else the variable's own
        file = settings[variable] if settings[variable] != "true" else os.environ.get("DEPLOYMENT_FILE")
        if file and file != "false":
            keys[key] = file
    return _FIXED | keys


_FIXED: dict[str, Any] = {
    "device": "cuda",
    "strategy": "auto",
    "gelu": "exact",
    "optimiser": "adamw",
    **MOMENTS,
    "optimiser_epsilon": 1e-8,
    "decay_skips": APEX_DECAY_SKIPS,
    **CLIPPED,
    "lr_schedule": "nvidia-poly",
    "power": 0.5,
    "warmup": 0.01,
    "init_loss_scale": float(2**20),
    "checkpoint_every": 10000,
    "keep_checkpoints": 3,
    "log_every": 10,
    "seed": 42,
    "unverified": True,
}
"""The keys that no variable changes."""


def _number(settings: dict[str, str], name: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(settings[name])
    except ValueError:
        expected = "an integer" if kind is int else "a number"
        raise UsageError(f"{name} is {settings[name]!r}, expected {expected}") from None


PROGRAM = Program(
    name="rannc/run_pretraining_rannc.sh",
    title="RaNNC run_pretraining_rannc.sh",
    source="nict-wisdom/rannc-examples 03bf8d14, bert/run_pretraining_rannc.sh; reads "
    f"{', '.join((*_PLACES, *_DEFAULTS, 'DEPLOYMENT_FILE'))} from the environment",
    commands={"": []},
    resolve=resolve,
)
