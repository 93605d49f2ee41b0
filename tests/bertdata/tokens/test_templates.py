"""Templates: the ids and token types that the tokenizers library puts around a text and a pair."""

import json
from typing import Any

import pytest
from tokenizers import Encoding, Tokenizer, models, pre_tokenizers, processors

from bertdata.records import Vocabulary
from bertdata.tokens.templates import Piece, make_post_processor, make_template, read_template

WORDS = ["[CLS]", "[SEP]", "[X]", "a", "b"]
CLS, SEP = ("[CLS]", 0), ("[SEP]", 1)
TRIMMING = processors.ByteLevel(trim_offsets=True)
PROCESSORS: dict[str, Any] = {
    "bert": processors.BertProcessing(SEP, CLS),
    "roberta": processors.RobertaProcessing(SEP, CLS),
    "template": processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[CLS, SEP]
    ),
    "other order": processors.TemplateProcessing(
        single="$A:2 [SEP]:3", pair="$B:1 [SEP] [SEP]:4 $A", special_tokens=[SEP]
    ),
    "a token of several ids": processors.TemplateProcessing(
        single="[X] $A",
        pair="[X] $A [X]:1 $B:1",
        special_tokens=[{"id": "[X]", "ids": [2, 0], "tokens": ["[X]", "[CLS]"]}],
    ),
    "none": processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[]),
    "after another step": processors.Sequence([TRIMMING, processors.BertProcessing(SEP, CLS)]),
}


def make_library(processor: Any) -> Tokenizer:
    """Return a tokeniser of single words that has the post-processor."""
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, "[X]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processor
    return tokenizer


def save_processor(tokenizer: Tokenizer) -> Any:
    """Return the post-processor as the library saves it in a tokenizer.json."""
    return json.loads(tokenizer.to_str())["post_processor"]


def apply(pieces: list[Piece], texts: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """Return the ids and the token types that the items of a template give for these texts."""
    ids: list[int] = []
    types: list[int] = []
    for content, segment in pieces:
        added = texts[content] if isinstance(content, str) else content
        ids += added
        types += [segment] * len(added)
    return ids, types


def ids_and_types(encoding: Encoding) -> tuple[list[int], list[int]]:
    """Return the ids and the token types of an encoding of the library."""
    return encoding.ids, encoding.type_ids


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_template_gives_the_librarys_ids_and_token_types(name: str) -> None:
    library = make_library(PROCESSORS[name])
    template = read_template(save_processor(library))
    assert template is not None
    texts = {"A": [3, 4], "B": [4]}
    assert apply(template.single, texts) == ids_and_types(library.encode("a b"))
    assert apply(template.pair, texts) == ids_and_types(library.encode("a b", "b"))


@pytest.mark.parametrize("separators", [1, 2])
@pytest.mark.parametrize("replaced", [None, "roberta"])
def test_a_made_post_processor_has_the_template_in_the_library(separators: int, replaced: str | None) -> None:
    vocabulary = Vocabulary(
        name="made", md5="", kind="wordlevel", words=WORDS, continues_word=None, replacements=(3, 4)
    )
    template = make_template(0, 1, separators)
    own = None if replaced is None else save_processor(make_library(PROCESSORS[replaced]))
    made = make_post_processor(template, vocabulary, own)
    assert read_template(made) == template
    value = json.loads(make_library(None).to_str())
    library = Tokenizer.from_str(json.dumps({**value, "post_processor": made}))
    assert ids_and_types(library.encode("a b")) == ([0, 3, 4, 1], [0] * 4)
    between = [1] * separators
    assert ids_and_types(library.encode("a b", "b")) == (
        [0, 3, 4, *between, 4, 1],
        [0] * (3 + separators) + [1] * 2,
    )


@pytest.mark.parametrize(
    "processor",
    [
        None,
        {"type": "ByteLevel"},
        {"type": "BertProcessing"},
        {"type": "Sequence", "processors": [save_processor(make_library(PROCESSORS["bert"]))] * 2},
        {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        },
    ],
)
def test_a_post_processor_without_exactly_one_sound_template_has_none(processor: Any) -> None:
    assert read_template(processor) is None
