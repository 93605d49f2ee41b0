"""NVIDIA's run_pretraining.py for TensorFlow: one phase of pre-training on GPUs, under Horovod on several.

--train_batch_size is a micro-batch of one worker; --num_train_steps and the like count updates. The rate
is multiplied by the number of workers. Flags of two versions are read: automatic mixed precision is
--use_fp16, and --amp in the later one, whose default is true; here either must be given.
"""

from typing import Any

from bertdata.cli.common.absl_flags import integer
from bertdata.cli.common.program_flags import ABSL, SWITCH, Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.constants import MOMENTS, TENSORFLOW_DECAY_SKIPS
from trainer.extensions.like.program import Meaning, Program, phase_keys, require_flags, require_work, work_of

COMMON = [
    Flag("--max_seq_length", integer, 512, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", integer, 80, "masked ids of an example", key="max_predictions_per_seq"),
    Flag("--do_train", SWITCH, meaning="train", key="do_train"),
    Flag("--do_eval", SWITCH, meaning="evaluate at the end"),
    Flag("--train_batch_size", integer, 32, "examples of a micro-batch of one worker", key="batch_size"),
    Flag("--eval_batch_size", integer, 8, "examples of an evaluation batch", key="eval_batch_size"),
    Flag("--learning_rate", float, 5e-5, "learning rate of one worker", key="base_learning_rate"),
    Flag("--num_train_steps", integer, 100000, "updates", key="steps"),
    Flag("--num_warmup_steps", integer, 10000, "updates of warm-up", key="warmup"),
    Flag("--save_checkpoints_steps", integer, 1000, "updates between checkpoints", key="checkpoint_every"),
    Flag("--display_loss_steps", integer, 10, "updates between two log lines", key="log_every"),
    Flag("--iterations_per_loop", integer, 1000, idle=True, meaning="of the host only"),
    Flag("--max_eval_steps", integer, 100, "most batches of an evaluation"),
    Flag("--num_accumulation_steps", integer, 1, "micro-batches of an update", key="accumulation"),
    Flag("--allreduce_post_accumulation", SWITCH, key="allreduce_post_accumulation",
         meaning="all-reduce once an update, not once a micro-batch"),
    Flag("--verbose_logging", SWITCH, idle=True),
    Flag("--report_loss", SWITCH, True, idle=True, meaning="losses are always logged"),
    Flag("--horovod", SWITCH, meaning="train on all workers that the launcher has started"),
]  # fmt: skip
"""The flags that Habana's program, which follows this one, reads alike."""

_FLAGS = [
    Flag("--bert_config_file", required=True, key="model_config", meaning="bert_config.json: the shape"),
    Flag("--input_files_dir", required=True, meaning="directories to train on, with commas"),
    Flag("--eval_files_dir", meaning="directories to evaluate on, with commas"),
    Flag("--output_dir", required=True, key="output_dir", meaning="for checkpoints; the newest is continued"),
    Flag("--dllog_path", key="json_summary", meaning="file for the dllogger lines (default: dllogger.json in "
         "output_dir; the program's is /results/bert_dllog.json)"),
    Flag("--init_checkpoint", key="start_from_ckpt", meaning="checkpoint to take the first weights from"),
    Flag("--optimizer_type", default="lamb", key="optimiser",
         values={"lamb": "lamb-habana-tf", "adam": "adamw-bert"}, meaning="lamb or adam"),
    *COMMON,
    Flag("--manual_fp16", SWITCH, meaning="16 bits by casts"),
    Flag("--use_xla", SWITCH, key="compile", meaning="compile the model"),
    Flag("--use_fp16", SWITCH, meaning="16 bits by automatic mixed precision, else fp32"),
    Flag("--amp", SWITCH, meaning="the same as --use_fp16"),
    Flag("--init_loss_scale", integer, 2**32, "initial value of the loss scale"),
]  # fmt: skip

_OPTIMISER: dict[str, Any] = {
    **MOMENTS,
    "decay_skips": TENSORFLOW_DECAY_SKIPS,
    "lr_schedule": "habana-tf",
    "max_grad_norm": 1.0,
}

CLIPS_EACH = "each worker clips its micro-batches; the program clips them after their all-reduce"


def resolve(given: Given) -> Meaning:
    """The training, the evaluation, or both."""
    check_work(given)
    workers = find_rank()[1] if given["horovod"] else 1
    whole = given["num_accumulation_steps"] == 1 and workers > 1
    fp16 = given["use_fp16"] or given["amp"] or given["manual_fp16"]
    scale = float(given["init_loss_scale"])
    keys = _OPTIMISER | phase_keys(given, _FLAGS)
    keys |= {
        "precision": "fp16" if fp16 else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(2.0**32, scale),  # the program does not bound it from above
        "train_data": given["input_files_dir"].replace(",", "+"),
        "device": "cuda",
        "gelu": "tanh",
        # A micro-batch's loss / n is clipped, or, where n is 1, the gradient after the all-reduce.
        "clipping": "per_update" if whole else "per_micro_batch_divided",
        "world_size": workers,
        "keep_checkpoints": 5,  # as TensorFlow's Estimator
        "resume": True,
        "eval_every": 0,
        "unverified": True,
    }
    if not given["do_train"] and storage.exists(storage.join(given["output_dir"], "checkpoints")):
        keys.pop("start_from_ckpt", None)  # a checkpoint in output_dir goes before it
    if given["do_eval"]:
        keys |= {
            "eval_data": given["eval_files_dir"].replace(",", "+"),
            "eval_examples": given["max_eval_steps"] * given["eval_batch_size"],
        }
    if given["num_accumulation_steps"] > 1 and given["horovod"] and not given["allreduce_post_accumulation"]:
        given.warn(CLIPS_EACH)
    if find_rank()[1] > 1 and not given["horovod"]:
        given.warn("without --horovod each process trains on its own in the program; here it is an error")
    return Meaning(what=work_of(given), phases=[keys])


def check_work(given: Given) -> None:
    """UsageError, in the program's words, for what NVIDIA's program and Habana's refuse alike."""
    require_work(given, "do_train", "do_eval")
    if given["do_eval"]:
        require_flags(given, "eval_files_dir")
    if given["manual_fp16"] and (given["amp"] or given.values.get("use_fp16")):
        raise UsageError("AMP and Manual Mixed Precision Training are both activated! Error")


PROGRAM = Program("nvidia-tf/run_pretraining.py", {"": _FLAGS}, resolve, syntax=ABSL)
