"""Fixtures of the kit's oracles for encoders."""

from pathlib import Path

import pytest

from tests.support.encoders_kit import BYTE_PAIRS, TEXTS, WORD_PIECES, Lines, text_lines


@pytest.fixture(scope="session")
def encoders(kit: Path) -> Path:
    folder = kit / "encoders"
    if not folder.is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return folder


@pytest.fixture(scope="session")
def lines(kit: Path, encoders: Path) -> dict[str, Lines]:
    """The ids of the kit's texts by both tokenisers, those that fairseq read."""
    names = [(text, tokens) for text in TEXTS for tokens in (WORD_PIECES, BYTE_PAIRS)]
    return {f"{text}__{tokens}": text_lines(kit, text, tokens) for text, tokens in names}
