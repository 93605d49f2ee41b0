"""The flag for the objective of examples that are there already."""

import argparse

from bertdata.examples.objectives import find_objective
from bertdata.steps.keywords import OBJECTIVE_HELP


def load_objective(name: str | None) -> None:
    """Load the objective that --objective names, so that files may name it too."""
    if name is not None:
        find_objective(name)


def add_objective(parser: argparse._ActionsContainer) -> None:
    """The objective of the shards: needed for one of somebody's own, which no file can load."""
    parser.add_argument("--objective", metavar="NAME", help=OBJECTIVE_HELP)
