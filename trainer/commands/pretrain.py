"""The command line of ``python -m trainer pretrain``. It imports torch only when training begins."""

import sys
from collections.abc import Sequence
from importlib import import_module

from bertdata.cli.common.print_config_flag import remove_print_config_flag
from bertdata.io.signals import end_at_ctrl_c
from bertdata.io.terminal import say_error
from trainer.config.flags import make_layered
from trainer.config.value_sources import LayeredConfig
from trainer.run.path_check import check_paths
from trainer.workers.launch import launch_workers
from trainer.workers.launchers import find_rank, is_started_here


def run(arguments: list[str]) -> None:
    """Pre-train a model in phase 1, phase 2 or both, as the command line says."""
    words, printing = remove_print_config_flag(arguments)
    layered = make_layered(words)
    warn_of_contradictions(layered)
    if printing:
        return print_phases("trainer pretrain", layered)
    phases = [phase.config for phase in layered]
    check_paths(phases)
    if launch_workers(phases[0], "pretrain", *arguments):
        return
    import_torch()
    from trainer.run.pretrain import pretrain

    pretrain(phases)


def print_phases(program: str, layered: Sequence[LayeredConfig]) -> None:
    """Print the configuration of each phase as JSON, on rank 0 only."""
    if find_rank()[0] == 0:
        from trainer.config.printed import print_config

        print_config(program, [phase.config for phase in layered], [phase.sources for phase in layered])


def warn_of_contradictions(layered: Sequence[LayeredConfig]) -> None:
    """Print a warning for each contradiction between two sources of the configuration, such as a file and a
    flag.

    With several workers, each warning is printed only once.
    """
    if find_rank()[0] == 0 and not is_started_here():
        found = [line for phase in layered for line in phase.contradictions]
        say_error(*(f"trainer: warning: {line}" for line in dict.fromkeys(found)))


def import_torch() -> None:
    """Import torch. Rank 0 first prints a line that says so, because the import takes seconds."""
    if "torch" in sys.modules:
        return
    if find_rank()[0] == 0:
        say_error("trainer: importing torch")
    with end_at_ctrl_c():
        import_module("torch")
