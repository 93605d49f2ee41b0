"""The readable twin of the kernel of masked blocks: stream, blocks, masks, the final shuffle."""

from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.rules import masking_rules
from bertdata.examples.mlm.batch import MlmBatch, MlmExample
from bertdata.examples.mlm.blocks import cut_blocks, fit
from bertdata.examples.mlm.masking import mask_block, pass_keys
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Vocabulary

Line = list[int]
"""The ids of a sentence and the end token."""


class ReferenceBlocks(ListedExamples):
    """The masked blocks of some documents, made as the specification reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: MlmSettings) -> None:
        examples: list[MlmExample] = []
        rules = masking_rules(vocabulary, settings.masking)
        blocks = text_blocks(documents, vocabulary, settings.blocks, settings.max_seq_length)
        for key in pass_keys(documents, settings):
            for number, block in enumerate(blocks):
                made = mask_block(block, settings, rules, key, number)
                examples.append(MlmExample(ids=made.ids, positions=made.positions, labels=made.labels))
        RandomStream(settings.random_seed).shuffle(examples)
        super().__init__(examples, MlmBatch, wide=vocabulary.wide)


def text_blocks(
    documents: Documents, vocabulary: Vocabulary, breaks: str, max_seq_length: int
) -> list[list[int]]:
    """The unmasked blocks in the order of the text, [CLS] before each, at most max_seq_length ids.

    A block of nothing but one end token is left out.
    """
    lines = _lines(documents, vocabulary.role("sep"), with_blanks=breaks == "complete_doc")
    stream = [token for line in lines for token in line]
    longest = max_seq_length - 1
    cut = fit(cut_blocks([len(line) for line in lines], breaks, longest), longest)
    bodies = [stream[start:end] for start, end in cut]
    first, end_token = vocabulary.role("cls"), vocabulary.role("sep")
    return [[first, *body] for body in bodies if body != [end_token]]


def _lines(documents: Documents, end_token: int, *, with_blanks: bool) -> list[Line]:
    """The documents' sentences that have ids. with_blanks: a blank line behind each document."""
    lines: list[Line] = []
    sentence = start = 0
    for document_end in documents.document_ends:
        for end in documents.sentence_ends[sentence:document_end]:
            if start < end:
                lines.append([*documents.ids[start:end], end_token])
            start = end
        sentence = document_end
        if with_blanks:
            lines.append([end_token])
    return lines
