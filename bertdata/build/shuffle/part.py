"""The first step of a global shuffle: one part to its sorted documents."""

from dataclasses import dataclass

from bertdata.build.documents import DocumentSource
from bertdata.build.shuffle.keys import SortedDocuments, sort_documents
from bertdata.build.task import TaskPlan, left_out
from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedPart:
    """The manifest's entry of a part, warnings for a person, and its documents in the order of their keys.

    A part that is left out has no documents.
    """

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...]
    documents: SortedDocuments | None = None


def sort_part(plan: TaskPlan, path: str, source: DocumentSource | None = None) -> SortedPart:
    """Tokenise a part and sort its documents. source: the part where it is already at hand."""
    source = source or plan.source(path)
    try:
        loaded = source.load(plan.targets[0].settings)
    except InputError as error:
        if not plan.skip_bad:
            raise
        skipped = source.skipped(error)
        return SortedPart(entry=skipped, warnings=(left_out(path, skipped),))
    documents = sort_documents(loaded.documents, loaded.entry.name)
    return SortedPart(entry=loaded.entry, warnings=loaded.warnings, documents=documents)
