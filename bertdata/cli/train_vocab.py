"""``bertdata train-vocab``: a WordPiece vocabulary of one's own."""

from bertdata.cli.common.parser import Parser, positive
from bertdata.io import storage
from bertdata.io.terminal import say
from bertdata.tokens.train import train_vocabulary

EXAMPLE = "  bertdata train-vocab part-* --output vocab.txt --size 8000"

SUMMARY = """\
Trains a WordPiece vocabulary with the tokenizers library, which the extra vocab installs.
The five special tokens come first, [PAD] with id 0; the same text gives the same file."""


def make_parser() -> Parser:
    parser = Parser("bertdata train-vocab", EXAMPLE, SUMMARY)
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="text files or patterns")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="vocabulary to write, one token a line"
    )
    parser.add_argument(
        "--size", required=True, type=positive, metavar="N", help="most tokens in the vocabulary"
    )
    parser.add_argument(
        "--no-lower-case", dest="lower_case", action="store_false", help="keep case and accents of the text"
    )
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    texts = storage.expand(args.texts)
    with storage.open_output(args.output) as file:  # opened first: training takes long
        tokens = train_vocabulary(texts, size=args.size, lower_case=args.lower_case)
        file.write("".join(f"{token}\n" for token in tokens).encode())
    say(f"{args.output}: {len(tokens)} tokens")
    return 0
