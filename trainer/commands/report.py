"""The command line of ``python -m trainer report``."""

from bertdata.cli.common.parser import Parser, add_overwrite
from bertdata.io import storage
from bertdata.io.outputs import PAGE, check_output
from bertdata.io.terminal import say
from bertdata.report.page.page import check_report, write_page
from trainer.logs.recorded_run import read_runs
from trainer.report.sections import make_page

PROG = "python -m trainer report"
_EXAMPLE = f"""\
  {PROG} run
  {PROG} run-a run-b --output both.html"""
_SUMMARY = """\
Makes one page of HTML of a run, or of several over each other: loss and accuracy beside what a guess that
reads nothing reaches, evaluations, learning rate, speed, data, settings. The page needs no network. RUN is
the --output-dir of a run, trained or still training, or a log of another program: dllogger.json of NVIDIA's,
or trainer_state.json of Hugging Face's Trainer."""


def run(arguments: list[str]) -> None:
    """Write the page."""
    parser = Parser(PROG, _EXAMPLE, _SUMMARY)
    parser.add_argument("runs", metavar="RUN", nargs="+", help="directory of a run, or a log")
    default = "default: report.html in RUN; of several runs, here"
    parser.add_argument("--output", metavar="FILE.html", help=f"the page ({default})")
    add_overwrite(parser)
    given = parser.parse_args(arguments)
    output = given.output or _usual_output(given.runs)
    check_report(output, PROG)
    # A page of a run may lie within the run, where it lies by default: only files of the run's own are there.
    logs = [run for run in given.runs if given.output is None or not storage.is_directory(run)]
    check_output(output, logs if given.output else [], PAGE, overwrite=given.overwrite)
    write_page(output, make_page(read_runs(given.runs)))
    say(f"wrote {output}")


def _usual_output(runs: list[str]) -> str:
    """The page's name where none is given."""
    if len(runs) == 1 and storage.is_directory(runs[0]):
        return storage.join(runs[0], "report.html")
    return "report.html"
