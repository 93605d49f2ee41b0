"""Habana's demo_bert.py for TensorFlow, and the shell script before it: both phases, SQuAD and MRPC on Gaudi.

An update of pre-training has 65,536 and 32,768 examples whatever the workers; the rate of all of them
together is 6e-3 and 4e-3. The program sets no seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.cli.common.program_flags import Given
from trainer.extensions.like.habana_tf.demo_bert_flags import SCRIPT, SHELL
from trainer.extensions.like.habana_tf.finetuning import finetuning
from trainer.extensions.like.habana_tf.pretraining import pretraining
from trainer.extensions.like.habana_tf.shell_words import is_of_shell, ordered
from trainer.extensions.like.habana_tf.workers import find_workers
from trainer.extensions.like.program import Meaning, Program

_SHELL = "0.13"


@dataclass(frozen=True, kw_only=True, slots=True)
class _DemoBert(Program):
    """The program in both forms: of the shell script where the command line has no --command."""

    def read(self, arguments: Sequence[str], version: str = "") -> Given:
        words = list(arguments)
        if version == _SHELL or (not version and is_of_shell(words)):
            return Program.read(self, ordered(words), _SHELL)
        return Program.read(self, words, version)


def resolve(given: Given) -> Meaning:
    """The pre-training or fine-tuning that the command line asks for."""
    workers = find_workers(given)
    command = given.command or given["command"]
    train = pretraining if command == "pretraining" else finetuning
    return train(given, workers)


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
