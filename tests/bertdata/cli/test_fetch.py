"""bertdata fetch dump, squad, mrpc: against a server of the test's own."""

import hashlib
from collections.abc import Iterator

import pytest

from bertdata.cli.main import main
from bertdata.io import published_files
from tests.support.file_server import FileServer, serving

DUMP = b"BZh9 not really a dump " * 1000
NAME = "simplewiki-20261101-pages-articles-multistream.xml.bz2"


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server laid out as Wikimedia's."""
    with serving() as one:
        place, sums = "/simplewiki/20261101", f"{hashlib.md5(DUMP).hexdigest()}  {NAME}\n"
        sums = f"{'0' * 32}  simplewiki-20261101-pages-articles-multistream-index.txt.bz2\n{sums}"
        one.files[f"{place}/simplewiki-20261101-md5sums.txt"] = sums.encode()
        one.files["/simplewiki/latest/simplewiki-latest-md5sums.txt"] = sums.encode()
        one.files[f"{place}/{NAME}"] = DUMP
        yield one


@pytest.mark.parametrize("date", ["20261101", "2026-11-01", "latest"])
def test_a_dump_is_held_against_the_md5_that_its_server_publishes(server, tmp_path, capsys, date):
    words = ["fetch", "dump", "simple", date, "--output", str(tmp_path), "--server", server.url]
    assert main(words) == 0
    assert (tmp_path / NAME).read_bytes() == DUMP
    told = capsys.readouterr()
    assert told.out == f"{hashlib.md5(DUMP).hexdigest()}  {tmp_path / NAME}\n"
    assert told.err == f"{NAME}: 23000 of 23000 bytes\n"
    server.files.pop(f"/simplewiki/20261101/{NAME}")
    assert main(words) == 0  # it is there, and its md5 right


def test_a_dump_of_another_md5_is_refused(server, tmp_path, capsys):
    server.files[f"/simplewiki/20261101/{NAME}"] = DUMP[:-1] + b"?"
    words = ["fetch", "dump", "simple", "20261101", "--output", str(tmp_path), "--server", server.url]
    assert main(words) == 1
    assert f"published is {hashlib.md5(DUMP).hexdigest()}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("dump", "simple", "20200101"), 1, "there is no such dump; Wikimedia keeps the newest few"),
        (("dump", "simple", "yesterday"), 2, "'yesterday' is no date of a dump, expected YYYYMMDD or latest"),
        (("dump", "../x", "20261101"), 2, "'../x' is no language of a Wikipedia"),
        (("dump", "simple"), 2, "fetch dump takes LANGUAGE DATE, simple is given"),
        (("squad", "3"), 2, "SQuAD '3' is not known; known are 1.1, 2.0"),
        (("mrpc", "small"), 2, "fetch mrpc takes no name, small is given"),
        (("vocab", "bert"), 2, "'bert' is not known; known are bert-base-uncased, bert-base-cased, "),
        (("squad", "--server", "foo"), 2, "--server foo: is no address, expected one as https://host/path"),
        (
            ("dump", "simple", "latest", "--server", "http://host:99999"),
            2,
            "--server http://host:99999: is no",
        ),
        (("mrpc", "--server", "http://127.0.0.1/a b"), 2, "--server http://127.0.0.1/a b: is no"),
        (("vocab", "--server", "x"), 2, "--server goes with dump, squad and mrpc, not with vocab"),
        (("squad", "--language", "de"), 2, "--language goes with punkt, not with squad"),
        (("squads",), 2, "invalid choice: 'squads'"),
    ],
)
def test_a_wrong_request_is_one_line(server, tmp_path, capsys, words, status, told):
    place = [] if "--server" in words or words[0] == "vocab" else ["--server", server.url]
    place += [] if words[0] == "vocab" else ["--output", str(tmp_path)]
    try:
        found = main(["fetch", *words, *place])
    except SystemExit as ended:
        found = int(ended.code or 0)
    (line,) = capsys.readouterr().err.splitlines()
    assert (found, told in line) == (status, True), line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "known", "names"),
    [
        (["squad"], "_SQUAD", ("train-v1.1.json", "dev-v1.1.json")),
        (["squad", "2.0"], "_SQUAD", ("train-v2.0.json", "dev-v2.0.json")),
        (["mrpc"], "_MRPC", ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")),
    ],
)
def test_squad_and_mrpc_come_under_the_names_that_fine_tuning_looks_for(
    tmp_path, server, monkeypatch, words, known, names
):
    sums = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    assert all(len(digest) == 64 for digest in _digests(known, words))
    monkeypatch.setattr(published_files, known, {words[-1]: sums, "1.1": sums} if known == "_SQUAD" else sums)
    server.files |= {f"/{name}": name.encode() for name in names}
    assert main(["fetch", *words, "--output", str(tmp_path), "--server", server.url]) == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: name for name in names}


def _digests(known: str, words: list[str]) -> list[str]:
    """The published digests, as the module has them."""
    table = getattr(published_files, known)
    return list((table[words[1] if words[1:] else "1.1"] if known == "_SQUAD" else table).values())
