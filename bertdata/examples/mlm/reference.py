"""The readable twin of the kernel of masked blocks: stream, blocks, masks, the final shuffle."""

from typing import NamedTuple

from bertdata.examples.dynamic_masking.counter_stream import CounterStream, pass_keys
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import MaskingRules, masking_rules, starts_of
from bertdata.examples.masking.reference import Masked, Starts, mask_at_load
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.mlm.blocks import cut_blocks, fit
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Buffer, Documents, Example, Vocabulary


class Token(NamedTuple):
    """An id of a block, and 1 where it starts a word."""

    id: int
    starts_word: int


Line = list[Token]
"""The tokens of a sentence and the end token."""


class ReferenceBlocks(ListedExamples):
    """The masked blocks of some documents, made as the specification reads."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: MlmSettings, kind: type[MlmBatch]
    ) -> None:
        examples: list[Example] = []
        rules = masking_rules(vocabulary, settings.masking, masks=settings.masks)
        word_starts = starts_of(documents, vocabulary, settings.masking, kind)
        blocks = _token_blocks(documents, word_starts, vocabulary, settings.blocks, settings.max_seq_length)
        for key in pass_keys(documents, settings.random_seed, settings.dupe_factor):
            for number, block in enumerate(blocks):
                original, starts = [token.id for token in block], [token.starts_word for token in block]
                known = None if word_starts is None else starts
                made = mask_block(original, settings, rules, key, number, known)
                columns = {"ids": made.ids, "positions": made.positions, "labels": made.labels}
                if has_group(kind, WORD_STARTS):
                    columns["word_starts"] = starts
                examples.append(kind.example_type(**columns))
        RandomStream(settings.random_seed).shuffle(examples)
        # A block that is too long becomes several, so each id of the text is in one.
        super().__init__(examples, kind, wide=vocabulary.wide, lost=0)


def text_blocks(
    documents: Documents, vocabulary: Vocabulary, breaks: str, max_seq_length: int
) -> list[list[int]]:
    """The unmasked blocks in the order of the text, [CLS] before each, at most max_seq_length ids.

    A block of nothing but one end token is left out.
    """
    blocks = _token_blocks(documents, None, vocabulary, breaks, max_seq_length)
    return [[token.id for token in block] for block in blocks]


def _token_blocks(
    documents: Documents,
    word_starts: Buffer | None,
    vocabulary: Vocabulary,
    breaks: str,
    max_seq_length: int,
) -> list[Line]:
    """The blocks with their word starts.

    word_starts: those of the documents; None: each id counts as one. A special id that is put in starts a
    word, as does the id behind it.
    """
    end_token = Token(vocabulary.role("sep"), 1)
    lines = _lines(documents, word_starts, end_token, with_blanks=breaks == "complete_doc")
    stream = [token for line in lines for token in line]
    longest = max_seq_length - 1
    cut = fit(cut_blocks([len(line) for line in lines], breaks, longest), longest)
    bodies = [stream[start:end] for start, end in cut]
    first = Token(vocabulary.role("cls"), 1)
    return [[first, Token(body[0].id, 1), *body[1:]] for body in bodies if body != [end_token]]


def _lines(
    documents: Documents, word_starts: Buffer | None, end_token: Token, *, with_blanks: bool
) -> list[Line]:
    """The documents' sentences that have ids. with_blanks: a blank line behind each document."""
    known = bytes([1]) * documents.tokens if word_starts is None else word_starts
    lines: list[Line] = []
    sentence = start = 0
    for document_end in documents.document_ends:
        for end in documents.sentence_ends[sentence:document_end]:
            if start < end:
                rest = map(Token, documents.ids[start + 1 : end], known[start + 1 : end])
                lines.append([Token(documents.ids[start], 1), *rest, end_token])
            start = end
        sentence = document_end
        if with_blanks:
            lines.append([end_token])
    return lines


def mask_block(
    original: list[int],
    settings: MlmSettings,
    rules: MaskingRules,
    key: int,
    number: int,
    starts: Starts = None,
) -> Masked:
    """The block with masks as they are drawn at load, from a stream of each block.

    number: the block's place in the text, starts: as of words_of.
    """
    if not settings.masks:
        return Masked(original, [], [])
    return mask_at_load(original, settings.masked_lm_prob, rules, CounterStream(key, number), starts)
