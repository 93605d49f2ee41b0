"""SQuAD as in transformers' run_qa.py.

Features are made from the character offsets that a fast tokenizer returns, and answers from the logits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fine_tuning.task import MAX_ANSWER_TOKENS, N_BEST, BenchmarkTask
from benchmarks.squad_features import find_answer_positions, read_entries
from bertdata.examples.columns import Array

Offsets = Sequence[tuple[int, int] | None]
"""For each token, the range of characters in the context that it stands for: first, and after the last.

The item is None for a token that is not part of the context.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerSpan:
    """The data that are needed to turn the tokens predicted for a feature into the text of an answer.

    They are the number of the question in the file, and the offsets of the tokens.
    """

    question: int
    offsets: Offsets


def read_squad_features(
    path: Path, tokenizer: Any, task: BenchmarkTask
) -> tuple[list[dict[str, Any]], list[PeerSpan]]:
    """Return the features of a SQuAD file and, for each feature, what is needed to find its answer's text.

    The features have the positions of the answers, and no padding.
    """
    entries = read_entries(path)
    found = tokenizer(
        [entry.question for entry in entries],
        [entry.context for entry in entries],
        truncation="only_second",
        max_length=task.length,
        stride=task.stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    features, spans = [], []
    for number, question in enumerate(found["overflow_to_sample_mapping"]):
        offsets, segments = found["offset_mapping"][number], found.sequence_ids(number)
        start, end = find_answer_positions(offsets, segments, *entries[question].answer)
        feature = {name: found[name][number] for name in ("input_ids", "token_type_ids", "attention_mask")}
        features.append({**feature, "start_positions": start, "end_positions": end})
        of_context = [pair if part == 1 else None for pair, part in zip(offsets, segments, strict=True)]
        spans.append(PeerSpan(question=question, offsets=of_context))
    return features, spans


def find_answer_texts(path: Path, spans: Sequence[PeerSpan], starts: Array, ends: Array) -> dict[str, str]:
    """Return the text of the best answer to each question of the file, by the question's id.

    spans: data of each feature, in the order of the logits.
    starts: logits of the answers' first tokens, of shape (features, tokens).
    ends: logits of the answers' last tokens, of the same shape.
    """
    entries = read_entries(path)
    best: dict[int, tuple[float, str]] = {}
    for span, start_logits, end_logits in zip(spans, starts, ends, strict=True):
        found = find_best_answer(span.offsets, start_logits, end_logits)
        if found is not None:
            score, (first, last) = found
            candidate = (score, entries[span.question].context[first:last])
            best[span.question] = max(best.get(span.question, candidate), candidate, key=lambda one: one[0])
    return {entry.id: best.get(number, (0.0, ""))[1] for number, entry in enumerate(entries)}


def find_best_answer(offsets: Offsets, starts: Array, ends: Array) -> tuple[float, tuple[int, int]] | None:
    """Return the best answer in a feature, as its score and its range of characters.

    Only the N_BEST most probable first tokens and the N_BEST most probable last tokens are combined. Returns
    None if no combination is a valid answer.

    offsets: range of characters of each token.
    starts: logits of the first token.
    ends: logits of the last token.
    """
    best: tuple[float, tuple[int, int]] | None = None
    last_places = np.argsort(-ends, kind="stable")[:N_BEST].tolist()
    for start in np.argsort(-starts, kind="stable")[:N_BEST].tolist():
        for end in last_places:
            if not start <= end < min(start + MAX_ANSWER_TOKENS, len(offsets)):
                continue
            first, last = offsets[start], offsets[end]
            score = float(starts[start] + ends[end])
            if first is not None and last is not None and (best is None or score > best[0]):
                best = score, (first[0], last[1])
    return best
