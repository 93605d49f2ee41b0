"""The flag ``--objective``, for commands that read existing examples."""

import argparse

from bertdata.examples.objectives import find_objective
from bertdata.steps.keywords import OBJECTIVE_HELP


def load_objective(name: str | None) -> None:
    """Import the user's own objective that --objective names, so that shards that name it can be read."""
    if name is not None:
        find_objective(name)


def add_objective(parser: argparse._ActionsContainer) -> None:
    """Add --objective, which names the training objective of the examples.

    Users need this flag only for an objective that they wrote themselves. A shard names its objective, but
    reading a file must never import the module that the file names.
    """
    parser.add_argument("--objective", metavar="NAME", help=OBJECTIVE_HELP)
