"""Pure-Python twin of the C++ kernel of masked blocks. It cuts, masks and shuffles the blocks."""

from typing import NamedTuple

from bertdata.examples.dynamic_masking.counter_stream import CounterStream, make_pass_keys
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import MaskingRules, prepare_masking_rules, starts_of
from bertdata.examples.masking.reference import Masked, Starts, mask_at_load
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.mlm.blocks import cut_blocks, cut_long_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Buffer, Documents, Example, Vocabulary


class Token(NamedTuple):
    """A token of a block.

    id: the token's id.
    starts_word: 1 if a word starts at this token, else 0.
    """

    id: int
    starts_word: int


Line = list[Token]
"""A line of the text: the tokens of a sentence, followed by the end token."""


class ReferenceBlocks(ListedExamples):
    """The masked blocks of the documents, made and masked in pure Python."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: MlmSettings, batch_type: type[MlmBatch]
    ) -> None:
        examples: list[Example] = []
        rules = prepare_masking_rules(vocabulary, settings.masking, masks=settings.masks)
        word_starts = starts_of(documents, vocabulary, settings.masking, batch_type)
        blocks = _cut_token_blocks(
            documents, word_starts, vocabulary, settings.blocks, settings.max_seq_length
        )
        # The masks of each block come from a separate random stream, which depends on the pass and the
        # block's number. Only the final shuffle depends on the order of the examples.
        for key in make_pass_keys(documents, settings.random_seed, settings.dupe_factor):
            for number, block in enumerate(blocks):
                original, starts = [token.id for token in block], [token.starts_word for token in block]
                known = None if word_starts is None else starts
                made = mask_block(original, settings, rules, key, number, known)
                columns = {"ids": made.ids, "positions": made.positions, "labels": made.labels}
                if has_group(batch_type, WORD_STARTS):
                    columns["word_starts"] = starts
                examples.append(batch_type.example_type(**columns))
        RandomStream(settings.random_seed).shuffle(examples)
        # No text is lost: a block that is too long is cut into several blocks.
        super().__init__(examples, batch_type, wide=vocabulary.wide, lost=0)


def cut_text_blocks(
    documents: Documents, vocabulary: Vocabulary, breaks: str, max_seq_length: int
) -> list[list[int]]:
    """Return the blocks without masks, in the order of the text.

    Each block begins with [CLS] and has at most max_seq_length ids. Blocks whose only other id is an end
    token are left out.

    breaks: the way to cut the text, one of BREAKS.
    """
    blocks = _cut_token_blocks(documents, None, vocabulary, breaks, max_seq_length)
    return [[token.id for token in block] for block in blocks]


def _cut_token_blocks(
    documents: Documents,
    word_starts: Buffer | None,
    vocabulary: Vocabulary,
    breaks: str,
    max_seq_length: int,
) -> list[Line]:
    """Return the blocks as tokens that say whether they start a word.

    A word starts at each special token and at the id after it.

    word_starts: word starts of the documents. None means that every id counts as a word.
    breaks: the way to cut the text, one of BREAKS.
    """
    end_token = Token(vocabulary.role("sep"), 1)
    lines = _make_lines(documents, word_starts, end_token, with_blanks=breaks == "complete_doc")
    stream = [token for line in lines for token in line]
    longest = max_seq_length - 1
    cut = cut_long_blocks(cut_blocks([len(line) for line in lines], breaks, longest), longest)
    bodies = [stream[start:end] for start, end in cut]
    first = Token(vocabulary.role("cls"), 1)
    return [[first, Token(body[0].id, 1), *body[1:]] for body in bodies if body != [end_token]]


def _make_lines(
    documents: Documents, word_starts: Buffer | None, end_token: Token, *, with_blanks: bool
) -> list[Line]:
    """Return the documents' sentences as lines. Empty sentences are left out.

    end_token: the token that ends each line.
    with_blanks: True adds a blank line after each document.
    """
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
    """Draw the masks of one block.

    Masks are drawn as for an example that is being loaded, from a random stream that only this block uses.
    The number of the pass takes the place of the epoch.

    key: key of the pass (``make_pass_keys``).
    number: number of the block in the text.
    starts: for each id 1 if a word starts there, else 0. None if the vocabulary shows where words start.
    """
    if not settings.masks:
        return Masked(original, [], [])
    return mask_at_load(original, settings.masked_lm_prob, rules, CounterStream(key, number), starts)
