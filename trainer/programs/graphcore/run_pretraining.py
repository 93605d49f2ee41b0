"""Translate the command lines and the JSON file of Graphcore's run_pretraining.py to this trainer's keys."""

import math
import re
from itertools import pairwise
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.graphcore import values
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys

_SOURCE = "graphcore/examples 553b90b5"
_GENERATED_EXAMPLES = 10_000_000  # number of examples that the program assumes if it trains on generated data
_NO_DATA = "Neither generated-data nor train-file was passed, set at least one of them to run the code."

_README_FLAGS = {"--sequence-length": "--seq-length", "--batches-per-step": "--batches_per_step"}
"""Flags in the README of Graphcore's program that the program itself refuses, each with the flag that it
accepts instead.
"""

_FILE_KEYS = ("checkpoint_path", "weight_decay", "decay_steps", "decay_rate", "lr_schedule_by_step")
"""Keys that Graphcore's program reads only from its JSON file, because it has no flags for them."""

_IDLE_FILE_KEYS = (
    *("best_checkpoint_start_epoch", "best_loss", "checkpoint_model", "do_validation", "embedding_cut_num"),
    *("grad_scale", "init_checkpoint", "intermediate_size", "ipu_function", "no_logs", "no_outlining"),
    *("profile_execution", "profiling", "report_directory", "restore_dir", "restoring", "variable_filter"),
    "variable_offloading",
)
"""Keys in Graphcore's published JSON files that Graphcore's program ignores."""


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line and its JSON file into the configuration for one phase of pre-training."""
    _warn_about_flags(flags)
    opts = values.merge_values(flags, _SOURCE, _FILE_KEYS, _IDLE_FILE_KEYS)
    if not opts["batch_size"]:
        raise UsageError(f"{opts['config']}: batch_size is missing; give --batch-size")
    if opts["pipeline_depth"] <= 1:
        raise UsageError(
            "Single-stage pipeline not supported by BERT pretraining. pipeline_depth is "
            f"{opts['pipeline_depth']}, expected 2 or more"
        )
    keys = make_phase_keys(opts) | values.make_interval_keys(opts, opts["batches_per_step"])
    # Graphcore's program only tests whether the precision equals the number 32. So the text "32" in a file
    # means 16 bits, as any other text does.
    keys |= {
        "output_dir": opts["checkpoint_path"],
        "precision": "fp32" if opts["precision"] == 32 else "fp16",
    }
    keys |= (
        _make_model_keys(opts)
        | _make_optimiser_keys(opts)
        | _make_schedule_keys(opts)
        | _make_data_keys(opts)
        | _make_start_keys(opts)
    )
    if opts["compile_only"]:
        opts.warn("--compile-only: on IPUs give a directory too: -- --executable-cache-dir DIR")
    summed = ", gradients of micro-batches added up" if opts["reduction_type"] == "sum" else ""
    return TranslatedCommand(what=f"one phase{summed}", phases=[keys])


def _warn_about_flags(flags: ParsedCommandLine) -> None:
    """Warn about flags that Graphcore's README prints but Graphcore's program refuses.

    Also warn about true or false values that the program reads differently from what a user would expect.
    """
    words = {word.partition("=")[0] for word in flags.arguments}
    true_of_any_word = {flag.spellings[0] for flag in flags.table if flag.kind is bool and not flag.idle}
    for word, meant in _README_FLAGS.items():
        if word in words:
            flags.warn(f"{word}: the README prints it, but the program refuses it; taken as {meant}")
    for flag, value in pairwise(" ".join(flags.arguments).replace("=", " ").split(" ")):
        if flag in true_of_any_word and value.lower() in ("false", "0", "no", "none"):
            flags.warn(f"{flag} {value}: the program takes any word as true")


def _make_model_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys that describe the model."""
    if opts["hidden_act"] != "gelu":
        if opts["use_cls_layer"]:
            raise UsageError(
                f"hidden_act is {opts['hidden_act']!r} before the word logits and gelu in the encoder: this "
                "trainer has one for both"
            )
        opts.warn(f"hidden_act {opts['hidden_act']}: the program's encoder has gelu whatever it says")
    return {"intermediate_size": 4 * opts["hidden_size"]}


def _make_optimiser_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys that describe the optimiser."""
    name = str(opts["optimiser"]).lower()
    if name not in ("lamb", "adamw"):
        return values.make_momentum_keys(opts, name)
    moments = {
        "beta1": opts["optimiser_beta1"],
        "beta2": opts["optimiser_beta2"],
        "optimiser_epsilon": opts["optimiser_epsilon"],
    }
    # Graphcore's program does not pass weight_decay to AdamW, so the optimiser's default of 0.01 applies
    if name == "adamw":
        return {"optimiser": "adamw-bert", "weight_decay": 0.01, "clipping": "none", **moments}
    if opts["weight_decay"] is None:
        raise UsageError(f"{opts['config']}: weight_decay is missing, which lamb needs and no flag gives")
    return {
        "optimiser": "lamb-graphcore",
        "weight_decay": opts["weight_decay"],
        "use_debiasing": opts["use_debiasing"],
        "clipping": "per_update" if opts["use_nvlamb"] else "none",
        "max_grad_norm": 1.0,
        **moments,
    }


def _make_schedule_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the number of updates and the learning rate.

    A step of Graphcore's program is several updates, so numbers of steps are converted to numbers of updates.
    """
    each, name = opts["batches_per_step"], opts["lr_schedule"]
    if each > 1 and name != "custom":
        opts.warn(f"a step has {each} updates: on other devices than IPUs the rate changes within it")
    keys, updates = dict[str, Any](), _count_updates(opts)
    if updates is None:
        keys["num_train_epochs"] = opts["epochs"] / opts["duplication_factor"]
        opts.warn("updates of epochs are counted in the data and rounded up; the program rounds down")
    else:
        keys["steps"] = updates
    rate = opts["base_learning_rate"]
    warmup = 0 if name == "custom" else values.read_warmup(opts["warmup"], each)
    if updates is not None and isinstance(warmup, int) and warmup >= updates:
        length = warmup
        rate, warmup = values.shorten_warmup(rate, warmup, updates)
        opts.warn(f"{updates} updates end within the warm-up of {length}: the rate goes up to {rate:g}")
    keys |= {"base_learning_rate": rate, "warmup": warmup}
    if name == "custom":
        table = opts["lr_schedule_by_step"] or {}
        keys["lr_schedule_by_step"] = {str(int(step) * each): value for step, value in table.items()}
    if name == "natural_exponential":
        stairs = opts["decay_steps"]
        keys |= {"decay_steps": stairs and stairs * each, "decay_rate": opts["decay_rate"]}
    return keys


def _count_updates(opts: ParsedCommandLine) -> int | None:
    """Return the number of updates, or None if it depends on the number of examples in the data."""
    each: int = opts["batches_per_step"]
    if opts["steps"]:
        return int(opts["steps"]) * each
    if not opts["generated_data"]:
        return None
    examples = each * opts["batch_size"] * opts["pipeline_depth"] * opts["replicas"]
    steps: int = max(1, math.ceil(opts["epochs"] * (_GENERATED_EXAMPLES // examples)))
    return steps * each


def _make_data_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration key for the training data."""
    if opts["generated_data"] and opts["train_file"]:
        opts.warn("generated-data flag passed: train_file is left out")
    # Flags are always texts, but the program's JSON file can have another value here.
    if not isinstance(opts["train_file"] or "", str):
        raise UsageError(f"{opts['config']}: train_file is {opts['train_file']!r:.80}, expected a text")
    if opts["train_file"] and not opts["generated_data"]:
        return {"train_data": "+".join(name for name in opts["train_file"].split(",") if name)}
    if not opts["generated_data"]:
        opts.warn(_NO_DATA)
    return {"train_data": None}


def _make_start_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the checkpoint that training continues or takes its weights from."""
    if opts["restore_path"] and opts["start_from_ckpt"]:
        raise UsageError("--restore_path continues a run, --start-from-ckpt begins one: give one of them")
    if opts["start_from_ckpt"]:
        return {"start_moments": opts["restore_optimiser_from_ckpt"]}
    if not opts["restore_path"]:
        return {}
    keys: dict[str, Any] = {"resume": True}
    # The path is a directory, of which the newest checkpoint is used, or the path of a checkpoint, whose name
    # ends with its step.
    folder = opts["restore_path"]
    if one := re.fullmatch(r"(.*)/ckpt[^/]*-([0-9]+)", folder):
        folder = one[1]
        keys["resume_step"] = int(one[2]) * opts["batches_per_step"]
    own = opts["checkpoint_path"]
    if own is None or not _is_within(folder, own):
        opts.warn(f"the run in {folder} goes on, and writes its checkpoints there")
        keys["output_dir"] = folder
    if not opts["restore_optimiser_from_ckpt"]:
        opts.warn("a run goes on with its moments, also without --restore-optimiser-from-ckpt")
    return keys


def _is_within(path: str, folder: str) -> bool:
    """Return True if the path is the folder itself or lies inside it."""
    path, folder = (name.removeprefix("./").rstrip("/") for name in (path, folder))
    return path == folder or path.startswith(f"{folder}/")
