"""Makes ELECTRA's examples with the C++ kernel or its pure-Python twin."""

from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.electra.batch import ElectraBatch
from bertdata.examples.electra.reference import ReferenceElectra, ReferenceStream
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.made_examples import KernelExamples
from bertdata.examples.random_stream import RandomStream, make_seed_key
from bertdata.records import Documents, MadeExamples, Vocabulary


class ElectraMaker:
    """Object that makes the examples of all inputs of a run, one input after another.

    All draws come from one random stream.

    inputs: number of inputs of the run.
    order: indices of the inputs in the order in which ELECTRA's program reads them. An index counts the
        inputs sorted by name.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        settings: ElectraSettings,
        engine: Engine | None = None,
        inputs: int = 1,
    ) -> None:
        self.order = list(range(inputs))
        RandomStream(settings.random_seed).shuffle(self.order)
        self._vocabulary, self._settings = vocabulary, settings
        self._native = use_native(engine or default_engine())
        self._stream: Any = (
            kernels.ElectraStream(make_seed_key(settings.random_seed), settings.max_seq_length, inputs)
            if self._native
            else ReferenceStream(settings, inputs)
        )

    def make(self, documents: Documents) -> MadeExamples:
        """Make all examples of the next input, in the order of the input's text."""
        if not self._native:
            return ReferenceElectra(documents, self._vocabulary, self._settings, self._stream)
        made = kernels.ElectraExamples(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            stream=self._stream,
            cls=self._vocabulary.role("cls"),
            sep=self._vocabulary.role("sep"),
        )
        return KernelExamples(made, ElectraBatch)
