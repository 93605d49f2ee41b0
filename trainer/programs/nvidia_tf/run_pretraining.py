"""Translate the command lines of NVIDIA's run_pretraining.py for TensorFlow to this trainer's keys."""

from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from trainer.programs.machine import has_checkpoints
from trainer.programs.meaning import Meaning, make_phase_keys
from trainer.programs.requirements import list_work, require_flags, require_work
from trainer.workers.launchers import find_rank


def resolve(given: Given) -> Meaning:
    """Return the training, the evaluation, or both."""
    keys = resolve_phase_keys(given)
    scale = float(given["init_loss_scale"])
    keys |= {
        "precision": "fp16" if given["use_fp16"] or given["amp"] or given["manual_fp16"] else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(2.0**32, scale),  # the program has no upper bound
    }
    if find_rank()[1] > 1 and not given["horovod"]:
        given.warn("without --horovod each process trains on its own in the program; here it is an error")
    return Meaning(what=list_work(given), phases=[keys])


def resolve_phase_keys(given: Given) -> dict[str, Any]:
    """Return the configuration keys of a phase that this program and Habana's compute from the same flags."""
    require_work(given, "do_train", "do_eval")
    if given["do_eval"]:
        require_flags(given, "eval_files_dir")
    if given["manual_fp16"] and (given["amp"] or given.values.get("use_fp16")):
        raise UsageError("AMP and Manual Mixed Precision Training are both activated! Error")
    workers, count = find_rank()[1] if given["horovod"] else 1, given["num_accumulation_steps"]
    keys = make_phase_keys(given) | {"world_size": workers}
    if not given["do_train"] and has_checkpoints(given["output_dir"]):
        keys["start_from_ckpt"] = None  # a checkpoint in output_dir takes precedence
    if workers > 1 and count == 1:
        # without accumulation, the program's Horovod sums the workers' gradients before they are clipped
        keys["clipping"] = "per_update"
    elif workers > 1 and not given["allreduce_post_accumulation"]:
        given.warn("each worker clips its micro-batches; the program clips them after their all-reduce")
    if given["do_eval"]:
        most = given["max_eval_steps"] * given["eval_batch_size"]
        keys |= {"eval_data": given["eval_files_dir"], "eval_examples": most}
    return keys
