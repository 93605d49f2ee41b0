"""Adds a field with word starts (one item per id) to the declared fields of an objective."""

from collections.abc import Mapping
from typing import Any

from schemas import load_schema

Declared = Mapping[str, Mapping[str, Any]]
"""Fields of each file format, in the form of ``schemas/example.json``."""


def with_word_starts(declared: Declared) -> Declared:
    """Return an objective's declared fields with word starts added.

    The fields of a model's inputs are unchanged. Records in Graphcore's order get no word starts, because
    their examples are already masked.
    """
    # Only file formats for which word starts are declared are kept. {} keeps "huggingface" unchanged.
    added: Declared = {**load_schema("example")["word_starts"], "huggingface": {}}
    return {form: {**fields, **added[form]} for form, fields in declared.items() if form in added}
