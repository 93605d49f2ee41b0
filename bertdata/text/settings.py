"""Settings and counts of the text stage, that is, of the command ``segment``."""

from dataclasses import dataclass, fields
from typing import Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import ENGLISH, find_language, list_table_md5s
from bertdata.text.punkt.variants import ALIASES, VARIANTS, find_variant

TEXT_RECIPES = ("mlperf", "nvidia")
PUNKT_NAMES = (*VARIANTS, *ALIASES)
LEFT_OUT_COUNTS = ("malformed", "empty", "too_long", "other_language", "excluded", "duplicate", "withheld")
"""Counters of records that are not trained on, in the order in which the reasons are checked."""
RUN_COUNTERS = ("withheld_in_training", "unprotected")
"""Counters that exist only for a whole run, not for a single file."""
NVIDIA_TEXT_RECIPES = ("nvidia", "habana")
"""Recipes whose shards are made from NVIDIA's text. All other recipes use MLPerf's text."""
_PREFIX = "wikicorpus_"
YES_NO = ("yes", "no")
_NOT_IN_MANIFEST = ("language", "abbreviations", "escaped_articles")
"""Settings that a manifest does not store under their own names.

For example, the kind of each input in the manifest says whether its text was escaped.
"""

_RECIPE_SETTINGS = {
    "mlperf": ("eval_articles", "block_size"),
    "nvidia": ("training_shards", "test_shards", "test_fraction", "prefix"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSettings:
    """Settings of ``segment`` for the recipes mlperf and nvidia.

    Together with the input files and Punkt's tables, they determine every byte of the output.

    ``eval_articles`` and ``block_size`` apply to the recipe mlperf only. The numbers of shards,
    ``test_fraction`` and ``prefix`` apply to nvidia only. In a finished object, an alias in ``punkt`` is
    replaced by the variant, and a name in ``language`` by the code. The default prefix ends with the code of
    the language.
    """

    recipe: str = setting(
        "mlperf",
        "program whose text files to make: mlperf (part-00000-of-00500 ..., eval.txt) or nvidia "
        "(training and test shards)",
    )
    eval_articles: int = setting(
        10_000,
        "for the recipe mlperf: number of articles to hold out for evaluation, in eval.txt; a small "
        "dump needs a smaller number",
    )
    block_size: float = setting(26.92, "for the recipe mlperf: largest part, in MiB of extracted text")
    training_shards: int = setting(256, "for the recipe nvidia: number of training shards to make")
    test_shards: int = setting(256, "for the recipe nvidia: number of test shards to make")
    test_fraction: float = setting(
        0.1, "for the recipe nvidia: approximate share of the sentences that go to the test shards"
    )
    punkt: str = setting(
        "3.4.5",
        "NLTK release whose sentence boundaries to reproduce: 3.4.5 (MLPerf's published data), 3.10.0 or "
        "3.10.4; current is another name for 3.10.0",
    )
    prefix: str = setting(_PREFIX + ENGLISH, "for the recipe nvidia: beginning of the shards' file names")
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
        "whether articles without a manifest have escapes. yes: their extractor wrote &amp; for &, and "
        "these escapes are undone once; no: the text is kept as it is. For articles with a manifest, the "
        "manifest says it",
        YES_NO,
    )

    def __post_init__(self) -> None:
        _require(
            self.recipe in TEXT_RECIPES,
            f"recipe is {self.recipe!r}, expected one of {', '.join(TEXT_RECIPES)}",
        )
        _require(self.eval_articles >= 0, f"eval_articles is {self.eval_articles}, expected 0 or more")
        _require(
            0 < self.block_size < float("inf"), f"block_size is {self.block_size} MiB, expected more than 0"
        )
        for name in ("training_shards", "test_shards"):
            value = getattr(self, name)
            _require(value >= 1, f"{name} is {value}, expected 1 or more")
        _require(0 <= self.test_fraction <= 1, f"test_fraction is {self.test_fraction}, expected 0 to 1")
        _require(
            self.punkt in PUNKT_NAMES,
            f"punkt is {self.punkt!r}, expected one of {', '.join(PUNKT_NAMES)}",
        )
        object.__setattr__(self, "punkt", find_variant(self.punkt))
        _require(
            bool(self.prefix) and not set(self.prefix) & set("/\\"),
            f"prefix is {self.prefix!r}, expected the beginning of a file name",
        )
        check_escaped_articles(self.escaped_articles)
        self._check_language()

    def _check_language(self) -> None:
        """Replace the language's name by its code. Raise SettingsError if a setting does not suit it."""
        language = find_language(self.language)
        object.__setattr__(self, "language", language.code)
        if self.prefix == _PREFIX + ENGLISH:
            object.__setattr__(self, "prefix", _PREFIX + language.code)
        _require(
            self.abbreviations is None or language.splitting == "punkt",
            f"abbreviations go with a language that has Punkt tables, not with {language.code}",
        )
        _require(
            self.recipe != "nvidia" or language.splitting != "lines",
            f"language is {language.code!r}, of which each line of text is a sentence, but the recipe nvidia "
            "makes one line of an article; choose the recipe mlperf",
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings that apply to the recipe, as a manifest stores them.

        ``punkt`` is left out, because the manifest stores it in another place.
        """
        names = ("recipe", *_RECIPE_SETTINGS[self.recipe])
        return {name: getattr(self, name) for name in names} | self._make_language_entries()

    def as_dict(self) -> dict[str, Any]:
        """Return all settings by name, with the language's settings as a manifest stores them."""
        others = [item.name for item in fields(self) if item.name not in _NOT_IN_MANIFEST]
        return {name: getattr(self, name) for name in others} | self._make_language_entries()

    def _make_language_entries(self) -> dict[str, Any]:
        return make_language_entries(self.language, self.abbreviations)

    def languages(self) -> tuple[str, ...]:
        """Return the ISO 639-1 code of the text's language, as the only item."""
        return (self.language,)

    def tables(self) -> dict[str, str]:
        """Return the md5 of each file of the language's Punkt tables, by file name.

        The dict is empty for a language without Punkt tables.
        """
        return list_table_md5s(find_language(self.language))


def make_language_entries(language: str, abbreviations: Abbreviations | None) -> dict[str, Any]:
    """Make the entries of a manifest about the language and the abbreviations.

    There are none for English without abbreviations. For another language they include ``between``, the text
    between two sentences.
    """
    found: dict[str, Any] = {}
    if language != ENGLISH:
        found |= {"language": language, "between": find_language(language).between}
    if abbreviations is not None:
        found["abbreviations"] = abbreviations.md5
    return found


def check_escaped_articles(value: str | None) -> None:
    """Raise SettingsError if the setting ``escaped_articles`` is not "yes", "no" or None."""
    _require(value in (None, *YES_NO), f"escaped_articles is {value!r}, expected one of {', '.join(YES_NO)}")


def _require(holds: bool, message: str) -> None:
    """Raise SettingsError with this message if ``holds`` is False."""
    if not holds:
        raise SettingsError(message)


@dataclass(kw_only=True, slots=True)
class SegmentCounts:
    """Counts of the input and output of a run, or of one file.

    withheld: articles in eval.txt (mlperf), or documents held out (records).
    empty: articles or records without text.
    lines_outside: lines with text outside of articles. The recipe nvidia drops them, as NVIDIA's program
        does.
    malformed: records that are not valid.
    too_long: records whose text is too long.
    other_language: records in languages that the run does not keep.
    excluded: records that contain a text of an evaluation set.
    duplicate: records whose text occurred in an earlier record.
    unescaped: number of files of articles whose escapes such as ``&amp;`` were undone.

    Two counters exist only for a whole run. They are None if they were not counted:

    withheld_in_training: withheld texts that are also in the training text.
    unprotected: texts of evaluation sets (--exclude) that are too short to be searched for.
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
        """Add the counts of another file to these counts, except the counters in RUN_COUNTERS."""
        for item in fields(self):
            if item.name not in RUN_COUNTERS:
                setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
