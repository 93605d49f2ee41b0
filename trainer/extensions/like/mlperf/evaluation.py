"""The evaluation of MLPerf's run_pretraining.py, and the workers that it has as the training does."""

import os
import re
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.checkpoints import find_named_step
from trainer.extensions.like.constants import product
from trainer.extensions.like.google import of_core
from trainer.extensions.like.machine import find_shape, is_here
from trainer.extensions.like.program import Meaning

_METRICS = ["masked_lm_accuracy", "masked_lm_loss", "next_sentence_accuracy", "next_sentence_loss"]


def resolve_evaluation(given: Given) -> Meaning:
    """The evaluation that the command line asks for."""
    machine = machine_keys(given)
    shape, missing, warnings = find_shape(given["bert_config_file"], "BERT-Large")
    size = of_replica(given, "eval_batch_size", machine["world_size"])
    micro_steps = max(1, given["steps_per_update"])
    until = given["num_train_steps"] // micro_steps
    named = find_named_step(given["output_dir"])
    start = given["init_checkpoint"] or None
    settings: dict[str, Any] = {
        "do_train": False,
        "train_data": None,
        "eval_batch_size": given["eval_batch_size"],
        "metrics": _METRICS,
        "results": "eval_results.txt in output_dir",
    }
    if given["use_tpu"]:
        settings["eval_batch_size_per_core"] = size
    keys = machine | shape
    keys |= {name: given[name] for name in ("output_dir", "max_seq_length", "max_predictions_per_seq")}
    keys |= {
        "do_train": False,
        "eval_data": given["input_file"],
        "eval_batch_size": size,
        # Each replica reads max_eval_steps of its own batches, and all read the same records.
        "eval_examples": max(1, given["max_eval_steps"] * size),
        "steps": max(1, until),
    }
    if named is None:
        keys["start_from_ckpt"] = start
        settings |= {
            "checkpoint": _which(until, start),
            "poll": True,
            "until_step": until,
            "start_from_ckpt": start,
        }
        warnings.append(
            "the program evaluates the newest checkpoint again while there is no newer one; this trainer "
            f"waits for a newer one, until that of step {until} or a later one was evaluated"
        )
        what = f"checkpoints as they appear, until step {until:,}"
    else:
        step = named // micro_steps
        keys |= _named_checkpoint(given["output_dir"], named, step, start)
        which = f"that of step {step} in output_dir, once: the file checkpoint there names it"
        settings |= {"checkpoint": which, "poll": False, "resume_step": step}
        what = f"the checkpoint of step {step:,}"
    sizes = product(machine["world_size"], size)
    return Meaning(
        summary=f"evaluation of {what}, {keys['eval_examples']:,} examples, {sizes} in a step, "
        f"{machine['device']}",
        phases=[keys],
        evaluate=settings,
        warnings=warnings,
        missing=missing,
    )


def _which(until: int, start: str | None) -> str:
    """The checkpoints that are evaluated, in words."""
    first = "; init_checkpoint, as step 0, only while there is none" if start else ""
    last = f"until one of step >= {until} was evaluated"
    return f"the newest in output_dir, and each newer one, {last}{first}"


def _named_checkpoint(output_dir: str, named: int, step: int, start: str | None) -> dict[str, Any]:
    """The keys that choose the checkpoint that TensorFlow's state file names.

    It is TensorFlow's own where its files are there. At step 0, where this trainer saves none, it is
    init_checkpoint.
    """
    theirs = storage.join(output_dir, f"model.ckpt-{named}")
    if is_here(f"{theirs}.index"):
        return {"start_from_ckpt": theirs}
    if step == 0 and start is not None:
        return {"start_from_ckpt": start}
    return {"resume_step": step}


def machine_keys(given: Given) -> dict[str, Any]:
    """The keys of device and workers: one worker for each GPU or core."""
    if given["num_gpus"] < 0:
        raise UsageError("`num_gpus` can not be negative.")
    if given["use_tpu"] and given["num_tpu_cores"] < 1:
        raise UsageError(f"num_tpu_cores is {given['num_tpu_cores']}, expected 1 or more")
    device = "xla" if given["use_tpu"] else "cuda" if given["num_gpus"] else "cpu"
    count = given["num_tpu_cores"] if given["use_tpu"] else max(1, given["num_gpus"])
    compiles = re.search(r"--tf_xla_auto_jit=[12]\b", os.environ.get("TF_XLA_FLAGS", ""))
    return {
        "device": device,
        "world_size": count,
        "dist": count > 1,
        "precision": "fp32",
        "compile": compiles is not None,
        "unverified": True,
        "gelu": "tanh",
    }


def of_replica(given: Given, name: str, count: int) -> int:
    """The part of a total batch that one of ``count`` replicas has."""
    total: int = given[name]
    if total < 1:
        raise UsageError(f"{name} is {total}, expected 1 or more")
    if total % count and not given["use_tpu"]:
        raise UsageError(
            "When running with multiple GPUs, batch size must be a multiple of the number of available GPUs. "
            f"Found {count} GPUs with a batch size of {total}; try --{name}={total - total % count} instead."
        )
    return of_core(given, name, count)
