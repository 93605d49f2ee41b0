"""``python -m trainer COMMAND ...``: finds the command, runs it, turns errors into exit statuses."""

import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from bertdata.errors import BertDataError, SettingsError, UsageError
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
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            print(USAGE + "".join(f"  {name:<12}{run.__doc__}\n" for name, run in COMMANDS.items()), end="")
            return 0 if words else 2
        if words[0] not in COMMANDS:
            near = get_close_matches(words[0], COMMANDS, n=1) or [", ".join(COMMANDS)]
            raise UsageError(f"{words[0]!r} is no command; did you mean {near[0]}?")
        COMMANDS[words[0]](words[1:])
        return 0
    except ReportedError as error:
        return error.exit_status
    except BertDataError as error:
        _report(f"error: {_rank()}{error}")
        return error.exit_status
    except KeyboardInterrupt:
        _report("interrupted; the last checkpoint is where --resume goes on")
        return 130
    except OSError as error:
        _report(f"error: {_rank()}{error.filename or 'input or output'}: {error.strerror or error}")
        return 1


def _report(line: str) -> None:
    sys.stderr.write(f"trainer: {line}\n")  # at one go: other workers write there too
    sys.stderr.flush()


def _rank() -> str:
    rank, size = find_rank()
    return f"rank {rank} of {size}: " if size > 1 else ""


def pretrain(arguments: list[str]) -> None:
    """train: phase 1, phase 2, resumed; alone or one of several workers"""
    config = make_config(arguments)
    from trainer.pretrain import pretrain

    pretrain(config)


def evaluate(arguments: list[str]) -> None:
    """accuracy and loss of a checkpoint, or of each that appears (--poll)"""
    parser = Parser(
        "python -m trainer evaluate",
        "  python -m trainer evaluate --eval-data shards/eval --output-dir run\n"
        "  python -m trainer evaluate --eval-data shards/eval --output-dir run --start-from-ckpt bert-base",
        "Evaluates the newest checkpoint in --output-dir, that of --resume-step, or --start-from-ckpt;\n"
        "any key of pretrain may be given. With --train-data, the most frequent token is counted there.",
    )
    parser.usage = "%(prog)s [--poll] [--poll-timeout SECONDS] [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--poll", action="store_true", help="evaluate checkpoints as they appear")
    parser.add_argument(
        "--poll-timeout",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="end when none has come for so long",
    )
    known, rest = parser.parse_known_args(arguments)
    config = make_config(rest, parser.prog)
    from trainer.evaluate import evaluate

    evaluate(config, poll=known.poll, timeout=known.poll_timeout)


def convert(arguments: list[str]) -> None:
    """a checkpoint to Hugging Face form, or back"""
    parser = Parser(
        "python -m trainer convert",
        "  python -m trainer convert run bert-tiny",
        "Reads a checkpoint, or a run's newest; writes config.json and model.safetensors, or the reverse.",
    )
    parser.add_argument("source", help="run, checkpoint, or directory in Hugging Face form")
    parser.add_argument("target", help="directory to write")
    given = parser.parse_args(arguments)
    from trainer.convert import convert

    print(convert(given.source, given.target))


def curves(arguments: list[str]) -> None:
    """a run's picture of loss and accuracy, drawn again"""
    parser = Parser(
        "python -m trainer curves", "  python -m trainer curves run", "Draws curves.svg and .png anew."
    )
    parser.add_argument("run", help="output directory of a run")
    given = parser.parse_args(arguments)
    if not Path(given.run).is_dir():
        raise SettingsError(f"{given.run}: no such directory")
    from trainer.curves import draw_curves

    print(*draw_curves(Path(given.run)), sep="\n")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "pretrain": pretrain,
    "evaluate": evaluate,
    "convert": convert,
    "curves": curves,
}

if __name__ == "__main__":
    sys.exit(main())
