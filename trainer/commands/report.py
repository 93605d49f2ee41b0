"""The command line of ``python -m trainer report``: an HTML page about runs."""

from bertdata.cli.common.parser import Parser, add_overwrite
from bertdata.io import storage
from bertdata.io.outputs import PAGE, check_output
from bertdata.io.terminal import say
from bertdata.reports.page.page import check_report, write_page
from trainer.logs.recorded_run import read_runs
from trainer.report.sections import make_page

PROG = "python -m trainer report"
_EXAMPLE = f"""\
  {PROG} run
  {PROG} run-a run-b --output both.html"""
_SUMMARY = """\
Makes an HTML page about a run, or about several runs in the same charts: loss and accuracy with the score of
guessing without reading the text, evaluations, learning rate, speed, data and settings. The page needs no
network. RUN is the --output-dir of a finished or current run, or another program's log: dllogger.json of
NVIDIA's programs or trainer_state.json of Hugging Face's Trainer."""


def run(arguments: list[str]) -> None:
    """Write an HTML page about the runs on the command line."""
    parser = Parser(PROG, _EXAMPLE, _SUMMARY)
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="directory of a run, or a log file, on this machine or at a URL",
    )
    default = "default: report.html in RUN, or for several runs in the current directory"
    parser.add_argument("--output", metavar="FILE.html", help=f"page to write ({default})")
    add_overwrite(parser)
    given = parser.parse_args(arguments)
    say(f"wrote {write_runs_page(given.runs, given.output, overwrite=given.overwrite)}")


def write_runs_page(runs: list[str], given: str | None, *, overwrite: bool) -> str:
    """Write an HTML page about runs. Return the page's path.

    runs: directories of runs, or other programs' logs.
    given: page to write. None: report.html in the directory of a single run, else in the current directory.
    overwrite: replace an existing file that is not an HTML page.
    """
    output = given or _choose_output(runs)
    check_report(output, PROG)
    # The check below raises an error if the output would replace an input. By default the page is written
    # into the run's directory, which is an input too. That is safe, because no log has the page's name. So
    # only inputs that are files are checked.
    logs = [run for run in runs if given is None or not storage.is_directory(run)]
    check_output(output, logs if given else [], PAGE, overwrite=overwrite)
    write_page(output, make_page(read_runs(runs)))
    return output


def _choose_output(runs: list[str]) -> str:
    """Return the page's default path: in the directory of a single run, else in the current directory."""
    if len(runs) == 1 and storage.is_directory(runs[0]):
        return storage.join(runs[0], "report.html")
    return "report.html"
