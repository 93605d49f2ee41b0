"""Pure-Python twin of ALBERT's kernel: it reads the documents several times, draws masks and shuffles
examples.
"""

from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import prepare_masking_rules
from bertdata.examples.masking.reference import Masked, words_of
from bertdata.examples.pairs import Pair, index_sentences, make_document_pairs
from bertdata.examples.random_stream import NumpyStream, RandomStream
from bertdata.examples.sop.batch import SopBatch, SopExample
from bertdata.examples.sop.ngrams import NgramLengths, mask_ngrams
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, Vocabulary


class ReferenceSop(ListedExamples):
    """ALBERT's examples of the documents, made in pure Python."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
        examples: list[SopExample] = []
        stream, maker = RandomStream(settings.random_seed), _SopMaker(documents, vocabulary, settings)
        # One random stream shuffles the documents, then draws the segments and masks of each pair, then
        # shuffles the examples. Only the lengths of n-grams have a separate stream, because ALBERT's program
        # draws them with NumPy.
        shuffled = index_sentences(documents)
        stream.shuffle(shuffled)
        held: set[int] = set()
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                for pair in make_document_pairs(shuffled, index, stream, settings.pair_rules):
                    held.update(pair[0], pair[1])
                    examples.append(maker.make(pair, stream))
        stream.shuffle(examples)
        lost = documents.tokens - len(held)
        super().__init__(examples, SopBatch, wide=vocabulary.wide, lost=lost)


class _SopMaker:
    """Object that makes an example from a pair of segments. A segment is a list of indices into
    ``documents.ids``.
    """

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
        self._documents, self._vocabulary, self._settings = documents, vocabulary, settings
        self._special = {vocabulary.role("cls"), vocabulary.role("sep")}
        self._rules = prepare_masking_rules(vocabulary, settings.masking)
        self._lengths = NgramLengths(settings.ngram_limits, NumpyStream(settings.ngram_seed).random)

    def make(self, pair: Pair, stream: RandomStream) -> SopExample:
        """Make the example ``[CLS] a [SEP] b [SEP]`` and draw its masks.

        If the settings ask for no masks, masks are drawn too and then discarded. Later pairs are therefore
        the same as in a run with masks.
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
        """Return 1 if a word starts at this index of ``documents.ids``, else 0.

        [CLS] and [SEP] that occur in the text count as words.
        """
        token, by_place = self._documents.ids[place], self._documents.word_starts
        if token in self._special:
            return 1
        return int(by_place[place] if by_place is not None else not self._rules.continues_word[token])
