"""The simplest possible objective: ids only, with one segment, no masks and no label."""

from dataclasses import dataclass
from itertools import pairwise

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings
from bertdata.examples.objective import Objective
from bertdata.records import Documents, ExampleBatch, MadeExamples, Vocabulary

NAME = "tests.support.plain_objective:PLAIN"
ROW = {"type": "int64", "shape": "S", "padding": 0}
FIELDS = {
    "tfrecord": {"tokens": {**ROW, "of": "ids"}, "tokens_used": {**ROW, "of": "ids", "as": "ones"}},
    "hdf5": {
        "tokens": {**ROW, "type": "int32", "of": "ids"},
        "tokens_used": {**ROW, "type": "int8", "of": "ids", "as": "ones"},
    },
    "parquet": {"tokens": {"type": "int32", "shape": "*", "of": "ids"}},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainSettings(ExampleSettings):
    """The objective's settings."""

    sentences_per_example: int = setting(2, "sentences in an example")


class PlainExamples:
    """Examples that consist of [CLS] and some sentences of one document, cut to the requested length."""

    masked = 0

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: PlainSettings) -> None:
        self._wide = vocabulary.wide
        self._examples = []
        starts = [0, *documents.sentence_ends]
        for first, last in pairwise([0, *documents.document_ends]):
            for sentence in range(first, last, settings.sentences_per_example):
                stop = starts[min(sentence + settings.sentences_per_example, last)]
                ids = [vocabulary.cls, *documents.ids[starts[sentence] : stop]]
                self._examples.append(ExampleBatch.example_type(ids=ids[: settings.max_seq_length]))

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def tokens(self) -> int:
        return sum(len(example.ids) for example in self._examples)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        return ExampleBatch.of(self._examples[start:stop:step], wide=self._wide)


class Plain(Objective):
    """An objective whose examples have only ids."""

    settings_type = PlainSettings

    def make(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: PlainSettings,
        engine: str | None = None,
    ) -> MadeExamples:
        return PlainExamples(documents, vocabulary, settings)


PLAIN = Plain(NAME, FIELDS)
