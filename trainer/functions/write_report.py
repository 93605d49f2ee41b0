"""The function ``trainer.write_report``."""

from bertdata.steps.values import AnyPath, AnyPaths, convert_optional_path, list_paths
from trainer.commands.report import write_runs_page


def write_report(runs: AnyPaths, output: AnyPath | None = None, *, overwrite: bool = False) -> str:
    """Write an HTML page about runs, as ``python -m trainer report`` does, and return the page's path.

    runs: directories of runs, or other programs' logs.
    output: page to write. None: report.html in the run's directory, or for several runs in the current
        directory.
    overwrite: replace an existing file that is not an HTML page.
    """
    return write_runs_page(list_paths(runs), convert_optional_path(output), overwrite=overwrite)
