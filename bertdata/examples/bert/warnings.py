"""Warnings about documents of which odd pairs of sentences are made."""

from itertools import pairwise

from bertdata.records import Documents

MOST_SINGLE = 0.9
"""Share of documents of a single sentence above which next sentences say little."""


def pair_warnings(documents: Documents, name: str) -> list[str]:
    """Warnings where next-sentence labels will say little."""
    if documents.documents == 1 and documents.sentences > 1:
        return [
            f"{name}: no blank line, so the text is one document: every random next sentence comes from that "
            "same document, and next-sentence labels say little; put a blank line between documents"
        ]
    single = single_sentences(documents)
    if single == documents.documents:
        found = "every document is a single sentence, so every next sentence will be random"
    elif single > MOST_SINGLE * documents.documents:
        share = single / documents.documents
        found = f"{share:.1%} of the documents are a single sentence, so most next sentences will be random"
    else:
        return []
    return [f"{name}: {found}; put blank lines between documents only, and make sentences: bertdata segment"]


def single_sentences(documents: Documents) -> int:
    """The number of documents of a single sentence."""
    ends = memoryview(documents.document_ends)
    return sum(end - before == 1 for before, end in pairwise((0, *ends)))
