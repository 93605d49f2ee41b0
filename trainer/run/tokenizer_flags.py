"""Command-line flags for the tokeniser of a checkpoint."""

from bertdata.cli.common.parser import Parser


def add_tokenizer(parser: Parser) -> None:
    """Add the flags for the vocabulary, for training data that may have it, and for its casing."""
    parser.add_argument(
        "--vocab",
        metavar="FILE|NAME",
        help="vocabulary of the tokeniser, or a tokenizer.json or a directory with one (default: the data's)",
    )
    parser.add_argument("--train-data", metavar="DIR", help="the run's training data, where it has moved")
    casing = parser.add_mutually_exclusive_group()
    casing.add_argument(
        "--lower-case",
        dest="lower_case",
        action="store_true",
        default=None,
        help="the tokeniser lower-cases text (default: as the data's, or as the vocabulary is)",
    )
    casing.add_argument(
        "--no-lower-case",
        dest="lower_case",
        action="store_false",
        help="the tokeniser keeps case and accents",
    )
