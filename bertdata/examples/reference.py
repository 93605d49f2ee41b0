"""Documents to examples, as it reads: passes over the documents, masks, the final shuffle."""

from bertdata.config.recipes import ExampleSettings
from bertdata.examples.masking import mask
from bertdata.examples.pairs import Document, pair_document
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Example, ExampleBatch, Vocabulary


class PythonExamples:
    """The specification, run as it reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: ExampleSettings) -> None:
        self._wide = vocabulary.size > 1 << 16
        self._examples: list[Example] = []
        stream = RandomStream(settings.random_seed)
        shuffled = _as_lists(documents)
        stream.shuffle(shuffled)
        continues_word = vocabulary.continues_word()
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                pairs = pair_document(
                    shuffled,
                    index,
                    stream,
                    max_tokens=settings.max_seq_length - 3,
                    short_seq_prob=settings.short_seq_prob,
                    dialect=settings.rules,
                )
                for pair in pairs:
                    self._examples.append(mask(pair, vocabulary, continues_word, settings, stream))
        stream.shuffle(self._examples)

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def tokens(self) -> int:
        return sum(len(example.ids) for example in self._examples)

    @property
    def masked(self) -> int:
        return sum(len(example.positions) for example in self._examples)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        return ExampleBatch.of(self._examples[start:stop:step], wide=self._wide)


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
