"""Templates of post-processors: what the library puts around a text and a pair, read from its file."""

import json
from typing import Any

import pytest
from tokenizers import processors

from bertdata.tokens.templates import Piece, Template, make_template, read_template

TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
    ],
    "pair": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": "</s>", "type_id": 1}},
    ],
    "special_tokens": {
        "<s>": {"id": "<s>", "ids": [7], "tokens": ["<s>"]},
        "</s>": {"id": "</s>", "ids": [8, 9], "tokens": ["</s>", "."]},
    },
}


def test_the_items_of_a_template_are_texts_and_the_ids_of_special_tokens():
    assert read_template(TEMPLATE) == Template(
        single=[Piece((7,), 0), Piece("A", 0), Piece((8, 9), 0)],
        pair=[Piece((7,), 0), Piece("A", 0), Piece((8, 9), 0), Piece("B", 1), Piece((8, 9), 1)],
    )


def saved(processor: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(processor.__getstate__())
    return found


@pytest.mark.parametrize(
    "processor",
    [
        saved(processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
        saved(
            processors.TemplateProcessing(
                "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
            )
        ),
    ],
    ids=["BertProcessing", "TemplateProcessing"],
)
def test_berts_processors_are_one_template(processor: dict[str, Any]):
    assert read_template(processor) == make_template(2, 3, 1)
    whole = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, processor]}
    assert read_template(whole) == make_template(2, 3, 1)
    assert read_template({"type": "Sequence", "processors": [processor, processor]}) is None


def test_robertas_processor_has_two_separators_and_one_segment():
    processor = saved(processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))
    assert read_template(processor) == Template(
        single=[Piece((0,), 0), Piece("A", 0), Piece((2,), 0)],
        pair=[Piece((0,), 0), Piece("A", 0), Piece((2,), 0), Piece((2,), 0), Piece("B", 0), Piece((2,), 0)],
    )
