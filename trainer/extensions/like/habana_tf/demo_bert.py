"""Habana's demo_bert.py for TensorFlow, and the shell script before it: both phases, SQuAD and MRPC on Gaudi.

An update of pre-training has 65,536 and 32,768 examples whatever the workers; the rate of all of them
together is 6e-3 and 4e-3. The program sets no seed.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.cli.common.program_flags import Given
from trainer.extensions.like.habana_tf.demo_bert_flags import SCRIPT, SHELL
from trainer.extensions.like.habana_tf.finetuning import finetuning
from trainer.extensions.like.habana_tf.pretraining import pretraining
from trainer.extensions.like.habana_tf.workers import find_workers
from trainer.extensions.like.program import Meaning, Program

_SHELL = "0.13"
_COMMANDS = ("pretraining", "finetuning")
_WITH_VALUE = ("-d", "--dtype", "-m", "--model", "-o", "--output-dir")
_HOROVOD = ("-v", "--use_horovod")


@dataclass(frozen=True, kw_only=True, slots=True)
class _DemoBert(Program):
    """The program in both forms: of the shell script where the command line has no --command."""

    def read(self, arguments: Sequence[str], version: str = "") -> Given:
        words = list(arguments)
        if version == _SHELL or (not version and _is_of_shell(words)):
            return Program.read(self, _ordered(words), _SHELL)
        return Program.read(self, words, version)


def resolve(given: Given) -> Meaning:
    """The pre-training or fine-tuning that the command line asks for."""
    workers = find_workers(given)
    command = given.command or given["command"]
    train = pretraining if command == "pretraining" else finetuning
    return train(given, workers)


def _is_of_shell(words: Sequence[str]) -> bool:
    """True for a command line of the script: a sub-command by its name, and no -c or --command."""
    names_it = any(word.startswith(("-c", "--co")) for word in words)
    return not names_it and any(word in _COMMANDS for word in words)


def _ordered(words: Sequence[str]) -> list[str]:
    """The sub-command, then the flags; -v without a number has the script's 8, or NUM_WORKERS_PER_HLS."""
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
    name="habana-tf/demo_bert.py",
    title="Habana demo_bert.py for TensorFlow",
    source="HabanaAI/Model-References 9d1b913c (0.15.4), 5cbd40c5 (0.13), TensorFlow/nlp/bert",
    commands=SCRIPT,
    versions={_SHELL: SHELL},
    resolve=resolve,
    published=(
        "--command pretraining --model_variant large --data_type bf16 --test_set bookswiki "
        "--dataset_path books_wiki_en_corpus/tfrecord --use_horovod 8",
        "--command finetuning --model_variant large --data_type bf16 --test_set squad --dataset_path SQuAD",
        "finetuning -d bf16 -m base -t mrpc -e 0.5",
    ),
)
