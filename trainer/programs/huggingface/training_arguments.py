"""Configuration keys that are computed in the same way for Hugging Face's run_glue.py and run_qa.py.

They come from TrainingArguments (settings of transformers' Trainer) and from the names of files.
"""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.tokens.kept_files import CONFIGURATION_NAME
from trainer.checkpoints.formats.config_file import read_exported_length
from trainer.programs.machine import KEEP_ALL_CHECKPOINTS, count_gpus, has_checkpoints, is_local_file
from trainer.programs.translated_command import make_phase_keys
from trainer.workers.launchers import find_launcher

_ADAMW = (
    *("adamw_hf", "adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused"),
    "adamw_apex_fused",
)
_REFUSED_FLAGS = (
    *("max_train_samples", "max_predict_samples", "adafactor", "label_smoothing_factor"),
    "neftune_noise_alpha",
)
"""Flags that are refused, because they would change the result in a way that this trainer does not
support.
"""


def make_training_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the flags that both programs have."""
    for flag in flags.table:
        if flag.name in _REFUSED_FLAGS and flags[flag.name] != flag.default:
            raise UsageError(
                f"{flag.name} is {flags[flag.name]}: this trainer has nothing like it; leave it out"
            )
    if flags["fp16"] and flags["bf16"]:
        raise UsageError("At most one of fp16 and bf16 can be True, but not both")
    resumes = flags["resume_from_checkpoint"] not in (None, "", "False", "false")
    continues = has_checkpoints(flags["output_dir"]) and not flags["overwrite_output_dir"]
    if continues and flags["do_train"]:
        flags.warn(f"{flags['output_dir']}: has checkpoints, so that the run continues from the newest")
    reports = flags["report_to"] or ()
    keys = make_phase_keys(flags)
    keys |= {
        **_make_device_keys(flags),
        "precision": "fp16" if flags["fp16"] else "bf16" if flags["bf16"] else "fp32",
        "batch_size": flags["per_gpu_train_batch_size"] or flags["per_device_train_batch_size"],
        "eval_batch_size": flags["per_gpu_eval_batch_size"] or flags["per_device_eval_batch_size"],
        "resume": flags["do_train"] and (continues or resumes),
        "overwrite_output_dir": flags["overwrite_output_dir"] and not resumes,
        "max_grad_norm": flags["max_grad_norm"] or 1.0,
        "clipping": "per_update" if flags["max_grad_norm"] else "none",
        "keep_checkpoints": flags["save_total_limit"] or KEEP_ALL_CHECKPOINTS,
        "tensorboard": "tensorboard" in reports or "all" in reports,
        "wandb": "wandb" in reports or "all" in reports,
        "log_every": max(1, _read_update_count(flags, "logging_steps")),
    }
    name = "adamw" if flags["optim"] in _ADAMW else flags["optim"]
    if name not in ("adamw", "sgd"):
        raise UsageError(f"optim {name}: this trainer has {', '.join(_ADAMW)} and sgd")
    if flags["optim"] == "adamw_hf":
        keys["epsilon_in"] = "uncorrected"
    keys["optimiser"] = name
    if flags["config_name"] and is_local_file(flags["config_name"]):
        keys["model_config"] = flags["config_name"]
    if tokeniser := flags["tokenizer_name"]:
        keys["vocab"] = f"{tokeniser}/vocab.txt" if is_local_file(f"{tokeniser}/vocab.txt") else tokeniser
    return keys | _make_schedule_keys(flags) | _make_interval_keys(flags) | _make_length_keys(flags)


def _make_length_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration key for the length of examples.

    As in run_glue.py and run_qa.py, the length is limited to the length that the model's tokeniser states.
    """
    model, asked = flags["tokenizer_name"] or flags["model_name_or_path"], flags["max_seq_length"]
    known = read_exported_length(model) if is_local_file(f"{model}/{CONFIGURATION_NAME}") else None
    if known is None or asked <= known:
        return {}
    flags.warn(f"max_seq_length is {asked}, the model's model_max_length {known}, which is taken, as there")
    return {"max_seq_length": known}


def _make_device_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the device (a GPU if there is one, otherwise the CPU) and the
    workers.

    Without a launcher, run_glue.py and run_qa.py use all GPUs of the machine.
    """
    gpus = count_gpus()
    if flags["no_cuda"] or flags["use_cpu"] or not gpus:
        return {"device": "cpu", "world_size": None, "dist": False}
    takes_all = find_launcher() == "single" and gpus > 1
    return {"device": "cuda", "world_size": gpus if takes_all else None, "dist": takes_all}


def _make_schedule_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the number of updates and the learning rate.

    The schedule "polynomial" is translated to "linear". They are the same as long as polynomial has its
    default settings.
    """
    keys: dict[str, Any] = {"warmup": flags["warmup_steps"] or flags["warmup_ratio"] or 0}
    if flags["max_steps"] > 0:
        keys |= {"steps": flags["max_steps"], "num_train_epochs": None}
    kind = flags["lr_scheduler_type"]
    if kind == "constant" or (kind == "constant_with_warmup" and not keys["warmup"]):
        rates = {"0": flags["learning_rate"]}
        return keys | {"warmup": 0, "lr_schedule": "custom", "lr_schedule_by_step": rates}
    if kind not in ("linear", "polynomial"):
        raise UsageError(f"lr_scheduler_type {kind}: this trainer has linear, polynomial and constant")
    return keys


def _make_interval_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the number of updates between checkpoints and between evaluations."""
    strategy, save = flags["eval_strategy"], flags["save_strategy"]
    keys: dict[str, Any] = {"do_eval": flags["do_eval"] or strategy != "no"}
    if strategy == "steps":
        keys["eval_every"] = _read_update_count(
            flags, "eval_steps" if flags["eval_steps"] else "logging_steps"
        )
    elif strategy == "no":
        keys["eval_every"] = 0
    if save in ("epoch", "best"):
        flags.warn(f"save_strategy {save}: a checkpoint is saved at the end only")
    keys["checkpoint_every"] = max(0, _read_update_count(flags, "save_steps")) if save == "steps" else 0
    return keys


def _read_update_count(flags: ParsedCommandLine, name: str) -> int:
    """Return the value of a flag as a number of updates.

    Raises UsageError for a fraction, by which transformers means a share of all updates.
    """
    value: float = flags[name]
    if value != int(value):
        raise UsageError(f"{name} is {value}: a share of the updates; give their number")
    return int(value)


def check_files(flags: ParsedCommandLine) -> None:
    """Raise UsageError for input files of types that run_glue.py and run_qa.py refuse."""
    for name in ("train_file", "validation_file", "test_file"):
        path = flags[name]
        if path is not None and path.rpartition(".")[2] not in ("csv", "json"):
            raise UsageError(f"`{name}` should be a csv or a json file.")
