"""Flags of packed rows, of ``bertdata pack`` and of the pipeline that does the same."""

import argparse
from typing import Any

from bertdata.cli.common.example_flags import add_objective
from bertdata.cli.common.parser import integer, positive
from bertdata.shards.packed.layouts import LAYOUTS

NAMES = ("layout", "format", "max_sequences_per_pack", "method", "num_shards", "seed")


def add_pack_settings(parser: argparse._ActionsContainer) -> None:
    """Flags for layout, container, plan, shards and order, and for the source."""
    layouts = ", ".join(LAYOUTS)
    parser.add_argument("--layout", metavar="NAME", help=f"whose rows: {layouts} (default: flat, our own)")
    parser.add_argument("--format", metavar="NAME", help="container, where the layout has several")
    parser.add_argument(
        "--max-sequences-per-pack", type=positive, metavar="N", help="examples in a row at most (default: 3)"
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="lp (default): linear program; lpfhp: longest pack first; nnls: non-negative least squares, as "
        "Habana's and Graphcore's programs",
    )
    parser.add_argument(
        "--num-shards",
        type=positive,
        metavar="N",
        help="shards to make (default: as many as DIR has; habana 4480 rows each, graphcore 500000)",
    )
    parser.add_argument(
        "--seed", type=integer, metavar="N", help="seed of the order of examples and rows (default: 12345)"
    )
    parser.add_argument(
        "--unverified", action="store_true", help="take files of any tool without a manifest; needs --vocab"
    )
    parser.add_argument(
        "--vocab", metavar="FILE|NAME", help="the vocabulary that the examples were made with"
    )
    add_objective(parser)


def given_pack_settings(flags: argparse.Namespace) -> dict[str, Any]:
    """The settings of the rows, None where a flag was not given."""
    return {name: getattr(flags, name) for name in NAMES}
