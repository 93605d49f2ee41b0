"""Trains a tokenizer.json on text: WordPiece like BERT's, BPE like RoBERTa's, Unigram like XLM-RoBERTa's."""

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
    """Train a tokeniser with at most ``size`` tokens and return it as a ``tokenizers.Tokenizer``.

    keep_accents: for WordPiece, keep accents of lower-cased text. The other kinds always keep accents.
    on_read: called with the number of bytes read since the last call.
    on_counted: called with the counted words, before training begins.
    SettingsError if special tokens and single characters alone exceed the size. InputError if the text cannot
    be read or has no words.
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
        # Like RoBERTa's mask token, this token includes the blank before it, because the words that it
        # replaces do too.
        takes_blank = kind != "wordpiece" and token == mask
        tokenizer.add_special_tokens([tokenizers.AddedToken(token, lstrip=takes_blank)])
    sep, cls = ((special.roles[role], tokenizer.token_to_id(special.roles[role])) for role in ("sep", "cls"))
    if kind == "wordpiece":
        tokenizer.post_processor = tokenizers.processors.BertProcessing(sep, cls)
    else:
        # A token of byte-level BPE includes the blank before a word. trim_offsets leaves that blank out of
        # the token's position.
        tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
            sep, cls, trim_offsets=kind == "bpe", add_prefix_space=False
        )
    return tokenizer
