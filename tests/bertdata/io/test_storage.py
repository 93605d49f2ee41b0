"""Local paths that are no files: refused at once, by every way in."""

import os
import socket
from pathlib import Path

import pytest

from bertdata.errors import MissingInputError
from bertdata.io import storage
from tests.support.commands import SMALL


@pytest.fixture(params=["pipe", "socket", "device"])
def special(request, tmp_path) -> tuple[str, str]:
    """A path and what it is."""
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    else:
        path = Path("/dev/zero")
    return str(path), request.param


def test_it_is_refused_instead_of_waited_for(special):
    path, kind = special
    for read in (storage.read_bytes, storage.read_size, lambda path: storage.open_input(path).__enter__()):
        with pytest.raises(MissingInputError, match=f"^{path}: is a {kind}, expected a file$"):
            read(path)


@pytest.mark.parametrize(
    "words",
    [
        ("create", "{special}", "--output", "{place}/out", "--vocab", "{vocabulary}", *SMALL),
        ("create", "{part}", "--output", "{place}/out", "--vocab", "{special}", *SMALL),
        ("segment", "{special}", "--output", "{place}/out", "--workers=1"),
        ("show", "{special}"),
        ("md5", "{special}"),
        ("verify-md5", "{special}"),
        ("train-vocab", "{special}", "--output", "{place}/vocab.txt", "--size", "100"),
    ],
)
def test_commands_end_with_one_line(words, special, bertdata, tmp_path, small_vocabulary_file):
    path, kind = special
    part = tmp_path / "part"
    part.write_text("one sentence\n")
    places = {"special": path, "place": tmp_path, "vocabulary": small_vocabulary_file, "part": part}
    outcome = bertdata(*(word.format(**places) for word in words))
    assert outcome.status in (1, 2)
    assert f"{path}: is a {kind}, expected a file" in outcome.err
