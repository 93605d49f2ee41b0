"""Settings and counts of the text stage."""

from dataclasses import dataclass, fields
from typing import Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.text.punkt.variants import ALIASES, VARIANTS, variant_named

TEXT_RECIPES = ("mlperf", "nvidia")
PUNKT_NAMES = (*VARIANTS, *ALIASES)
_OF_RECIPE = {
    "mlperf": ("eval_articles", "block_size"),
    "nvidia": ("training_shards", "test_shards", "test_fraction", "prefix"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSettings:
    """Everything, besides the extracted files and the Punkt tables, that decides the text's bytes.

    ``eval_articles`` and ``block_size`` count for the recipe mlperf only; the shards, their fraction and
    the prefix for nvidia only. An alias given for ``punkt`` becomes the variant that it names.
    """

    recipe: str = setting("mlperf", "whose text stage to follow: mlperf or nvidia")
    eval_articles: int = setting(
        10_000, "articles withheld for evaluation, over all files; a small dump has to give fewer"
    )
    block_size: float = setting(26.92, "largest part in MiB of extracted text")
    training_shards: int = setting(256, "number of training shards")
    test_shards: int = setting(256, "number of test shards")
    test_fraction: float = setting(0.1, "share of the sentences that the test shards aim at")
    punkt: str = setting(
        "3.4.5",
        "release of nltk whose sentence ends to place: 3.4.5 (published data), 3.10.0, 3.10.4; current means "
        "3.10.0",
    )
    prefix: str = setting("wikicorpus_en", "what the shards' names begin with")

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

    def as_json(self) -> dict[str, Any]:
        """The settings that count for the recipe, but ``punkt``, as a manifest holds them."""
        names = ("recipe", *_OF_RECIPE[self.recipe])
        return {name: getattr(self, name) for name in names}


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@dataclass(kw_only=True, slots=True)
class SegmentCounts:
    """Counts of a run's input and output.

    withheld: articles in eval.txt (mlperf). empty: articles without text, which make no output, and
    lines_outside: lines of text that no article holds (both nvidia; the original drops them too).
    """

    files: int = 0
    articles: int = 0
    sentences: int = 0
    withheld: int = 0
    empty: int = 0
    lines_outside: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def add(self, other: "SegmentCounts") -> None:
        """Add the other counts to these."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
