"""Translate the command lines of NVIDIA's run_pretraining.py for TensorFlow to this trainer's keys."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.machine import has_checkpoints
from trainer.programs.requirements import describe_work, require_any_switch, require_flags
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys
from trainer.workers.launchers import find_rank


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training, evaluation, or both."""
    keys = compute_phase_keys(flags)
    scale = float(flags["init_loss_scale"])
    keys |= {
        "precision": "fp16" if flags["use_fp16"] or flags["amp"] or flags["manual_fp16"] else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(2.0**32, scale),  # the program's loss scale has no upper bound
    }
    if find_rank()[1] > 1 and not flags["horovod"]:
        flags.warn("without --horovod each process trains on its own in the program; here it is an error")
    return TranslatedCommand(what=describe_work(flags), phases=[keys])


def compute_phase_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys of a phase. Habana's program has the same flags and uses this function
    too.
    """
    require_any_switch(flags, "do_train", "do_eval")
    if flags["do_eval"]:
        require_flags(flags, "eval_files_dir")
    if flags["manual_fp16"] and (flags["amp"] or flags.values.get("use_fp16")):
        raise UsageError("AMP and Manual Mixed Precision Training are both activated! Error")
    workers, count = find_rank()[1] if flags["horovod"] else 1, flags["num_accumulation_steps"]
    keys = make_phase_keys(flags) | {"world_size": workers}
    if not flags["do_train"] and has_checkpoints(flags["output_dir"]):
        keys["start_from_ckpt"] = None  # a checkpoint in output_dir takes precedence over init_checkpoint
    if workers > 1 and count == 1:
        # Without accumulation, Horovod sums the workers' gradients before NVIDIA's program clips them.
        keys["clipping"] = "per_update"
    elif workers > 1 and not flags["allreduce_post_accumulation"]:
        flags.warn("each worker clips its micro-batches; the program clips them after their all-reduce")
    if flags["do_eval"]:
        most = flags["max_eval_steps"] * flags["eval_batch_size"]
        keys |= {"eval_data": flags["eval_files_dir"], "eval_examples": most}
    return keys
