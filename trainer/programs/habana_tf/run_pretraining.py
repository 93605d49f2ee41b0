"""Habana's run_pretraining.py for TensorFlow: one phase of pre-training, under Horovod on several cards.

--train_batch_size is a micro-batch of one worker, --num_train_steps counts updates. The rate is multiplied
by the workers. Precision is no flag: TF_BF16_CONVERSION or --bf16_config_path asks for bf16.
"""

import os
from typing import Any

from bertdata.cli.common.absl_flags import integer
from bertdata.cli.common.program_flags import ABSL, SWITCH, Flag, Given
from bertdata.errors import UsageError
from trainer.programs.flag_tables import idle_flags, with_rows
from trainer.programs.machine import has_checkpoints
from trainer.programs.nvidia_tf import FLAGS, phase_of
from trainer.programs.program import Meaning, Program, work_of
from trainer.workers.launchers import find_rank

_FLAGS = with_rows(
    FLAGS,
    Flag(
        "--dllog_path",
        default="/results/bert_dllog.json",
        key="json_summary",
        meaning="file for the dllogger lines",
    ),
    Flag("--optimizer_type", default="lamb", meaning="lamb, else AdamWeightDecay"),
    Flag("--manual_fp16", SWITCH, meaning="16 bits by casts, which the program refuses"),
    *idle_flags("on Gaudi it casts nothing: see TF_BF16_CONVERSION", SWITCH, "--amp", default=True),
    *idle_flags("the card compiles anyway", SWITCH, "--use_xla", default=True),
    *idle_flags("fp32 and bf16 need no loss scale", integer, f"--init_loss_scale={2**32}"),
    *idle_flags("", integer, "--save_summary_steps=1"),
    *idle_flags("", SWITCH, "--enable_scoped_allocator --horovod_hierarchical_allreduce"),
    Flag("--deterministic_run", SWITCH, meaning="seed 1, no dropout"),
    Flag("--bf16_config_path", meaning="list of the operations in bf16: bf16"),
)


def resolve(given: Given) -> Meaning:
    """The training, the evaluation, or both."""
    keys = phase_of(given)
    if given["manual_fp16"]:
        raise UsageError("--manual_fp16: the program has no loss scaling for it in TensorFlow 2")
    if given["num_accumulation_steps"] < 1:
        raise UsageError(f"--num_accumulation_steps is {given['num_accumulation_steps']}, expected 1 or more")
    if not given["horovod"] and find_rank()[1] > 1:
        raise UsageError(
            f"{find_rank()[1]} workers were started: without --horovod each would train on its own"
        )
    variables = ("TF_BF16_CONVERSION", "TF_ENABLE_BF16_CONVERSION")  # by version
    asked = any(os.environ.get(name, "0") not in ("", "0") for name in variables)
    keys |= _optimiser(given, keys["world_size"]) | {
        "device": "hpu",
        "precision": "bf16" if asked or given["bf16_config_path"] is not None else "fp32",
        "phase2": False,
        "resume": given["do_train"] and has_checkpoints(given["output_dir"]),
        "start_moments": False,
    }
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
