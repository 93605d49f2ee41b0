"""The readable twin of ALBERT's kernel: passes over the documents, masks, the final shuffle."""

from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import masking_rules
from bertdata.examples.masking.reference import Masked, words_of
from bertdata.examples.pairs import Pair, pair_document, sentence_places
from bertdata.examples.random_stream import NumpyStream, RandomStream
from bertdata.examples.sop.batch import SopBatch, SopExample
from bertdata.examples.sop.ngrams import NgramLengths, mask_ngrams
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, Vocabulary


class ReferenceSop(ListedExamples):
    """The examples of some documents, made as the specification reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
        examples: list[SopExample] = []
        stream, maker = RandomStream(settings.random_seed), _SopMaker(documents, vocabulary, settings)
        shuffled = sentence_places(documents)
        stream.shuffle(shuffled)
        held: set[int] = set()
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                for pair in pair_document(shuffled, index, stream, settings.pair_rules):
                    held.update(pair[0], pair[1])
                    examples.append(maker.make(pair, stream))
        stream.shuffle(examples)
        lost = documents.tokens - len(held)
        super().__init__(examples, SopBatch, wide=vocabulary.wide, lost=lost)


class _SopMaker:
    """Makes the example of a pair of segments whose ids are known by their places in the documents."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
        self._documents, self._vocabulary, self._settings = documents, vocabulary, settings
        self._special = {vocabulary.role("cls"), vocabulary.role("sep")}
        self._rules = masking_rules(vocabulary, settings.masking)
        self._lengths = NgramLengths(settings.ngram_limits, NumpyStream(settings.ngram_seed).random)

    def make(self, pair: Pair, stream: RandomStream) -> SopExample:
        """The example ``[CLS] a [SEP] b [SEP]`` with its masks drawn.

        Without masks they are drawn all the same, and left out, as in BERT's.
        """
        a, b, label = pair
        cls, sep, ids = self._vocabulary.role("cls"), self._vocabulary.role("sep"), self._documents.ids
        original = [cls, *(ids[place] for place in a), sep, *(ids[place] for place in b), sep]
        starts = [1, *map(self._starts_word, a), 1, *map(self._starts_word, b), 1]
        by_place = None if self._documents.word_starts is None else starts
        found = mask_ngrams(
            original,
            words_of(original, self._rules, by_place),
            self._rules,
            stream,
            self._lengths,
            permutes=self._settings.permutation,
        )
        if not self._settings.masks:
            found = Masked(original, [], [])
        return SopExample(
            ids=found.ids,
            first_length=len(a) + 2,
            word_starts=starts,
            positions=found.positions,
            labels=found.labels,
            order_label=label,
        )

    def _starts_word(self, place: int) -> int:
        """1 where a word starts at this place of the documents, and for [CLS] and [SEP] in the text."""
        token, by_place = self._documents.ids[place], self._documents.word_starts
        if token in self._special:
            return 1
        return int(by_place[place] if by_place is not None else not self._rules.continues_word[token])
