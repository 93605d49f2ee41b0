"""ALBERT's examples made by the kernel or by its readable twin."""

from bertdata._native import Engine
from bertdata.errors import SettingsError
from bertdata.examples.sop.reference import ReferenceSop
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, ExampleSource, Vocabulary


def make_sop_examples(
    documents: Documents, vocabulary: Vocabulary, settings: SopSettings, engine: Engine | None = None
) -> ExampleSource:
    """All examples of the documents, in final order.

    As BERT's they are made in dupe_factor passes over the shuffled documents, and shuffled, all with one
    random stream seeded by random_seed. The lengths of n-grams come from a second one. SettingsError where
    nothing tells where words start.
    """
    if vocabulary.continues_word is None and documents.word_starts is None:
        raise SettingsError(f"{vocabulary.name}: sop needs a tokeniser that tells where words start")
    return ReferenceSop(documents, vocabulary, settings)
