"""An objective's fields with one more in each container: where words start, an item for each id."""

from collections.abc import Mapping
from typing import Any

from schemas import load_schema

Declared = Mapping[str, Mapping[str, Any]]
"""Fields by container, in the form of ``schemas/example.json``."""


def with_word_starts(declared: Declared) -> Declared:
    """The fields of an objective with those of word starts. A model's inputs stay as they are.

    Without Graphcore's order, whose examples have masks already.
    """
    own: Declared = {**load_schema("example")["word_starts"], "huggingface": {}}
    return {form: {**fields, **own[form]} for form, fields in declared.items() if form in own}
