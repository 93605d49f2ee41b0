"""NVIDIA's run_pretraining.py for TensorFlow: one phase of pre-training on GPUs, under Horovod on several.

--train_batch_size is a micro-batch of one worker; --num_train_steps and the like count updates. The rate
is multiplied by the number of workers. Flags of two versions are read: automatic mixed precision is
--use_fp16, and --amp in the later one, whose default is true; here either must be given.
"""

from typing import Any

from bertdata.cli.common.absl_flags import integer
from bertdata.cli.common.program_flags import ABSL, SWITCH, Flag, Given
from bertdata.errors import UsageError
from trainer.programs.constants import TENSORFLOW_LAMB
from trainer.programs.flag_tables import idle_flags, own_flags, phase_keys
from trainer.programs.machine import has_checkpoints
from trainer.programs.program import Meaning, Program, require_flags, require_work, work_of
from trainer.workers.launchers import find_rank

FLAGS = [
    Flag("--bert_config_file", required=True, key="model_config", meaning="bert_config.json: the shape"),
    Flag("--input_files_dir", required=True, key="train_data", meaning="directories to train on, by commas"),
    Flag("--eval_files_dir", meaning="directories to evaluate on, by commas"),
    Flag("--output_dir", required=True, key="output_dir", meaning="for checkpoints; the newest is continued"),
    Flag("--dllog_path", key="json_summary", meaning="file for the dllogger lines (default: dllogger.json in "
         "output_dir; the program's is /results/bert_dllog.json)"),
    Flag("--init_checkpoint", key="start_from_ckpt", meaning="checkpoint to take the first weights from"),
    Flag("--optimizer_type", default="lamb", key="optimiser",
         values={"lamb": "lamb-habana-tf", "adam": "adamw-bert"}, meaning="lamb or adam"),
    *own_flags(integer, "--max_seq_length=512 --max_predictions_per_seq=80 --eval_batch_size=8"),
    *own_flags(SWITCH, "--allreduce_post_accumulation"),
    Flag("--do_train", SWITCH, meaning="train", key="do_train"),
    Flag("--do_eval", SWITCH, meaning="evaluate at the end"),
    Flag("--train_batch_size", integer, 32, "examples of a micro-batch of one worker", key="batch_size"),
    Flag("--learning_rate", float, 5e-5, "learning rate of one worker", key="base_learning_rate"),
    Flag("--num_train_steps", integer, 100000, "updates", key="steps"),
    Flag("--num_warmup_steps", integer, 10000, "updates of warm-up", key="warmup"),
    Flag("--save_checkpoints_steps", integer, 1000, "updates between checkpoints", key="checkpoint_every"),
    Flag("--display_loss_steps", integer, 10, "updates between two log lines", key="log_every"),
    *idle_flags("of the host only", integer, "--iterations_per_loop=1000"),
    Flag("--max_eval_steps", integer, 100, "most batches of an evaluation"),
    Flag("--num_accumulation_steps", integer, 1, "micro-batches of an update", key="accumulation"),
    *idle_flags("", SWITCH, "--verbose_logging"),
    *idle_flags("losses are always logged", SWITCH, "--report_loss", default=True),
    Flag("--horovod", SWITCH, meaning="train on all workers that the launcher has started"),
    Flag("--manual_fp16", SWITCH, meaning="16 bits by casts"),
    Flag("--use_xla", SWITCH, key="compile", meaning="compile the model"),
    Flag("--amp", SWITCH, meaning="the same as --use_fp16"),
    Flag("--init_loss_scale", integer, 2**32, "initial value of the loss scale"),
]  # fmt: skip
"""The flags that Habana's program, which follows this one, has too."""

_OWN_FLAGS = [*FLAGS, Flag("--use_fp16", SWITCH, meaning="16 bits by automatic mixed precision, else fp32")]


def resolve(given: Given) -> Meaning:
    """The training, the evaluation, or both."""
    keys = phase_of(given)
    scale = float(given["init_loss_scale"])
    keys |= {
        "precision": "fp16" if given["use_fp16"] or given["amp"] or given["manual_fp16"] else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(2.0**32, scale),  # the program does not bound it from above
        "device": "cuda",
        "resume": True,
    }
    if find_rank()[1] > 1 and not given["horovod"]:
        given.warn("without --horovod each process trains on its own in the program; here it is an error")
    return Meaning(what=work_of(given), phases=[keys])


def phase_of(given: Given) -> dict[str, Any]:
    """The keys that this program and Habana's give a phase by the same flags."""
    require_work(given, "do_train", "do_eval")
    if given["do_eval"]:
        require_flags(given, "eval_files_dir")
    if given["manual_fp16"] and (given["amp"] or given.values.get("use_fp16")):
        raise UsageError("AMP and Manual Mixed Precision Training are both activated! Error")
    workers, count = find_rank()[1] if given["horovod"] else 1, given["num_accumulation_steps"]
    keys = TENSORFLOW_LAMB | phase_keys(given) | {"world_size": workers}
    if not given["do_train"] and has_checkpoints(given["output_dir"]):
        keys["start_from_ckpt"] = None  # a checkpoint in output_dir goes before it
    if workers > 1 and count == 1:
        keys["clipping"] = "per_update"  # without accumulation Horovod sums before the clipping
    elif workers > 1 and not given["allreduce_post_accumulation"]:
        given.warn("each worker clips its micro-batches; the program clips them after their all-reduce")
    if given["do_eval"]:
        most = given["max_eval_steps"] * given["eval_batch_size"]
        keys |= {"eval_data": given["eval_files_dir"], "eval_examples": most}
    return keys


PROGRAM = Program("nvidia-tf/run_pretraining.py", {"": _OWN_FLAGS}, resolve, syntax=ABSL)
