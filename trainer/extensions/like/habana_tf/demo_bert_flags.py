"""Flags of Habana's demo_bert.py for TensorFlow, and of the shell script demo_bert before it."""

from collections.abc import Mapping, Sequence

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.extensions.like.habana_tf.constants import FOLDERS

VARIANTS = tuple(FOLDERS)
SETS = ("bookswiki", "overfit", "mrpc", "squad")


def _variant(names: str) -> Flag:
    return Flag(names, required=True, values=VARIANTS, meaning="size of the model")


def _data_type(names: str) -> Flag:
    return Flag(names, required=True, values=("fp32", "bf16"), key="precision", meaning="precision")


SCRIPT: Mapping[str, Sequence[Flag]] = {
    "": [
        Flag("-c --command", required=True, values=("pretraining", "finetuning"), meaning="what to train"),
        _data_type("-d --data_type"),
        _variant("-m --model_variant"),
        Flag("--bert-config-dir", meaning="directory of bert_config.json, and of the weights to fine-tune"),
        Flag("--model", values=("bert",), idle=True),
        Flag("-o --output_dir", default="/tmp/bert", meaning="directory for checkpoints; bookswiki: phase_1 "
             "and phase_2 in it"),
        Flag("-v --use_horovod", int, meaning="workers of one host, as many on each of MULTI_HLS_IPS"),
        Flag("-t --test_set", default="bookswiki", values=SETS, meaning="data set, or task"),
        Flag("-e --epochs", float, meaning="passes over the training file (default: mrpc 3, squad 2)"),
        Flag("-s --max_seq_length", meaning="ids of an example, of each phase (default: bookswiki 128,512; "
             "overfit, mrpc 128; squad 384)"),
        Flag("-i --iters", meaning="updates of each phase, phase 2's counted as of phase 1's size (default: "
             "bookswiki 7038,782; overfit 200)"),
        Flag("-w --warmup", meaning="updates of warm-up (default: bookswiki 2000,200; overfit 10)"),
        Flag("-fpo --fast_perf_only", int, 0, "1: updates of 1600 and 200 examples, for measurements"),
        Flag("--save_ckpt_steps", int, 100, "bookswiki: updates between two checkpoints"),
        Flag("--no_steps_accumulation", int, 0, "1: undoes --fast_perf_only 1, and nothing else"),
        Flag("-b --batch_size", meaning="examples of a micro-batch of one worker, of each phase (default, "
             "bf16 and fp32: bookswiki 64,8 and 32,8; overfit 32; mrpc 64 and 32; squad 24 and 10)"),
        Flag("--learning_rate", float, 2e-5, "learning rate of fine-tuning"),
        Flag("--dataset_path", default="./dataset/", meaning="directory of the data"),
        Flag("--init_checkpoint_path", default="", meaning="overfit: directory of VARIANT/model.ckpt-0"),
        Flag("--checkpoint_folder", meaning="fine-tuning: directory of the weights to start from"),
        Flag("--bf16_config_path", idle=True, meaning="the device chooses the operations in bf16"),
        Flag("--kubernetes_run", bool, False, "mpirun starts the command; any value is true"),
        Flag("--run_phase2", bool, False, "Kubernetes: phase 2 of several workers; "
             "any value is true"),
        Flag("--enable_scoped_allocator", bool, False, idle=True),
        Flag("--horovod_hierarchical_allreduce", bool, False, idle=True),
    ]
}  # fmt: skip
"""demo_bert.py of 0.15.4."""

_GLOBAL = [
    _data_type("-d --dtype"),
    _variant("-m --model"),
    Flag("-o --output-dir", meaning="directory for checkpoints (default: one in HOME/tmp)"),
    Flag("-v --use_horovod", int, meaning="workers of one host, as many on each of MULTI_HLS_IPS; alone: 8"),
]
SHELL: Mapping[str, Sequence[Flag]] = {
    "pretraining": [
        *_GLOBAL,
        Flag("-t --test-set", default="bookswiki", values=("bookswiki", "overfit"), meaning="data set"),
        Flag("-i --iters", int, count="+", meaning="updates of each phase (default: 7038 782; overfit 200)"),
        Flag("-w --warmup", int, count="+", meaning="updates of warm-up (default: 2000 200; overfit 10)"),
        Flag("-b --batch_size", int, count="+",
             meaning="examples of a micro-batch of one worker (default: bf16 64 8, fp32 32 8; overfit 32)"),
        Flag("-s --max_seq_length", int, count="+", meaning="ids (default: 128 512; overfit 128)"),
        Flag("-fpo --fast-perf-only", SWITCH, meaning="updates of 1600 and 200 examples, for measurements"),
    ],
    "finetuning": [
        *_GLOBAL,
        Flag("-t --test-set", required=True, values=("mrpc", "squad"), meaning="task"),
        Flag("-e --epochs", float, meaning="passes over the training file (default: mrpc 3, squad 2)"),
        Flag("-b --batch_size", int,
             meaning="features of an update of one worker (default, bf16 and fp32: mrpc 64 and 32; squad 24 "
             "and 10)"),
        Flag("-s --max_seq_length", int, meaning="ids of a feature (default: mrpc 128, squad 384)"),
    ],
}  # fmt: skip
"""The shell script demo_bert of 0.13, whose first own word is a sub-command."""
