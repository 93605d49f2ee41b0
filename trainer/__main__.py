"""``python -m trainer COMMAND ...``: finds the command, runs it, turns errors into exit statuses."""

import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from bertdata.errors import BertDataError, UsageError
from bertdata.parser import Parser
from trainer.collectives import find_rank
from trainer.errors import ReportedError
from trainer.flags import make_config

USAGE = """\
Example:
  python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  horovodrun -np 2 python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  torchrun --nproc-per-node 2 -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run

Pre-trains BERT on the shards that bertdata makes.

usage: python -m trainer COMMAND ...    (python -m trainer COMMAND --help explains one)

"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0 done, 1 data or training at fault, 2 wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE + "".join(f"  {name:<12}{run.__doc__}\n" for name, run in COMMANDS.items()), end="")
        return 0 if words else 2
    try:
        if words[0] not in COMMANDS:
            near = get_close_matches(words[0], COMMANDS, n=1) or [", ".join(COMMANDS)]
            raise UsageError(f"{words[0]!r} is no command; did you mean {near[0]}?")
        COMMANDS[words[0]](words[1:])
    except ReportedError as error:
        return error.exit_status
    except BertDataError as error:
        return _report(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _report("interrupted; the last checkpoint is where --resume goes on", 130)
    except OSError as error:
        return _report(f"{error.filename or 'input or output'}: {error.strerror or error}", 1)
    return 0


def _report(message: str, status: int) -> int:
    rank, size = find_rank()
    place = f"rank {rank} of {size}: " if size > 1 else ""
    sys.stderr.write(f"trainer: error: {place}{message}\n")  # at one go: other workers write there too
    sys.stderr.flush()
    return status


def pretrain(arguments: list[str]) -> None:
    """train: phase 1, phase 2, resumed; alone or one of several workers"""
    config = make_config(arguments)
    from trainer.pretrain import pretrain

    pretrain(config)


def evaluate(arguments: list[str]) -> None:
    """accuracy and loss of a checkpoint, or of each that appears (--poll)"""
    start = "  python -m trainer evaluate --eval-data shards/eval --output-dir run"
    summary = """\
Evaluates the newest checkpoint in --output-dir, that of --resume-step, or --start-from-ckpt; any key of
pretrain may be given. With --train-data, the most frequent token is counted there."""
    parser = Parser("python -m trainer evaluate", f"{start}\n{start} --start-from-ckpt bert-base", summary)
    parser.usage = "%(prog)s [--poll] [--poll-timeout X] [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--poll", action="store_true", help="evaluate checkpoints as they appear")
    timeout = "seconds without a new one after which to end"
    parser.add_argument("--poll-timeout", type=float, default=math.inf, metavar="X", help=timeout)
    given, rest = parser.parse_known_args(arguments)
    config = make_config(rest, parser.prog)
    from trainer.evaluate import evaluate

    evaluate(config, poll=given.poll, timeout=given.poll_timeout)


def convert(arguments: list[str]) -> None:
    """a checkpoint to Hugging Face form, or back"""
    summary = (
        "Reads a checkpoint, or a run's newest, and writes config.json and model.safetensors; or the reverse."
    )
    parser = Parser("python -m trainer convert", "  python -m trainer convert run bert-tiny", summary)
    parser.add_argument("source", help="run, checkpoint, or directory in Hugging Face form")
    parser.add_argument("target", help="directory to write")
    given = parser.parse_args(arguments)
    from trainer.convert import convert

    print(convert(given.source, given.target))


def curves(arguments: list[str]) -> None:
    """a run's picture of loss and accuracy, drawn again"""
    parser = Parser(
        "python -m trainer curves", "  python -m trainer curves run", "Draws a run's curves again."
    )
    parser.add_argument("run", type=Path, help="output directory of the run")
    run = parser.parse_args(arguments).run
    from trainer.curves import draw_curves

    print(*draw_curves(run), sep="\n")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "pretrain": pretrain,
    "evaluate": evaluate,
    "convert": convert,
    "curves": curves,
}

if __name__ == "__main__":
    sys.exit(main())
