"""Settings and counts of the text stage."""

from dataclasses import dataclass, fields
from typing import Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import ENGLISH, language_of, table_md5s
from bertdata.text.punkt.variants import ALIASES, VARIANTS, variant_named

TEXT_RECIPES = ("mlperf", "nvidia")
PUNKT_NAMES = (*VARIANTS, *ALIASES)
LEFT_OUT_COUNTS = ("malformed", "empty", "too_long", "other_language", "excluded", "duplicate", "withheld")
"""Counters of records that are not trained on, in the order in which they are looked for."""
OF_RUN = ("withheld_in_training", "unprotected")
"""Counters of a whole run, which no file has a share of."""
NVIDIA_TEXT = ("nvidia", "habana")
"""The recipes of shards with NVIDIA's text stage; all others have MLPerf's."""
_PREFIX = "wikicorpus_"
YES_NO = ("yes", "no")
_NOT_IN_MANIFEST = ("language", "abbreviations", "escaped_articles")
"""Settings that a manifest holds in another form: the kind of each input says whether it was escaped."""

_OF_RECIPE = {
    "mlperf": ("eval_articles", "block_size"),
    "nvidia": ("training_shards", "test_shards", "test_fraction", "prefix"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSettings:
    """Everything, besides the extracted files and the Punkt tables, that decides the text's bytes.

    ``eval_articles`` and ``block_size`` count for the recipe mlperf only; the shards, their fraction and
    the prefix for nvidia only. An alias given for ``punkt`` becomes the variant that it names, the name of
    a language its code; the prefix of one but English ends with that code where none is given.
    """

    recipe: str = setting(
        "mlperf",
        "whose parts to make: mlperf (part-00000-of-00500 ..., eval.txt) or nvidia (training, test shards)",
    )
    eval_articles: int = setting(
        10_000, "mlperf: articles to hold out for evaluation, in eval.txt; lower it for a small dump"
    )
    block_size: float = setting(26.92, "mlperf: largest part, in MiB of extracted text")
    training_shards: int = setting(256, "nvidia: training shards to make")
    test_shards: int = setting(256, "nvidia: test shards to make")
    test_fraction: float = setting(
        0.1, "nvidia: share of the sentences that go to the test shards, approximately"
    )
    punkt: str = setting(
        "3.4.5",
        "NLTK release whose sentence boundaries to reproduce: 3.4.5 (MLPerf's published data), 3.10.0 or "
        "3.10.4; current is another name for 3.10.0",
    )
    prefix: str = setting(_PREFIX + ENGLISH, "nvidia: beginning of the shards' file names")
    language: str = setting(
        ENGLISH,
        "language of the text, an ISO 639-1 code. Punkt splits sentences in cs da de el en es et fi fr it ml "
        "nl no pl pt ru sl sv tr, end marks split them in ja ko zh. In any other language each line is a "
        "sentence",
    )
    abbreviations: Abbreviations | None = setting(
        None,
        "file of abbreviations that Punkt's tables lack, one per line, such as Nr. or z. B.; # starts a "
        "comment",
    )
    escaped_articles: str | None = setting(
        None,
        "for articles without a manifest: yes if their extractor wrote &amp; for & (such escapes are undone "
        "once), no to keep the text as it is. Where there is a manifest, it says which",
        YES_NO,
    )

    def __post_init__(self) -> None:
        _check(
            self.recipe in TEXT_RECIPES,
            f"recipe is {self.recipe!r}, expected one of {', '.join(TEXT_RECIPES)}",
        )
        _check(self.eval_articles >= 0, f"eval_articles is {self.eval_articles}, expected 0 or more")
        _check(
            0 < self.block_size < float("inf"), f"block_size is {self.block_size} MiB, expected more than 0"
        )
        for name in ("training_shards", "test_shards"):
            value = getattr(self, name)
            _check(value >= 1, f"{name} is {value}, expected 1 or more")
        _check(0 <= self.test_fraction <= 1, f"test_fraction is {self.test_fraction}, expected 0 to 1")
        _check(
            self.punkt in PUNKT_NAMES,
            f"punkt is {self.punkt!r}, expected one of {', '.join(PUNKT_NAMES)}",
        )
        object.__setattr__(self, "punkt", variant_named(self.punkt))
        _check(
            bool(self.prefix) and not set(self.prefix) & set("/\\"),
            f"prefix is {self.prefix!r}, expected the beginning of a file name",
        )
        check_escaped_articles(self.escaped_articles)
        self._check_language()

    def _check_language(self) -> None:
        language = language_of(self.language)
        object.__setattr__(self, "language", language.code)
        if self.prefix == _PREFIX + ENGLISH:
            object.__setattr__(self, "prefix", _PREFIX + language.code)
        _check(
            self.abbreviations is None or language.splitting == "punkt",
            f"abbreviations go with a language that has Punkt tables, not with {language.code}",
        )
        _check(
            self.recipe != "nvidia" or language.splitting != "lines",
            f"language is {language.code!r}, of which each line of text is a sentence, but the recipe nvidia "
            "makes one line of an article; choose the recipe mlperf",
        )

    def as_json(self) -> dict[str, Any]:
        """The settings that count for the recipe, but ``punkt``, as a manifest holds them."""
        names = ("recipe", *_OF_RECIPE[self.recipe])
        return {name: getattr(self, name) for name in names} | self._of_language()

    def by_name(self) -> dict[str, Any]:
        """All settings, those of the language as a manifest holds them."""
        others = [item.name for item in fields(self) if item.name not in _NOT_IN_MANIFEST]
        return {name: getattr(self, name) for name in others} | self._of_language()

    def _of_language(self) -> dict[str, Any]:
        return language_entries(self.language, self.abbreviations)

    def tables(self) -> dict[str, str]:
        """The md5s of the Punkt tables that split the text, by file name."""
        return table_md5s(language_of(self.language))


def language_entries(language: str, abbreviations: Abbreviations | None) -> dict[str, Any]:
    """Entries of a manifest on the language: none of English, of another one ``between`` too."""
    found: dict[str, Any] = {}
    if language != ENGLISH:
        found |= {"language": language, "between": language_of(language).between}
    if abbreviations is not None:
        found["abbreviations"] = abbreviations.md5
    return found


def check_escaped_articles(value: str | None) -> None:
    """SettingsError for another value than yes or no."""
    _check(value in (None, *YES_NO), f"escaped_articles is {value!r}, expected one of {', '.join(YES_NO)}")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@dataclass(kw_only=True, slots=True)
class SegmentCounts:
    """Counts of a run's input and output.

    withheld: articles in eval.txt (mlperf). empty: articles without text, which make no output, and
    lines_outside: lines of text that no article holds (both nvidia; the original drops them too).
    unescaped: files of articles whose escapes were taken back, such as ``&amp;``.
    Of records: empty, malformed, too_long, other_language, excluded, duplicate: those that are left out.

    Of the whole run, None where nothing is withheld or excluded, or nobody counted: withheld_in_training,
    withheld texts that stand in the text to train on as well; unprotected, texts of evaluation sets
    (--exclude) that are too short to be looked for.
    """

    files: int = 0
    articles: int = 0
    sentences: int = 0
    withheld: int = 0
    empty: int = 0
    lines_outside: int = 0
    unescaped: int = 0
    malformed: int = 0
    too_long: int = 0
    other_language: int = 0
    excluded: int = 0
    duplicate: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    withheld_in_training: int | None = None
    unprotected: int | None = None

    def add(self, other: "SegmentCounts") -> None:
        """Add the other counts to these. Those of the whole run stay as they are."""
        for item in fields(self):
            if item.name not in OF_RUN:
                setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
