"""An objective's fields with one more in each container: where words start, an item for each id."""

from collections.abc import Mapping
from typing import Any

from schemas import load_schema


def with_word_starts(objective: str) -> dict[str, Mapping[str, Any]]:
    """The fields that the schema declares for an objective, with those of word starts.

    Without Graphcore's order, which holds masks. A model's inputs stay as they are.
    """
    declared = load_schema("example")
    own, model = declared["word_starts"], "huggingface"
    found = {form: {**fields, **own[form]} for form, fields in declared[objective].items() if form in own}
    return {**found, model: declared[objective][model]}
