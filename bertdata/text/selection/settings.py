"""Settings that select documents: which to leave out, and how many to hold out for evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.sources.find import find_files
from bertdata.text.languages import EXPECTED_LANGUAGE, find_tagged_language

DEDUP = ("exact",)
MOST_NGRAM_WORDS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationFile:
    """File of evaluation texts: its path, and its name and md5 for the manifest."""

    path: str
    name: str
    md5: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionSettings:
    """Settings that select the documents for training.

    First, documents in other languages are left out (``keep_languages``), then documents that contain
    evaluation texts (``exclude``), then duplicates
    (``dedup``). Of the remaining documents, a share is held out for evaluation (``eval_share``).
    """

    keep_languages: str | None = setting(
        None,
        "languages to keep, by --language-field: ISO 639-1 codes or English names separated by commas, such "
        "as de,arabic. Records in other languages are left out and counted",
    )
    exclude: tuple[EvaluationFile, ...] = setting(
        (),
        "evaluation set, in any input format: leave out documents that share --exclude-ngram consecutive "
        "words with a text of the set; may be repeated",
    )
    exclude_ngram: int = setting(
        13, "number of consecutive words that a document must share with an --exclude text to be left out"
    )
    dedup: str | None = setting(
        None,
        "exact: where several documents have the same text, keep only the first in the order of the files",
        DEDUP,
    )
    eval_share: str | None = setting(
        None,
        "share of the documents to hold out for evaluation, as a percentage with its sign. A hash of a "
        "document's text decides whether it is held out. Held-out documents are written to eval-00000.txt "
        "...",
    )

    def __post_init__(self) -> None:
        if not 1 <= self.exclude_ngram <= MOST_NGRAM_WORDS:
            raise SettingsError(f"exclude_ngram is {self.exclude_ngram}, expected 1 to {MOST_NGRAM_WORDS}")
        if self.dedup not in (None, *DEDUP):
            raise SettingsError(f"dedup is {self.dedup!r}, expected exact")
        if self.eval_share is not None:
            object.__setattr__(self, "eval_share", _parse_share(self.eval_share))
        if self.keep_languages is not None:
            object.__setattr__(self, "keep_languages", _parse_languages(self.keep_languages))

    def keeps_language(self, code: str) -> bool:
        """Return True if records in the language with this ISO 639-1 code are kept."""
        return self.keep_languages is None or code in self.keep_languages.split(",")

    @property
    def hash_limit(self) -> int:
        """Limit that decides which documents are held out.

        A document is held out if the first 64 bits of its text's hash are below this number.
        """
        if self.eval_share is None:
            return 0
        percent = Decimal(self.eval_share.removesuffix("%"))
        return int(percent * (1 << 64) / 100)

    def as_json(self) -> dict[str, Any]:
        """Return the settings that are in use (not None or empty), as a manifest stores them."""
        found: dict[str, Any] = {}
        if self.keep_languages is not None:
            found["keep_languages"] = self.keep_languages.split(",")
        if self.exclude:
            found["exclude"] = [{"name": one.name, "md5": one.md5} for one in self.exclude]
            found["exclude_ngram"] = self.exclude_ngram
        if self.dedup is not None:
            found["dedup"] = self.dedup
        if self.eval_share is not None:
            found["eval_share"] = self.eval_share
        return found


def _parse_share(given: str) -> str:
    """Check a percentage and return its shortest form, for example ``1.5%`` for ``1.50%``.

    Raises SettingsError if it is not between 0% and 100%.
    """
    try:
        percent = Decimal(given.removesuffix("%").strip())
        if given.endswith("%") and 0 < percent < 100:
            return f"{percent.normalize():f}%"
    except InvalidOperation:
        pass
    raise SettingsError(f"eval_share is {given!r}, expected a share such as 1%, above 0% and below 100%")


def _parse_languages(given: str) -> str:
    """Check a list of languages, and return their ISO 639-1 codes in order, each once, separated by commas.

    A language may be named as in a record's field. Raises SettingsError for an unknown language.
    """
    codes = {name: find_tagged_language(name) for name in given.split(",")}
    for name, code in codes.items():
        if code is None:
            raise SettingsError(f"keep_languages has {name.strip()!r}, expected {EXPECTED_LANGUAGE}")
    return ",".join(sorted({code for code in codes.values() if code is not None}))


def find_evaluation_files(paths: Sequence[str]) -> tuple[EvaluationFile, ...]:
    """Return the evaluation files that paths and patterns name, ordered by name."""
    files = sorted({file for path in paths for file in find_files([path], None).files})
    md5s = storage.map_paths(files, compute_file_md5)
    found = [
        EvaluationFile(path=path, name=storage.get_base_name(path), md5=md5)
        for path, md5 in zip(files, md5s, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.md5, one.path)))
