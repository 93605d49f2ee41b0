"""Vocabularies of the oldest and the newest release that the extra ``vocab`` allows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import finish, start
from tests.support.paths import ROOT

OLDEST = {"tokenizers": "0.20.0", "sentencepiece": "0.2.0"}
NEWEST = dict(re.findall(r"(?m)^(tokenizers|sentencepiece)==(\S+)$", (ROOT / "constraints.txt").read_text()))
FIRST_BEYOND = {"tokenizers": "0.24", "sentencepiece": "0.3"}


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


def train(corpus: list[Path], kind: str, path: Path, packages: Path | None = None) -> dict[str, Any]:
    """Train with the packages of a directory, and return the manifest."""
    paths = [str(packages), str(ROOT)] if packages else [str(ROOT)]
    flags = ("--output", path, "--size=1500", "--kind", kind)
    outcome = finish(
        start("train-vocab", *corpus, *flags, environment={"PYTHONPATH": os.pathsep.join(paths)})
    )
    assert outcome.status == 0, outcome.err
    found: dict[str, Any] = json.loads(Path(f"{path}.manifest.json").read_bytes())
    return found


@pytest.mark.thorough
def test_wordpiece_and_bpe_have_the_same_bytes_with_the_oldest_and_the_newest_tokenizers(
    packages: Any, corpus: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("tokenizers")
    oldest = packages("tokenizers", OLDEST["tokenizers"])
    for kind, name in (("wordpiece", "vocab.txt"), ("wordpiece", "w.json"), ("bpe", "b.json")):
        train(corpus, kind, tmp_path / name)
        manifest = train(corpus, kind, tmp_path / f"old-{name}", oldest)
        assert manifest["versions"] == {"tokenizers": OLDEST["tokenizers"]}
        assert (tmp_path / name).read_bytes() == (tmp_path / f"old-{name}").read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("end", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_unigram_is_the_same_each_time_with_one_sentencepiece_and_knows_its_text(
    end: dict[str, str], packages: Any, corpus: list[Path], tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    place = packages("sentencepiece", end["sentencepiece"])
    for name in ("a.json", "b.json"):
        manifest = train(corpus, "unigram", tmp_path / name, place)
        assert manifest["versions"]["sentencepiece"] == end["sentencepiece"]
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
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
        2, "train-vocab needs tokenizers 0.20 or newer, found 0.19.1: pip install '.[vocab]'"
    )
