"""Lists of md5s as md5sum, find, BSD's md5 and openssl print them."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bertdata.dataset.foreign_md5_lists import parse_md5_list
from bertdata.errors import ManifestError
from tests.support.commands import Program

EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
NAMES = ("a.txt", "two words.txt", " blank", "*star", "é.txt", "line\u2028sep", "sub/(b) = c.txt")
ODD_NAMES = ("new\nline", "back\\slash", "back\\nslash", "return\rhere")

needs_md5sum = pytest.mark.skipif(shutil.which("md5sum") is None, reason="there is no md5sum here")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory of files with names that are hard to list."""
    for name in (*NAMES, *ODD_NAMES):
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"contents of {name}")
    return tmp_path / "files"


def printed(command: str, directory: Path) -> bytes:
    """What a shell command prints in the directory."""
    return subprocess.run(["bash", "-c", command], cwd=directory, check=True, capture_output=True).stdout


def check_all_right(listed: bytes, directory: Path, number: int, bertdata: Program, *flags: str) -> None:
    """The list's files are right, and one of them is wrong once its bytes are changed."""
    path = directory / "SUMS"
    path.write_bytes(listed)
    outcome = bertdata("verify-md5", path, *flags)
    assert (outcome.status, outcome.out) == (0, f"{path}: {number} files right, sound\n"), outcome
    (directory / "a.txt").write_text("changed")
    outcome = bertdata("verify-md5", path, *flags)
    assert (outcome.status, outcome.out.count("wrong md5")) == (1, 1)


@needs_md5sum
@pytest.mark.parametrize(
    "command",
    [
        "find . -type f -exec md5sum {} +",
        "find . -type f -exec md5sum --binary {} +",
        "find . -type f -exec md5sum --zero {} +",
        "find . -type f -exec md5sum --tag {} +",
        'find "$PWD" -type f -exec md5sum {} +',
        "find .// -type f -exec md5sum {} + | sed 's/^/  /'",
        "find . -type f -exec md5sum {} + | sed 's/$/\\r/'",
        "echo '# made by hand'; find . -type f -exec md5sum {} +; echo; echo '#'",
        "echo '; made by a program'; find . -type f -exec md5sum {} +; echo ';'",
    ],
    ids=["find", "binary", "zero", "tag", "absolute", "indented", "crlf", "comments", "semicolons"],
)
def test_what_md5sum_prints_of_what_find_finds_is_checked(
    command: str, files: Path, bertdata: Program
) -> None:
    check_all_right(printed(command, files), files, len(NAMES) + len(ODD_NAMES), bertdata)


@pytest.mark.parametrize(
    "line",
    [
        lambda md5, name: f"MD5 ({name}) = {md5}",
        lambda md5, name: f"MD5({name})= {md5}",
        lambda md5, name: f"{md5} {name}",
        lambda md5, name: f"{md5.upper()}  ./{name}",
    ],
    ids=["bsd", "openssl", "bsd reversed", "capitals"],
)
def test_what_other_programs_print_is_checked(
    line: Callable[[str, str], str], files: Path, bertdata: Program
) -> None:
    # With one blank between, a name that begins with a blank or a star reads as md5sum's.
    names = [name for name in NAMES if name[0] not in " *"]
    lines = [line(hashlib.md5((files / name).read_bytes()).hexdigest(), name) for name in names]
    check_all_right("\n".join(lines).encode(), files, len(names), bertdata)


def test_a_name_that_is_not_utf8_is_checked(tmp_path: Path, bertdata: Program) -> None:
    name = os.fsencode(tmp_path) + b"/na\xefve"
    try:
        with open(name, "wb"):
            pass
    except OSError:
        pytest.skip("this file system has UTF-8 names alone")
    (tmp_path / "SUMS").write_bytes(EMPTY.encode() + b"  na\xefve\n")
    outcome = bertdata("verify-md5", tmp_path / "SUMS")
    assert (outcome.status, outcome.out) == (0, f"{tmp_path}/SUMS: 1 file right, sound\n")


def test_a_name_that_leads_out_of_the_directory_is_still_outside(files: Path, bertdata: Program) -> None:
    for name in ("../x", "./../x", "sub/../../x", "/etc/hostname", "http://host/x"):
        (files / "SUMS").write_text(f"{EMPTY}  {name}\n")
        outcome = bertdata("verify-md5", files / "SUMS")
        assert outcome.status == 1
        assert f"{name.removeprefix('./')}: outside; not in the list's own directory" in outcome.out


@pytest.mark.parametrize(
    "line", [EMPTY, f"{EMPTY}  ", f"{EMPTY[1:]}  a", f"SHA1 (a) = {EMPTY}", f"a {EMPTY}", f"  # {EMPTY}"]
)
def test_a_line_that_is_no_entry_is_named(line: str) -> None:
    data = f"# comment\n\n{EMPTY}  a\n{line}\n".encode()
    with pytest.raises(
        ManifestError, match=r"SUMS: line 4: found .*, expected an md5, two spaces, a name, or"
    ):
        parse_md5_list(data, "SUMS")


def test_a_list_of_comments_lists_no_file() -> None:
    with pytest.raises(ManifestError, match="SUMS: lists no file"):
        parse_md5_list(b"# nothing\n\n", "SUMS")
