"""A trained model opened to be tried: its checkpoint, shape and tokeniser."""

from pathlib import Path

from bertdata.config.dialects import find_dialect
from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.checkpoint import STATE
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.source import OURS, is_checkpoint, open_checkpoint
from trainer.checkpoints.tokenizer import find_tokenizer
from trainer.config.settings import Config, section_keys
from trainer.errors import CheckpointError
from trainer.tasks.prediction import Trained


def open_trained(
    source: str,
    *,
    model_config: str | None = None,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> Trained:
    """The newest checkpoint of a run, or a checkpoint of any program.

    model_config: a file in place of the one beside another program's weights. vocabulary, train_data,
    lower_case: as ``convert`` takes them. MissingInputError where checkpoint or vocabulary is not at hand.
    """
    if not is_checkpoint(source):
        what = f"holds no checkpoint: neither {STATE} nor another program's"
        raise MissingInputError(
            f"{source}: {what if storage.exists(source) else 'no such file or directory'}"
        )
    checkpoint = open_checkpoint(source, model_config=model_config, with_moments=False)
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
        tokenizer=_open_tokenizer(found),
        lower_case=found.lower_case if isinstance(found, VocabularyFile) else None,
        config=_task_config(checkpoint),
    )


def _open_tokenizer(file: TokenizerFile) -> Tokenizer:
    """The tokeniser: of a vocabulary, numbered as its data are, the WordPiece of Google's program."""
    if not isinstance(file, VocabularyFile):
        return tokenizer_of(file)
    words = vocabulary_of(file)
    assert isinstance(words, WordPieceVocabulary)
    return WordPieceTokenizer(
        words, find_dialect("google"), lower_case=file.lower_case, keep_accents=file.keep_accents
    )


def _task_config(checkpoint: Checkpoint) -> Config:
    """The configuration of the run's task. Pre-training, the default, for another program's checkpoint."""
    if checkpoint.kind != OURS:
        return Config.of()
    found = read_state(Path(checkpoint.path)).config
    names = ("max_seq_length", *section_keys("finetuning"))
    try:
        return Config.of(**{name: found[name] for name in names if name in found})
    except SettingsError as error:
        raise CheckpointError(f"{checkpoint.path}: its config: {error}") from None
