"""The step that writes an HTML page about one or several datasets."""

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.outputs import PAGE, check_output
from bertdata.report.dataset_page import dataset_page
from bertdata.report.numbers import DatasetNumbers, collect_numbers
from bertdata.report.page.page import check_report, write_page
from bertdata.steps.progress import OnProgress, StepProgress, add_warnings_first, ignore_progress
from bertdata.steps.values import AnyPath, AnyPaths, optional_path, path_of, paths_of, whole_number

STAGE = "reading"
SAMPLE = 20_000


def write_report(
    paths: AnyPaths,
    output: AnyPath,
    *,
    vocab: AnyPath | None = None,
    objective: str | None = None,
    sample: int | None = None,
    verify: bool = True,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> list[str]:
    """Write the page of ``bertdata report`` on the datasets. Returns the faults of their files, a line each.

    paths: directories, each with one dataset or several (phase1, phase2), or single shards.
    output: file to write, with the ending .html.
    vocab: vocabulary of shards that another tool wrote.
    objective: name of a user-defined objective that the examples have.
    sample: number of examples in which masks, pairs, words and tokens are counted. None: 20,000.
    verify: check all files against their manifests.
    overwrite: replace an existing file that is not an HTML page.
    progress: function called with a StepProgress.
    """
    target, given = path_of(output), optional_path(vocab)
    check_report(target, "bertdata report")
    check_output(target, [*paths_of(paths), given], PAGE, overwrite=overwrite)
    most = SAMPLE if sample is None else whole_number("sample", sample)
    if objective is not None:
        find_objective(objective)
    found = [
        dataset
        for path in paths_of(paths)
        for dataset in find_datasets(path, damaged=True, objective=objective)
    ]
    notes = tuple(note for dataset in found for note in dataset.notes)
    tell = add_warnings_first(notes, progress or ignore_progress)
    tell(StepProgress(stage=STAGE, done=0, total=len(found), unit="datasets"))
    numbers: list[DatasetNumbers] = []
    for dataset, name in zip(found, _shorten_names(found), strict=True):
        numbers.append(collect_numbers(dataset, name, most, vocab=given, with_verification=verify))
        tell(StepProgress(stage=STAGE, done=len(numbers), total=len(found), unit="datasets"))
    page = dataset_page(numbers)
    write_page(target, page)
    return list(page.faults)


def _shorten_names(datasets: list[FoundDataset]) -> list[str]:
    """Return short names for the datasets: the last component of each path, or whole paths to tell them
    apart.
    """
    short = [storage.get_base_name(dataset.path.rstrip("/")) or dataset.path for dataset in datasets]
    if len(set(short)) == len(short):
        return short
    return [dataset.path for dataset in datasets]
