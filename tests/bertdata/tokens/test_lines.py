"""Texts that are joined to one text."""

import pytest

from bertdata.tokens.lines import join_inputs


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([b"a"], b"a"),
        ([b"a", b"b"], b"a\nb\n"),
        ([b"a\n", b"b\n\n", b"c"], b"a\nb\n\nc\n"),
        ([b"", b"a", b""], b"a\n"),
        ([b"", b""], b""),
    ],
)
def test_a_text_whose_last_line_has_no_end_gets_one(texts: list[bytes], expected: bytes) -> None:
    assert join_inputs(texts) == expected
