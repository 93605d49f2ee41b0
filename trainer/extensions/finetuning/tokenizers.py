"""The tokeniser of a configuration."""

from bertdata.config.dialects import find_dialect
from bertdata.io.assets import find_vocabulary
from bertdata.tokens.load import load_vocabulary
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.config.settings import Config

_DIALECT = "google"


def configured_tokenizer(config: Config) -> WordPieceTokenizer:
    """WordPiece as Google's program has it, with the configured vocabulary and casing."""
    config.require("vocab")
    vocabulary = load_vocabulary(find_vocabulary(str(config.masking.vocab)), _DIALECT)
    assert isinstance(vocabulary, WordPieceVocabulary)
    return WordPieceTokenizer(
        vocabulary, find_dialect(_DIALECT), lower_case=config.finetuning.lower_case is not False
    )
