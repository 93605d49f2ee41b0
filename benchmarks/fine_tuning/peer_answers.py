"""SQuAD as transformers' run_qa.py does it: features by a fast tokeniser's offsets, answers by the logits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fine_tuning.task import MAX_ANSWER_TOKENS, N_BEST, BenchmarkTask
from benchmarks.squad_features import find_answer_positions, read_entries
from bertdata.examples.columns import Array

Offsets = Sequence[tuple[int, int] | None]
"""Of each token its characters in the context, first and last + 1; None for a token of something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerSpan:
    """What an answer is made from: its question's number, and the offsets of the feature's tokens."""

    question: int
    offsets: Offsets


def read_squad_features(
    path: Path, tokenizer: Any, task: BenchmarkTask
) -> tuple[list[dict[str, Any]], list[PeerSpan]]:
    """Features with their answers' positions, not padded, and what their predictions need."""
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
    """The best answer to each question of the file, by its id. logits: (features, S)."""
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
    """Score and characters of the best answer among the best starts and ends, or None where none is valid."""
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
