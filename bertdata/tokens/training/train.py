"""Trains a tokenizer.json on text.

The kinds are WordPiece as in BERT, byte-level BPE as in RoBERTa, and Unigram as in XLM-RoBERTa.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from bertdata.tokens.training.bpe import train_bpe
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import Kind, SpecialTokens, check_vocabulary_size
from bertdata.tokens.training.texts import OnRead, VocabularyText, ignore_read
from bertdata.tokens.training.unigram import train_unigram
from bertdata.tokens.training.word_counts import OnCounted, ignore_counts
from bertdata.tokens.training.wordpiece import train_wordpiece


def train_tokenizer(
    text: VocabularyText,
    *,
    kind: Kind,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    keep_accents: bool = False,
    on_read: OnRead = ignore_read,
    on_counted: OnCounted = ignore_counts,
) -> Any:
    """Train a tokeniser, and return it as a ``tokenizers.Tokenizer``.

    text: text to learn from.
    kind: "wordpiece", "bpe" or "unigram".
    size: largest number of tokens, including the special tokens.
    lower_case: convert the text to lower case.
    special: the special tokens.
    keep_accents: for WordPiece, keep the accents of lower-cased text. The other kinds always keep accents.
    on_read: called with the number of bytes read since the last call.
    on_counted: called with the counts of all words, before training begins.

    Raises SettingsError if the special tokens and the single characters alone are more than ``size`` tokens.
    Raises InputError if the text cannot be read or has no words.
    """
    check_vocabulary_size(size)
    trainers: dict[str, Callable[..., Any]] = {
        "wordpiece": partial(train_wordpiece, keep_accents=keep_accents),
        "bpe": train_bpe,
        "unigram": train_unigram,
    }
    train = trainers[kind]
    tokenizer = train(
        text, size=size, lower_case=lower_case, special=special, on_read=on_read, on_counted=on_counted
    )
    tokenizers = import_tokenizers()
    mask = special.roles["mask"]
    for token in special.all:
        # As in RoBERTa, the mask token includes the blank before it. The tokens that it replaces include this
        # blank too.
        takes_blank = kind != "wordpiece" and token == mask
        tokenizer.add_special_tokens([tokenizers.AddedToken(token, lstrip=takes_blank)])
    sep, cls = ((special.roles[role], tokenizer.token_to_id(special.roles[role])) for role in ("sep", "cls"))
    if kind == "wordpiece":
        tokenizer.post_processor = tokenizers.processors.BertProcessing(sep, cls)
    else:
        # A token of byte-level BPE includes the blank before a word. With trim_offsets, this blank is not
        # counted in the position of the token.
        tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
            sep, cls, trim_offsets=kind == "bpe", add_prefix_space=False
        )
    return tokenizer
