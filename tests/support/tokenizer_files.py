"""Tokeniser files for tests: vocabularies read with a run's settings, and small trained models."""

from collections.abc import Mapping
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from bertdata.config.settings import ExampleSettings
from bertdata.tokens.files import VocabularyFile


def vocabulary_file(path: str, settings: Mapping[str, ExampleSettings]) -> VocabularyFile:
    """Read the vocabulary at the path.

    settings: the run's settings by output directory, which say how to read it.
    """
    first = next(iter(settings.values()))
    return VocabularyFile(path=path, dialect=first.dialect, lower_case=first.lower_case)


def train_bpe(path: Path, lines: list[str], size: int = 400) -> Path:
    """Train a byte-level BPE model in RoBERTa's layout on the lines."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(lines, trainer)
    trained.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    trained.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    trained.save(str(path))
    return path


def train_unigram(path: Path, lines: list[str], size: int = 200) -> Path:
    """Train a Unigram model like ALBERT's on the lines. It lower-cases text and joins repeated blanks."""
    trained = Tokenizer(models.Unigram())
    blanks = normalizers.Replace(Regex(" {2,}"), " ")
    trained.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(), blanks])
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"]
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    trained.train_from_iterator(lines, trainer)
    trained.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, trained.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    trained.save(str(path))
    return path


def train_wordpiece(path: Path, lines: list[str], size: int = 300) -> Path:
    """Train a lower-casing WordPiece model in BERT's layout on the lines."""
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=True)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    trained.train_from_iterator(lines, trainer)
    trained.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    trained.save(str(path))
    return path


TRAINERS = {"bpe": train_bpe, "unigram": train_unigram, "wordpiece": train_wordpiece}
