"""Command-line flags that name the tokeniser of a checkpoint."""

from bertdata.cli.common.parser import Parser


def add_tokenizer_flags(parser: Parser) -> None:
    """Add the flags for a vocabulary, for training data that contain the vocabulary, and for lower case."""
    parser.add_argument(
        "--vocab",
        metavar="FILE|NAME",
        help="vocabulary: its file, the name of a published one, or a directory that contains it; or a "
        "tokenizer.json (default: the copy stored with the run or its data)",
    )
    parser.add_argument(
        "--train-data",
        metavar="DIRECTORY",
        help="new place of the run's training data, if the data have moved",
    )
    casing = parser.add_mutually_exclusive_group()
    casing.add_argument(
        "--lower-case",
        dest="lower_case",
        action="store_true",
        default=None,
        help="lower-case the text and strip accents (default: as for the data; else yes unless the "
        "vocabulary has capitals)",
    )
    casing.add_argument(
        "--no-lower-case",
        dest="lower_case",
        action="store_false",
        help="keep case and accents",
    )
