"""The command line of ``python -m trainer evaluate``."""

import math

from bertdata.cli.common.parser import Parser, parse_number
from trainer.commands.pretrain import import_torch, warn_of_contradictions
from trainer.config.flags import make_layered
from trainer.config.task_names import expand_task_flags
from trainer.run.path_check import refuse_run_inputs
from trainer.workers.launch import launch_workers

_PROG = "python -m trainer evaluate"
_EXAMPLE = f"""\
  {_PROG} --eval-data shards/eval --output-dir run
  {_PROG} --eval-data shards/eval --output-dir run --start-from-ckpt bert-base
  {_PROG} --output-dir mrpc-run --eval-file test.tsv"""
_SUMMARY = """\
Evaluates a checkpoint: the newest in --output-dir, the checkpoint of --resume-step, or --start-from-ckpt.
With --train-data, the score of guessing from the training data is printed for comparison. A fine-tuned run is
evaluated on its task, with the file that it was evaluated on before, or --eval-file. --do-predict with
--predict-file FILE writes predictions for a file without answers to --output-dir.
All flags of pretrain are accepted: --help-all."""


def run(arguments: list[str]) -> None:
    """Evaluate a checkpoint, or with ``--poll`` each checkpoint that a run writes while the command waits."""
    parser = _make_parser()
    if not {"-h", "--help"}.isdisjoint(arguments):
        _add_keys_help(parser)
    given, rest = parser.parse_known_args(arguments)
    layered = make_layered(expand_task_flags(rest), parser.prog)
    warn_of_contradictions(layered)
    config = layered[-1].config
    refuse_run_inputs([config], evaluates=True)
    if launch_workers(config, "evaluate", *arguments):
        return
    import_torch()
    from trainer.run.evaluate_run import evaluate_run

    evaluate_run(rest, parser.prog, poll=given.poll, timeout=given.poll_timeout)


def _make_parser() -> Parser:
    """Return a parser of the flags that only this command has. ``trainer.config`` parses all other flags."""
    parser = Parser(_PROG, _EXAMPLE, _SUMMARY)
    parser.usage = "%(prog)s [--poll] [--poll-timeout SECONDS] [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--poll", action="store_true", help="evaluate each checkpoint as it appears")
    parser.add_argument(
        "--poll-timeout",
        type=parse_number,
        default=math.inf,
        metavar="SECONDS",
        help="with --poll: end after this time without a new checkpoint (default: never)",
    )
    return parser


def _add_keys_help(parser: Parser) -> None:
    """List the common configuration keys in the help. ``trainer.config`` parses them, not this parser."""
    from trainer.config.help import add_keys_help  # not needed without --help
    from trainer.config.help_keys import list_common_keys

    parser.add_argument("--config", metavar="FILE", help="JSON file with configuration keys (default: none)")
    add_keys_help(parser, list_common_keys("evaluate"), "evaluate", {})
