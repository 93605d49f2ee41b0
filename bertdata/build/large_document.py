"""Search for a document that is most of a run's text, and the warning about it.

Text without blank lines between its documents, or a file that was read as a single record, becomes one large
document. Most examples then usually come from this document, and nothing else in the output shows it.
"""

from collections.abc import Iterable
from operator import attrgetter

from bertdata.dataset.manifest import InputEntry
from bertdata.records import Documents

_LARGE_SHARE = 0.5
"""Share of a run's tokens above which a document is reported."""
_LEAST_EXAMPLES = 100
"""Number of full examples that a document must be able to fill before it is reported.

A small corpus, such as that of a tutorial, may consist of one document.
"""


def count_largest_document(documents: Documents) -> int:
    """Return the number of tokens in the largest document. Returns 0 if there is no document."""
    sentence_ends, largest, start = memoryview(documents.sentence_ends), 0, 0
    for end in memoryview(documents.document_ends):
        stop = sentence_ends[end - 1] if end else 0
        largest, start = max(largest, stop - start), stop
    return largest


def make_large_document_warning(
    largest: int | None, inputs: Iterable[InputEntry], max_seq_length: int
) -> str | None:
    """Return a warning if the largest document of a run is most of its text. Otherwise return None.

    largest: number of tokens in the run's largest document. None if it is not known, because the shards of an
        earlier run were kept.
    inputs: manifest entries of the run's inputs.
    max_seq_length: number of tokens in a full example.
    """
    entries = list(inputs)
    tokens = sum(entry.tokens for entry in entries)
    if largest is None or largest < _LEAST_EXAMPLES * max_seq_length or largest <= _LARGE_SHARE * tokens:
        return None
    # The input with the most tokens holds the document, because the document is more than half of all tokens.
    name = max(entries, key=attrgetter("tokens")).name
    return (
        f"{name}: one document has {largest / tokens:.0%} of all tokens ({largest} of {tokens}); if it is "
        "several texts, put a blank line between them, or make each a record"
    )
