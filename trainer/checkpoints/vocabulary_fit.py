"""Comparing a checkpoint's vocabulary with the data's vocabulary. Each token must have the same id in both.
The data's vocabulary may have additional tokens.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

from bertdata.errors import DataError
from bertdata.records import ROLES, Vocabulary
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.tokenizer_json import read_tokenizer_json
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.kept_tokenizer import find_data_tokenizer
from trainer.checkpoints.new_tokens import add_new_tokens
from trainer.checkpoints.tokenizer import find_casing, find_stored_tokenizer
from trainer.config.model import ModelConfig
from trainer.config.settings import Config

_UNUSED = re.compile(r"\[unused\d+\]")
_REMEDY = "make the data with the model's own tokeniser (bertdata create --tokenizer, or --vocab)"


def fit_vocabulary(
    checkpoint: Checkpoint, shape: ModelConfig, config: Config, log: Callable[[str], None]
) -> Checkpoint:
    """Return the checkpoint with an embedding for each token of the configured data's vocabulary.

    DataError if an id means different tokens in the two vocabularies, or if they have different tokens for a
    role such as the mask.
    """
    own, data = find_stored_tokenizer(checkpoint), find_data_tokenizer(config)
    if data is None:
        return checkpoint
    if own is None:
        log(
            f"warning: {checkpoint.path}: no tokeniser beside it; whether its ids are the data's is not known"
        )
        return checkpoint
    check_same_tokens(vocabulary_of(own), vocabulary_of(data))
    if isinstance(own, VocabularyFile):
        casing = find_casing(checkpoint)
        ours = None if casing is None else (casing, casing)
    else:
        ours = _find_casing(own)
    theirs = _find_casing(data)
    if ours is not None and theirs is not None and ours != theirs:
        log(
            f"warning: {checkpoint.path}: its text was read in another way: {_READINGS[theirs]} in the data, "
            f"{_READINGS[ours]} in the model"
        )
    if isinstance(own, VocabularyFile) and isinstance(data, VocabularyFile):
        own = replace(own, lower_case=data.lower_case)
    return add_new_tokens(checkpoint, own, vocabulary_of(data), shape, log)


_READINGS = {
    (True, True): "lower case",
    (True, False): "lower case with accents",
    (False, False): "case kept",
    (False, True): "case kept without accents",
}
"""Text for messages about a tokeniser, by (whether it lower-cases text, whether it strips accents)."""


def _find_casing(file: TokenizerFile) -> tuple[bool, bool] | None:
    """Return whether a tokeniser lower-cases text, and whether it strips accents.

    Return None for a tokenizer.json whose normaliser is not BERT's.
    """
    if isinstance(file, VocabularyFile):
        return file.lower_case, file.lower_case and not file.keep_accents
    normalizer = read_tokenizer_json(file)[0]["normalizer"]
    if normalizer is None or normalizer.get("type") != "BertNormalizer":
        return None
    lower_case, strips = bool(normalizer.get("lowercase")), normalizer.get("strip_accents")
    return lower_case, lower_case if strips is None else bool(strips)


def check_same_tokens(own: Vocabulary, data: Vocabulary) -> None:
    """Raise DataError if an id means different tokens in the two vocabularies, or if they have different
    tokens for a role such as the mask.

    own: the model's vocabulary.
    data: the data's vocabulary. It may have additional tokens, also with the ids of ``[unused0]``,
    ``[unused1]`` and so on.
    """
    if own.md5 != data.md5:
        pairs = zip_longest(own.words, data.words)
        for number, (ours, theirs) in enumerate(pairs):
            if ours is not None and ours != theirs and not (theirs and _UNUSED.fullmatch(ours)):
                found = "no token" if theirs is None else repr(theirs)
                raise DataError(
                    f"{own.name}: id {number} is {ours!r}, in the data ({data.name}) {found}; {_REMEDY}"
                )
    for role in ROLES:
        ours, theirs = getattr(own, role), getattr(data, role)
        if ours is not None and theirs is not None and ours != theirs:
            raise DataError(
                f"{own.name}: the {role} token is {own.words[ours]!r}, in the data ({data.name}) "
                f"{data.words[theirs]!r}; {_REMEDY}"
            )
