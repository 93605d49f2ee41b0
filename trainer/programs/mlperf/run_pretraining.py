"""Translate the command lines of MLPerf's run_pretraining.py to this trainer's configuration.

MLPerf's program counts micro-steps, that is, micro-batches. An update has --steps_per_update micro-steps.
With the configuration key steps_per_update, this trainer also counts micro-steps in names of checkpoints, log
lines, global_step and TensorFlow's state file.
"""

import re
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.batch_sizes import compute_core_batch_size
from trainer.programs.machine import KEEP_ALL_CHECKPOINTS, find_named_step, has_checkpoints, is_local_file
from trainer.programs.requirements import require_any_switch, require_flags
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys

_LOG_INTERVAL = 100
"""Number of micro-steps (micro-batches) between two lines of TensorFlow's log."""

_EVAL_SAMPLES = 10_000
"""Number of evaluation examples that MLPerf's program states in its log, whatever the real number is."""

_MLLOG_KEYS = {
    "mllog": True,
    "mllog_file": "bert.log",
    "mllog_org": "reference_implementation",
    "mllog_platform": "reference_implementation",
}
"""Configuration keys for MLPerf's log, which MLPerf's program writes in its working directory."""

_ADAMW = {
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-6,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}
_OF_LAMB = ("lamb_weight_decay_rate", "lamb_beta_1", "lamb_beta_2", "log_epsilon")


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training or an evaluation."""
    require_flags(flags, "input_file", "bert_config_file", "output_dir")
    require_any_switch(flags, "do_train", "do_eval")
    return _translate_training(flags) if flags["do_train"] else _translate_evaluation(flags)


def _translate_training(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training."""
    machine = _make_machine_keys(flags)
    micro_steps = max(1, flags["steps_per_update"])
    size = _divide_by_replicas(flags, "train_batch_size", machine["world_size"])
    keys = machine | make_phase_keys(flags) | _make_optimiser_keys(flags, machine["world_size"])
    keys |= {
        "train_data": flags["input_file"],
        "batch_size": size,
        "accumulation": micro_steps,
        "steps_per_update": micro_steps,
        "start_from_ckpt": flags["init_checkpoint"] or None,
        "start_moments": False,
        "resume": has_checkpoints(flags["output_dir"]),
        "lr_schedule": "mlperf",
        "keep_checkpoints": flags["keep_checkpoint_max"] or KEEP_ALL_CHECKPOINTS,
        "log_every": max(1, _LOG_INTERVAL // micro_steps),
        "eval_examples": _EVAL_SAMPLES,
    }
    keys |= _MLLOG_KEYS
    keys |= _make_step_keys(flags, micro_steps)
    if flags["do_eval"]:
        keys |= _make_evaluation_keys(flags, machine["world_size"]) | {"eval_every": 0}
        flags.warn("do_eval with do_train: input_file is trained on and then evaluated on")
    if keys["resume"]:
        flags.warn(f"{flags['output_dir']}: has checkpoints, so that the run continues from the newest")
    return TranslatedCommand(what="training", phases=[keys])


def _make_optimiser_keys(flags: ParsedCommandLine, replicas: int) -> dict[str, Any]:
    """Return the configuration keys for the optimiser.

    AdamW's settings are fixed. Only with LAMB gradients can be clipped after they were summed over the
    replicas.

    MLPerf's program sums the gradients of its n replicas (copies of the model), and this trainer averages
    them. If epsilon is divided by n, Adam makes the same update from the average as from the sum. The norm to
    which a sum of gradients is clipped is divided by n for the same reason.
    """
    clips_once = flags["clip_by_global_norm_after_gradient_allreduce"]
    if flags["optimizer"] == "adamw":
        if idle := [name for name in _OF_LAMB if name in flags]:
            flags.warn(f"adamw does not read {', '.join(idle)}")
        if clips_once:
            flags.warn("adamw with clip_by_global_norm_after_gradient_allreduce: nothing is clipped")
        return _ADAMW | {
            "optimiser": "adamw-bert",
            "summed_replicas": replicas,
            "clipping": "none" if clips_once else "per_micro_batch",
        }
    return {
        "optimiser": "lamb-mlperf",
        "optimiser_epsilon": 10.0 ** flags["log_epsilon"],
        "summed_replicas": replicas,
        "max_grad_norm": 1.0 / replicas if clips_once else 1.0,
        "clipping": "per_update" if clips_once else "per_micro_batch",
    }


def _make_step_keys(flags: ParsedCommandLine, micro_steps: int) -> dict[str, Any]:
    """Return the configuration keys for numbers of updates, converted from numbers of micro-steps.

    micro_steps: number of micro-steps (micro-batches) per update.
    """
    names = ("num_train_steps", "num_warmup_steps", "start_warmup_step", "save_checkpoints_steps")
    if odd := [name for name in names if flags[name] % micro_steps]:
        flags.warn(f"no multiple of steps_per_update ({micro_steps}), and rounded: {', '.join(odd)}")
    steps = max(1, flags["num_train_steps"] // micro_steps)
    warmup, start, save = (round(flags[name] / micro_steps) for name in names[1:])
    keys = {"steps": steps, "warmup": warmup, "start_warmup_step": start, "checkpoint_every": max(1, save)}
    # MLPerf's program accepts a training that is shorter than its warm-up, but a schedule of this trainer
    # must be longer.
    if steps <= warmup and steps - start <= warmup:
        flags.warn(f"the run of {steps} updates ends within its warm-up of {warmup}")
        keys |= {"steps": warmup + 1, "steps_this_run": steps}
    return keys


def _translate_evaluation(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for an evaluation."""
    machine = _make_machine_keys(flags)
    evaluated = _make_evaluation_keys(flags, machine["world_size"])
    until = flags["num_train_steps"]
    named = find_named_step(flags["output_dir"])
    start = flags["init_checkpoint"] or None
    settings: dict[str, Any] = {
        "do_train": False,
        "train_data": None,
        "eval_batch_size": flags["eval_batch_size"],
        "metrics": ["masked_lm_accuracy", "masked_lm_loss", "next_sentence_accuracy", "next_sentence_loss"],
        "results": "eval_results.txt in output_dir",
    }
    if flags["use_tpu"]:
        settings["eval_batch_size_per_core"] = evaluated["eval_batch_size"]
    keys = machine | make_phase_keys(flags) | evaluated | _MLLOG_KEYS | {"steps": max(1, until)}
    if named is None:
        keys["start_from_ckpt"] = start
        which = f"the newest in output_dir, and each newer one, until one of step >= {until} was evaluated"
        which += "; init_checkpoint, as step 0, only while there is none" if start else ""
        settings |= {"checkpoint": which, "poll": True, "until_step": until, "start_from_ckpt": start}
        flags.warn(
            "the program evaluates the newest checkpoint again while there is no newer one; this trainer "
            f"waits for a newer one, until that of step {until} or a later one was evaluated"
        )
        what = f"checkpoints as they appear, until step {until:,}"
    else:
        keys |= _make_checkpoint_keys(flags["output_dir"], named, start)
        which = f"that of step {named} in output_dir, once: the file checkpoint there names it"
        settings |= {"checkpoint": which, "poll": False, "resume_step": named}
        what = f"the checkpoint of step {named:,}"
    sizes = f"{machine['world_size']} x {keys['eval_batch_size']:,} in a step"
    what = f"evaluation of {what}, {keys['eval_examples']:,} examples, {sizes}, {machine['device']}"
    return TranslatedCommand(what=what, phases=[keys], evaluate=settings)


def _make_evaluation_keys(flags: ParsedCommandLine, count: int) -> dict[str, Any]:
    """Return the configuration keys for an evaluation.

    In MLPerf's program, each replica (copy of the model) reads its batches separately from the same records.
    count: number of replicas.
    """
    size = _divide_by_replicas(flags, "eval_batch_size", count)
    most = max(1, flags["max_eval_steps"] * size)
    return {"eval_data": flags["input_file"], "eval_batch_size": size, "eval_examples": most}


def _make_checkpoint_keys(output_dir: str, named: int, start: str | None) -> dict[str, Any]:
    """Return the configuration keys that select the checkpoint to evaluate, which TensorFlow's state file
    names.

    If that checkpoint's files exist in TensorFlow's format, they are used, otherwise this trainer's
    checkpoint of the same step. This trainer saves no checkpoint at step 0, so for step 0 init_checkpoint is
    used.
    named: step that the state file names.
    start: init_checkpoint of MLPerf's program.
    """
    theirs = storage.join(output_dir, f"model.ckpt-{named}")
    if is_local_file(f"{theirs}.index"):
        return {"start_from_ckpt": theirs}
    if named == 0 and start is not None:
        return {"start_from_ckpt": start}
    return {"resume_step": named}


def _make_machine_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the device and the workers. Each GPU or core has a worker."""
    if flags["num_gpus"] < 0:
        raise UsageError("`num_gpus` can not be negative.")
    if flags["use_tpu"] and flags["num_tpu_cores"] < 1:
        raise UsageError(f"num_tpu_cores is {flags['num_tpu_cores']}, expected 1 or more")
    device = "xla" if flags["use_tpu"] else "cuda" if flags["num_gpus"] else "cpu"
    count = flags["num_tpu_cores"] if flags["use_tpu"] else max(1, flags["num_gpus"])
    compiles = re.search(r"--tf_xla_auto_jit=[12]\b", flags["TF_XLA_FLAGS"] or "")
    return {
        "device": device,
        "world_size": count,
        "dist": count > 1,
        "compile": compiles is not None,
    }


def _divide_by_replicas(flags: ParsedCommandLine, name: str, count: int) -> int:
    """Return the number of examples per replica (copy of the model), if a total batch is divided among
    ``count`` replicas.

    name: flag that has the size of the total batch.
    """
    total: int = flags[name]
    if total < 1:
        raise UsageError(f"{name} is {total}, expected 1 or more")
    if total % count and not flags["use_tpu"]:
        raise UsageError(
            "When running with multiple GPUs, batch size must be a multiple of the number of available GPUs. "
            f"Found {count} GPUs with a batch size of {total}; try --{name}={total - total % count} instead."
        )
    return compute_core_batch_size(flags, name, count)
