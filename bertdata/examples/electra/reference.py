"""Sentences to ELECTRA's examples: the specification, in the order of draws of google-research/electra.

Clark et al. 2020. Twin of _native/examples/electra.h.
"""

from collections.abc import Iterator

from bertdata.examples.electra.batch import ElectraBatch, ElectraExample
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.pairs import Document, Sentence
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Vocabulary

ONE_SEGMENT_PROB = 0.1
ONE_SEGMENT_IDS = 100_000
"""The wanted length of a first segment that leaves nothing for a second."""
SHORT_PROB = 0.05
SHORTEST = 5
"""The least text, in ids, that a short example waits for."""


class ReferenceStream:
    """The random stream of a run, and the length of its next example.

    Both go on from one input to the next. inputs: how many there are, which the program shuffles first.
    """

    def __init__(self, settings: ElectraSettings, inputs: int = 1) -> None:
        self.random = RandomStream(settings.random_seed)
        self.random.shuffle(list(range(inputs)))
        self.longest = self.target = settings.max_seq_length

    def make_segments(self, sentences: list[Sentence]) -> tuple[list[int], list[int]]:
        """The two segments of an example's sentences, not cut, and the target of the next example."""
        is_one = self.random.random() < ONE_SEGMENT_PROB
        wanted = ONE_SEGMENT_IDS if is_one else (self.target - 3) // 2
        first: list[int] = []
        second: list[int] = []
        for sentence in sentences:
            fits = not first or len(first) + len(sentence) < wanted
            may_join = not second and len(first) < wanted
            if fits or (may_join and self.random.random() < 0.5):
                first += sentence
            else:
                second += sentence
        is_short = self.random.random() < SHORT_PROB
        self.target = self.random.randint(SHORTEST, self.longest) if is_short else self.longest
        return first, second


def segment_pairs(
    documents: list[Document], stream: ReferenceStream
) -> Iterator[tuple[list[int], list[int]]]:
    """The segments of every example, not cut. A document's end ends an example too."""
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
    """The examples of some documents, made as the specification reads."""

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: ElectraSettings, stream: ReferenceStream
    ) -> None:
        cls, sep, longest = vocabulary.role("cls"), vocabulary.role("sep"), settings.max_seq_length
        examples, held = [], 0
        for first, second in segment_pairs(_as_lists(documents), stream):
            first = first[: longest - 2]
            second = second[: max(0, longest - len(first) - 3)]
            held += len(first) + len(second)  # each sentence is offered to one example alone
            ids = [cls, *first, sep, *second, *([sep] if second else [])]
            examples.append(ElectraExample(ids=ids, first_length=len(first) + 2))
        lost = documents.tokens - held
        super().__init__(examples, ElectraBatch, wide=vocabulary.wide, lost=lost)


def _as_lists(documents: Documents) -> list[Document]:
    """Documents as lists of sentences, sentences as lists of ids."""
    found, sentence, start = [], 0, 0
    for document_end in documents.document_ends:
        ends = documents.sentence_ends[sentence:document_end]
        starts = [start, *ends][: len(ends)]
        found.append([list(documents.ids[a:b]) for a, b in zip(starts, ends, strict=True)])
        sentence, start = document_end, ends[-1] if len(ends) else start
    return found
