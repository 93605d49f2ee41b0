"""Objectives whose examples are made of labelled data by the trainer, not of documents."""

from typing import Any, NoReturn

from bertdata._native import Engine
from bertdata.errors import SettingsError
from bertdata.examples.objective import Objective, text_of
from bertdata.records import Documents, Vocabulary


class FineTuningObjective(Objective):
    """Base class: examples of one or two segments, which no text alone can give."""

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> NoReturn:
        raise SettingsError(
            f"objective {self.name}: its examples are not made of documents but of labelled data: python -m "
            "trainer features --dataset DIR"
        )


def segment_lines(ids: list[int], first_ids: int, words: list[str]) -> list[str]:
    """Both segments in words, a line each. One line where there is no second."""
    lines = [f"  A  {text_of(ids[:first_ids], words)}"]
    if first_ids < len(ids):
        lines.append(f"  B  {text_of(ids[first_ids:], words)}")
    return lines
