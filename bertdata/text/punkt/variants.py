"""Variants of Punkt, each named for the release of nltk whose sentence ends it places."""

from typing import Literal, get_args

Variant = Literal["3.4.5", "3.10.0", "3.10.4"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

ALIASES: dict[str, Variant] = {"current": "3.10.0"}
"""Other names of variants: command lines may give them, and manifests of earlier versions hold them."""


def variant_named(name: str) -> str:
    """The variant of that name or alias. Any other name as it is.

    >>> variant_named("current")
    '3.10.0'
    """
    return ALIASES.get(name, name)
