"""The two types of file from which a tokeniser is made, each with the settings that determine its ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertdata.config.dataset_settings import SettingsRecord, make_vocabulary_record
from bertdata.records import Vocabulary

VOCABULARY_NAME = "vocab.txt"
"""Name of a dataset's copy of its WordPiece vocabulary, whatever the original file was called."""

TOKENIZER_NAME = "tokenizer.json"
"""Name of a dataset's copy of its tokenizer.json."""

BETWEEN = " "
"""Default text between two sentences of a document, for languages that separate words by blanks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyFile:
    """A WordPiece vocabulary file, one token per line, as a dialect reads it. Sent to worker processes.

    keep_accents: lower-cased text keeps its accents.
    chinese_words: a segmenter says where Chinese words start.
    md5: md5 that the file must have whenever it is read. If empty, any md5 is accepted.
    """

    path: str
    dialect: str
    lower_case: bool = True
    keep_accents: bool = False
    chinese_words: bool = False
    md5: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerJson:
    """A tokenizer.json of Hugging Face's ``tokenizers``. Sent to worker processes.

    roles: pairs of role and token. Roles that are not listed have no token.
    between: text between two sentences of a document.
    md5: md5 that the file must have whenever it is read. If empty, any md5 is accepted.
    """

    path: str
    roles: tuple[tuple[str, str], ...] = ()
    between: str = BETWEEN
    md5: str = field(default="", compare=False)

    dialect: ClassVar[None] = None

    def record(self, vocabulary: Vocabulary) -> SettingsRecord:
        """Return the tokeniser's record for a manifest. It includes the size if some ids have no token."""
        size = vocabulary.size
        return {
            "kind": vocabulary.kind,
            "file": TOKENIZER_NAME,
            "roles": dict(self.roles),
            "between": self.between,
            "vocabulary": make_vocabulary_record(vocabulary)
            | ({"size": size} if size != vocabulary.tokens else {}),
        }


TokenizerFile = VocabularyFile | TokenizerJson


def read_file_record(record: Mapping[str, Any], path: str) -> TokenizerFile:
    """Return the file at ``path``, with the settings from the tokeniser's record in a manifest."""
    if "file" in record:
        roles = tuple(record["roles"].items())
        return TokenizerJson(path=path, roles=roles, between=record["between"])
    names = ("dialect", "lower_case", "keep_accents", "chinese_words")
    return VocabularyFile(path=path, **{name: record[name] for name in names if name in record})


def name_in_dataset(record: Mapping[str, Any]) -> str:
    """Return the name that the dataset's copy of the tokeniser's file has. record: from the manifest."""
    return str(record.get("file", VOCABULARY_NAME))
