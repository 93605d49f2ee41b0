"""The meaning of TrainingArguments: device, batch, optimiser, schedule, intervals, reports."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from trainer.collectives.launchers import find_launcher
from trainer.extensions.like.checkpoints import KEEP_ALL, has_checkpoints
from trainer.extensions.like.constants import TRANSFORMERS_ADAMW, product
from trainer.extensions.like.huggingface.arguments import truth
from trainer.extensions.like.machine import count_gpus, is_here
from trainer.extensions.like.program import phase_keys

_ADAMW = (
    *("adamw_hf", "adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused"),
    "adamw_apex_fused",
)
_REFUSED = {
    "adafactor": False,
    "label_smoothing_factor": 0.0,
    "neftune_noise_alpha": None,
    "max_train_samples": None,
    "max_predict_samples": None,
}
"""Flags that would change the result in a way that this trainer cannot, with their defaults."""


def read_booleans(given: Given, table: Sequence[Flag]) -> Given:
    """The command line with booleans that stand alone as true, and those of ``--no_`` forms as false."""
    values = dict(given.values)
    for flag in table:
        if flag.kind is truth and values[flag.name] is None and flag.name in given:
            values[flag.name] = True
        if flag.name.startswith("no_") and values[flag.name] and flag.name.removeprefix("no_") in values:
            values[flag.name.removeprefix("no_")] = False
    return replace(given, values=values)


def training_keys(given: Given, table: Sequence[Flag], warnings: list[str]) -> dict[str, Any]:
    """The keys that the flags of both programs set. Adds warnings."""
    if refused := [name for name, default in _REFUSED.items() if given[name] != default]:
        raise UsageError(
            f"{refused[0]} is {given[refused[0]]}: this trainer has nothing like it; leave it out"
        )
    if given["fp16"] and given["bf16"]:
        raise UsageError("At most one of fp16 and bf16 can be True, but not both")
    resumes = given["resume_from_checkpoint"] not in (None, "", "False", "false")
    continues = has_checkpoints(given["output_dir"]) and not given["overwrite_output_dir"]
    if continues and given["do_train"]:
        warnings.append(f"{given['output_dir']}: has checkpoints, so that the run continues from the newest")
    keys = TRANSFORMERS_ADAMW | phase_keys(given, table)
    keys |= {
        **_devices(given),
        "unverified": True,
        "gelu": "exact",
        "precision": "fp16" if given["fp16"] else "bf16" if given["bf16"] else "fp32",
        "batch_size": given["per_gpu_train_batch_size"] or given["per_device_train_batch_size"],
        "eval_batch_size": given["per_gpu_eval_batch_size"] or given["per_device_eval_batch_size"],
        "resume": given["do_train"] and (continues or resumes),
        "max_grad_norm": given["max_grad_norm"] or 1.0,
        "clipping": "per_update" if given["max_grad_norm"] else "none",
        "keep_checkpoints": given["save_total_limit"] or KEEP_ALL,
        "tensorboard": _reports(given, "tensorboard"),
        "wandb": _reports(given, "wandb"),
        "log_every": max(1, _count(given, "logging_steps")),
    }
    return keys | _optimiser(given) | _schedule(given) | _intervals(given, warnings) | _files(given)


def _devices(given: Given) -> dict[str, Any]:
    """A GPU where there is one, else the processor. Without a launcher the program takes all GPUs."""
    gpus = count_gpus()
    if given["no_cuda"] or given["use_cpu"] or not gpus:
        return {"device": "cpu", "world_size": None, "dist": False}
    takes_all = find_launcher() == "single" and gpus > 1
    return {"device": "cuda", "world_size": gpus if takes_all else None, "dist": takes_all}


def _reports(given: Given, name: str) -> bool:
    return bool({name, "all"} & set(given["report_to"] or ()))


def _files(given: Given) -> dict[str, Any]:
    """The keys of model and vocabulary where they are not those of model_name_or_path."""
    keys: dict[str, Any] = {}
    if given["config_name"] and is_here(given["config_name"]):
        keys["model_config"] = given["config_name"]
    if given["tokenizer_name"]:
        name = given["tokenizer_name"]
        keys["vocab"] = f"{name}/vocab.txt" if is_here(f"{name}/vocab.txt") else name
    return keys


def _optimiser(given: Given) -> dict[str, Any]:
    name = "adamw" if given["optim"] in _ADAMW else given["optim"]
    if name not in ("adamw", "sgd"):
        raise UsageError(f"optim {name}: this trainer has {', '.join(_ADAMW)} and sgd")
    return {"optimiser": name, "decay_skips": ["bias", "LayerNorm"]}


def _schedule(given: Given) -> dict[str, Any]:
    """The updates and the rate: linear, as polynomial with its defaults is, or constant."""
    keys: dict[str, Any] = {"warmup": given["warmup_steps"] or given["warmup_ratio"] or 0}
    if given["max_steps"] > 0:
        keys |= {"steps": given["max_steps"], "num_train_epochs": None}
    kind = given["lr_scheduler_type"]
    if kind == "constant" or (kind == "constant_with_warmup" and not keys["warmup"]):
        rates = {"0": given["learning_rate"]}
        return keys | {"warmup": 0, "lr_schedule": "custom", "lr_schedule_by_step": rates}
    if kind not in ("linear", "polynomial"):
        raise UsageError(f"lr_scheduler_type {kind}: this trainer has linear, polynomial and constant")
    return keys | {"lr_schedule": "polynomial_decay"}


def _intervals(given: Given, warnings: list[str]) -> dict[str, Any]:
    """The keys of checkpoints and evaluations."""
    strategy, save = given["eval_strategy"], given["save_strategy"]
    keys: dict[str, Any] = {"do_eval": given["do_eval"] or strategy != "no"}
    if strategy == "steps":
        keys["eval_every"] = _count(given, "eval_steps" if given["eval_steps"] else "logging_steps")
    elif strategy == "no":
        keys["eval_every"] = 0
    if save in ("epoch", "best"):
        warnings.append(f"save_strategy {save}: a checkpoint is saved at the end only")
    keys["checkpoint_every"] = max(0, _count(given, "save_steps")) if save == "steps" else 0
    return keys


def _count(given: Given, name: str) -> int:
    """A number of updates. The program also takes a fraction of all updates."""
    value: float = given[name]
    if value != int(value):
        raise UsageError(f"{name} is {value}: a share of the updates; give their number")
    return int(value)


def summary_of(task: str, given: Given, keys: dict[str, Any]) -> str:
    """The line for a person."""
    steps, epochs = given["max_steps"], given["num_train_epochs"]
    length = f"{steps} updates" if steps > 0 else f"{epochs:g} epochs"
    length = length if given["do_train"] else "no training"
    sizes = product(keys["world_size"] or 1, keys["batch_size"], keys["accumulation"])
    kinds = ", ".join(keys[name] for name in ("precision", "optimiser", "device"))
    return f"{task}, {length}, {sizes} features an update, {kinds}"


def check_files(given: Given, *, needed: bool) -> None:
    """UsageError for files of kinds that the programs refuse."""
    for name in ("train_file", "validation_file", "test_file"):
        path = given[name]
        if needed and path is not None and path.rpartition(".")[2] not in ("csv", "json"):
            raise UsageError(f"`{name}` should be a csv or a json file.")
