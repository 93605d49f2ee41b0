"""``bertdata rebuild``: make a dataset, a run or a model again from its sources, and compare every md5."""

from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say
from bertdata.steps.rebuild import RebuildResult, make_plan, run_plan

EXAMPLE = """\
  bertdata rebuild shards --from enwiki-20200101-pages-articles.xml.bz2 --output again
  bertdata rebuild bert-tiny --from dump.xml.bz2 corpus --output again
  bertdata rebuild run --from corpus --output again --dry-run"""

SUMMARY = """\
Makes a dataset, parts, articles, a vocabulary, a run, a checkpoint or an exported model again, from the dump
or the text files with which its lineage begins, and compares the md5 of every file with the record. The first
step that differs is named, and nothing after it is made. So anybody who has the dump can check a published
model.
The sources are recognised by their md5s, whatever they are called now. A vocabulary without a record of its
training is taken from the sources, or from the copy that PATH keeps.
Training is made again with the recorded settings, number of workers and, on a processor, number of threads.
The weights are equal to the last bit only on the same kind of device, and with the same version of torch.
After a crash, run the same command again: finished steps are kept.
Exit status: 0 every md5 is equal, 1 a step differs or the lineage has faults, 2 wrong usage."""

MOST_DIFFERENCES = 10


def make_parser() -> Parser:
    """Return the parser of ``bertdata rebuild``."""
    parser = Parser("bertdata rebuild", EXAMPLE, SUMMARY)
    parser.add_argument("path", metavar="PATH", help="what to make again: a directory or file, or its URL")
    parser.add_argument(
        "--from",
        dest="sources",
        required=True,
        nargs="+",
        action="extend",
        metavar="SOURCE",
        help="the dump, text files, or directories and patterns that contain them; may be repeated",
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="directory for everything that is made again"
    )
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="PACKAGE.MODULE:NAME",
        help="code of your own, such as an objective, that the record names and that may be imported; may be "
        "repeated",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the commands, as a shell takes them, and make nothing"
    )
    return parser


def run(arguments: list[str]) -> int:
    """Make the artefact again. Return 0 if every md5 is equal, otherwise 1."""
    args = make_parser().parse_args(arguments)
    plan = make_plan(args.path, args.sources, args.output, trust=args.trust)
    if args.dry_run:
        say(*(f"# {note}" for note in plan.notes), *plan.list_lines())
        return 0
    made = run_plan(plan, say)
    _print_result(args.path, made)
    return 0 if made.is_equal else 1


def _print_result(path: str, made: RebuildResult) -> None:
    """Print whether every step is as recorded, or what differs in the first step that is not."""
    number = len(made.steps)
    if made.is_equal:
        say(f"{path}: {number} {'step' if number == 1 else 'steps'} rebuilt, every md5 is equal")
        return
    for difference in made.differences[:MOST_DIFFERENCES]:
        say(str(difference))
    if len(made.differences) > MOST_DIFFERENCES:
        say(f"and {len(made.differences) - MOST_DIFFERENCES} more differences of this step")
    step = made.steps[-1]
    say(f"{path}: the first step that differs is step {number}, {step.program}; nothing after it was rebuilt")
