"""The command-line flags of the pipeline, parsed separately from the flags of Beam and its runner."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bertdata.cli.common.example_flags import add_create_flags
from bertdata.cli.common.extract_flags import add_extract_settings, read_extract_settings
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.cli.common.text_flags import add_part_settings, add_segment_settings
from bertdata.config.recipes import Recipe
from bertdata.errors import SettingsError
from bertdata.io.name_lists import split_names
from bertdata.sources.kinds import RECORD_KINDS
from bertdata.steps.create_plan import CreatePlan, plan_request
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.extract import find_single_dump
from bertdata.steps.record_source import (
    ARTICLE_SETTINGS,
    RECORD_SETTINGS,
    SHARED_SETTINGS,
    make_part_settings,
    reads_records,
)
from bertdata.steps.segment import apply_text_settings_file, make_segment_settings
from bertdata.steps.segment_request import CONFIG_HELP, SegmentRequest
from bertdata.text.part_settings import PartSettings
from bertdata.text.settings import NVIDIA_TEXT_RECIPES, TEXT_RECIPES, SegmentSettings
from bertdata.wiki.settings import ExtractSettings

PROGRAM = "beam_pipelines.prepare"

EXAMPLE = """\
  python -m beam_pipelines.prepare --input 'results/part-*' --output shards --vocab vocab.txt
  python -m beam_pipelines.prepare --input 'results/part-*' --output shards --vocab vocab.txt \\
      --recipe nvidia --direct_running_mode multi_processing --direct_num_workers 2
  python -m beam_pipelines.prepare --input gs://bucket/corpus --input-kind jsonl --text-field text \\
      --output gs://bucket/shards --vocab vocab.txt --runner DataflowRunner
  python -m beam_pipelines.prepare --input enwiki-20200101-pages-articles.xml.bz2 --input-kind dump \\
      --output shards --vocab vocab.txt --recipe habana"""

SUMMARY = """\
Create shards, manifest.json and MD5SUMS on any Beam runner, with the same bytes as bertdata create. The
input may also be a dump, extracted articles, plain text or files of records. Then the files of bertdata
extract and bertdata segment are written too. NVIDIA's test shards become a separate dataset, OUTPUT.test.
Flags that are not listed here are passed on to Beam and its runner (--runner, --direct_num_workers,
--dask_workers, ...; see docs/running.md).
With --shuffle global, the documents of the whole corpus are mixed. The result depends on --num-shards, but
not on the runner, the number of workers or the order of the inputs."""

INPUT_KINDS = """\
format of the input. parts (default): text with one sentence per line. articles: files that bertdata extract
writes, or directories of them. text: plain text, one document per file, or directories of files *.txt. dump:
a Wikipedia dump, which all workers extract together. All other formats are records, which may be compressed
(.gz .zst .bz2 .xz): jsonl, json, csv, tsv, parquet, arrow, or blocks (plain text with blank lines between
documents)"""

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")

DUMP_FLAGS = ("extractor", "date", "templates", "skip_page")
ARTICLE_FLAGS = ("text_recipe", "books")
TEXT_FLAGS = ("text", "punkt_tables")
_OF_ARTICLES = ("articles", "text", "dump")


def make_parser(arguments: Sequence[str] = ()) -> Parser:
    """Return the parser of this pipeline's flags."""
    parser = Parser(PROGRAM, EXAMPLE, SUMMARY, has_others=True)
    parser.add_argument(
        "--input",
        required=True,
        nargs="+",
        action="extend",
        metavar="GLOB",
        help="input files, patterns or URLs, separated by spaces or commas; may be repeated",
    )
    parser.add_argument(
        "--input-kind",
        choices=("dump", "articles", "text", "parts", *RECORD_KINDS),
        default="parts",
        help=INPUT_KINDS,
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory or URL of the dataset")
    add_create_flags(parser, arguments, config={"help": CONFIG_HELP.format("all tables")})
    _add_text_flags(parser)
    add_dry_run(parser)
    add_engine(parser)
    return parser


def _add_text_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how text parts (files with one sentence per line) are made from the input."""
    text = parser.add_argument_group(
        "text", "how to make parts from articles, plain text or records; for every --input-kind except parts"
    )
    text.add_argument(
        "--text",
        metavar="DIR",
        help="directory for the parts, eval.txt and eval.md5, and for a dump's articles (in extracted/); "
        "default: OUTPUT.text",
    )
    text.add_argument(
        "--text-recipe",
        choices=TEXT_RECIPES,
        help="recipe for making parts (default: nvidia if the recipe is nvidia or habana, else mlperf)",
    )
    add_flags(text, SegmentRequest, "books")
    add_segment_settings(text, skip=("recipe",))
    add_flags(text, SegmentRequest, "punkt_tables")
    add_part_settings(parser.add_argument_group("records", "only for files of records"))
    dump = parser.add_argument_group(
        "extraction", "how to extract articles from a dump; for --input-kind dump"
    )
    add_extract_settings(
        dump, extractor_default="default: mlperf if the recipe is mlperf, nvidia or habana, else 3.1.0"
    )


def parse_flags(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the command line and check that its flags go together.

    Returns this pipeline's flags, and the arguments that are left for Beam.
    """
    flags, beam_arguments = make_parser(arguments).parse_known_args(arguments)
    flags.dry_run, beam_arguments = _split_off_dry_run(flags.dry_run, beam_arguments)
    flags.input = [pattern for patterns in flags.input for pattern in split_names(patterns, ",") if pattern]
    _refuse_flags_of_other_kinds(flags)
    if flags.skip_bad_inputs and flags.input_kind != "parts":
        raise SettingsError(
            f"--skip-bad-inputs goes with --input-kind parts, not with {flags.input_kind}: skipping a file "
            "would move every other article to another place; repair the file"
        )
    if flags.input_kind != "parts":
        flags.text = flags.text or f"{flags.output.rstrip('/')}.text"
    if flags.input_kind == "dump":
        _check_dump(flags)
    flags.text_request = create_text_request(flags)
    return flags, beam_arguments


def create_request(flags: argparse.Namespace) -> CreateRequest:
    """Return the request for shards that ``bertdata create`` would make from the flags.

    Its input files are the text parts.
    """
    return make_request(CreateRequest, flags, parts=flags.input, input_kind=None)


def create_text_request(flags: argparse.Namespace) -> SegmentRequest:
    """Return the request for text parts that ``bertdata segment`` would make from the flags."""
    own = {"sources": flags.input, "output": flags.text or "", "recipe": flags.text_recipe}
    return make_request(SegmentRequest, flags, **own)


def _split_off_dry_run(given: bool, arguments: list[str]) -> tuple[bool, list[str]]:
    """Return True if the command asks for a dry run, and return the arguments without the flag for it.

    Besides ``--dry-run``, the spelling ``--dry_run`` of Beam's flags is accepted, with or without a value.

    given: True if ``--dry-run`` has already been found.
    """
    others: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        name, _, value = word.partition("=")
        if name != "--dry_run":
            others.append(word)
            continue
        if not value:
            value = next(waiting, "true")
        if value.startswith("-"):
            others.append(value)
            value = "true"
        if value.lower() not in _TRUE + _FALSE:
            raise SettingsError(f"--dry_run {value}: expected true or false")
        given = given or value.lower() in _TRUE
    return given, others


def _refuse_flags_of_other_kinds(flags: argparse.Namespace) -> None:
    """Raise SettingsError for a flag that has no effect with the input kind that the user chose.

    For example, ``--templates`` has an effect only with ``--input-kind dump``.
    """
    given = {name for name in (*ARTICLE_FLAGS, *TEXT_FLAGS) if getattr(flags, name)}
    given |= {name for name in DUMP_FLAGS if getattr(flags, name) is not None}
    # "recipe" comes from --text-recipe, which is already in the set.
    given |= create_text_request(flags).settings.keys() - {"recipe"}
    of_kinds = {
        DUMP_FLAGS: ("dump",),
        (*ARTICLE_FLAGS, *ARTICLE_SETTINGS): _OF_ARTICLES,
        (*TEXT_FLAGS, *SHARED_SETTINGS): (*_OF_ARTICLES, *RECORD_KINDS),
        RECORD_SETTINGS: (*RECORD_KINDS, "text", "articles"),
        ("escaped_articles",): ("articles",),
    }
    for names, kinds in of_kinds.items():
        wrong = [name for name in names if name in given]
        if wrong and flags.input_kind not in kinds:
            raise SettingsError(
                f"--{wrong[0].replace('_', '-')} goes with --input-kind {' or '.join(kinds)}, "
                f"not with {flags.input_kind}"
            )


def _check_dump(flags: argparse.Namespace) -> None:
    """Check that exactly one dump is given, and remove ``file://`` from the paths in ``flags``.

    Raises SettingsError for several dumps.
    """
    flags.text = flags.text.removeprefix("file://")
    flags.input = [
        find_single_dump([path.removeprefix("file://") for path in flags.input], "--input-kind dump")
    ]


@contextmanager
def plan_from_flags(flags: argparse.Namespace) -> Iterator[CreatePlan]:
    """Return a context manager that gives the plan of the shards, made from the flags and the settings file.

    The settings file also fills in ``flags.text_request``. If the body of the ``with`` statement raises a
    SettingsError about a setting that the file contains, the error gets the line number in the file.
    """
    with plan_request(create_request(flags)) as plan, apply_text_settings_file(flags.text_request) as text:
        if flags.input_kind == "dump" and text.escaped_articles is not None:
            raise SettingsError("escaped_articles goes with --input-kind articles, not with dump")
        flags.text_request = text
        yield plan


def make_record_settings(flags: argparse.Namespace) -> PartSettings | None:
    """Return the settings for making text parts from files of records, such as JSON lines.

    Returns None if the input is not made of records.
    """
    if flags.input_kind == "parts":
        return None
    given = flags.text_request.settings
    if flags.text_recipe is not None:
        # This key comes from --text-recipe, which is refused with a message of its own below.
        del given["recipe"]
    if flags.input_kind == "dump":
        if own := [name for name in RECORD_SETTINGS if name in given]:
            flag = own[0].replace("_", "-")
            raise SettingsError(f"--{flag} goes with files of records, not with a dump")
        return None
    if not reads_records(flags.input, flags.input_kind, given, flags.text_request.books or ()):
        return None
    if flags.text_recipe is not None:
        raise SettingsError(
            "--text-recipe goes with articles and books; parts of records have --part-size, --sentences"
        )
    return make_part_settings(given)


def make_text_settings(flags: argparse.Namespace, recipe: Recipe | None) -> SegmentSettings:
    """Return the settings for making text parts from articles or plain text.

    recipe: the recipe of the shards, that is, the published settings to reproduce. It selects the recipe for
        the text if the command has no --text-recipe. None if the command names no recipe.
    """
    name = "nvidia" if recipe and recipe.name in NVIDIA_TEXT_RECIPES else "mlperf"
    return make_segment_settings({"recipe": name, **flags.text_request.settings})


def make_extract_settings(flags: argparse.Namespace, recipe: Recipe | None) -> ExtractSettings:
    """Return the settings for extracting articles from a dump.

    recipe: the recipe of the shards, that is, the published settings to reproduce. It selects the extractor
        if the command names none. None if the command names no recipe.
    """
    return read_extract_settings(flags, extractor=recipe.extractor if recipe else "3.1.0")
