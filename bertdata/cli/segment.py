"""``bertdata segment``: split articles, plain text or records into parts with one sentence per line."""

from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_workers
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.cli.common.text_flags import LANGUAGE_SETTINGS, add_part_settings, add_segment_settings
from bertdata.config.held_out_names import REMOVED
from bertdata.io import storage
from bertdata.io.freed_memory import keep_less_freed_memory
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.terminal import NOTHING_WRITTEN, say
from bertdata.sources.kinds import BLOCKS
from bertdata.steps.record_source import reads_records
from bertdata.steps.segment import apply_text_settings_file, make_segment_settings, make_text, preview_text
from bertdata.steps.segment_request import SegmentRequest
from bertdata.steps.values import convert_path, list_paths
from bertdata.text.languages import ENGLISH, list_language_notes
from bertdata.text.manifest import parse_text_manifest
from bertdata.text.settings import LEFT_OUT_COUNTS, SegmentCounts, SegmentSettings

EXAMPLE = """\
  bertdata segment notes.txt --output parts
  bertdata segment corpus/*.jsonl.zst --output parts --text-field text
  bertdata segment gs://bucket/corpus --input-kind parquet --output parts --sentences none
  bertdata segment corpus --output parts --exclude squad/dev-v1.1.json --dedup exact --eval-share 1%
  bertdata segment extracted --output results
  bertdata segment extracted-dewiki --output results --language de --punkt 3.10.4
  bertdata segment extracted --output shards --recipe nvidia --training-shards 256 --test-shards 256
  bertdata segment extracted --books books --output shards --recipe nvidia --prefix books_wiki_en_corpus
  bertdata segment books --input-kind text --output results --eval-articles 100"""

SUMMARY = """\
Turns text into parts: text files with one sentence per line and a blank line between documents, which
bertdata create reads. Then writes manifest.json and MD5SUMS. The output is the same for any number of
workers. After a crash, run the same command again: it makes only what is missing.

Records are JSONL, JSON, CSV, TSV, Parquet, Arrow, or plain text with blank lines between documents, also
compressed. Each record is a document. The parts are named part-00000.txt ... and are cut by size, so that
the same text gives the same parts, whatever files it comes from. Documents can be left out (--exclude,
--dedup) or held out for evaluation (--eval-share); removed.jsonl lists them.

Wikipedia articles (files AA/wiki_00 ... of bertdata extract) and books are cut like the original program's
parts: mlperf makes part-00000-of-00500 ..., eval.txt and eval.md5; nvidia makes
PREFIX_training_N.txt and PREFIX_test_N.txt. With any flag of records, articles and books are read as
records too."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata segment``."""
    parser = Parser("bertdata segment", EXAMPLE, SUMMARY)
    parser.add_argument(
        "sources", nargs="+", metavar="FILE|DIR", help="files, patterns, directories or their URLs"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the parts, or its URL")
    add_flags(parser, SegmentRequest, "input_kind", "config")
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    language = parser.add_argument_group("language and sentences, for any input")
    add_segment_settings(language, only=LANGUAGE_SETTINGS)
    add_flags(language, SegmentRequest, "punkt_tables")
    records = parser.add_argument_group(
        "records",
        "for plain text with blank lines between documents, JSONL, JSON, CSV, TSV, Parquet and Arrow",
    )
    add_part_settings(records)
    articles = parser.add_argument_group(
        "Wikipedia articles and books", "for the output of bertdata extract, and for --input-kind text"
    )
    add_segment_settings(articles, skip=(*LANGUAGE_SETTINGS, "escaped_articles"))
    add_flags(articles, SegmentRequest, "books")
    add_segment_settings(articles, only=("escaped_articles",))
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata segment`` and return the exit status."""
    args = make_parser().parse_args(arguments)
    keep_less_freed_memory()
    with apply_text_settings_file(make_request(SegmentRequest, args)) as request:
        return _run(request, dry_run=args.dry_run)


def _run(request: SegmentRequest, *, dry_run: bool) -> int:
    """Write the parts, or with ``dry_run`` only print which parts would be written.

    request: the settings. Values from the --config file are already filled in.
    """
    say(*list_language_notes(request.language or ENGLISH))
    if dry_run:
        say(*preview_text(request), NOTHING_WRITTEN)
        return 0
    with StepProgressDisplay() as progress:
        counts = make_text(request, progress)
    output, books = convert_path(request.output), list_paths(request.books or ())
    if reads_records(list_paths(request.sources), request.input_kind, request.settings, books):
        say(summarise_records(output, counts))
    else:
        say(summarise_articles(output, make_segment_settings(request.settings), counts))
    return 0


def summarise_articles(directory: str, settings: SegmentSettings, counts: SegmentCounts) -> str:
    """Return a line of text that says how many articles were read, written and left out."""
    left_out = f"{counts.empty} without text and {counts.lines_outside} lines outside articles left out"
    kept = f"{counts.withheld} withheld for evaluation" if settings.recipe == "mlperf" else left_out
    return (
        f"{directory}: {counts.files} files{_describe_unescaped_files(counts)}, "
        f"{counts.articles} articles, {kept}, {counts.sentences} sentences, {counts.bytes_in} bytes in, "
        f"{counts.bytes_out} out{describe_run_counts(counts)}"
    )


def summarise_records(directory: str, counts: SegmentCounts) -> str:
    """Return a line of text that says how many records were read and written, and why the others were left
    out.

    It also says how many files were read as plain text, and how many files contain no record.
    """
    left_out = {reason: getattr(counts, reason) for reason in LEFT_OUT_COUNTS if reason != "withheld"}
    told = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in left_out.items() if number)
    listed = f"; {storage.join(directory, REMOVED)} lists what was left out" if told else ""
    held_out = f"{counts.withheld} of them held out, " if counts.withheld else ""
    return (
        f"{directory}: {counts.files} files{_describe_plain_text_files(directory)}"
        f"{_describe_unescaped_files(counts)}, {counts.articles} documents, {held_out}"
        f"{told or 'no record'} left out, {counts.sentences} lines, {counts.bytes_in} bytes in, "
        f"{counts.bytes_out} out{describe_run_counts(counts)}{listed}"
    )


def describe_run_counts(counts: SegmentCounts) -> str:
    """Return the end of a summary line: those counts that are known only for the whole run, not for single
    files.
    """
    told = ""
    if counts.withheld_in_training is not None:
        told += f", withheld texts in training: {counts.withheld_in_training}"
    if counts.unprotected:
        told += f", texts too short to exclude: {counts.unprotected}"
    return told


def _describe_unescaped_files(counts: SegmentCounts) -> str:
    """Return a text that says in how many files ``&amp;`` and similar escapes were replaced with the
    characters.

    It is empty if there are no such files.
    """
    return f" (escapes such as &amp; taken back in {counts.unescaped})" if counts.unescaped else ""


def _describe_plain_text_files(directory: str) -> str:
    """Return a text that says how many files were read as plain text, and how many files contain no record.

    The numbers come from the manifest that was just written to the directory.
    """
    path = storage.join(directory, MANIFEST_NAME)
    inputs = parse_text_manifest(storage.read_bytes(path), path).inputs
    plain = sum(one.kind == BLOCKS for one in inputs)
    empty = sum(
        not any((one.articles, *(getattr(one, reason) for reason in LEFT_OUT_COUNTS))) for one in inputs
    )
    told = [f"{plain} of plain text with blank lines between documents"] if plain else []
    told += [f"{empty} empty"] if empty else []
    return f" ({', '.join(told)})" if told else ""
