"""Special tokens and segments around a text or a pair, as a post-processor of a tokenizer.json says them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bertdata.records import Vocabulary


class Piece(NamedTuple):
    """A part of a template: the text "A" or "B", or a special token's ids; and the segment of each."""

    content: str | tuple[int, ...]
    segment: int


class Template(NamedTuple):
    """What is made of a single text, and of a pair of texts."""

    single: list[Piece]
    pair: list[Piece]

    def makes(self, other: "Template", segments: bool) -> bool:
        """Return True where both make the same ids, and with ``segments`` the same segments too."""
        if segments:
            return self == other
        return _contents(self.single) == _contents(other.single) and _contents(self.pair) == _contents(
            other.pair
        )


def own_template(cls: int, sep: int, separators: int) -> Template:
    """Return the template of the examples that are made here.

    The ids are cls A sep for a single text. For a pair they are cls A, the separators, B sep, where B and
    the last sep have segment 1.
    """
    first = [Piece((cls,), 0), Piece("A", 0)]
    between = [Piece((sep,), 0)] * separators
    return Template([*first, Piece((sep,), 0)], [*first, *between, Piece("B", 1), Piece((sep,), 1)])


def template_of(processor: Any) -> Template | None:
    """Return what a post-processor makes, or None where it is damaged or not told by one template."""
    try:
        return _template_of(processor)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _template_of(processor: Any) -> Template | None:
    if not isinstance(processor, Mapping):
        return None
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        return _of_pair_of_tokens(processor)
    if kind == "TemplateProcessing":
        tokens = processor["special_tokens"]
        return Template(_pieces(processor["single"], tokens), _pieces(processor["pair"], tokens))
    if kind == "Sequence":
        found = [_template_of(step) for step in processor["processors"]]
        known = [template for template in found if template is not None]
        return known[0] if len(known) == 1 else None
    return None


def _of_pair_of_tokens(processor: Mapping[str, Any]) -> Template:
    """Return the template of BertProcessing, or of RobertaProcessing: one segment, two separators."""
    cls, sep = processor["cls"][1], processor["sep"][1]
    if processor["type"] == "BertProcessing":
        return own_template(cls, sep, 1)
    made = own_template(cls, sep, 2)
    return Template(made.single, [piece._replace(segment=0) for piece in made.pair])


def _contents(pieces: Sequence[Piece]) -> list[str | tuple[int, ...]]:
    return [piece.content for piece in pieces]


def _pieces(parts: Sequence[Mapping[str, Any]], tokens: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces of TemplateProcessing's list."""
    found = []
    for part in parts:
        ((kind, said),) = part.items()
        content = said["id"] if kind == "Sequence" else tuple(tokens[said["id"]]["ids"])
        found.append(Piece(content, said["type_id"]))
    return found


def post_processor(template: Template, vocabulary: Vocabulary, replaced: Any) -> dict[str, Any]:
    """Return the library's post-processor of a template, which trims places as the replaced one does."""
    words = vocabulary.words
    tokens = dict.fromkeys(piece.content[0] for piece in template.pair if isinstance(piece.content, tuple))

    def parts(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        return [
            {"Sequence": {"id": content, "type_id": segment}}
            if isinstance(content, str)
            else {"SpecialToken": {"id": words[content[0]], "type_id": segment}}
            for content, segment in pieces
        ]

    made = {
        "type": "TemplateProcessing",
        "single": parts(template.single),
        "pair": parts(template.pair),
        "special_tokens": {
            words[token]: {"id": words[token], "ids": [token], "tokens": [words[token]]} for token in tokens
        },
    }
    steps = _trimming_steps(replaced)
    return {"type": "Sequence", "processors": [*steps, made]} if steps else made


def _trimming_steps(processor: Any) -> list[dict[str, Any]]:
    """Return the steps of a post-processor that cut blanks off the places of tokens."""
    if not isinstance(processor, Mapping):
        return []
    if isinstance(steps := processor.get("processors"), list):
        return [found for step in steps for found in _trimming_steps(step)]
    if processor.get("type") == "ByteLevel":
        return [dict(processor)]
    if processor.get("type") == "RobertaProcessing" and processor.get("trim_offsets", True):
        prefix = processor.get("add_prefix_space", True)
        return [{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}]
    return []
