"""The step that writes an HTML page about one or several datasets."""

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.outputs import PAGE, check_output
from bertdata.reports.dataset_page import make_dataset_page
from bertdata.reports.numbers import DatasetNumbers, collect_numbers
from bertdata.reports.page.page import check_report, write_page
from bertdata.steps.progress import GivenProgress, StepProgress, add_warnings_first, choose_progress
from bertdata.steps.values import (
    AnyPath,
    AnyPaths,
    check_positive_integer,
    convert_optional_path,
    convert_path,
    list_paths,
)

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
    progress: GivenProgress = None,
) -> list[str]:
    """Write an HTML page about datasets, as ``bertdata report`` does.

    Returns a list with a line for each fault that was found in the datasets' files.

    paths: directories, each with one dataset or several (phase1, phase2), or single shards.
    output: file to write, with the ending .html.
    vocab: vocabulary of shards that another tool wrote.
    objective: name of a user-defined objective that the examples have.
    sample: number of examples in which masks, pairs, words and tokens are counted. None: 20,000.
    verify: check all files against their manifests.
    overwrite: replace an existing file that is not an HTML page.
    progress: function called with a StepProgress.
    """
    target, given = convert_path(output), convert_optional_path(vocab)
    check_report(target, "bertdata report")
    check_output(target, [*list_paths(paths), given], PAGE, overwrite=overwrite)
    most = SAMPLE if sample is None else check_positive_integer("sample", sample)
    if objective is not None:
        find_objective(objective)
    found = [
        dataset
        for path in list_paths(paths)
        for dataset in find_datasets(path, damaged=True, objective=objective)
    ]
    notes = tuple(note for dataset in found for note in dataset.notes)
    on_progress = add_warnings_first(notes, choose_progress(progress))
    on_progress(StepProgress(stage=STAGE, done=0, total=len(found), unit="datasets"))
    numbers: list[DatasetNumbers] = []
    for dataset, name in zip(found, _shorten_names(found), strict=True):
        numbers.append(collect_numbers(dataset, name, most, vocab=given, with_verification=verify))
        on_progress(StepProgress(stage=STAGE, done=len(numbers), total=len(found), unit="datasets"))
    page = make_dataset_page(numbers)
    write_page(target, page)
    return list(page.faults)


def _shorten_names(datasets: list[FoundDataset]) -> list[str]:
    """Return a short name for each dataset: the last component of its path.

    If two datasets have the same last component, the names are the whole paths.
    """
    short = [storage.get_base_name(dataset.path.rstrip("/")) or dataset.path for dataset in datasets]
    if len(set(short)) == len(short):
        return short
    return [dataset.path for dataset in datasets]


report = write_report
"""The same step under the name of its command."""
