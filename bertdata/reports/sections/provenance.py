"""Section of the report about the steps from the source of the text to a dataset, as the manifests describe
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.findings import ChainLink
from bertdata.dataset.provenance import PARTS_COPY
from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import PageContent, PathStep, Prose, StepsBlock
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import place_side_by_side
from bertdata.reports.sections.lineage import make_lineage_blocks
from bertdata.text.manifest import TextManifest, parse_text_manifest

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
    paths = {numbers.name: _make_path(numbers) for numbers in datasets}
    return ReportSection(
        "Provenance",
        place_side_by_side(
            datasets,
            lambda numbers: list(_make_blocks(numbers, _mark_differences(numbers.name, paths))),
        ),
    )


def _make_path(numbers: DatasetNumbers) -> tuple[PathStep, ...]:
    """Return the steps from the source to a dataset."""
    links = () if numbers.verification is None else numbers.verification.links
    steps = tuple(_make_step(link) for link in reversed(links))
    if not steps:
        told = "none: its steps are not known" if numbers.dataset.manifest is None else "not followed"
        steps = (PathStep(numbers.name, (("manifest", told),)),)
    return steps


def _mark_differences(name: str, paths: Mapping[str, Sequence[PathStep]]) -> tuple[PathStep, ...]:
    """Return the steps of a dataset. Details that differ from those of another dataset's step are marked.

    name: name of the dataset.
    paths: the steps of every dataset, by its name.
    """
    found = []
    for step in paths[name]:
        others = [
            other
            for other_name, steps in paths.items()
            if other_name != name
            for other in steps
            if other.title == step.title
        ]
        marked = frozenset(
            detail
            for detail, value in step.details
            for other in others
            if dict(other.details).get(detail) != value
        )
        found.append(replace(step, marked=marked))
    return tuple(found)


def _make_blocks(numbers: DatasetNumbers, steps: tuple[PathStep, ...]) -> Iterator[PageContent]:
    """Yield the steps and the result of verification."""
    yield StepsBlock(f"Steps from the source to {numbers.name}", steps)
    yield from make_lineage_blocks(numbers.dataset.path, numbers.name)[1:]
    if numbers.verification is None:
        yield Prose(f"The files were not verified: {numbers.not_verified}.")
    else:
        right, faults = numbers.verification.count("right"), len(numbers.verification.faults)
        told = f"{right:,} {'file is' if right == 1 else 'files are'} right, {faults or 'no'} faults"
        yield Prose(f"Verified: {told.removesuffix('s') if faults == 1 else told}.")


def read_parts_manifest(dataset: FoundDataset) -> TextManifest | None:
    """Return the dataset's copy of the manifest of the parts that it was made from.

    Return None if it has no copy. The result is also None if the copy is damaged, because the verification
    reports the damage.
    """
    if dataset.manifest is None:
        return None
    path = storage.join(dataset.path, PARTS_COPY)
    try:
        return parse_text_manifest(storage.read_bytes(path), path)
    except (MissingInputError, ManifestError):
        return None


def describe_text_counts(dataset: FoundDataset) -> Iterator[str]:
    """Yield lines about the whole text, which come from the dataset's copy of the parts' manifest."""
    if (parts := read_parts_manifest(dataset)) is None:
        return
    if parts.withheld_in_training is not None:
        yield f"withheld texts in training: {parts.withheld_in_training:,}"
    if parts.unprotected is not None:
        yield f"texts of the sets to exclude that were too short to look for: {parts.unprotected:,}"


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
