"""Habana's run_pretraining.py for TensorFlow: one phase of pre-training, under Horovod on several cards.

--train_batch_size is a micro-batch of one worker, --num_train_steps counts updates. The rate is multiplied
by the workers. Precision is no flag: TF_BF16_CONVERSION or --bf16_config_path asks for bf16.
"""

import os
from typing import Any

from bertdata.cli.common.absl_flags import integer
from bertdata.cli.common.program_flags import ABSL, SWITCH, Flag, Given
from bertdata.errors import UsageError
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.checkpoints import last_checkpoint
from trainer.extensions.like.habana_tf.pretraining import LAMB
from trainer.extensions.like.nvidia_tf import CLIPS_EACH, COMMON, check_work
from trainer.extensions.like.program import Meaning, Program, phase_keys, work_of

_FLAGS = [
    Flag("--bert_config_file", required=True, key="model_config", meaning="bert_config.json of the model"),
    Flag("--input_files_dir", required=True, key="train_data", meaning="directories of TFRecords, by commas"),
    Flag("--eval_files_dir", meaning="directories of TFRecords to evaluate on, by commas"),
    Flag("--output_dir", required=True, key="output_dir",
         meaning="directory for checkpoints, which are continued"),
    Flag("--dllog_path", default="/results/bert_dllog.json", key="json_summary",
         meaning="file of dllogger's lines"),
    Flag("--init_checkpoint", meaning="checkpoint to take the first weights from"),
    Flag("--optimizer_type", default="lamb", meaning="lamb, else AdamWeightDecay"),
    *COMMON,
    Flag("--save_summary_steps", integer, 1, idle=True),
    Flag("--manual_fp16", SWITCH, meaning="16 bits by casts, which the program refuses"),
    Flag("--amp", SWITCH, True, idle=True, meaning="on Gaudi it casts nothing: see TF_BF16_CONVERSION"),
    Flag("--use_xla", SWITCH, True, idle=True, meaning="the card compiles anyway"),
    Flag("--init_loss_scale", integer, 2**32, idle=True, meaning="fp32 and bf16 need no loss scale"),
    Flag("--deterministic_run", SWITCH, meaning="seed 1, no dropout"),
    Flag("--enable_scoped_allocator", SWITCH, idle=True),
    Flag("--horovod_hierarchical_allreduce", SWITCH, idle=True),
    Flag("--bf16_config_path", meaning="list of the operations in bf16: bf16"),
]  # fmt: skip


def resolve(given: Given) -> Meaning:
    """The training, the evaluation, or both."""
    check_work(given)
    if given["manual_fp16"]:
        raise UsageError("--manual_fp16: the program has no loss scaling for it in TensorFlow 2")
    if given["num_accumulation_steps"] < 1:
        raise UsageError(f"--num_accumulation_steps is {given['num_accumulation_steps']}, expected 1 or more")
    if not given["horovod"] and find_rank()[1] > 1:
        raise UsageError(
            f"{find_rank()[1]} workers were started: without --horovod each would train on its own"
        )
    workers, count = find_rank()[1] if given["horovod"] else 1, given["num_accumulation_steps"]
    variables = ("TF_BF16_CONVERSION", "TF_ENABLE_BF16_CONVERSION")  # by version
    asked = any(os.environ.get(name, "0") not in ("", "0") for name in variables)
    is_bf16 = asked or given["bf16_config_path"] is not None
    there = last_checkpoint(given["output_dir"]) > 0
    keys = LAMB | phase_keys(given, _FLAGS) | _optimiser(given, workers)
    keys |= {
        "device": "hpu",
        "world_size": workers,
        "precision": "bf16" if is_bf16 else "fp32",
        "phase2": False,
        # A checkpoint in output_dir goes before --init_checkpoint and is continued unasked.
        "resume": there and given["do_train"],
        "start_from_ckpt": given["init_checkpoint"] if not there or given["do_train"] else None,
        "start_moments": False,
    }
    if count == 1 and workers > 1:
        keys["clipping"] = "per_update"  # without accumulation Horovod sums before the clipping
    if count > 1 and workers > 1 and not given["allreduce_post_accumulation"]:
        given.warn(CLIPS_EACH)
    if given["do_eval"]:
        most = given["max_eval_steps"] * given["eval_batch_size"]
        keys |= {"eval_data": given["eval_files_dir"], "eval_examples": most}
    if given["deterministic_run"]:
        keys |= {"seed": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return Meaning(what=work_of(given), phases=[keys])


def _optimiser(given: Given, workers: int) -> dict[str, Any]:
    """LAMB for the exact word. Any other is Adam, whose decay is linear only for the word adam."""
    name = given["optimizer_type"]
    if name == "lamb":
        return {}
    if name == "adam":
        return {"optimiser": "adamw-bert"}
    given.warn(f"optimizer_type {name}: the program takes lamb for LAMB and any other word for Adam")
    rate = given["learning_rate"] * workers
    return {"optimiser": "adamw-bert", "lr_schedule": "mlperf", "power": 0.5, "base_learning_rate": rate}


PROGRAM = Program("habana-tf/run_pretraining.py", {"": _FLAGS}, resolve, syntax=ABSL)
