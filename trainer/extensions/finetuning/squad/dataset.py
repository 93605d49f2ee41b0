"""SQuAD's features as a dataset of the toolkit."""

from bertdata.examples.squad.batch import SquadBatch, SquadExample
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.extensions.finetuning.feature_set import (
    FeatureSet,
    FeatureSource,
    MadeExamples,
    make_feature_set,
)
from trainer.extensions.finetuning.squad.features import make_features
from trainer.extensions.finetuning.squad.reading import parse_squad
from trainer.extensions.finetuning.squad.settings import SquadSettings


def make_squad_set(
    directory: str, source: FeatureSource, tokenizer: WordPieceTokenizer, settings: SquadSettings
) -> FeatureSet:
    """The dataset of the file's features, in order: example i has the unique id 1000000000 + i.

    What predictions need beside (the words of the context, the features' spans) is made again from the file
    by ``parse_squad`` and ``make_features``, which takes a second for 10,000 questions.
    """

    def make(source: FeatureSource) -> MadeExamples:
        found = parse_squad(
            source.data, source.path, training=settings.training, negatives=settings.version_2_with_negative
        )
        features = make_features(found.questions, tokenizer, settings)
        examples = [
            SquadExample(
                ids=one.ids(tokenizer.vocabulary),
                first_length=one.document,
                answer_start=one.start or 0,
                answer_end=one.end or 0,
                impossible=int(one.is_impossible),
            )
            for one in features
        ]
        return MadeExamples(
            examples=examples,
            batch_type=SquadBatch,
            documents=found.contexts,
            sentences=len(found.questions),
            warnings=found.warnings(),
        )

    return make_feature_set(directory, source, tokenizer.vocabulary, settings, make)
