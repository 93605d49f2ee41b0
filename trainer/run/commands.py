"""The commands pretrain, evaluate and doctor: their flags, and all that needs no torch."""

import math
import sys
from collections.abc import Sequence

from bertdata.cli.common.door_words import take_print_config
from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say_error
from trainer.collectives.launchers import find_rank, launched
from trainer.config.flags import make_config, make_configs
from trainer.config.settings import Config
from trainer.config.task_names import task_flags
from trainer.run.path_check import check_paths


def pretrain(arguments: list[str]) -> None:
    """Train phase 1, phase 2 or both."""
    words, printing = take_print_config(arguments)
    phases = make_configs(words)
    if printing:
        return print_phases("trainer pretrain", phases)
    check_paths(phases)
    if launched(phases[0], "pretrain", *arguments):
        return
    announce_torch()
    from trainer.run.pretrain import pretrain

    pretrain(phases)


def evaluate(arguments: list[str]) -> None:
    """Evaluate a checkpoint, or each that appears."""
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
    if launched(make_config(task_flags(rest), parser.prog), "evaluate", *arguments):
        return
    announce_torch()
    from trainer.run.evaluate_run import evaluate_run

    evaluate_run(rest, parser.prog, poll=given.poll, timeout=given.poll_timeout)


def doctor(arguments: list[str]) -> None:
    """Report on this machine."""
    summary = (
        "Prints a table of the devices, launchers and packages found, with a remedy for each missing one."
    )
    parser = Parser("python -m trainer doctor", "  python -m trainer doctor --json", summary)
    parser.add_argument("--device", help="report on this device only; exit status 2 if it is not there")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(arguments)
    from trainer.run.doctor import diagnose

    diagnose(given.device, as_json=given.json)


def print_phases(program: str, phases: Sequence[Config]) -> None:
    """Print the configuration once, whatever launcher started how many workers."""
    if find_rank()[0] == 0:
        from trainer.config.printed import print_config

        print_config(program, phases)


def announce_torch() -> None:
    """Say on rank 0 that torch is being imported, which takes seconds."""
    if "torch" not in sys.modules and find_rank()[0] == 0:
        say_error("trainer: importing torch")
