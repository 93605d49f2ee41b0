"""The two kinds of file that a tokeniser is made from, with the settings that decide its ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertdata.config.dataset_settings import SettingsRecord, vocabulary_record
from bertdata.records import Vocabulary

VOCABULARY_NAME = "vocab.txt"
"""A dataset's copy of its WordPiece vocabulary, whatever the file was called."""

TOKENIZER_NAME = "tokenizer.json"
"""A dataset's copy of the tokenizer.json that it was made with."""

BETWEEN = " "
"""The text between two sentences of a document, in languages that put blanks between words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyFile:
    """A WordPiece vocabulary, one token a line, as a dialect reads it. Picklable, travels to workers.

    keep_accents: text that is lower-cased keeps its accents. chinese_words: where a word of Chinese starts is
    told by a segmenter. md5: of the bytes that the file must have whenever it is read; empty: any.
    """

    path: str
    dialect: str
    lower_case: bool = True
    keep_accents: bool = False
    chinese_words: bool = False
    md5: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerJson:
    """A tokenizer.json of Hugging Face's ``tokenizers``. Picklable, travels to workers.

    roles: pairs of a role's name and its token; a role that is not among them has no token. between: the text
    between two sentences of a document. md5: as in VocabularyFile.
    """

    path: str
    roles: tuple[tuple[str, str], ...] = ()
    between: str = BETWEEN
    md5: str = field(default="", compare=False)

    dialect: ClassVar[None] = None

    def record(self, vocabulary: Vocabulary) -> SettingsRecord:
        """The tokeniser's record in a manifest. It holds a size where some ids have no token."""
        size = vocabulary.size
        return {
            "kind": vocabulary.kind,
            "file": TOKENIZER_NAME,
            "roles": dict(self.roles),
            "between": self.between,
            "vocabulary": vocabulary_record(vocabulary)
            | ({"size": size} if size != vocabulary.tokens else {}),
        }


TokenizerFile = VocabularyFile | TokenizerJson


def file_of_record(record: Mapping[str, Any], path: str) -> TokenizerFile:
    """The file at the path, read as the tokeniser's record of a manifest says."""
    if "file" in record:
        roles = tuple(record["roles"].items())
        return TokenizerJson(path=path, roles=roles, between=record["between"])
    names = ("dialect", "lower_case", "keep_accents", "chinese_words")
    return VocabularyFile(path=path, **{name: record[name] for name in names if name in record})


def name_in_dataset(record: Mapping[str, Any]) -> str:
    """The name of the dataset's copy of its tokeniser's file, by the tokeniser's record."""
    return str(record.get("file", VOCABULARY_NAME))
