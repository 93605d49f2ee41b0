"""Declares the field that stores where words start, for the variants of objectives that have it."""

from collections.abc import Mapping
from typing import Any

from schemas import load_schema

Declared = Mapping[str, Mapping[str, Any]]
"""The declared fields of each file format, in the form of ``schemas/example.json``."""


def with_word_starts(declared: Declared) -> Declared:
    """Return an objective's declared fields with the field for word starts added to each file format.

    A model's inputs get no such field. Graphcore's order is left out, because its examples are already
    masked.
    """
    # Only file formats with a declared field for word starts are kept. The {} keeps "huggingface" unchanged.
    added: Declared = {**load_schema("example")["word_starts"], "huggingface": {}}
    return {form: {**fields, **added[form]} for form, fields in declared.items() if form in added}
