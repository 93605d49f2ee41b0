"""The command line of ``python -m trainer evaluate``."""

import math

from bertdata.cli.common.parser import Parser, number
from trainer.commands.pretrain import import_torch, tell_contradictions
from trainer.config.flags import make_layered
from trainer.config.task_names import task_flags
from trainer.run.path_check import refuse_run_inputs
from trainer.workers.launch import launch_workers


def run(arguments: list[str]) -> None:
    """Evaluate a checkpoint, or each that appears."""
    start = "  python -m trainer evaluate --eval-data shards/eval --output-dir run"
    summary = """\
Evaluates the newest checkpoint in --output-dir, that of --resume-step, or --start-from-ckpt; any key of
pretrain may be given. With --train-data the guess beside the results is by the training data. A fine-tuned
run is evaluated by its own task, on the file that it was evaluated on or on --eval-file; --do-predict with
--predict-file writes predictions of a file without answers into --output-dir."""
    tuned = "  python -m trainer evaluate --output-dir mrpc-run --eval-file test.tsv"
    example = f"{start}\n{start} --start-from-ckpt bert-base\n{tuned}"
    parser = Parser("python -m trainer evaluate", example, summary)
    parser.usage = "%(prog)s [--poll] [--poll-timeout X] [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--poll", action="store_true", help="evaluate checkpoints as they appear")
    timeout = "with --poll: end after so many seconds without a new checkpoint"
    parser.add_argument("--poll-timeout", type=number, default=math.inf, metavar="X", help=timeout)
    given, rest = parser.parse_known_args(arguments)
    layered = make_layered(task_flags(rest), parser.prog)
    tell_contradictions(layered)
    config = layered[-1].config
    refuse_run_inputs([config], evaluates=True)
    if launch_workers(config, "evaluate", *arguments):
        return
    import_torch()
    from trainer.run.evaluate_run import evaluate_run

    evaluate_run(rest, parser.prog, poll=given.poll, timeout=given.poll_timeout)
