"""Opening of a trained model for predictions: its checkpoint, shape and tokeniser."""

from bertdata.config.dialects import find_dialect
from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.io.terminal import say_error
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.checkpoints.any_checkpoint import OURS
from trainer.checkpoints.checkpoint import STATE
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.learned_task import make_learned_task_config
from trainer.checkpoints.source import is_checkpoint, open_checkpoint
from trainer.checkpoints.tokenizer import find_tokenizer
from trainer.data.named_tokenizer import find_vocabulary_warnings
from trainer.tasks.prediction import Trained


def open_trained(
    source: str,
    *,
    model_config: str | None = None,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> Trained:
    """Open a trained model: the newest checkpoint of a run, or a checkpoint of any program.

    source: path of the run or the checkpoint.
    model_config: file with the model's settings, if not the one next to another program's weights.
    vocabulary, train_data, lower_case: as in the command ``convert``.
    Raises MissingInputError if the checkpoint or its vocabulary does not exist.
    """
    if not is_checkpoint(source):
        what = f"holds no checkpoint: neither {STATE} nor another program's"
        raise MissingInputError(
            f"{source or storage.EMPTY}: {what if storage.exists(source) else 'no such file or directory'}"
        )
    checkpoint = open_checkpoint(source, model_config=model_config, with_moments=False)
    warnings = (*checkpoint.warnings, *find_vocabulary_warnings(vocabulary))
    if checkpoint.choice:
        say_error(f"trainer: {checkpoint.choice}")
    say_error(*(f"trainer: warning: {warning}" for warning in warnings))
    shape = checkpoint.expect_config()
    found = find_tokenizer(checkpoint, shape, vocabulary, train_data, lower_case)
    if found is None:
        if checkpoint.kind != OURS:
            raise MissingInputError(f"{source}: holds neither vocab.txt nor tokenizer.json; give --vocab")
        raise MissingInputError(
            f"{source}: its vocabulary is not at hand; give --vocab, or --train-data where it has moved"
        )
    return Trained(
        source=source,
        fill_from=lambda model: fill_model(model, checkpoint),
        shape=shape,
        longest=checkpoint.longest,
        tokenizer=_open_tokenizer(found),
        lower_case=found.lower_case if isinstance(found, VocabularyFile) else None,
        config=make_learned_task_config(checkpoint),
        head=checkpoint.head_labels,
    )


def _open_tokenizer(file: TokenizerFile) -> Tokenizer:
    """Open the tokeniser. A vocabulary file is opened as WordPiece in the way of Google's program."""
    if not isinstance(file, VocabularyFile):
        return tokenizer_of(file)
    words = vocabulary_of(file)
    assert isinstance(words, WordPieceVocabulary)
    return WordPieceTokenizer(
        words, find_dialect("google"), lower_case=file.lower_case, keep_accents=file.keep_accents
    )
