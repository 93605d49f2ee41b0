"""The readable twin of BERT's kernel: passes over the documents, masks, the final shuffle."""

from collections.abc import Sequence

from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.bert.pairs import Document, Pair, pair_document
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.reference import Masked, mask_in_file
from bertdata.examples.masking.rules import masking_rules, starts_of
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Example, Vocabulary


class ReferenceExamples(ListedExamples):
    """The examples of some documents, made as the specification reads."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: BertSettings, kind: type[BertBatch]
    ) -> None:
        examples: list[Example] = []
        stream, maker = RandomStream(settings.random_seed), _Maker(documents, vocabulary, settings, kind)
        shuffled = _places(documents)
        stream.shuffle(shuffled)
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                pairs = pair_document(
                    shuffled,
                    index,
                    stream,
                    max_tokens=settings.max_seq_length - 3,
                    short_seq_prob=settings.short_seq_prob,
                    habits=settings.habits,
                )
                for pair in pairs:
                    examples.append(maker.make(pair, stream))
        stream.shuffle(examples)
        super().__init__(examples, kind, wide=vocabulary.wide)


class _Maker:
    """Makes the example ``[CLS] a [SEP] b [SEP]`` of a pair of segments, its ids known by their places."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: BertSettings, kind: type[BertBatch]
    ) -> None:
        self._ids = documents.ids
        self._starts = starts_of(documents, vocabulary, settings.masking, kind)
        self._cls, self._sep = vocabulary.role("cls"), vocabulary.role("sep")
        self._rules = masking_rules(vocabulary, settings.masking)
        self._masks, self._kind, self._tells_words = settings.masks, kind, has_group(kind, WORD_STARTS)

    def make(self, pair: Pair, stream: RandomStream) -> Example:
        """The example with its masks drawn.

        Without masks they are drawn all the same, and left out: so the pairs that follow are those of a run
        with masks, and a shard is the other with its labels put back.
        """
        a, b, next_label = pair
        a_ids, b_ids = ([self._ids[place] for place in segment] for segment in (a, b))
        original = [self._cls, *a_ids, self._sep, *b_ids, self._sep]
        starts = None
        if self._starts is not None:
            starts = [1, *_segment_starts(self._starts, a), 1, *_segment_starts(self._starts, b), 1]
        masked = mask_in_file(original, self._rules, stream, starts)
        if not self._masks:
            masked = Masked(original, [], [])
        return self._kind.example_type(
            ids=masked.ids,
            first_length=len(a) + 2,
            positions=masked.positions,
            labels=masked.labels,
            next_label=next_label,
            **({"word_starts": starts} if self._tells_words else {}),
        )  # type: ignore[call-arg] # the fields of BertBatch


def _segment_starts(starts: Sequence[int], places: list[int]) -> list[int]:
    """The bits of a segment's ids. Its first id starts a word, whatever stands before it in the text."""
    return [1, *(starts[place] for place in places[1:])] if places else []


def _places(documents: Documents) -> list[Document]:
    """Documents as lists of sentences, sentences as lists of their ids' places in ``documents.ids``."""
    sentences: list[list[int]] = []
    start = 0
    for end in documents.sentence_ends:
        sentences.append(list(range(start, end)))
        start = end
    lists: list[Document] = []
    start = 0
    for end in documents.document_ends:
        lists.append(sentences[start:end])
        start = end
    return lists
