"""Warnings about text that can be read without error but looks wrong."""

from bertdata.config.dialects import find_dialect
from bertdata.errors import InputError
from bertdata.io.file_kind import looks_like_latin1, suggest_utf8_remedy
from bertdata.records import Documents
from bertdata.tokens.lines import drop_bad_utf8


def check_documents(documents: Documents, name: str) -> None:
    """Raise InputError if the input has no sentences."""
    if not documents.sentences:
        raise InputError(
            f"{name}: holds no sentences, expected one sentence a line, a blank line between documents"
        )


def list_dropped_byte_warnings(text: bytes, name: str, dialect: str | None) -> list[str]:
    """Return warnings about NUL bytes in a text, and about bytes that the tokeniser drops.

    name: name of the text, for the warnings.
    dialect: name of the rules by which the text is read. None for a tokenizer.json, which drops no bytes.
    """
    found = []
    if nuls := text.count(0):
        line = text.count(b"\n", 0, text.index(0)) + 1
        fate = ", all dropped" if dialect else ""
        found.append(f"{name}: line {line}: the first of {nuls} NUL bytes{fate}; is this file UTF-8 text?")
    if dialect is not None and find_dialect(dialect).drops_bad_utf8:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            dropped, line = len(text) - len(drop_bad_utf8(text)), text.count(b"\n", 0, error.start) + 1
            warning = f"{name}: line {line}: the first of {dropped} bytes that are not UTF-8, all dropped"
            found.append(
                f"{warning}; {suggest_utf8_remedy(text, name)}" if looks_like_latin1(text) else warning
            )
    return found
