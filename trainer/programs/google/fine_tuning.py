"""Keys that Google's run_squad.py and run_classifier.py compute in the same way."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.batch_sizes import compute_core_batch_size
from trainer.programs.machine import count_gpus, has_checkpoints
from trainer.programs.meaning import make_phase_keys


def make_fine_tuning_keys(flags: ParsedCommandLine, eval_size: str) -> dict[str, Any]:
    """Return the keys that both programs' flags describe.

    A checkpoint in output_dir takes precedence over init_checkpoint, and a run there is continued without
    being asked.
    eval_size: flag with the batch size of an evaluation.
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
        # The program sums the gradients of its n cores, but this trainer averages them. Adam makes the same
        # update from the average if epsilon is divided by n.
        "summed_replicas": count,
        # In the program, each core clips its gradient before the gradients are summed over the cores.
        "clipping": "per_micro_batch" if count > 1 else "per_update",
    }
