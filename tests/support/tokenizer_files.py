"""Tokenisers' files for tests: vocabularies as a run's settings read them, small ones trained on the spot."""

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
    """The vocabulary at the path, as the settings by output directory read it."""
    first = next(iter(settings.values()))
    return VocabularyFile(path=path, dialect=first.dialect, lower_case=first.lower_case)


def train_bpe(path: Path, lines: list[str], size: int = 400) -> Path:
    """A byte-level BPE in RoBERTa's layout, trained on the lines."""
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
    """A Unigram model as ALBERT's, trained on the lines; it lower-cases and joins runs of blanks."""
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
    """A lower-casing WordPiece model in BERT's layout, trained on the lines."""
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
