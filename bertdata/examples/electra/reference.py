"""Makes ELECTRA's examples in pure Python, with the order of random draws of google-research/electra.

Source: Clark et al. 2020. Pure-Python twin of _native/examples/electra.h.
"""

from collections.abc import Iterator

from bertdata.examples.electra.batch import ElectraBatch, ElectraExample
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.pairs import Document, Sentence
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Vocabulary

ONE_SEGMENT_PROB = 0.1
"""Probability that an example has only one segment."""
ONE_SEGMENT_IDS = 100_000
"""Length in ids that the first segment should reach if the example has only one segment.

No example is that long, so the first segment takes all of the example's sentences.
"""
SHORT_PROB = 0.05
"""Probability that the next example is shorter than the maximum. Its target length is then drawn at random.
"""
SHORTEST = 5
"""The smallest target length that can be drawn, in ids."""


class ReferenceStream:
    """The random stream of a run of ELECTRA's program, and the target length of the next example.

    Both continue from one input to the next.

    inputs: number of inputs. ELECTRA's program first shuffles the order of its inputs, so this stream makes
        the same draws.
    """

    def __init__(self, settings: ElectraSettings, inputs: int = 1) -> None:
        self.random = RandomStream(settings.random_seed)
        self.random.shuffle(list(range(inputs)))
        self.longest = self.target = settings.max_seq_length

    def make_segments(self, sentences: list[Sentence]) -> tuple[list[int], list[int]]:
        """Divide the sentences of an example into two segments, and draw the target length of the next
        example.

        The segments may still be longer than the maximum length.
        """
        # The draws have this order: whether the example has one segment, then perhaps one draw for each
        # sentence, then whether the next example is short, and how short it is.
        is_one = self.random.random() < ONE_SEGMENT_PROB
        wanted = ONE_SEGMENT_IDS if is_one else (self.target - 3) // 2
        first: list[int] = []
        second: list[int] = []
        for sentence in sentences:
            # The first segment takes sentences until it has half of the target length. If a sentence crosses
            # the half and the other segment is still empty, a draw decides between the two segments.
            # Otherwise the sentence goes to the other segment. As in ELECTRA's program, a later sentence that
            # is short enough still goes to the first.
            fits = not first or len(first) + len(sentence) < wanted
            may_join = not second and len(first) < wanted
            if fits or (may_join and self.random.random() < 0.5):
                first += sentence
            else:
                second += sentence
        is_short = self.random.random() < SHORT_PROB
        self.target = self.random.randint(SHORTEST, self.longest) if is_short else self.longest
        return first, second


def make_segment_pairs(
    documents: list[Document], stream: ReferenceStream
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the two segments of every example. They may still be longer than the maximum length.

    An example is complete when its sentences reach the target length, or when the document ends.
    """
    for document in documents:
        waiting: list[Sentence] = []
        for sentence in document:
            waiting.append(sentence)
            if sum(map(len, waiting)) >= stream.target:
                yield stream.make_segments(waiting)
                waiting = []
        if any(waiting):
            yield stream.make_segments(waiting)


class ReferenceElectra(ListedExamples):
    """ELECTRA's examples of one input, made from its documents in pure Python."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: ElectraSettings, stream: ReferenceStream
    ) -> None:
        cls, sep, longest = vocabulary.role("cls"), vocabulary.role("sep"), settings.max_seq_length
        examples, held = [], 0
        for first, second in make_segment_pairs(_convert_to_lists(documents), stream):
            first = first[: longest - 2]
            second = second[: max(0, longest - len(first) - 3)]
            held += len(first) + len(second)  # No sentence is in two examples, so no id is counted twice.
            ids = [cls, *first, sep, *second, *([sep] if second else [])]
            examples.append(ElectraExample(ids=ids, first_length=len(first) + 2))
        lost = documents.tokens - held
        super().__init__(examples, ElectraBatch, wide=vocabulary.wide, lost=lost)


def _convert_to_lists(documents: Documents) -> list[Document]:
    """Convert documents to lists of sentences, and sentences to lists of ids."""
    found, sentence, start = [], 0, 0
    for document_end in documents.document_ends:
        ends = documents.sentence_ends[sentence:document_end]
        starts = [start, *ends][: len(ends)]
        found.append([list(documents.ids[a:b]) for a, b in zip(starts, ends, strict=True)])
        sentence, start = document_end, ends[-1] if len(ends) else start
    return found
