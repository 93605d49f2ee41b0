"""The program behind ``python -m trainer COMMAND ...``. Turns errors into exit statuses."""

import os
import sys

from bertdata.cli.common.dispatch import run_to_exit_status
from bertdata.cli.common.slow_engine import warn_about_slow_engine
from bertdata.errors import SettingsError
from bertdata.io.home import expand_words
from trainer.config.flags import UnknownKeyError
from trainer.errors import name_missing_extra
from trainer.plugins import find, is_name
from trainer.workers.launch import run_as_worker
from trainer.workers.launchers import find_rank
from trainer.workers.signals import ignoring_checkpoint_signals

SLOW_WITHOUT_KERNELS = ("pretrain", "finetune", "evaluate", "features", "score")
"""Commands that read or tokenise much text, which takes noticeably longer without the C++ kernels."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command line of the trainer.

    Return the exit status: 0 for success, 1 for a fault in the data or the training, 2 for wrong usage.
    arguments: the words after ``python -m trainer``. None: those of this process.
    """
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    return run_to_exit_status(
        "trainer",
        lambda: _run_command(words),
        interrupted="interrupted",
        place=_make_rank_prefix(),
        has_parser=False,
    )


def _run_command(words: list[str]) -> int:
    """Run the command named by the first word, or print the help."""
    if words and words[0].replace("_", "-").startswith("--local-rank=") and "LOCAL_RANK" in os.environ:
        # torch.distributed.launch puts this flag before the command. The environment has the same number, so
        # it is ignored.
        words = words[1:]
    if not words or not is_name("command", words[0]):
        from trainer.run.usage import print_usage

        return print_usage(words)
    if words[0] in SLOW_WITHOUT_KERNELS and _is_first_worker() and not {"-h", "--help"} & set(words):
        warn_about_slow_engine("trainer")
    with ignoring_checkpoint_signals(), run_as_worker(), name_missing_extra("torch", "train"):
        try:
            find("command", words[0])(words[1:])
        except UnknownKeyError as error:
            # slow to import, as it reads the tables of all programs
            from trainer.commands.foreign_names import add_name_hints

            raise add_name_hints(error) from None
    return 0


def _is_first_worker() -> bool:
    """Return True for the worker of rank 0, which is the only worker that prints messages about the run."""
    try:
        return find_rank()[0] == 0
    except SettingsError:  # the command itself will raise the same error
        return True


def _make_rank_prefix() -> str:
    """Return this worker's rank as a prefix for errors, or "" if there is only one worker."""
    try:
        rank, size = find_rank()
    except SettingsError:  # the command itself will raise the same error
        return ""
    return f"rank {rank} of {size}: " if size > 1 else ""
