"""``python -m trainer COMMAND ...``: runs the command and turns errors into exit statuses."""

import math
import sys
from collections.abc import Callable, Sequence

from bertdata.cli.common.dispatch import choose_command, end
from bertdata.cli.common.door_words import take_print_config
from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say, say_error
from trainer.extensions.launchers.launch import as_worker, launched
from trainer.collectives.launchers import EXAMPLES, find_rank
from trainer.config.flags import make_configs
from trainer.config.printed import print_config
from trainer.config.settings import Config
from trainer.extensions.finetuning.task_config import make_task_config
from trainer.errors import naming_extra
from trainer.run.path_check import check_paths
from trainer.run.tokenizer_flags import add_tokenizer

USAGE = f"""\
Example:
{EXAMPLES}
Pre-trains BERT on the shards that bertdata makes.

usage: python -m trainer COMMAND ...    (python -m trainer COMMAND --help explains one)

"""

SOURCES = ("bertdata", "tf1", "tf2", "nvidia", "habana", "graphcore", "huggingface")
TARGETS = ("bertdata", "tf1", "tf2", "nvidia", "huggingface")
"""Kinds of checkpoints that ``convert`` reads and writes."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 data or training at fault, 2 wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    rank, size = find_rank()
    place = f"rank {rank} of {size}: " if size > 1 else ""
    interrupted = "interrupted; --resume continues from the last checkpoint"
    return end("trainer", lambda: _run(words), interrupted=interrupted, place=place)


def _run(words: list[str]) -> int:
    name = choose_command(words, USAGE, {name: str(run.__doc__) for name, run in COMMANDS.items()})
    if name is None:
        return 0 if words else 2
    with as_worker(), naming_extra("torch", "train"):
        COMMANDS[name](words[1:])
    return 0


def pretrain(arguments: list[str]) -> None:
    """train phase 1, phase 2 or both, with one worker or several"""
    words, printing = take_print_config(arguments)
    phases = make_configs(words)
    if printing:
        return _print("trainer pretrain", phases)
    check_paths(phases)
    if launched(phases[0], "pretrain", *arguments):
        return
    _announce_torch()
    from trainer.run.pretrain import pretrain

    pretrain(phases)


def finetune(arguments: list[str]) -> None:
    """train a task (SQuAD, MRPC, a classification) from a checkpoint, evaluate and predict"""
    words, printing = take_print_config(arguments)
    config = make_task_config(words)
    if printing:
        return _print("trainer finetune", [config])
    check_paths([config])
    if launched(config, "finetune", *arguments):
        return
    _announce_torch()
    from trainer.extensions.finetuning.finetune import finetune

    finetune(config)


def evaluate(arguments: list[str]) -> None:
    """measure accuracy and loss of a checkpoint, or of each that appears (--poll)"""
    start = "  python -m trainer evaluate --eval-data shards/eval --output-dir run"
    summary = """\
Evaluates the newest checkpoint in --output-dir, that of --resume-step, or --start-from-ckpt; any key of
pretrain may be given. With --train-data the most frequent token is that of the training data. A fine-tuned
run is evaluated by its own task, on the file that it was evaluated on or on --eval-file; --do-predict with
--predict-file writes predictions of a file without answers into --output-dir."""
    tuned = "  python -m trainer evaluate --output-dir mrpc-run --eval-file test.tsv"
    example = f"{start}\n{start} --start-from-ckpt bert-base\n{tuned}"
    parser = Parser("python -m trainer evaluate", example, summary)
    parser.usage = "%(prog)s [--poll] [--poll-timeout X] [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--poll", action="store_true", help="evaluate checkpoints as they appear")
    timeout = "with --poll: end after so many seconds without a new checkpoint"
    parser.add_argument("--poll-timeout", type=float, default=math.inf, metavar="X", help=timeout)
    given, rest = parser.parse_known_args(arguments)
    if launched(make_task_config(rest, parser.prog), "evaluate", *arguments):
        return
    _announce_torch()
    from trainer.extensions.finetuning.evaluate_run import evaluate_run

    evaluate_run(rest, parser.prog, poll=given.poll, timeout=given.poll_timeout)


def convert(arguments: list[str]) -> None:
    """convert a checkpoint from and to the forms of TensorFlow, NVIDIA and Hugging Face"""
    start = "  python -m trainer convert"
    examples = f"{start} run bert-tiny\n{start} tf1/model.ckpt-28252 start\n{start} run tf --to tf1"
    summary = """\
Converts a checkpoint, or a run's newest: weights, moments and number of updates, where the form has them."""
    parser = Parser("python -m trainer convert", examples, summary)
    parser.add_argument("source", help="run, checkpoint, directory or file of weights, TensorFlow's prefix")
    parser.add_argument("target", help="directory to write")
    parser.add_argument("--from", dest="kind", choices=SOURCES, help="the source's kind (default: as found)")
    parser.add_argument("--to", choices=TARGETS,
                        help="form to write (default: huggingface for our own, else bertdata)")  # fmt: skip
    parser.add_argument("--model-config", metavar="FILE",
                        help="bert_config.json (default: the one beside the weights)")  # fmt: skip
    parser.add_argument("--without-moments", action="store_true",
                        help="leave out the optimiser's moments, two thirds of a checkpoint")  # fmt: skip
    add_tokenizer(parser)
    given = parser.parse_args(arguments)
    from trainer.extensions.formats.convert import convert

    say(
        convert(
            given.source,
            given.target,
            kind=given.kind,
            to=given.to,
            model_config=given.model_config,
            vocabulary=given.vocab,
            train_data=given.train_data,
            lower_case=given.lower_case,
            moments=not given.without_moments,
        )
    )


def predict(arguments: list[str]) -> None:
    """try a model on a text: words at its [MASK]s, the answer to a question, or its label"""
    from trainer.run.predict_command import run

    run(arguments)


def features(arguments: list[str]) -> None:
    """write the features of a file to fine-tune on as text, for audits"""
    from trainer.extensions.finetuning.features_command import run

    run(arguments)


def score(arguments: list[str]) -> None:
    """compare predictions with the right answers by a task's official metrics"""
    from trainer.extensions.finetuning.score_command import run

    run(arguments)


def split(arguments: list[str]) -> None:
    """plan how to divide a model over devices that cannot hold it alone; print and draw the plan"""
    from trainer.extensions.splitting.show.command import run

    run(arguments)


def like(arguments: list[str]) -> None:
    """run another program's command line with the meaning that it has there"""
    from trainer.extensions.like.command import run

    run(arguments)


def doctor(arguments: list[str]) -> None:
    """list the devices, launchers and packages of this machine, and those that are missing"""
    summary = (
        "Prints a table of the devices, launchers and packages found, with a remedy for each missing one."
    )
    parser = Parser("python -m trainer doctor", "  python -m trainer doctor --json", summary)
    parser.add_argument("--device", help="report on this device only; exit status 2 if it is not there")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(arguments)
    from trainer.run.doctor import diagnose

    diagnose(given.device, as_json=given.json)


def _print(program: str, phases: Sequence[Config]) -> None:
    """Print the configuration once, whatever launcher started how many workers."""
    if find_rank()[0] == 0:
        print_config(program, phases)


def _announce_torch() -> None:
    """Say on rank 0 that torch is being imported, which takes seconds."""
    if "torch" not in sys.modules and find_rank()[0] == 0:
        say_error("trainer: importing torch")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    run.__name__: run
    for run in (pretrain, finetune, evaluate, predict, features, score, split, convert, like, doctor)
}

if __name__ == "__main__":
    sys.exit(main())
