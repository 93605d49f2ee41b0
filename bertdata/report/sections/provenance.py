"""Section of the report about the steps from the source of the text to a dataset, as the manifests describe
them.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.findings import ChainLink
from bertdata.dataset.provenance import PARTS_COPY
from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.blocks import PageContent, PathStep, Prose, StepsBlock
from bertdata.report.page.page import ReportSection
from bertdata.report.sections.comparison import place_side_by_side
from bertdata.text.manifest import parse_text_manifest

_NAMES = {
    "dump": ("file", "size", "md5", "date"),
    "articles": ("extractor", "files"),
    "text": ("recipe", "sentences", "files"),
    "dataset": ("recipe", "shards"),
}
"""Names of the values of a step, by the name of the step. The values are separated by commas in its
description.
"""


def make_provenance_section(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """Return the section, which shows the steps from the source to each dataset."""
    return ReportSection(
        "Provenance", place_side_by_side(datasets, lambda numbers: list(_make_blocks(numbers)))
    )


def _make_blocks(numbers: DatasetNumbers) -> Iterator[PageContent]:
    """Yield the steps, the result of verification, and the manifest's warnings."""
    links = () if numbers.verification is None else numbers.verification.links
    steps = tuple(_make_step(link) for link in reversed(links))
    if not steps:
        told = "none: its steps are not known" if numbers.dataset.manifest is None else "not followed"
        steps = (PathStep(numbers.name, (("manifest", told),)),)
    yield StepsBlock(f"Steps from the source to {numbers.name}", steps)
    if numbers.verification is None:
        yield Prose(f"The files were not verified: {numbers.not_verified}.")
    else:
        right, faults = numbers.verification.count("right"), len(numbers.verification.faults)
        told = f"{right:,} {'file is' if right == 1 else 'files are'} right, {faults or 'no'} faults"
        yield Prose(f"Verified: {told.removesuffix('s') if faults == 1 else told}.")
    if numbers.dataset.manifest is not None:
        yield Prose(*numbers.dataset.manifest.warnings)
        yield Prose(
            *(f"Left out: {entry.name}: {entry.reason}" for entry in numbers.dataset.manifest.skipped)
        )
        yield Prose(*describe_text_counts(numbers.dataset))


def describe_text_counts(dataset: FoundDataset) -> Iterator[str]:
    """Yield lines about the whole text, which come from the dataset's copy of the parts' manifest.

    If the copy is damaged, there are no lines. The verification reports the damage.
    """
    path = storage.join(dataset.path, PARTS_COPY)
    try:
        counts = parse_text_manifest(storage.read_bytes(path), path).counts
    except (MissingInputError, ManifestError):
        return
    if counts.withheld_in_training is not None:
        yield f"withheld texts in training: {counts.withheld_in_training}"
    if counts.unprotected is not None:
        yield f"texts of the sets to exclude that were too short to look for: {counts.unprotected}"


def _make_step(link: ChainLink) -> PathStep:
    """Return the box for a step. The values in its description get the names in ``_NAMES``."""
    if not link.step:
        return PathStep("source", (("not followed further", link.description),))
    kind, *values = link.description.split(", ")
    if kind not in _NAMES:  # the description of a dump starts with a file name instead
        kind, values = link.step, [kind, *values]
    names = _NAMES.get(kind, ())
    told = [
        (name, value.removeprefix(f"{name} ").removesuffix(f" {name}"))
        for name, value in zip_longest(names[: len(values)], values, fillvalue="also")
    ]
    if link.manifest_md5 is not None:
        told.append(("manifest md5", link.manifest_md5))
    return PathStep(link.step, tuple(told))
