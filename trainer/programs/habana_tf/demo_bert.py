"""Habana's demo_bert.py for TensorFlow, and the shell script before it: both phases, SQuAD and MRPC on Gaudi.

An update of pre-training has 65,536 and 32,768 examples whatever the workers; the rate of all of them
together is 6e-3 and 4e-3. The program sets no seed.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from trainer.programs.flag_tables import idle_flags
from trainer.programs.habana_tf.finetuning import finetuning
from trainer.programs.habana_tf.pretraining import SIZES, pretraining
from trainer.programs.program import Meaning, Program

_COMMANDS = {"pretraining": pretraining, "finetuning": finetuning}


def _variant(names: str) -> Flag:
    return Flag(names, required=True, values=tuple(SIZES), meaning="size of the model")


def _data_type(names: str) -> Flag:
    return Flag(names, required=True, values=("fp32", "bf16"), key="precision", meaning="precision")


_SCRIPT = [
    Flag("-c --command", required=True, values=tuple(_COMMANDS), meaning="what to train"),
    _data_type("-d --data_type"),
    _variant("-m --model_variant"),
    Flag("--bert-config-dir", meaning="directory of bert_config.json, and of the weights to fine-tune"),
    Flag("--model", values=("bert",), idle=True),
    Flag("-o --output_dir", default="/tmp/bert", meaning="directory for checkpoints; bookswiki: phase_1 "
         "and phase_2 in it"),
    Flag("-v --use_horovod", int, meaning="workers of one host, as many on each of MULTI_HLS_IPS"),
    Flag("-t --test_set", default="bookswiki", values=("bookswiki", "overfit", "mrpc", "squad"),
         meaning="data set, or task"),
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
    *idle_flags("the device chooses the operations in bf16", str, "--bf16_config_path"),
    *idle_flags("", bool, "--enable_scoped_allocator= --horovod_hierarchical_allreduce="),
    Flag("--kubernetes_run", bool, False, "mpirun starts the command; any value is true"),
    Flag("--run_phase2", bool, False, "Kubernetes: phase 2 of several workers; any value is true"),
]  # fmt: skip
"""demo_bert.py of 0.15.4."""

_GLOBAL = [
    _data_type("-d --dtype"),
    _variant("-m --model"),
    Flag("-o --output-dir", meaning="directory for checkpoints (default: one in HOME/tmp)"),
    Flag("-v --use_horovod", int, meaning="workers of one host, as many on each of MULTI_HLS_IPS; alone: 8"),
]
_SHELL = {
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
        Flag("-b --batch_size",
             meaning="features of an update of one worker (default, bf16 and fp32: mrpc 64 and 32; squad 24 "
             "and 10)"),
        Flag("-s --max_seq_length", meaning="ids of a feature (default: mrpc 128, squad 384)"),
    ],
}  # fmt: skip
"""The shell script demo_bert of 0.13, whose first own word is a sub-command."""

_SHELL_VERSION = "0.13"
_WITH_VALUE = ("-d", "--dtype", "-m", "--model", "-o", "--output-dir")
_HOROVOD = ("-v", "--use_horovod")


class _DemoBert(Program):
    """The program in both forms: of the shell script where the command line has no --command."""

    def read(self, arguments: Sequence[str], version: str = "") -> Given:
        """The command line's values, the script's under the later program's names, with its defaults."""
        words = list(arguments)
        if version != _SHELL_VERSION and (version or not _is_of_shell(words)):
            return super().read(words, version)
        given = super().read(_ordered(words), _SHELL_VERSION)
        named = {"command": given.command, "data_type": given["dtype"], "model_variant": given["model"]}
        later = {flag.name: flag.default for flag in _SCRIPT}
        return replace(given, values=later | given.values | named)


def resolve(given: Given) -> Meaning:
    """The pre-training or fine-tuning that the command line asks for."""
    return _COMMANDS[given["command"]](given)


def _is_of_shell(words: Sequence[str]) -> bool:
    """True for a command line of the script: a sub-command by its name, and no -c or --command."""
    names_it = any(word.startswith(("-c", "--co")) for word in words)
    return not names_it and any(word in _COMMANDS for word in words)


def _ordered(words: Sequence[str]) -> list[str]:
    """The sub-command, then the flags. -v without a number has the script's 8, or NUM_WORKERS_PER_HLS."""
    flags, rest = list[str](), list[str]()
    place = 0
    while place < len(words):
        word = words[place]
        following = words[place + 1 : place + 2]
        if word in _HOROVOD:
            has_number = bool(following) and following[0].lstrip("-").isdecimal()
            flags += [word, following[0] if has_number else os.environ.get("NUM_WORKERS_PER_HLS", "8")]
            place += 1 + has_number
        elif word in _WITH_VALUE:
            flags += [word, *following]
            place += 2
        else:
            rest.append(word)
            place += 1
    return [rest[0], *flags, *rest[1:]] if rest else []


PROGRAM: Program = _DemoBert(
    "habana-tf/demo_bert.py", {"": _SCRIPT}, resolve, versions={_SHELL_VERSION: _SHELL}
)
