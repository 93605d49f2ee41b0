"""Variants of Punkt. Each is named after the release of nltk whose sentence boundaries it reproduces."""

from typing import Literal, get_args

Variant = Literal["3.4.5", "3.10.0", "3.10.4"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

ALIASES: dict[str, Variant] = {"current": "3.10.0"}
"""Other names of variants, accepted on the command line and found in manifests of earlier versions."""


def find_variant(name: str) -> str:
    """Return the variant with this name or alias. A name that is not known is returned unchanged.

    >>> find_variant("current")
    '3.10.0'
    """
    return ALIASES.get(name, name)
