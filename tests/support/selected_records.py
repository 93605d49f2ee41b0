"""A plain in-memory implementation of exclusion, de-duplication and the held-out share, to compare with."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Source = tuple[str, Sequence[str]]
"""The name of a file, and the texts of its records."""


@dataclass
class Selected:
    """The training documents, the held-out documents, and the lines of removed.jsonl."""

    training: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)


def ascii_words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def ngrams(text: str, size: int) -> list[str]:
    words = ascii_words(text)
    return [" ".join(words[start : start + size]) for start in range(len(words) - size + 1)]


def select(
    sources: Iterable[Source],
    evaluation: Sequence[str] = (),
    size: int = 13,
    *,
    dedup: bool = False,
    percent: str = "0",
    name: str = "eval.txt",
) -> Selected:
    """Decide for every record whether it is used for training, held out or removed.

    evaluation: the texts of the evaluation file.
    size: number of words in the n-grams that are compared.
    name: name of the evaluation file.
    """
    held = {ngram for text in evaluation for ngram in ngrams(text, size)}
    firsts: dict[str, dict[str, Any]] = {}
    found = Selected()
    for file, texts in sources:
        for number, text in enumerate(texts, 1):
            place = {"file": file, "record": number}
            body = "".join(f"{line}\n" for line in text.split("\n") if line.strip())
            shared = [ngram for ngram in ngrams(body, size) if ngram in held]
            if not body:
                found.removed.append({**place, "reason": "empty", "fault": "has no text"})
            elif shared:
                found.removed.append({**place, "reason": "excluded", "shares": shared[0], "with": name})
            elif dedup and body in firsts:
                found.removed.append({**place, "reason": "duplicate", "of": firsts[body]})
            elif _is_held_out(body, percent):
                found.withheld.append(body)
                found.removed.append({**place, "reason": "withheld"})
            else:
                found.training.append(body)
            firsts.setdefault(body, place)
    return found


def _is_held_out(body: str, percent: str) -> bool:
    number = int.from_bytes(hashlib.blake2b(body.encode(), digest_size=16).digest()[:8], "big")
    return number < Fraction(percent) / 100 * 2**64


def as_parts(name: str, documents: Iterable[str], part_bytes: float) -> dict[str, bytes]:
    """Return the parts by name. Each document's lines stay as they are."""
    parts: list[list[str]] = []
    held = 0
    for document in documents:
        size = len(document.encode())
        if not parts or held + size > part_bytes:
            parts.append([])
            held = 0
        held += size
        parts[-1].append(document + "\n")
    return {f"{name}-{number:05d}.txt": "".join(part).encode() for number, part in enumerate(parts)}
