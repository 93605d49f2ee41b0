"""Vocabularies of the oldest and the newest release that the extra ``vocab`` allows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bertdata.io.file_check import compute_md5
from tests.support.commands import Program, finish, start
from tests.support.paths import ROOT

OLDEST = {"tokenizers": "0.20.0", "sentencepiece": "0.2.0"}
NEWEST = dict(re.findall(r"(?m)^(tokenizers|sentencepiece)==(\S+)$", (ROOT / "constraints.txt").read_text()))
FIRST_BEYOND = {"tokenizers": "0.24", "sentencepiece": "0.3"}

SIZE = 1500
MD5S = {
    ("wordpiece", "vocab.txt"): "949a455b4eedf3e61e1ab4e0227f134d",
    ("wordpiece", "w.json"): "7394747dcd1ed1e2053b7b1f4e24f284",
    ("bpe", "b.json"): "afaae5d50c5015deffb8a06c3bbd9a97",
}
"""Of vocabularies of the sample corpus, made with tokenizers 0.20.0 and again with 0.23.3."""
PIECES = {
    "0.2.0": "5a46682b90545b921ff81c2a316afea7",
    "0.2.1": "5a46682b90545b921ff81c2a316afea7",
    "0.2.2": "a8b8953c416418e806c135b1385fde54",
    "0.2.3": "ba8aca49be611e5b30940eaaef5a9374",
}
"""Of the pieces, one a line, of a unigram of the sample corpus, by the release of sentencepiece that learned.
The scores are left out: another processor may give other last digits."""


def release(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def test_the_extra_allows_the_releases_that_are_tested() -> None:
    ranges = [f"{name}>={OLDEST[name].removesuffix('.0')},<{FIRST_BEYOND[name]}" for name in OLDEST]
    assert f'"vocab": {json.dumps(ranges)},' in (ROOT / "setup.py").read_text()
    for name, newest in NEWEST.items():
        *front, last = release(FIRST_BEYOND[name])
        assert release(newest)[:2] == (*front, last - 1)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The directory of a release of a package, installed there."""

    def install(package: str, number: str) -> Path:
        place = tmp_path_factory.mktemp(package)
        words = ["install", "--quiet", "--no-deps", "--target", str(place), f"{package}=={number}"]
        done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{package} {number} cannot be installed here: {done.stderr[-300:]}")
        return place

    return install


def train_with(packages: Path, corpus: list[Path], kind: str, path: Path) -> dict[str, str]:
    """Train with the packages of a directory, and return the releases that the manifest names."""
    flags = ("--output", path, "--size", SIZE, "--kind", kind)
    environment = {"PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)])}
    outcome = finish(start("train-vocab", *corpus, *flags, environment=environment))
    assert outcome.status == 0, outcome.err
    versions: dict[str, str] = json.loads(Path(f"{path}.manifest.json").read_bytes())["versions"]
    return versions


def pieces_md5(path: Path) -> str:
    """The md5 of the pieces of a unigram, one a line."""
    vocabulary = json.loads(path.read_bytes())["model"]["vocab"]
    return compute_md5("\n".join(piece for piece, _ in vocabulary).encode())


@pytest.mark.parametrize(("kind", "name"), MD5S)
def test_the_installed_tokenizers_gives_the_bytes_of_the_oldest(
    kind: str, name: str, bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("tokenizers")
    flags = ("--output", tmp_path / name, "--size", SIZE, "--kind", kind)
    assert bertdata("train-vocab", *corpus, *flags).status == 0
    assert compute_md5((tmp_path / name).read_bytes()) == MD5S[kind, name]


def test_the_installed_sentencepiece_gives_the_pieces_of_its_release(
    bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    release = pytest.importorskip("sentencepiece").__version__
    flags = ("--output", tmp_path / "u.json", "--size", SIZE, "--kind", "unigram")
    assert bertdata("train-vocab", *corpus, *flags).status == 0
    assert pieces_md5(tmp_path / "u.json") == PIECES[release]


def test_the_pieces_of_both_ends_are_recorded() -> None:
    assert {OLDEST["sentencepiece"], NEWEST["sentencepiece"]} <= PIECES.keys()


@pytest.mark.thorough
def test_wordpiece_and_bpe_have_the_same_bytes_with_the_oldest_tokenizers(
    packages: Any, corpus: list[Path], tmp_path: Path
) -> None:
    oldest = packages("tokenizers", OLDEST["tokenizers"])
    for (kind, name), md5 in MD5S.items():
        versions = train_with(oldest, corpus, kind, tmp_path / name)
        assert versions == {"tokenizers": OLDEST["tokenizers"]}
        assert compute_md5((tmp_path / name).read_bytes()) == md5


@pytest.mark.thorough
@pytest.mark.parametrize("end", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_a_unigram_is_the_same_each_time_with_one_sentencepiece_and_knows_its_text(
    end: dict[str, str], packages: Any, corpus: list[Path], tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    release = end["sentencepiece"]
    place = packages("sentencepiece", release)
    for name in ("a.json", "b.json"):
        assert train_with(place, corpus, "unigram", tmp_path / name)["sentencepiece"] == release
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert pieces_md5(tmp_path / "a.json") == PIECES[release]
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "a.json"))
    text = "".join(path.read_text(encoding="utf-8") for path in corpus)
    assert tokenizer.token_to_id("<unk>") not in tokenizer.encode(text).ids


@pytest.mark.thorough
def test_tokenizers_before_the_range_is_refused_in_one_line(
    packages: Any, corpus: list[Path], tmp_path: Path
) -> None:
    environment = {"PYTHONPATH": os.pathsep.join([str(packages("tokenizers", "0.19.1")), str(ROOT)])}
    flags = ("--output", tmp_path / "t.json", "--size=1200", "--kind=bpe")
    outcome = finish(start("train-vocab", *corpus, *flags, environment=environment))
    outcome.assert_one_error(
        2, "train-vocab needs tokenizers 0.20 or newer, found 0.19.1: pip install --editable '.[vocab]'"
    )
