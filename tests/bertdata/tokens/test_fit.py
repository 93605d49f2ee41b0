"""Warnings where a vocabulary does not fit: unknown words and the other casing."""

import pytest

from bertdata.config.dialects import SPECIAL_TOKENS, find_dialect
from bertdata.records import Vocabulary
from bertdata.tokens.fit import warn_of_casing, warn_of_unknown_tokens
from bertdata.tokens.vocabulary import parse_vocabulary

LOWER = [f"{letter}{other}" for letter in "abcdefghijk" for other in "lmnopqrst"]
FEW_CAPITALS = [word.title() if number % 30 == 0 else word for number, word in enumerate(LOWER)]
CASED = [word.title() if number % 3 == 0 else word for number, word in enumerate(LOWER)]
SCRIPT = [chr(code) for code in range(0x4E00, 0x4E80)]


def vocabulary(words: list[str]) -> Vocabulary:
    lines = "".join(f"{word}\n" for word in (*SPECIAL_TOKENS, "[unused1]", *words))
    return parse_vocabulary(lines.encode(), "vocab.txt", find_dialect("mlperf"))


@pytest.mark.parametrize(
    ("words", "lower_case", "said"),
    [
        (LOWER, True, None),
        (LOWER, False, "vocab.txt: no token has a capital letter"),
        (CASED, True, "vocab.txt: 33 of 99 tokens have a capital letter"),
        (CASED, False, None),
        (FEW_CAPITALS, True, None),
        (FEW_CAPITALS, False, None),
        (SCRIPT, True, None),
        (SCRIPT, False, None),
        ([*SCRIPT, *LOWER], False, "no token has a capital letter"),
        ([word.replace("a", "ä") for word in CASED], True, "tokens have a capital letter"),
        ([], True, None),
        ([], False, None),
    ],
)
def test_a_vocabulary_of_the_other_casing_warns_with_the_remedy(
    words: list[str], lower_case: bool, said: str | None
) -> None:
    found = warn_of_casing(vocabulary(words), lower_case, remedies=("KEEP", "LOWER"))
    if said is None:
        assert found == []
    else:
        (warning,) = found
        assert said in warning
        assert ("; KEEP, or choose an uncased" if lower_case else "; LOWER, or choose a cased") in warning
        assert "\n" not in warning


@pytest.mark.parametrize(
    ("unknown", "tokens", "share"),
    [(None, 100, None), (0, 0, None), (0, 100, None), (2, 100, None), (3, 100, "3.0%"), (237, 1000, "23.7%")],
)
def test_more_than_two_percent_of_unknown_tokens_warn(
    unknown: int | None, tokens: int, share: str | None
) -> None:
    found = warn_of_unknown_tokens(unknown, tokens, "part")
    assert len(found) == (share is not None)
    if share is not None:
        assert found[0].startswith(f"part: {share} of {tokens} tokens are [UNK], more than 2%: ")
        assert "choose one of its language and casing" in found[0]
