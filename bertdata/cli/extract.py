"""``bertdata extract``: a Wikipedia dump to extracted articles."""

from types import TracebackType

from bertdata.build.dry_run import NOTHING_WRITTEN
from bertdata.cli.common.parser import Parser, add_dry_run, add_workers
from bertdata.cli.common.progress import Progress
from bertdata.cli.common.text_flags import add_extract_settings, given_extract_settings
from bertdata.io.process_pool import available_cores
from bertdata.wiki.extract import extract, preview_extraction

EXAMPLE = """\
  bertdata extract enwiki-20200101-pages-articles.xml.bz2 --output extracted
  bertdata extract dump.xml --output extracted --date 2020-01-01 --no-templates"""

SUMMARY = """\
Writes the articles of a Wikipedia dump (.xml, .xml.bz2, multistream too) into DIR/AA/wiki_00 and so on:
the bytes of wikiextractor's own command run on the date given, for any number of workers; then
manifest.json and MD5SUMS. Every page is counted as written or as skipped for a named reason. Run again
after a crash, it goes on where it was."""

STAGES = {"templates": "collecting templates", "articles": "extracting articles"}


def make_parser() -> Parser:
    parser = Parser("bertdata extract", EXAMPLE, SUMMARY)
    parser.add_argument("dump", metavar="DUMP", help="the dump, or its URL")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="local directory of the extracted articles"
    )
    add_extract_settings(parser)
    add_dry_run(parser)
    add_workers(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    settings = given_extract_settings(args)
    if args.dry_run:
        print("\n".join([*preview_extraction(args.dump, args.output, settings), NOTHING_WRITTEN]))
        return 0
    with StageProgress() as progress:
        report = extract(
            args.dump, args.output, settings, workers=args.workers or available_cores(), progress=progress
        )
    print("\n".join(report.lines()))
    return 0


class StageProgress:
    """Progress through the dump, once for each stage; a plain line for each tenth of it."""

    def __init__(self) -> None:
        self._stage = ""
        self._done = 0
        self._shown: Progress | None = None

    def __enter__(self) -> "StageProgress":
        return self

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._shown is None or stage != self._stage:
            self._end_stage()
            self._stage, self._done = stage, 0
            self._shown = Progress(STAGES[stage], total, unit="bytes").__enter__()
        is_new_tenth = done * 10 // total > self._done * 10 // total
        line = f"{STAGES[stage]}: {done} of {total} bytes" if is_new_tenth else ""
        self._shown.advance(done - self._done, line)
        self._done = done

    def _end_stage(self) -> None:
        if self._shown is not None:
            self._shown.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_stage()
