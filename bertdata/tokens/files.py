"""The two types of file that a tokeniser can be made from, with the settings that determine its ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertdata.config.dataset_settings import SettingsRecord, make_vocabulary_record
from bertdata.records import Vocabulary

VOCABULARY_NAME = "vocab.txt"
"""File name of the copy of a WordPiece vocabulary in a dataset, whatever the original file was called."""

TOKENIZER_NAME = "tokenizer.json"
"""File name of the copy of a tokenizer.json in a dataset."""

BETWEEN = " "
"""Text that is put between two sentences of a document by default. It suits languages that use blanks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyFile:
    """A WordPiece vocabulary file with one token per line, and its settings.

    Worker processes receive this object.

    path: path of the file.
    dialect: name of the program whose rules for the file are used, such as "mlperf".
    lower_case: convert text to lower case.
    keep_accents: keep the accents of lower-cased text.
    chinese_words: let a segmenter decide where Chinese words start.
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
    """A tokenizer.json of Hugging Face's ``tokenizers``, and its settings.

    Worker processes receive this object.

    path: path of the file.
    roles: pairs of a role, such as "mask", and the token with this role. Roles that are not listed have no
        token.
    between: text that is put between two sentences of a document before encoding.
    md5: md5 that the file must have whenever it is read. If empty, any md5 is accepted.
    """

    path: str
    roles: tuple[tuple[str, str], ...] = ()
    between: str = BETWEEN
    md5: str = field(default="", compare=False)

    dialect: ClassVar[None] = None

    def record(self, vocabulary: Vocabulary) -> SettingsRecord:
        """Return the description of the tokeniser that a dataset's manifest contains.

        vocabulary: vocabulary of the file. If some of its ids have no token, the description includes its
            size.
        """
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
    """Make the description of a tokeniser's file from the settings in a dataset's manifest.

    record: the manifest's entry about the tokeniser.
    path: where the file is now.
    """
    if "file" in record:
        roles = tuple(record["roles"].items())
        return TokenizerJson(path=path, roles=roles, between=record["between"])
    names = ("dialect", "lower_case", "keep_accents", "chinese_words")
    return VocabularyFile(path=path, **{name: record[name] for name in names if name in record})


def name_in_dataset(record: Mapping[str, Any]) -> str:
    """Return the file name of the copy of the tokeniser's file that a dataset contains.

    record: the entry about the tokeniser in the dataset's manifest.
    """
    return str(record.get("file", VOCABULARY_NAME))
