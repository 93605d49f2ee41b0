"""Configuration keys that are computed in the same way for Google's run_squad.py and run_classifier.py."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.batch_sizes import compute_core_batch_size
from trainer.programs.machine import count_gpus, has_checkpoints
from trainer.programs.translated_command import make_phase_keys


def make_fine_tuning_keys(flags: ParsedCommandLine, eval_size: str) -> dict[str, Any]:
    """Return the configuration keys for the flags that both programs have.

    As in Google's programs, a checkpoint in output_dir takes precedence over init_checkpoint, and a run in
    that directory is continued without being asked.
    eval_size: name of the flag that has the batch size of evaluations.
    """
    count = flags["num_tpu_cores"] if flags["use_tpu"] else 1
    there = has_checkpoints(flags["output_dir"])
    if there and flags["do_train"]:
        flags.warn(f"{flags['output_dir']}: has checkpoints, so that the run continues from the newest")
    return make_phase_keys(flags) | {
        "device": "xla" if flags["use_tpu"] else "cuda" if count_gpus() else "cpu",
        "world_size": count,
        "dist": count > 1,
        "batch_size": compute_core_batch_size(flags, "train_batch_size", count),
        "eval_batch_size": compute_core_batch_size(flags, eval_size, count),
        "start_from_ckpt": (flags["init_checkpoint"] or None) if flags["do_train"] or not there else None,
        "resume": there and flags["do_train"],
        # Google's program sums the gradients of its n cores, and this trainer averages them. If epsilon is
        # divided by n, Adam makes the same update from the average as from the sum.
        "summed_replicas": count,
        # In Google's program, each core clips its gradient before the gradients of the cores are summed.
        "clipping": "per_micro_batch" if count > 1 else "per_update",
    }
