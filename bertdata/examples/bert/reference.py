"""The readable twin of BERT's kernel: passes over the documents, masks, the final shuffle."""

from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.reference import Masked, mask_in_file
from bertdata.examples.masking.rules import MaskingRules, masking_rules
from bertdata.examples.pairs import Document, Pair, pair_document
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Vocabulary


class ReferenceExamples(ListedExamples):
    """The examples of some documents, made as the specification reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: BertSettings) -> None:
        examples: list[BertExample] = []
        stream, rules = RandomStream(settings.random_seed), masking_rules(vocabulary, settings.masking)
        shuffled = _as_lists(documents)
        stream.shuffle(shuffled)
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                for pair in pair_document(shuffled, index, stream, settings.pair_rules):
                    examples.append(make_example(pair, vocabulary, rules, settings.masks, stream))
        stream.shuffle(examples)
        super().__init__(examples, BertBatch, wide=vocabulary.wide)


def make_example(
    pair: Pair, vocabulary: Vocabulary, rules: MaskingRules, masks: bool, stream: RandomStream
) -> BertExample:
    """The example ``[CLS] a [SEP] b [SEP]`` with its masks drawn.

    Without masks they are drawn all the same, and left out: so the pairs that follow are those of a run with
    masks, and a shard is the other with its labels put back.
    """
    a, b, next_label = pair
    cls, sep = vocabulary.role("cls"), vocabulary.role("sep")
    original = [cls, *a, sep, *b, sep]
    masked = mask_in_file(original, rules, stream)
    if not masks:
        masked = Masked(original, [], [])
    return BertExample(
        ids=masked.ids,
        first_length=len(a) + 2,
        positions=masked.positions,
        labels=masked.labels,
        next_label=next_label,
    )


def _as_lists(documents: Documents) -> list[Document]:
    """Documents as lists of sentences, sentences as lists of ids."""
    sentences: list[list[int]] = []
    start = 0
    for end in documents.sentence_ends:
        sentences.append(list(documents.ids[start:end]))
        start = end
    lists: list[Document] = []
    start = 0
    for end in documents.document_ends:
        lists.append(sentences[start:end])
        start = end
    return lists
