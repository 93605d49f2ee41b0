"""Base class of the objectives for fine-tuning. The trainer makes their examples from labelled data."""

from typing import Any, NoReturn

from bertdata._native import Engine
from bertdata.errors import SettingsError
from bertdata.examples.objective import Objective, join_tokens
from bertdata.records import Documents, Vocabulary


class FineTuningObjective(Objective):
    """Base class of the objectives for fine-tuning, whose examples have one or two segments.

    Their examples come from labelled data sets. They cannot be made from plain text.
    """

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> NoReturn:
        raise SettingsError(
            f"objective {self.name}: its examples are not made of documents but of labelled data: python -m "
            "trainer features --dataset DIR"
        )


def describe_segments(ids: list[int], first_ids: int, words: list[str]) -> list[str]:
    """Return a line of text for each segment, with the tokens of the segment. There may be only segment A.

    first_ids: number of ids in segment A.
    words: the token of each id.
    """
    lines = [f"  A  {join_tokens(ids[:first_ids], words)}"]
    if first_ids < len(ids):
        lines.append(f"  B  {join_tokens(ids[first_ids:], words)}")
    return lines
