"""The command line of ``python -m trainer pretrain``: all that needs no torch."""

import sys
from collections.abc import Sequence
from importlib import import_module

from bertdata.cli.common.door_words import take_print_config
from bertdata.io.signals import ctrl_c_at_once
from bertdata.io.terminal import say_error
from trainer.config.flags import make_configs
from trainer.config.settings import Config
from trainer.run.path_check import check_paths
from trainer.workers.launch import launch_workers
from trainer.workers.launchers import find_rank


def run(arguments: list[str]) -> None:
    """Train phase 1, phase 2 or both."""
    words, printing = take_print_config(arguments)
    phases = make_configs(words)
    if printing:
        return print_phases("trainer pretrain", phases)
    check_paths(phases)
    if launch_workers(phases[0], "pretrain", *arguments):
        return
    import_torch()
    from trainer.run.pretrain import pretrain

    pretrain(phases)


def print_phases(program: str, phases: Sequence[Config]) -> None:
    """Print the configuration once, whatever launcher started how many workers."""
    if find_rank()[0] == 0:
        from trainer.config.printed import print_config

        print_config(program, phases)


def import_torch() -> None:
    """Import torch, which takes seconds; rank 0 says so."""
    if "torch" in sys.modules:
        return
    if find_rank()[0] == 0:
        say_error("trainer: importing torch")
    with ctrl_c_at_once():
        import_module("torch")
