"""Templates: the special tokens and segment numbers that a post-processor puts around a text or a pair of
texts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bertdata.records import Vocabulary


class Piece(NamedTuple):
    """An item of a template: a text or a special token.

    content: "A" or "B" for the first or other text of a pair, or the ids of a special token.
    segment: segment number (token type) of the item.
    """

    content: str | tuple[int, ...]
    segment: int


class Template(NamedTuple):
    """Items that a post-processor makes of a single text, and of a pair of texts."""

    single: list[Piece]
    pair: list[Piece]

    def gives_same_ids(self, other: "Template", segments: bool) -> bool:
        """Return True if both templates give the same ids.

        segments: if True, the segment numbers must be the same too.
        """
        if segments:
            return self == other
        return _list_contents(self.single) == _list_contents(other.single) and _list_contents(
            self.pair
        ) == _list_contents(other.pair)


def make_template(cls: int, sep: int, separators: int) -> Template:
    """Return the template of the training examples that this package makes.

    A single text A becomes "cls A sep". A pair becomes "cls A sep B sep", where B and the last sep have the
    segment number 1.
    cls: id of the token at the beginning.
    sep: id of the separator.
    separators: number of separators between the texts.
    """
    first = [Piece((cls,), 0), Piece("A", 0)]
    between = [Piece((sep,), 0)] * separators
    return Template([*first, Piece((sep,), 0)], [*first, *between, Piece("B", 1), Piece((sep,), 1)])


def read_template(processor: Any) -> Template | None:
    """Return the template of a post-processor in a parsed tokenizer.json.

    Returns None if the post-processor is damaged, or if it does not have exactly one template.
    """
    try:
        return _read_template(processor)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _read_template(processor: Any) -> Template | None:
    """Return the template of a post-processor, which may be damaged.

    If it is damaged, an error such as KeyError or TypeError may be raised.
    """
    if not isinstance(processor, Mapping):
        return None
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        return _make_pair_template(processor)
    if kind == "TemplateProcessing":
        tokens = processor["special_tokens"]
        return Template(_read_pieces(processor["single"], tokens), _read_pieces(processor["pair"], tokens))
    if kind == "Sequence":
        found = [_read_template(step) for step in processor["processors"]]
        known = [template for template in found if template is not None]
        return known[0] if len(known) == 1 else None
    return None


def _make_pair_template(processor: Mapping[str, Any]) -> Template:
    """Return the template of a BertProcessing or RobertaProcessing.

    RobertaProcessing puts two separators between the texts, and the segment number of all items is 0.
    """
    cls, sep = processor["cls"][1], processor["sep"][1]
    if processor["type"] == "BertProcessing":
        return make_template(cls, sep, 1)
    made = make_template(cls, sep, 2)
    return Template(made.single, [piece._replace(segment=0) for piece in made.pair])


def _list_contents(pieces: Sequence[Piece]) -> list[str | tuple[int, ...]]:
    """Return the content of each item in order, without the segment numbers."""
    return [piece.content for piece in pieces]


def _read_pieces(parts: Sequence[Mapping[str, Any]], tokens: Mapping[str, Any]) -> list[Piece]:
    """Convert the items of a TemplateProcessing.

    parts: the items in order.
    tokens: the special tokens of the TemplateProcessing, by name.
    """
    found = []
    for part in parts:
        ((kind, said),) = part.items()
        content = said["id"] if kind == "Sequence" else tuple(tokens[said["id"]]["ids"])
        found.append(Piece(content, said["type_id"]))
    return found


def make_post_processor(template: Template, vocabulary: Vocabulary, replaced: Any) -> dict[str, Any]:
    """Make a post-processor for a tokenizer.json from a template.

    replaced: post-processor that the new post-processor replaces. Its steps that remove blanks from the
        positions of tokens are kept.
    """
    words = vocabulary.words
    # List each special token of the template once, in the order in which they occur around a pair.
    tokens = dict.fromkeys(piece.content[0] for piece in template.pair if isinstance(piece.content, tuple))

    def convert_pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        """Convert the items of a template to items of a TemplateProcessing."""
        return [
            {"Sequence": {"id": content, "type_id": segment}}
            if isinstance(content, str)
            else {"SpecialToken": {"id": words[content[0]], "type_id": segment}}
            for content, segment in pieces
        ]

    made = {
        "type": "TemplateProcessing",
        "single": convert_pieces(template.single),
        "pair": convert_pieces(template.pair),
        "special_tokens": {
            words[token]: {"id": words[token], "ids": [token], "tokens": [words[token]]} for token in tokens
        },
    }
    steps = _find_trimming_steps(replaced)
    return {"type": "Sequence", "processors": [*steps, made]} if steps else made


def _find_trimming_steps(processor: Any) -> list[dict[str, Any]]:
    """Return the steps of a post-processor that remove blanks from the positions of tokens."""
    if not isinstance(processor, Mapping):
        return []
    if isinstance(steps := processor.get("processors"), list):
        return [found for step in steps for found in _find_trimming_steps(step)]
    if processor.get("type") == "ByteLevel":
        return [dict(processor)]
    if processor.get("type") == "RobertaProcessing" and processor.get("trim_offsets", True):
        # RobertaProcessing adds special tokens, and also removes blanks from positions as ByteLevel does.
        # Keep only the latter.
        prefix = processor.get("add_prefix_space", True)
        return [{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}]
    return []
