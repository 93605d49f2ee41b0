"""The path from the source to a dataset, by the manifests that each step cites."""

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
from bertdata.report.sections.side import beside
from bertdata.text.manifest import parse_text_manifest

_NAMES = {
    "dump": ("file", "size", "md5", "date"),
    "articles": ("extractor", "files"),
    "text": ("recipe", "sentences", "files"),
    "dataset": ("recipe", "shards"),
}
"""The names of what the description of a link tells, in its order."""


def provenance(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """The steps of each dataset, the source first."""
    return ReportSection("Provenance", beside(datasets, lambda one: list(_blocks(one))))


def _blocks(one: DatasetNumbers) -> Iterator[PageContent]:
    links = () if one.verification is None else one.verification.links
    steps = tuple(_step(link) for link in reversed(links))
    if not steps:
        told = "none: its steps are not known" if one.dataset.manifest is None else "not followed"
        steps = (PathStep(one.name, (("manifest", told),)),)
    yield StepsBlock(f"Steps from the source to {one.name}", steps)
    if one.verification is None:
        yield Prose(f"The files were not verified: {one.not_verified}.")
    else:
        right, faults = one.verification.count("right"), len(one.verification.faults)
        told = f"{right:,} {'file is' if right == 1 else 'files are'} right, {faults or 'no'} faults"
        yield Prose(f"Verified: {told.removesuffix('s') if faults == 1 else told}.")
    if one.dataset.manifest is not None:
        yield Prose(*one.dataset.manifest.warnings)
        yield Prose(*(f"Left out: {entry.name}: {entry.reason}" for entry in one.dataset.manifest.skipped))
        yield Prose(*text_counts(one.dataset))


def text_counts(dataset: FoundDataset) -> Iterator[str]:
    """Yield what the parts' manifest counted of the whole text. Verification tells of a damaged copy."""
    path = storage.join(dataset.path, PARTS_COPY)
    try:
        counts = parse_text_manifest(storage.read_bytes(path), path).counts
    except (MissingInputError, ManifestError):
        return
    if counts.withheld_in_training is not None:
        yield f"withheld texts in training: {counts.withheld_in_training}"
    if counts.unprotected is not None:
        yield f"texts of the sets to exclude that were too short to look for: {counts.unprotected}"


def _step(link: ChainLink) -> PathStep:
    if not link.step:
        return PathStep("source", (("not followed further", link.description),))
    kind, *values = link.description.split(", ")
    if kind not in _NAMES:  # a dump's description begins with its name
        kind, values = link.step, [kind, *values]
    names = _NAMES.get(kind, ())
    told = [
        (name, value.removeprefix(f"{name} ").removesuffix(f" {name}"))
        for name, value in zip_longest(names[: len(values)], values, fillvalue="also")
    ]
    if link.manifest_md5 is not None:
        told.append(("manifest md5", link.manifest_md5))
    return PathStep(link.step, tuple(told))
