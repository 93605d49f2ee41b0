"""Pure-Python twin of BERT's kernel: it reads the documents several times, draws masks and shuffles the
examples.
"""

from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import prepare_masking_rules, starts_of
from bertdata.examples.masking.reference import Masked, mask_in_file
from bertdata.examples.pairs import Pair, find_segment_starts, index_sentences, make_document_pairs
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Example, Vocabulary


class ReferenceExamples(ListedExamples):
    """BERT's examples of the documents, made in pure Python.

    The random numbers are drawn in the order that the specification prescribes, which is also that of the C++
    kernel.
    """

    def __init__(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: BertSettings,
        batch_type: type[BertBatch],
    ) -> None:
        examples: list[Example] = []
        stream, maker = (
            RandomStream(settings.random_seed),
            _ExampleMaker(documents, vocabulary, settings, batch_type),
        )
        # One random stream is used for everything: it shuffles the documents, draws the segments and masks of
        # each pair, and shuffles the examples. A single additional draw would change all draws after it.
        shuffled = index_sentences(documents)
        stream.shuffle(shuffled)
        held: set[int] = set()
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                # The pairs come from a generator. It draws the numbers for a pair only after the pair before
                # was masked.
                for pair in make_document_pairs(shuffled, index, stream, settings.pair_rules):
                    held.update(pair[0], pair[1])
                    examples.append(maker.make(pair, stream))
        stream.shuffle(examples)
        lost = documents.tokens - len(held)
        super().__init__(examples, batch_type, wide=vocabulary.wide, lost=lost)


class _ExampleMaker:
    """Object that makes the example ``[CLS] a [SEP] b [SEP]`` from a pair of segments.

    A segment is a list of indices into ``documents.ids``.
    """

    def __init__(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: BertSettings,
        batch_type: type[BertBatch],
    ) -> None:
        self._ids = documents.ids
        self._starts = starts_of(documents, vocabulary, settings.masking, batch_type)
        self._cls, self._sep = vocabulary.role("cls"), vocabulary.role("sep")
        self._rules = prepare_masking_rules(vocabulary, settings.masking, masks=settings.masks)
        self._masks, self._kind, self._tells_words = (
            settings.masks,
            batch_type,
            has_group(batch_type, WORD_STARTS),
        )

    def make(self, pair: Pair, stream: RandomStream) -> Example:
        """Make one example and draw its masks.

        If the settings ask for no masks, masks are drawn too and then discarded. The random stream then
        continues as in a run with masks, so both runs give the same examples apart from the masks.
        """
        # The segments are lists of indices into ``documents.ids``. Look up their ids here. The same indices
        # also give the word starts below.
        a, b, next_label = pair
        a_ids, b_ids = ([self._ids[place] for place in segment] for segment in (a, b))
        original = [self._cls, *a_ids, self._sep, *b_ids, self._sep]
        starts = None
        if self._starts is not None:
            starts = [1, *find_segment_starts(self._starts, a), 1, *find_segment_starts(self._starts, b), 1]
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
