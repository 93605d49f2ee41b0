"""Warnings about documents of which odd pairs of sentences are made."""

from bertdata.records import Documents


def pair_warnings(documents: Documents, name: str) -> list[str]:
    """Warnings where next-sentence labels will say little."""
    if documents.documents == 1 and documents.sentences > 1:
        return [
            f"{name}: no blank line, so the text is one document: every random next sentence comes from that "
            "same document, and next-sentence labels say little; put a blank line between documents"
        ]
    if documents.documents == documents.sentences:
        return [
            f"{name}: every document is a single sentence, so every next sentence will be random; "
            "put blank lines between documents only"
        ]
    return []
