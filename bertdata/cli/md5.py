"""``bertdata md5``: print the md5 of files or of the examples in them."""

import argparse

from bertdata.cli.common.objective_flag import add_objective, load_objective
from bertdata.cli.common.parser import Parser, add_engine
from bertdata.errors import BertDataError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.manifest_file import format_md5sum_line
from bertdata.io.patterns import expand_patterns
from bertdata.io.terminal import say_error, say_text
from bertdata.shards.content import compute_content_md5
from bertdata.shards.row_sums import compute_row_sum

EXAMPLE = """\
  bertdata md5 shards/*.tfrecord > MD5SUMS
  bertdata md5 --content mine.tfrecord theirs.tfrecord same.hdf5
  bertdata md5 --nvidia-mlperf part_00000_of_04320.hdf5"""

SUMMARY = """\
Prints a line per file, in md5sum's format. With --content, prints the md5 of the examples in a canonical
TFRecord form: files with equal examples get the same md5, whatever tool and file format they come from."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata md5``."""
    parser = Parser("bertdata md5", EXAMPLE, SUMMARY)
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, patterns or URLs")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--content", action="store_true", help="md5 of the examples, not of the file's bytes")
    kind.add_argument(
        "--nvidia-mlperf",
        action="store_true",
        help="md5 of the input ids, as NVIDIA publishes it for MLPerf shards with rows of varying length",
    )
    add_engine(parser)
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Print a line per file. Return the highest exit status among the files."""
    import sys

    args = make_parser().parse_args(arguments)
    load_objective(args.objective)
    status = 0
    for path in [path for pattern in args.files for path in _expand_pattern(pattern)]:
        try:
            if storage.is_directory(path):
                raise MissingInputError(f"{path}: is a directory, expected a file")
            md5 = _compute_md5(path, args)
        except BertDataError as error:  # like md5sum, report the file and continue with the others
            say_error(f"bertdata: error: {error}")
            status = max(status, error.exit_status)
            continue
        line = format_md5sum_line(md5, path)
        if sys.stdout.isatty():
            say_text(line)
        else:  # prints the name without escapes, because md5sum -c must find the file
            sys.stdout.write(line)
            sys.stdout.flush()
    return status


def _compute_md5(path: str, args: argparse.Namespace) -> str:
    """Return the md5 of a file. With --content or --nvidia-mlperf it is the md5 of the examples."""
    if args.content:
        return compute_content_md5(path, args.engine, args.objective)
    return compute_row_sum(path) if args.nvidia_mlperf else compute_file_md5(path)


def _expand_pattern(pattern: str) -> list[str]:
    """Return the files that a pattern matches.

    If it matches no file, return the pattern itself, which is later reported as a missing file.
    """
    try:
        return expand_patterns([pattern])
    except MissingInputError:
        return [pattern]
