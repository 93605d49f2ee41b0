"""The formats in which ``bertdata lineage --format`` prints a lineage, by name."""

from collections.abc import Callable

from bertdata.lineages.step import Lineage
from bertdata.trust.cards import make_full_dataset_card
from bertdata.trust.croissant import describe_in_croissant, dump_croissant
from bertdata.trust.in_toto import dump_statements, make_statements

LINEAGE_FORMATS: dict[str, Callable[[Lineage], str]] = {
    "card": lambda lineage: make_full_dataset_card(lineage.path),
    "croissant": lambda lineage: dump_croissant(describe_in_croissant(lineage.path)),
    "in-toto": lambda lineage: dump_statements(make_statements(lineage)),
}
"""The function that returns a lineage as a text, by the name of the format."""
